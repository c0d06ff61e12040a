"""Table references of a query: found by sqlglot, placed by their tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.model.by_tokens import computed_name, dotted_names, table_places
from penstock.model.mapping import Source
from penstock.model.rewrites import query_starts
from penstock.model.sieve import is_sparks_own
from penstock.sql.dialect import SPARK, Unreadable, parse
from penstock.sql.tables import named_tables, span_of
from penstock.sql.text import mask
from penstock.sql.tokens import ARGUMENT, Token, closing


class UnreadableQuery(Exception):
    """The tables of the text cannot be told; ``offset`` is the place in the file."""

    def __init__(self, reason: str, offset: int, hint: str | None = None) -> None:
        self.offset = offset
        self.hint = hint
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class TableReference:
    """A name after FROM or JOIN that is no CTE. Offsets are of the file.

    ``last`` indexes its last token; ``bare`` says that the query gives it no alias.
    """

    parts: tuple[str, ...]
    start: int
    end: int
    last: int
    bare: bool


@dataclass(frozen=True, slots=True)
class ColumnPrefix:
    """A column written with names before it: each part with its offset."""

    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class References:
    """``unread`` is why sqlglot could not read the query, which Spark may."""

    tables: tuple[TableReference, ...]
    columns: tuple[ColumnPrefix, ...]
    unread: UnreadableQuery | None = None


def find_references(
    source: Source,
    tokens: Sequence[Token],
    dialect: str,
    masked: Sequence[tuple[int, int, str]],
    hidden: frozenset[str],
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
    spans = [*masked, *_own_masks(tokens)]
    text = mask(source.text, spans)[start:end]
    try:
        tree = parse(text, dialect)[0]
    except Unreadable as unread:
        error = UnreadableQuery(f"the query cannot be read{unread}", start + unread.at)
        if dialect != SPARK or not is_sparks_own(tokens, str(error)):
            raise error from None
        return _by_tokens(tokens, masked, hidden, error)
    return References(tuple(_tables(tree, tokens, start, hidden)), tuple(_columns(tree, start)))


def _by_tokens(
    tokens: Sequence[Token],
    masked: Sequence[tuple[int, int, str]],
    hidden: frozenset[str],
    error: UnreadableQuery,
) -> References:
    seen = [
        (index, token)
        for index, token in enumerate(tokens)
        if not any(start <= token.start < end for start, end, _ in masked)
    ]
    visible = [token for _, token in seen]
    tables = []
    for place in table_places(visible):
        name = visible[place.first : place.last + 1 : 2]
        if len(name) == 1 and name[0].value.casefold() in hidden:
            continue
        parts, end = tuple(token.value for token in name), visible[place.last].end
        last = seen[place.last][0]
        tables.append(TableReference(parts, name[0].start, end, last, place.bare))
    starts = {table.start for table in tables}
    columns = [
        ColumnPrefix(tuple((token.value, token.start) for token in name))
        for name in dotted_names(visible)
        if name[0].start not in starts
    ]
    return References(tuple(tables), tuple(columns), error)


def _own_masks(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """What the parser does not know: arguments, TABLE queries, MATCH_CONDITION."""
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
    by_end = {token.end: index for index, token in enumerate(tokens)}
    for table in named_tables(tree):
        parts = tuple(part.name for part in table.parts)
        if len(parts) == 1 and parts[0].casefold() in hidden:
            continue
        first, last = (start + at for at in span_of(table))
        if last not in by_end:  # sqlglot made the name of something that is no token
            raise UnreadableQuery(f"the table `{'.'.join(parts)}` cannot be placed", first)
        bare = not table.alias and isinstance(
            table.parent, exp.From | exp.Join | exp.Subquery | exp.Paren
        )
        yield TableReference(parts, first, last, by_end[last], bare)


def _columns(tree: exp.Expr, start: int) -> Iterator[ColumnPrefix]:
    for column in tree.find_all(exp.Column):
        parts = [part for part in column.parts if "start" in part.meta]
        if len(column.parts) > 2:
            yield ColumnPrefix(
                tuple((part.name, start + int(part.meta["start"])) for part in parts)
            )
