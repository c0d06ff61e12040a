"""Numbers of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def sequence(count: int) -> pa.Int64Array:
    """The integers from 0 on. Not from Python's range, whose numbers are made one by one: 60 ms a
    million, in which no other thread runs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=-1)
