"""Registering data files: rows, row ids, partition values and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection

from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.database.paths import stored_path
from penstock.lake.catalog.files.ending import delete_row
from penstock.lake.catalog.files.mappings import mapping_for, mappings_for
from penstock.lake.catalog.statistics import totals
from penstock.lake.catalog.work import Ids, Target, Work
from penstock.lake.files import DataFile
from penstock.lake.schema import TableSchema


def add_files(work: Work, target: Target, files: Sequence[DataFile]) -> None:
    """Register data files and bring the table's statistics up to date.

    A file that the same transaction deleted rows from is registered with its delete file. One that
    was staged before the table's partitioning changed keeps the older one. A file whose rows were
    the table's before (`rollback`) says which row ids they have.
    """
    connection, table_id = work.connection, target.id
    mapping_ids = _mapping_ids(connection, work.ids, table_id, target.schema, files)
    first = totals.of(work, table_id).next_row_id
    row_ids = accumulate(map(totals.new_row_ids, files), initial=first)
    numbered = list(zip(work.ids.files(len(files)), files, row_ids, strict=False))
    work.insert(
        t.data_file,
        [
            _data_row(file_id, file, start, work.snapshot_id, table_id)
            | stored_path(target.path, file.path)
            | {"mapping_id": mapping_id, "partition_id": _partition_id(file, target)}
            for (file_id, file, start), mapping_id in zip(numbered, mapping_ids, strict=True)
        ],
    )
    by_id = [(file_id, file) for file_id, file, _ in numbered]
    work.insert(t.file_partition_value, list(partition_rows(by_id, table_id)))
    work.insert(t.file_column_stats, list(stats_rows(by_id, table_id)))
    work.insert(t.delete_file, list(_delete_rows(work, target, numbered)))
    totals.add(work, target, files)
    work.tokens.of("inserted_into_table", table_id)


def _partition_id(file: DataFile, target: Target) -> int | None:
    if file.partition_values is None:
        return None
    return target.partition_id if file.partition_id is None else file.partition_id


def _mapping_ids(
    connection: Connection,
    ids: Ids,
    table_id: int,
    schema: TableSchema,
    files: Sequence[DataFile],
) -> list[int | None]:
    """The name mapping of each file, if any. Files that share a mapping share one value of it."""
    own = None
    if any(file.uses_mapping for file in files):
        own = mapping_for(connection, ids, table_id, schema)
    given = {id(file.mapping): file.mapping for file in files if file.mapping is not None}
    made = dict(
        zip(given, mappings_for(connection, ids, table_id, list(given.values())), strict=True)
        if given
        else ()
    )
    return [
        own if file.uses_mapping else made.get(id(file.mapping), file.mapping_id) for file in files
    ]


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
        "row_id_start": row_id_start if file.row_id_start is None else file.row_id_start,
    }


Numbered = Sequence[tuple[int, DataFile, int]]


def _delete_rows(work: Work, target: Target, numbered: Numbered) -> Iterator[dict[str, Any]]:
    for file_id, file, _ in numbered:
        if file.delete is not None:
            row = delete_row(target, file_id, file.delete, work.ids.file())
            yield row | {"begin_snapshot": work.snapshot_id}


FilesById = Iterable[tuple[int, DataFile]]  # the id of each file


def partition_rows(numbered: FilesById, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file in numbered:
        for key, value in enumerate(file.partition_values or ()):
            yield {
                "data_file_id": file_id,
                "table_id": table_id,
                "partition_key_index": key,
                "partition_value": value,
            }


def stats_rows(numbered: FilesById, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file in numbered:
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
