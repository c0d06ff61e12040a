"""``VALUES`` with subqueries, which Spark takes in a SELECT only: one for each row."""

from __future__ import annotations

from itertools import pairwise

from penstock.errors import QueryFailed
from penstock.lake.statements.composed import Composed, begun
from penstock.lake.statements.reader import Reader

Span = tuple[int, int]

_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE"})


def as_query(reader: Reader) -> Composed | None:
    """The SELECT of the rows that come next, ``col1``, ``col2`` and so on.

    ``None`` where no subquery is among them, or something follows them. The reader stays where it
    is. Raises QueryFailed, UnsupportedFeature.
    """
    at = reader.at
    try:
        if not reader.accept("VALUES") or not _has_query(reader):
            return None
        rows = [_row(reader)]
        while reader.accept(","):
            rows.append(_row(reader))
        return _union(reader, rows) if reader.done else None
    finally:
        reader.at = at


def _has_query(reader: Reader) -> bool:
    pairs = pairwise(reader.tokens[reader.at :])
    return any(one.text == "(" and after.upper in _QUERIES for one, after in pairs)


def _row(reader: Reader) -> list[Span]:
    """A row, in brackets unless it is one value."""
    if not reader.accept("("):
        return [_value(reader)]
    if reader.token.upper in _QUERIES:
        reader.at -= 1  # the bracket is the query's: a value without those of a row
        return [_value(reader)]
    found = [_value(reader)]
    while reader.accept(","):
        found.append(_value(reader))
    reader.expect(")")
    return found


def _value(reader: Reader) -> Span:
    if reader.sees("DEFAULT") and reader.ahead(1).text in {",", ")", ""}:
        raise reader.unsupported(
            "DEFAULT beside a subquery in VALUES",
            "leave the column out of the list of columns, or write its value",
        )
    span = reader.until(",")
    reader.written(span, "a value")
    return span


def _union(reader: Reader, rows: list[list[Span]]) -> Composed:
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise QueryFailed(
            f"the rows of VALUES have {' and '.join(map(str, sorted(widths)))} values",
            hint="give each row as many values",
        )
    text = begun(reader)
    for number, row in enumerate(rows):
        text.add(" UNION ALL " if number else "").add("SELECT ")
        for at, span in enumerate(row):
            text.add(", " if at else "").take(span).add(f" AS col{at + 1}")
    return text
