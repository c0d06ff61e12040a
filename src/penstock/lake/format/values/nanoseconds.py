"""Timestamps of Arrow in nanoseconds, as pandas makes them, in the microseconds of Spark.

A value that has a part below a microsecond is an error: a cut one is another value.
"""

from __future__ import annotations

from penstock.lazy import pa

HINT = "round the values, in pandas by .dt.floor('us')"


class TooFine(ValueError):
    """Raised for a value with nanoseconds; ``row`` counts from 1."""

    def __init__(self, row: int, value: str) -> None:
        super().__init__(f"{value} holds nanoseconds")
        self.row = row
        self.value = value


def in_micros(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type with its timestamps in microseconds, also those of nested types."""
    from pyarrow import types

    if types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if types.is_struct(kind):
        return pa.struct([field.with_type(in_micros(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(in_micros(kind.key_type), in_micros(kind.item_type))
    if types.is_list(kind):
        return pa.list_(kind.value_field.with_type(in_micros(kind.value_type)))
    return kind


def column_in_micros(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with its timestamps in microseconds. Raises TooFine."""
    kind = in_micros(values.type)
    if kind.equals(values.type):
        return values
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        row = _row_that_fails(values, kind)
    value = values.slice(row, 1).cast(pa.string()) if pa.types.is_timestamp(values.type) else None
    raise TooFine(row + 1, "a nested value" if value is None else value[0].as_py())


def _row_that_fails(values: pa.ChunkedArray, kind: pa.DataType) -> int:
    """Return the index of a row without a cast, by halves."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            values.slice(low, middle - low).cast(kind)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low
