"""Files written with pyarrow the way a transaction stages them, and change sets over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.changes import ChangeSet, NewTable, TableChange
from penstock.lakes.format.files import DataFile, DeleteFile, PartitionField, Table
from penstock.lakes.format.naming import directory_name, new_uuid7
from penstock.lakes.format.schema import Column, TableSchema, assign_ids
from penstock.lakes.format.statistics import from_footer
from penstock.lakes.snapshot import Snapshot

_ID = b"PARQUET:field_id"
_ROW_ID = pa.field("_ducklake_internal_row_id", pa.int64(), metadata={_ID: b"2147483540"})
_SNAPSHOT_ID = pa.field("_ducklake_internal_snapshot_id", pa.int64(), metadata={_ID: b"2147483539"})
_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), metadata={_ID: b"2147483646"}),
        pa.field("pos", pa.int64(), metadata={_ID: b"2147483645"}),
    ]
)


def columns(**types: str) -> TableSchema:
    return assign_ids(TableSchema(tuple(Column(name, kind) for name, kind in types.items())))


def footer_size(path: str) -> int:
    return int.from_bytes(Path(path).read_bytes()[-8:-4], "little")


def stage(
    directory: str,
    schema: TableSchema,
    data: pa.Table,
    *,
    row_ids: Sequence[int] | None = None,
    ids: bool = True,
    nan: frozenset[int] | None = frozenset(),
    **file: Any,
) -> DataFile:
    """Write ``data`` under ``directory``, field ids on its top-level columns."""
    path = f"{directory}{new_uuid7()}/{new_uuid7()}.parquet"
    Path(path).parent.mkdir(parents=True)
    by_name = {column.name: column.id for column in schema.columns}
    fields = [
        field.with_metadata({_ID: str(by_name[field.name]).encode()} if ids else None)
        for field in data.schema
    ]
    data = data.cast(pa.schema(fields))
    if row_ids is not None:
        data = data.append_column(_ROW_ID, pa.array(row_ids, pa.int64()))
    pq.write_table(data, path)
    footer = pq.read_metadata(path)
    return DataFile(
        path=path,
        record_count=data.num_rows,
        size_bytes=Path(path).stat().st_size,
        footer_size=footer_size(path),
        stats=from_footer(footer, schema, nan),
        has_row_ids=row_ids is not None,
        **file,
    )


def stage_deletes(
    directory: str, data_file: str, positions: Sequence[int], *, since: Sequence[int] = ()
) -> DeleteFile:
    """Write a delete file; ``since`` has the snapshot that deleted each position."""
    path = f"{directory}{new_uuid7()}-delete.parquet"
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    content = {"file_path": [data_file] * len(positions), "pos": list(positions)}
    table = pa.table(content, schema=_DELETES)
    if since:
        table = table.append_column(_SNAPSHOT_ID, pa.array(since, pa.int64()))
    pq.write_table(table, path)
    return DeleteFile(
        *(path, len(positions), Path(path).stat().st_size, footer_size(path)),
        begin_snapshot=min(since, default=None),
        partial_max=max(since, default=None),
    )


def new_table(
    lake: Catalog, name: str, schema: TableSchema, partition_by: tuple[PartitionField, ...] = ()
) -> NewTable:
    uuid = new_uuid7()
    path = f"{lake.data_path}main/{directory_name(name, uuid)}"
    return NewTable(uuid, schema, path, partition_by)


def create(
    lake: Catalog,
    name: str,
    schema: TableSchema,
    *data: pa.Table,
    partition_by: tuple[PartitionField, ...] = (),
) -> Snapshot:
    """Commit a new table with one file for each of ``data``."""
    new = new_table(lake, name, schema, partition_by)
    files = tuple(stage(new.path, schema, each) for each in data)
    return lake.commit(lake.latest(), change_set(name, create=new, add=files))


def change_set(name: str, **change: Any) -> ChangeSet:
    return ChangeSet(tables=(TableChange("main", name, **change),))


def change(lake: Catalog, table: Table, base: Snapshot | None = None, **changes: Any) -> Snapshot:
    """Commit a change of one existing table."""
    return lake.commit(base or lake.latest(), change_set(table.name, table_id=table.id, **changes))


def append(lake: Catalog, name: str, data: Mapping[str, list[Any]] | pa.Table) -> Snapshot:
    base = lake.latest()
    table = lake.table("main", name, base.id)
    arrow = data if isinstance(data, pa.Table) else pa.table(dict(data))
    return change(lake, table, base, add=(stage(table.path, table.schema, arrow),))
