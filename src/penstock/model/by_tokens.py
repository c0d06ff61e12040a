"""Tables of a query that Spark can read and sqlglot cannot, told by the words around them.

It may take a name for a table that is none, or overlook one: the run then fails, with Spark's
message or the catalog's, and never reads something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.sql.tokens import ARGUMENT, NAME, WORD, Token, closing, depth_of

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
    """What stands between a pair of brackets."""

    in_from: bool = False
    function: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A table's name from ``tokens[first]`` to ``tokens[last]``; ``bare``: without an alias."""

    first: int
    last: int
    bare: bool


def table_places(tokens: Sequence[Token]) -> Iterator[Place]:
    """Where names of tables stand, those of WITH left out."""
    named = set(_with_names(tokens))
    for index in _positions(tokens):
        last = _name_end(tokens, index)
        following = tokens[last + 1] if last + 1 < len(tokens) else None
        if following is not None and following.text == "(":
            continue
        if last > index or tokens[index].value.casefold() not in named:
            yield Place(index, last, _is_bare(tokens, index, last + 1))


def computed_name(tokens: Sequence[Token]) -> Token | None:
    """``IDENTIFIER(...)`` where a table's name stands."""
    for index in _positions(tokens):
        last = _name_end(tokens, index)
        if tokens[last].upper == "IDENTIFIER" and _word(tokens, last + 1) == "(":
            return tokens[last]
    return None


def dotted_names(tokens: Sequence[Token]) -> Iterator[tuple[Token, ...]]:
    """Names of three parts and more, such as columns with their table's name before them."""
    index = 0
    while index < len(tokens):
        last = _name_end(tokens, index) if _is_name(tokens[index]) else index
        if last >= index + 4:
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
    """Whether a table stands behind ``tokens[index]``; says so of the bracket, too."""
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
    """Whether a clause begins there, in which commas separate no tables."""
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
        if token.upper == "WITH":
            recursive = _word(tokens, index + 1) == "RECURSIVE"
            yield from _with_list(tokens, index + 1 + recursive)


def _with_list(tokens: Sequence[Token], start: int) -> Iterator[str]:
    while start < len(tokens) and _is_name(tokens[start]):
        name, index = tokens[start].value.casefold(), start + 1
        if _word(tokens, index) == "(" and (close := closing(tokens, index)):
            index = close + 1  # its columns, or its query where AS is left out
        while index < len(tokens) and tokens[index].upper not in {"(", ",", ")"}:
            index += 1  # MAX RECURSION LEVEL n AS
        yield name
        close = closing(tokens, index) if _word(tokens, index) == "(" else index - 1
        if close is None or _word(tokens, close + 1) != ",":
            return
        start = close + 2


def _word(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].upper if index < len(tokens) else ""
