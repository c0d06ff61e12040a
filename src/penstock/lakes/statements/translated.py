"""Translating statements of DuckDB's dialect: their expressions and queries go through the
translator, and the remaining words mean the same in both dialects.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Literal

from penstock.errors import PenstockError, Position, QueryFailed, UnsupportedFeature
from penstock.lakes.statements import create_table, delete, insert, merge, update
from penstock.lakes.statements.session import Session
from penstock.sql.duckdb.text import name_in_spark, text_in_spark
from penstock.sql.identifiers import fold
from penstock.sql.query.edits import Edit, Mapped, edited
from penstock.sql.statement import Reader
from penstock.sql.text import Span, SqlExpression, offset, place
from penstock.sql.tokens import MARKER, NAME, NUMBER, STRING, WORD, Token, unquoted

# What comes before a part and after it for the translator, which reads queries and expressions.
_AROUND = {
    "expression": ("", ""),
    "query": ("", ""),
    "tables": ("SELECT * FROM ", ""),
    "with": ("", " SELECT 1 AS x"),
}
Kind = Literal["expression", "query", "tables", "with"]
Part = tuple[Span, Kind]

_QUERIES = create_table.QUERIES | {"FROM", "PIVOT", "UNPIVOT"}
_PLAIN = frozenset({"NULL", "TRUE", "FALSE", "DATE", "+", "-"})
_START = attrgetter("start")
_QUOTED = re.compile(r"`([^`]+)`")


def in_spark(session: Session, text: str, start: int, end: int) -> Mapped:
    """``text`` with the statement at ``text[start:end]`` in Spark's SQL.

    Raises UnsupportedFeature and QueryFailed with the place in ``text``.
    """
    reader = Reader(text, start, end, lakes=session.lakes, args=session.args, dialect="duckdb")
    if reader.sees("CREATE") and {"MACRO", "FUNCTION"} & {
        token.upper for token in reader.tokens[1:4]
    }:
        return Mapped(text, ())  # what a macro stands for is stored in DuckDB's SQL
    edits: list[Edit] = []
    parts = sorted(_parts(reader))
    for span, kind in parts:
        edits.append(Edit(*span, _translated(session, text, span, kind)))
    firsts = [span[0] for span, _ in parts]
    for token in reader.tokens:
        before = bisect_right(firsts, token.start)
        if before == 0 or token.start >= parts[before - 1][0][1]:
            edits += _in_spark(token)
    return edited(text, edits)


@contextmanager
def placed(written: Mapped, text: str) -> Iterator[None]:
    """Give errors inside, which are about the text in Spark's SQL, their place in ``text``."""
    try:
        yield
    except PenstockError as error:
        position = error.position
        if position is not None:
            at = offset(written.text, position.line, position.column or 1)
            origin = written.back(at)
            ends = [*(anchor.origin for anchor in written.anchors[1:]), len(text)]
            spans = zip(written.anchors, ends, strict=False)
            span = next(
                ((a.origin, b) for a, b in spans if not a.exact and a.origin <= origin < b), None
            )
            if position.column is None:  # macros keep the lines of a text, not its columns
                span = (0, len(text))
            _place(error, text, origin if span is None else _named(error, text, span))
        raise


def _translated(session: Session, text: str, span: Span, kind: Kind) -> str:
    before, after = _AROUND[kind]
    written = f"{before}{text[span[0] : span[1]]}{after}"
    names = session.names(session.transaction)
    try:
        spark = names.translated(written, expression=kind == "expression", frames=session.views)
    except (QueryFailed, UnsupportedFeature) as problem:
        if "start" in problem.data:
            _place(problem, text, span[0] + max(int(problem.data["start"]) - len(before), 0))
        raise
    return spark.removeprefix(before).removesuffix(after)


def _parts(reader: Reader) -> Iterator[Part]:
    """The parts of a statement that the translator reads, in no order."""
    word = reader.token.upper
    if word == "WITH" and _past_with(reader) in _STATEMENTS:
        assert reader.with_ is not None, "past_with goes past it"
        yield reader.with_, "with"
        word = reader.token.upper
    elif word in _QUERIES - {"TABLE"}:
        reader.at = 0
        yield reader.rest(), "query"
        return
    read = _STATEMENTS.get(word)
    if read is not None:
        yield from read(reader)


def _past_with(reader: Reader) -> str:
    """The word after WITH and what it names; none where the translator reports the error."""
    try:
        return reader.past_with()
    except QueryFailed:
        return ""


def _delete(reader: Reader) -> Iterator[Part]:
    statement = delete.parse(reader)
    yield from _some(reader, ("tables", statement.using), ("expression", statement.where))


def _update(reader: Reader) -> Iterator[Part]:
    statement = update.parse(reader)
    yield from _some(reader, ("tables", statement.others), ("expression", statement.where))
    yield from _some(reader, *(("expression", assigned.value) for assigned in statement.sets))


def _merge(reader: Reader) -> Iterator[Part]:
    statement = merge.parse(reader)
    yield from _some(reader, ("tables", statement.source), ("expression", statement.on))
    for when in statement.whens:
        yield from _some(reader, *(("expression", part) for part in when.expressions))


def _insert(reader: Reader) -> Iterator[Part]:
    statement = insert.parse(reader)
    yield from _some(reader, ("expression", statement.replaces))
    if statement.source is None or statement.rows is not None:
        return
    if statement.computed is None:
        yield statement.source, "query"
        return
    for row in statement.computed.rows:
        yield from _some(reader, *(("expression", value) for value in row))


def _create(reader: Reader) -> Iterator[Part]:
    """The query after AS, of a table or a view."""
    while not reader.done:
        if reader.accept("AS") and reader.token.upper in _QUERIES:
            yield create_table.until_data(reader)[0], "query"
            return
        if not reader.done:
            reader.skip()


def _describe(reader: Reader) -> Iterator[Part]:
    reader.next()
    reader.accept("QUERY")
    if reader.token.upper in _QUERIES - {"TABLE"}:
        yield reader.rest(), "query"


_STATEMENTS: Mapping[str, Callable[[Reader], Iterator[Part]]] = {
    "CREATE": _create,
    "DELETE": _delete,
    "DESC": _describe,
    "DESCRIBE": _describe,
    "INSERT": _insert,
    "MERGE": _merge,
    "UPDATE": _update,
}


def _some(reader: Reader, *parts: tuple[Kind, Span | SqlExpression | None]) -> Iterator[Part]:
    """The parts that need a translation, unlike literals and names."""
    for kind, part in parts:
        if part is not None:
            span = part.span if isinstance(part, SqlExpression) else part
            first, last = (bisect_left(reader.tokens, at, key=_START) for at in span)
            tokens = reader.tokens[first:last]
            if not (_names(tokens) if kind == "tables" else _is_literal(tokens)):
                yield span, kind


def _names(tokens: Sequence[Token]) -> bool:
    return all(token.kind in {WORD, NAME} or token.text in {".", ","} for token in tokens) and not (
        any(token.upper in {"JOIN", "SELECT", "FROM", "VALUES"} for token in tokens)
    )


def _is_literal(tokens: Sequence[Token]) -> bool:
    return len(tokens) <= 2 and all(
        token.kind in {NUMBER, STRING, MARKER} or token.upper in _PLAIN for token in tokens
    )


def _in_spark(token: Token) -> Iterator[Edit]:
    """A word outside of the parts."""
    if token.kind == NAME and token.text[0] == '"':
        yield Edit(token.start, token.end, name_in_spark(token.text))
    if token.kind == STRING and ("\\" in token.text or token.text[0] != "'"):
        yield Edit(token.start, token.end, text_in_spark(token))


def _named(error: PenstockError, text: str, span: Span) -> int | None:
    """The place in a part of the name that Spark's message is about."""
    match = _QUOTED.search(error.message)
    if match is None:
        return None
    tokens = Reader(text, *span, dialect="duckdb").tokens
    said = ((unquoted(t) if t.kind == NAME else t.text, t.start) for t in tokens)
    return next((at for name, at in said if fold(name) == fold(match[1])), None)


def _place(error: PenstockError, text: str, at: int | None) -> None:
    """Give an error another place, or none where it is unknown."""
    error.position = None
    numbers = {"line", "start", *({"column"} if isinstance(error.data.get("column"), int) else ())}
    error.data = {key: value for key, value in error.data.items() if key not in numbers}
    if at is not None:
        line, column = place(text, at)
        error.data = {"column": column, **error.data, "line": line}  # a name it may have stays
        error.position = Position(line, column)
