"""Registering data files: rows, row ids, partition values and statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection

from penstock.lake.catalog import tables as t
from penstock.lake.catalog import totals
from penstock.lake.catalog.mappings import mapping_for
from penstock.lake.catalog.paths import stored_path
from penstock.lake.catalog.state import Ids
from penstock.lake.files import DataFile
from penstock.lake.schema import TableSchema


def add_files(
    connection: Connection,
    snapshot_id: int,
    ids: Ids,
    table_id: int,
    *,
    table_path: str,
    schema: TableSchema,
    partition_id: int | None,
    files: Sequence[DataFile],
) -> None:
    """Register data files and bring the table's statistics up to date."""
    mapping_id = None
    if any(file.uses_mapping for file in files):
        mapping_id = mapping_for(connection, ids, table_id, schema)
    stats = totals.table_stats(connection, table_id)
    row_ids = accumulate((file.record_count for file in files), initial=stats.get("next_row_id", 0))
    numbered = list(zip(ids.files(len(files)), files, row_ids, strict=False))
    connection.execute(
        t.data_file.insert(),
        [
            _data_row(file_id, file, start, snapshot_id, table_id)
            | stored_path(table_path, file.path)
            | {
                "mapping_id": mapping_id if file.uses_mapping else file.mapping_id,
                "partition_id": None if file.partition_values is None else partition_id,
            }
            for file_id, file, start in numbered
        ],
    )
    _insert_all(connection, t.file_partition_value, _partition_rows(numbered, table_id))
    _insert_all(connection, t.file_column_stats, _stats_rows(numbered, table_id))
    totals.merge_table_stats(connection, table_id, schema, files, stats)


def _data_row(
    file_id: int, file: DataFile, row_id_start: int, snapshot_id: int, table_id: int
) -> dict[str, Any]:
    return {
        "data_file_id": file_id,
        "table_id": table_id,
        "begin_snapshot": snapshot_id,
        "file_format": "parquet",
        "record_count": file.record_count,
        "file_size_bytes": file.size_bytes,
        "footer_size": file.footer_size,
        "row_id_start": row_id_start,
    }


Numbered = Sequence[tuple[int, DataFile, int]]


def _partition_rows(numbered: Numbered, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file, _ in numbered:
        for key, value in enumerate(file.partition_values or ()):
            yield {
                "data_file_id": file_id,
                "table_id": table_id,
                "partition_key_index": key,
                "partition_value": value,
            }


def _stats_rows(numbered: Numbered, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file, _ in numbered:
        for one in file.stats:
            yield {
                "data_file_id": file_id,
                "table_id": table_id,
                "column_id": one.column_id,
                "column_size_bytes": one.size_bytes,
                "value_count": one.value_count,
                "null_count": one.null_count,
                "min_value": one.min_value,
                "max_value": one.max_value,
                "contains_nan": one.contains_nan,
            }


def _insert_all(connection: Connection, table: Any, rows: Iterator[dict[str, Any]]) -> None:
    listed = list(rows)
    if listed:
        connection.execute(table.insert(), listed)
