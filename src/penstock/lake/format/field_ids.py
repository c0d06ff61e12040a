"""Field ids: assigned to columns in order, parents first, and those that the format reserves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

from penstock.lake.format.schema import Column, TableSchema

EMBEDDED_ROW_ID = "_ducklake_internal_row_id"
SNAPSHOT_ID = "_ducklake_internal_snapshot_id"
ROW_ID_FIELD = 2147483540
SNAPSHOT_FIELD = 2147483539
# Under a name mapping the real extension looks for the field's number as the column's name.
MAPPED_ROW_ID = str(ROW_ID_FIELD)
EMBEDDED: Mapping[str, int] = {EMBEDDED_ROW_ID: ROW_ID_FIELD, SNAPSHOT_ID: SNAPSHOT_FIELD}
OF_DELETES: Mapping[str, int] = {
    "file_path": 2147483646,
    "pos": 2147483645,
    SNAPSHOT_ID: SNAPSHOT_FIELD,
}


def assign_ids(schema: TableSchema, start: int = 1) -> TableSchema:
    """Renumber every column from ``start``, parents first: as the format does on creation."""
    numbers = count(start)
    return TableSchema(tuple(_number(column, numbers, True) for column in schema.columns))


def assign_missing_ids(schema: TableSchema, start: int) -> TableSchema:
    """Number from ``start`` the columns without an id. ``start`` was never used by the table."""
    numbers = count(start)
    return TableSchema(tuple(_number(column, numbers, False) for column in schema.columns))


def _number(column: Column, numbers: Iterator[int], renumber: bool) -> Column:
    own = next(numbers) if renumber or column.id is None else column.id
    children = tuple(_number(child, numbers, renumber) for child in column.children)
    return replace(column, id=own, children=children)
