"""Table references of a query: found by sqlglot, placed by their tokens.

sqlglot's grammar and Spark's differ: `empty_place` refuses what only sqlglot accepts, and of a
query that only Spark reads the tables are found by the words around them (`table_places`). The
lists of words were checked against the parser of Spark 4.3 with about 12,000 queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from penstock.lazy import exp
from penstock.model.files.source_map import Source
from penstock.sql.dialect import SPARK, parse
from penstock.sql.identifiers import fold
from penstock.sql.lexer import Lexer
from penstock.sql.query.edits import has_clause, query_starts
from penstock.sql.query.nesting import Unclear
from penstock.sql.query.reading import heads
from penstock.sql.tables import named_tables, span_of
from penstock.sql.text import DEEP_HINT, TOO_DEEP, Unreadable, mask
from penstock.sql.tokens import ARGUMENT, NAME, WORD, Token, closing, depth_of, may_be_alias


class UnreadableQuery(Exception):
    """The tables of the text cannot be told; ``offset`` is the place in the file."""

    def __init__(self, reason: str, offset: int, hint: str | None = None) -> None:
        self.offset = offset
        self.hint = hint
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class TableReference:
    """A name after FROM or JOIN that is not a CTE. Offsets are of the file.

    ``last`` indexes its last token; ``bare`` says that the query gives it no alias.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    last: int
    bare: bool


@dataclass(frozen=True, slots=True)
class References:
    """``unread`` is why sqlglot could not read the query, which Spark may."""

    tables: tuple[TableReference, ...]
    unread: UnreadableQuery | None = None


def find_references(
    source: Source,
    tokens: Sequence[Token],
    dialect: str,
    masked: Sequence[tuple[int, int, str]],
    hidden: frozenset[str],
    *,
    lexer: Lexer | None = None,
) -> References:
    """References in the statement that ``tokens`` make.

    ``masked`` are spans that sqlglot must not see, with what it sees instead; ``hidden`` are
    folded names of temporary tables. Raises :class:`UnreadableQuery`.
    """
    computed = computed_name(tokens)
    if computed is not None:  # a value would choose what is read, and Spark takes paths there
        reason = "a table's name cannot be computed by IDENTIFIER(...)"
        hint = "write the name, or read_csv(...) for a file"
        raise UnreadableQuery(reason, computed.start, hint)
    start, end = tokens[0].start, tokens[-1].end
    spans = [*masked, *own_masks(tokens)]
    text = mask(source.text, spans)[start:end]
    try:
        tree = parse(text, dialect, lexer)[0]
    except Unreadable as unread:
        deep = DEEP_HINT if TOO_DEEP in str(unread) else None
        error = UnreadableQuery(f"the query cannot be read{unread}", start + unread.at, deep)
        if dialect != SPARK or not is_sparks_own(tokens, str(error)):
            raise error from None
        return References(tuple(_by_tokens(tokens, masked, hidden)), error)
    return References(tuple(_tables(tree, tokens, start, hidden)))


def _by_tokens(
    tokens: Sequence[Token], masked: Sequence[tuple[int, int, str]], hidden: frozenset[str]
) -> Iterator[TableReference]:
    seen = [
        (index, token)
        for index, token in enumerate(tokens)
        if not any(start <= token.start < end for start, end, _ in masked)
    ]
    visible = [token for _, token in seen]
    for place in table_places(visible):
        name = visible[place.first : place.last + 1 : 2]
        parts, end = tuple(token.value for token in name), visible[place.last].end
        if len(parts) > 1 or parts[0].casefold() not in hidden:
            yield TableReference(parts, name[0].start, end, seen[place.last][0], place.bare)


def own_masks(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """Yield what the parser does not know: arguments, TABLE queries, MATCH_CONDITION."""
    for index, token in enumerate(tokens):
        if token.kind == ARGUMENT:
            yield token.start, token.end, f"'{'x' * (token.end - token.start - 2)}'"
        if token.upper == "MATCH_CONDITION" and tokens[index + 1 : index + 2]:
            yield from _match_condition(tokens, index)
    for _, token in query_starts(tokens):
        if token.upper == "TABLE":
            yield token.start, token.end, "FROM"


def _match_condition(tokens: Sequence[Token], index: int) -> Iterator[tuple[int, int, str]]:
    """``MATCH_CONDITION (a) ON b`` reads as ``ON (a) OR b``: the columns are what counts."""
    close = closing(tokens, index + 1)
    following = tokens[close + 1 : close + 2] if close is not None else ()
    if close is not None and following and following[0].upper == "USING":
        yield tokens[index].start, tokens[close].end, ""
        return
    yield tokens[index].start, tokens[index].end, "ON"
    if following and following[0].upper == "ON":
        yield following[0].start, following[0].end, "OR"


def _tables(
    tree: exp.Expr, tokens: Sequence[Token], start: int, hidden: frozenset[str]
) -> Iterator[TableReference]:
    by_end = {token.start + len(token.text): index for index, token in enumerate(tokens)}
    for table in named_tables(tree):
        parts = tuple(part.name for part in table.parts)
        if len(parts) == 1 and parts[0].casefold() in hidden:
            continue
        first, last = (start + at for at in span_of(table))
        if last not in by_end:  # sqlglot made the name of something that is not a token
            raise UnreadableQuery(f"the table `{'.'.join(parts)}` cannot be placed", first)
        bare = not table.alias and isinstance(
            table.parent, exp.From | exp.Join | exp.Subquery | exp.Paren
        )
        yield TableReference(parts, first, last, by_end[last], bare)


_BEFORE_BY = frozenset({"CLUSTER", "DISTRIBUTE", "GROUP", "ORDER", "PARTITION", "SORT"})

#: sequences of words and signs that Spark accepts and sqlglot does not, or not everywhere
_SPARKS_OWN = (
    *(("|>",), ("WATERMARK",), ("RECURSION", "LEVEL"), ("CHANGES", "FROM"), ("NEAREST",)),
    *(("WITH", "SINGLE", "PARTITION"), ("IDENTIFIER", "("), ("LATERAL", "VIEW"), ("STACK", "(")),
    *(("CLUSTER", "BY"), ("DISTRIBUTE", "BY"), ("SORT", "BY"), ("PIVOT", "("), ("INTERVAL", "-")),
    *((">", ">", ">"), ("!", "<"), ("!", ">"), ("~", "~"), ("MAP",), ("REPEATABLE",), ("~~",)),
    *(("TABLE", "("), ("SYSTEM_TIME",), ("SYSTEM_VERSION",), ("TABLESAMPLE", "(")),
    *(("CORR", "(", "DISTINCT"), ("INTERVAL", "+"), ("SELECT", "*", "SELECT"), (",", "FROM", "AS")),
)
#: what sqlglot says of calls with a number of arguments that it does not expect
_OF_ARGUMENTS = ("The number of provided arguments", "Required keyword: 'charset'")


def empty_place(tokens: Sequence[Token]) -> tuple[int, str] | None:
    """The offset of a comma or clause that something is missing beside, and what."""
    for before, token in pairwise(tokens):
        if token.text == "," and (before.text in {",", "|>"} or depth_of(before) > 0):
            return token.start, "nothing stands before the comma"
        if before.text == "," and depth_of(token) < 0:
            return before.start, "nothing stands after the comma"
    if tokens[-1].text == ",":
        return tokens[-1].start, "nothing stands after the comma"
    last = [token.upper for token in tokens[-2:]]
    if last[1:] == ["BY"] and last[0] in _BEFORE_BY:
        return tokens[-2].start, f"nothing stands after {' '.join(last)}"
    if tokens[-1].upper == "ON":
        return tokens[-1].start, "nothing stands after ON"
    return next(_before_from(tokens), None)


def _before_from(tokens: Sequence[Token]) -> Iterator[tuple[int, str]]:
    """``SELECT a, FROM t``: to Spark a column ``from``, unless the SELECT has another FROM."""
    for index in range(1, len(tokens) - 1):
        if tokens[index].upper != "FROM":
            continue
        before = tokens[index - 1]
        starts = before.upper == "SELECT" and (index == 1 or tokens[index - 2].text == "(")
        if before.text != "," and not starts:
            continue
        following = tokens[index + 1]
        if (may_be_alias(following) or following.text == "(") and not has_clause(
            tokens, index + 1, "FROM"
        ):
            missing = "SELECT names no column" if starts else "nothing stands after the comma"
            yield before.start, missing


def is_sparks_own(tokens: Sequence[Token], reason: str) -> bool:
    """Return whether a query that sqlglot cannot read, for ``reason``, has what
    only Spark reads.
    """
    words = [token.upper for token in tokens]
    return any(part in reason for part in _OF_ARGUMENTS) or any(
        tuple(words[start : start + len(sequence)]) == sequence
        for start in range(len(words))
        for sequence in _SPARKS_OWN
    )


#: functions whose arguments may contain FROM: ``extract(day FROM d)``
_WITH_FROM = ("EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY")
_QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")
#: words that end a FROM clause: commas behind them separate no tables
_ENDS = (
    *("SELECT", "WHERE", "HAVING", "LIMIT", "OFFSET", "WINDOW", "UNION", "EXCEPT", "INTERSECT"),
    *("MINUS", "MAP", "REDUCE"),
    *("VALUES", "VIEW", "QUALIFY", "EXTEND", "SET", "DROP", "AGGREGATE", "CALL"),
)
_ENDS_BEFORE_BY = ("GROUP", "ORDER", "CLUSTER", "DISTRIBUTE", "SORT")
#: words that may follow a table without an alias and are none themselves
_NO_ALIAS = (
    *("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ANTI", "SEMI", "LATERAL"),
    *("PIVOT", "UNPIVOT", "ON", "USING", "TABLESAMPLE", "ASOF", "EXACT", "APPROX", "NEAREST"),
)
_NO_PLACE_FOR_ALIAS = ("WATERMARK", "CHANGES")  # the alias stands behind these


@dataclass(slots=True)
class _Level:
    """The content of a pair of brackets."""

    in_from: bool = False
    function: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A table's name from ``tokens[first]`` to ``tokens[last]``; ``bare``: without an alias."""

    first: int
    last: int
    bare: bool


def table_places(tokens: Sequence[Token]) -> Iterator[Place]:
    """Yield where names of tables stand, those of WITH left out."""
    named = set(_with_names(tokens))
    for index in _positions(tokens):
        last = _name_end(tokens, index)
        following = tokens[last + 1] if last + 1 < len(tokens) else None
        if following is not None and following.text == "(":
            continue
        if last > index or fold(tokens[index].value) not in named:
            yield Place(index, last, _is_bare(tokens, index, last + 1))


def computed_name(tokens: Sequence[Token]) -> Token | None:
    """``IDENTIFIER(...)`` where a table's name stands."""
    if not any(token.upper == "IDENTIFIER" for token in tokens):
        return None  # as in nearly every query, and the places of all tables take long to find
    for index in _positions(tokens):
        last = _name_end(tokens, index)
        if tokens[last].upper == "IDENTIFIER" and _word(tokens, last + 1) == "(":
            return tokens[last]
    return None


def dotted_names(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Yield names of three parts and more, the last of which may be a ``*`` that is left out."""
    index = 0
    while index < len(tokens):
        last = _name_end(tokens, index) if _is_name(tokens[index]) else index
        starred = [token.text for token in tokens[last + 1 : last + 3]] == [".", "*"]
        if last >= index + (2 if starred else 4):
            yield tuple(tokens[index : last + 1 : 2])
        index = last + 1


def _positions(tokens: Sequence[Token]) -> Iterator[int]:
    """Indexes of tokens at which the name of a table or table function begins."""
    levels = [_Level()]
    expected = False
    for index, token in enumerate(tokens):
        if depth_of(token) > 0:
            levels.append(_Level(expected, tokens[index - 1].upper if index else ""))
            continue
        if depth_of(token) < 0:
            levels = levels[:-1] or [_Level()]
            expected = False
            continue
        if expected and token.upper == "LATERAL":
            continue
        if expected and token.upper not in _QUERY_WORDS and _is_name(token):
            yield index
            expected = False
            continue
        expected = _expects(tokens, index, levels[-1])


def _expects(tokens: Sequence[Token], index: int, level: _Level) -> bool:
    """Return whether a table stands behind ``tokens[index]``; says so of the bracket, too."""
    token = tokens[index]
    if token.upper == "FROM":
        before = tokens[index - 1].upper if index else ""
        if _word(tokens, index + 1) == "AS":  # a column of this name
            return False
        level.in_from = level.function not in _WITH_FROM and before not in {"DISTINCT", "CHANGES"}
        if before == "DISTINCT":  # IS DISTINCT FROM, or SELECT DISTINCT FROM
            level.in_from = index < 2 or tokens[index - 2].upper not in {"IS", "NOT"}
        return level.in_from
    if token.upper in {"JOIN", "TABLE"}:
        level.in_from = level.in_from or token.upper == "JOIN"
        return True
    if token.text == "|>" or _ends(tokens, index):
        level.in_from = False
    return token.text == "," and level.in_from


def _is_name(token: Token) -> bool:
    return token.kind in {ARGUMENT, NAME, WORD}


def _ends(tokens: Sequence[Token], index: int) -> bool:
    """Return whether a clause begins there, in which commas separate no tables."""
    word = _word(tokens, index)
    return word in _ENDS or (word in _ENDS_BEFORE_BY and _word(tokens, index + 1) == "BY")


def _name_end(tokens: Sequence[Token], index: int) -> int:
    last = index
    while last + 2 < len(tokens) and tokens[last + 1].text == "." and _is_name(tokens[last + 2]):
        last += 2
    return last


def _is_bare(tokens: Sequence[Token], index: int, after: int) -> bool:
    if [token.upper for token in tokens[max(index - 2, 0) : index]] == ["TABLE", "("]:
        return False  # an argument of a table function
    if after >= len(tokens) or _ends(tokens, after) or tokens[after].upper in _NO_ALIAS:
        return True
    return tokens[after].upper not in {"AS", *_NO_PLACE_FOR_ALIAS} and not _is_name(tokens[after])


def _with_names(tokens: Sequence[Token]) -> Iterator[str]:
    """Folded names that a WITH defines, anywhere in the statement."""
    for index, token in enumerate(tokens):
        with suppress(Unclear):
            if token.upper == "WITH":
                yield from (head.name for head in heads(tokens, index, len(tokens)))


def _word(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].upper if index < len(tokens) else ""
