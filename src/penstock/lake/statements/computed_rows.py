"""``VALUES`` with what Spark takes in a SELECT only: subqueries, the word DEFAULT, and values of
several types for one column, as a VARIANT holds them.

There is one SELECT for each row then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from penstock.errors import QueryFailed
from penstock.sql.statement import Reader, begun
from penstock.sql.text import Composed

Span = tuple[int, int]
Row = list[Span | None]  # no span: DEFAULT

_UNKNOWN_TO_VALUES = frozenset({"DEFAULT", "RAISE_ERROR"})
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE"})


def read(reader: Reader, *, each: bool = False) -> list[Row] | None:
    """The rows that come next, each value where it stands.

    ``None`` where Spark's own VALUES does, unless ``each`` asks for them all the same, or something
    follows them. The reader stays where it is. Raises QueryFailed.
    """
    at = reader.at
    try:
        if not reader.accept("VALUES") or not (each or _needed(reader)):
            return None
        rows = spans(reader)
        return None if rows is None else _even(rows)
    finally:
        reader.at = at


def spans(reader: Reader) -> list[Row] | None:
    """Each value of the rows after VALUES; ``None`` where something follows them."""
    rows = [_row(reader)]
    while reader.accept(","):
        rows.append(_row(reader))
    return rows if reader.done else None


def as_query(
    reader: Reader,
    rows: Sequence[Row],
    default_of: Callable[[int, int], str],
    casts: Mapping[int, str],
) -> Composed:
    """Their SELECT, with ``col1``, ``col2`` and so on.

    ``default_of`` says in Spark's SQL what DEFAULT is in a row of so many values, at which place;
    ``casts`` at which places values are cast, and to what.
    """
    text = begun(reader)
    for number, row in enumerate(rows):
        text.add(" UNION ALL " if number else "").add("SELECT ")
        for at, span in enumerate(row):
            text.add(", " if at else "")
            if span is None:
                text.add(default_of(len(row), at))
            elif at in casts:
                text.add("CAST(").take(span).add(f" AS {casts[at]})")
            else:
                text.take(span)
            text.add(f" AS col{at + 1}")
    return text


def _needed(reader: Reader) -> bool:
    return _has_query(reader) or any(
        token.upper in _UNKNOWN_TO_VALUES for token in reader.tokens[reader.at :]
    )


def _has_query(reader: Reader) -> bool:
    pairs = pairwise(reader.tokens[reader.at :])
    return any(one.text == "(" and after.upper in _QUERIES for one, after in pairs)


def _row(reader: Reader) -> Row:
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


def _value(reader: Reader) -> Span | None:
    if reader.sees("DEFAULT") and reader.ahead(1).text in {",", ")", ""}:
        reader.next()
        return None
    span = reader.until(",")
    reader.written(span, "a value")
    return span


def _even(rows: list[Row]) -> list[Row]:
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise QueryFailed(
            f"the rows of VALUES have {' and '.join(map(str, sorted(widths)))} values",
            hint="give each row as many values",
        )
    return rows
