"""Files with statistics, made up: rows in, and out come those that a predicate keeps."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, create_engine, select

from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.statistics.pruning import may_match
from penstock.lakes.format.files import Table
from penstock.lakes.format.partitioning import bucket
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import bound_to_text, compare_bounds, partition_to_text
from penstock.sql.predicate import of_where

Rows = Sequence[Sequence[Any]]


def table_of(types: dict[str, str]) -> Table:
    columns = tuple(Column(name, kind, at) for at, (name, kind) in enumerate(types.items(), 1))
    return Table(1, "", "main", "t", "/", TableSchema(columns), 0)


@contextmanager
def memory() -> Iterator[Connection]:
    """An empty catalog in SQLite's memory."""
    engine = create_engine("sqlite://", execution_options={t.FORMAT: "1.0"})
    with engine.connect() as connection:
        t.METADATA.create_all(connection)
        yield connection
    engine.dispose()


def clear(connection: Connection) -> None:
    for name in ("data_file", "file_column_stats", "file_partition_value", "partition_column"):
        connection.execute(getattr(t, name).delete())


def fill(connection: Connection, table: Table, files: Sequence[Rows]) -> None:
    """Register files that have these rows, with exact statistics."""
    for number, rows in enumerate(files):
        file = {"data_file_id": number, "table_id": 1, "path": str(number)}
        connection.execute(t.data_file.insert().values(file))
        for at, column in enumerate(table.schema.columns):
            row = statistics(column, [row[at] for row in rows])
            connection.execute(t.file_column_stats.insert().values(data_file_id=number, **row))


def statistics(column: Column, values: Sequence[Any]) -> dict[str, Any]:
    there = [v for v in values if v is not None]
    is_float = column.type.startswith("float")
    nan = any(isinstance(v, float) and math.isnan(v) for v in there)
    texts = [] if nan else [bound_to_text(column.type, v) for v in there]
    known = [text for text in texts if text is not None]
    return {
        "table_id": 1,
        "column_id": column.id,
        "value_count": len(there),
        "null_count": len(values) - len(there),
        "min_value": _extreme(column.type, known, -1) if len(known) == len(there) else None,
        "max_value": _extreme(column.type, known, 1) if len(known) == len(there) else None,
        "contains_nan": nan if is_float else None,
    }


def _extreme(kind: str, texts: Sequence[str], sign: int) -> str | None:
    extreme: str | None = None
    for text in texts:
        if extreme is None or compare_bounds(kind, text, extreme) == sign:
            extreme = text
    return extreme


def partition(
    connection: Connection, column: Column, transform: str, values: Sequence[str | None]
) -> None:
    """Partition the registered files by a column; a value (as text) for each."""
    connection.execute(
        t.partition_column.insert().values(
            partition_id=7, table_id=1, partition_key_index=0, column_id=column.id,
            transform=transform,
        )
    )  # fmt: skip
    connection.execute(t.data_file.update().values(partition_id=7))
    for number, value in enumerate(values):
        connection.execute(
            t.file_partition_value.insert().values(
                data_file_id=number, table_id=1, partition_key_index=0, partition_value=value
            )
        )


def can(column: Column, transform: str) -> bool:
    """Whether the transform fits the column's type and is distinguished by this test."""
    kinds = {"identity": ("",), "bucket(3)": ("int", "varchar", "date")}
    return column.type.startswith(kinds.get(transform, ("date", "timestamp")))


def partition_value(column: Column, transform: str, value: Any) -> str | None:
    if value is None:
        return None
    if transform == "identity":
        nan = isinstance(value, float) and math.isnan(value)
        return "nan" if nan else partition_to_text(column.type, value)
    if transform == "bucket(3)":
        return str(bucket(value, 3))
    return str(getattr(value, transform))


def split(table: Table, files: Sequence[Rows], transform: str) -> list[Rows]:
    """The rows in as many files more as partitioning by the first column makes of them."""
    column = table.schema.columns[0]
    if not transform or not can(column, transform):
        return list(files)
    split_files: list[Rows] = []
    for file in files:
        groups: dict[str | None, list[Sequence[Any]]] = {}
        for row in file:
            groups.setdefault(partition_value(column, transform, row[0]), []).append(row)
        split_files += groups.values()
    return split_files


def chosen(connection: Connection, table: Table, where: str, zone: str = "UTC") -> list[int]:
    """The ids of the files that remain after pruning by a condition in SQL."""
    test = may_match(connection, table, of_where(where, zone=zone))
    query = select(t.data_file.c.data_file_id).order_by(t.data_file.c.data_file_id)
    return list(connection.execute(query if test is None else query.where(test)).scalars())


def day(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
