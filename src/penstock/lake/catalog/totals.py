"""A table's statistics as a whole, kept up to date as files are added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select

from penstock.lake.catalog import tables as t
from penstock.lake.files import DataFile
from penstock.lake.schema import TableSchema
from penstock.lake.stats import TableColumnStats, merge


def table_stats(connection: Connection, table_id: int) -> dict[str, int]:
    c = t.table_stats.c
    query = select(c.record_count, c.next_row_id, c.file_size_bytes).where(c.table_id == table_id)
    row = connection.execute(query).first()
    return {} if row is None else dict(row._mapping)


def columns_without_nulls(connection: Connection, table_id: int) -> set[int]:
    """The columns that are known to have no NULL in any row the table ever had."""
    c = t.table_column_stats.c
    query = select(c.column_id).where(c.table_id == table_id, c.contains_null.is_(False))
    return set(connection.execute(query).scalars())


def new_row_ids(file: DataFile) -> int:
    """How many row ids the commit has to give to the rows of a staged file."""
    return file.record_count if file.row_id_start is None else 0


def merge_table_stats(
    connection: Connection,
    table_id: int,
    schema: TableSchema,
    files: Sequence[DataFile],
    before: Mapping[str, int],
) -> None:
    rows = sum(file.record_count for file in files)
    totals = {
        "record_count": before.get("record_count", 0) + rows,
        "next_row_id": before.get("next_row_id", 0) + sum(map(new_row_ids, files)),
        "file_size_bytes": before.get("file_size_bytes", 0)
        + sum(file.size_bytes for file in files),
    }
    if before:
        update = t.table_stats.update().where(t.table_stats.c.table_id == table_id)
        connection.execute(update.values(**totals))
    else:
        connection.execute(t.table_stats.insert().values(table_id=table_id, **totals))
    _merge_column_stats(connection, table_id, schema, files, fresh=not before)


def _merge_column_stats(
    connection: Connection,
    table_id: int,
    schema: TableSchema,
    files: Sequence[DataFile],
    *,
    fresh: bool,
) -> None:
    c = t.table_column_stats.c
    query = select(c.column_id, c.contains_null, c.contains_nan, c.min_value, c.max_value)
    before = {
        row.column_id: TableColumnStats(*row)
        for row in connection.execute(query.where(c.table_id == table_id))
    }
    by_column = _stats_by_column(files)
    after: list[TableColumnStats] = []
    for column in schema.walk():
        known = before.get(column.id or 0)
        if column.children or (known is None and not fresh):
            continue  # no row and not fresh: unknown, and must stay so
        listed = [stats.get(column.id or 0) for stats in by_column]
        merged = merge(column, known, listed)
        if merged is not None:
            after.append(merged)
    touched = {column.id for column in schema.walk()} & before.keys()
    if touched:
        connection.execute(
            t.table_column_stats.delete().where(c.table_id == table_id, c.column_id.in_(touched))
        )
    if after:
        connection.execute(
            t.table_column_stats.insert(), [_column_stats_row(table_id, one) for one in after]
        )


def _stats_by_column(files: Sequence[DataFile]) -> list[dict[int, Any]]:
    return [{one.column_id: one for one in file.stats} for file in files if file.record_count]


def _column_stats_row(table_id: int, one: TableColumnStats) -> dict[str, Any]:
    return {
        "table_id": table_id,
        "column_id": one.column_id,
        "contains_null": one.contains_null,
        "contains_nan": one.contains_nan,
        "min_value": one.min_value,
        "max_value": one.max_value,
    }
