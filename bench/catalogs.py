"""Catalogs with very many files, made by SQL: what planning costs, without writing the data.

A file ``i`` of the table ``main.events`` has the ids ``i * PER_FILE`` to ``(i + 1) * PER_FILE - 1``
in its column ``id``. The files are hard links to one Parquet file.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection, text

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database import metadata as t

PER_FILE = 1000
_LINKS = 50_000  # of one file: file systems allow 65,000


def make(
    uri: str, data: Path, *, schema: str, files: int, columns: int, snapshots: int = 100
) -> None:
    """A lake at ``uri`` whose table has so many files, added over so many snapshots."""
    opened = Catalog.open(
        uri, data_path=str(data), metadata_schema=schema if "postgres:" in uri else None
    )
    with opened as catalog, catalog.writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL search_path TO {schema}"))
        _definitions(connection, columns)
        _snapshots(connection, snapshots)
        size = _source(data, columns, 0).stat().st_size
        _files(connection, files, snapshots, size)
        _statistics(connection, files, columns)
        if connection.dialect.name == "postgresql":
            connection.execute(text("ANALYZE"))


def link(data: Path, numbers: range, columns: int) -> None:
    """Make these files of the table be there."""
    folder = data / "main" / "events"
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        os.link(_source(data, columns, number // _LINKS), folder / f"{number}.parquet")


def _source(data: Path, columns: int, number: int) -> Path:
    path = data / f"source-{number}.parquet"
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        fields = [
            pa.field(_name(at), _arrow(at), metadata={"PARQUET:field_id": str(at)})
            for at in range(1, columns + 1)
        ]
        arrays = [pa.array([None], field.type) for field in fields]
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)
    return path


def _name(at: int) -> str:
    return "id" if at == 1 else f"c{at}"


def _arrow(at: int) -> pa.DataType:
    return pa.string() if at % 2 == 0 else pa.int64()


def _definitions(connection: Connection, columns: int) -> None:
    connection.execute(
        t.table.insert().values(
            table_id=1,
            table_uuid="00000000-0000-7000-8000-000000000001",
            begin_snapshot=1,
            schema_id=0,
            table_name="events",
            path="events/",
            path_is_relative=True,
        )
    )
    connection.execute(
        t.column.insert(),
        [
            {
                "column_id": at,
                "begin_snapshot": 1,
                "table_id": 1,
                "column_order": at,
                "column_name": _name(at),
                "column_type": "varchar" if at % 2 == 0 else "int64",
                "nulls_allowed": True,
                "default_value": "NULL",
            }
            for at in range(1, columns + 1)
        ],
    )
    connection.execute(
        t.schema_versions.insert().values(begin_snapshot=1, schema_version=1, table_id=1)
    )


def _series(connection: Connection, name: str, count: int, first: int = 0) -> str:
    """A common table expression of whole numbers."""
    if connection.dialect.name == "postgresql":
        return f"{name}(i) AS (SELECT generate_series({first}, {first + count - 1}))"
    last = first + count - 1
    return f"{name}(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM {name} WHERE i < {last})"


def _run(connection: Connection, series: str, insert: str, select: str) -> None:
    connection.execute(text(f"WITH RECURSIVE {series} INSERT INTO {insert} {select}"))


def _snapshots(connection: Connection, snapshots: int) -> None:
    _run(
        connection,
        _series(connection, "n", snapshots, 1),
        "ducklake_snapshot",
        "SELECT i, '2026-01-01 00:00:00+00', 1, 2, 100000000 FROM n",
    )
    _run(
        connection,
        _series(connection, "n", snapshots, 1),
        "ducklake_snapshot_changes (snapshot_id, changes_made)",
        "SELECT i, 'inserted_into_table:1' FROM n",
    )


def _files(connection: Connection, files: int, snapshots: int, size: int) -> None:
    relative = "true" if connection.dialect.name == "postgresql" else "1"
    _run(
        connection,
        _series(connection, "n", files),
        "ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative, "
        "file_format, record_count, file_size_bytes, footer_size, row_id_start)",
        f"SELECT i, 1, 1 + i * {snapshots} / {files}, CAST(i AS VARCHAR) || '.parquet', {relative},"
        f" 'parquet', {PER_FILE}, {size}, 500, i * {PER_FILE} FROM n",
    )


def _statistics(connection: Connection, files: int, columns: int) -> None:
    series = _series(connection, "n", files)
    series += ", " + _series(connection, "k", columns, 1).replace("(i)", "(j)").replace(
        "SELECT i + 1 FROM k WHERE i", "SELECT j + 1 FROM k WHERE j"
    )
    low = f"CASE WHEN j % 2 = 0 THEN 'value ' || (i % 97) ELSE CAST(i * {PER_FILE} AS VARCHAR) END"
    high = f"CAST(i * {PER_FILE} + {PER_FILE - 1} AS VARCHAR)"
    _run(
        connection,
        series,
        "ducklake_file_column_stats (data_file_id, table_id, column_id, column_size_bytes, "
        "value_count, null_count, min_value, max_value)",
        f"SELECT i, 1, j, 4000, {PER_FILE}, 0, {low}, "
        f"CASE WHEN j % 2 = 0 THEN 'value ' || (i % 97) || 'z' ELSE {high} END FROM n, k",
    )
