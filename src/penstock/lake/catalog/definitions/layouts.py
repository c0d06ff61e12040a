"""Writing how a table's files are laid out: partitioned by transforms, sorted by expressions."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.work import Work
from penstock.lake.format.files import PartitionField
from penstock.lake.format.objects import SortKey
from penstock.lake.format.partitioning import partition_columns
from penstock.lake.format.schema import TableSchema


def set_partitioning(
    work: Work, table_id: int, schema: TableSchema, fields: Sequence[PartitionField]
) -> int:
    """Another partitioning for files from now on; without fields it has no keys. Its id."""
    work.end(t.partition_info, t.partition_info.c.table_id == table_id)
    work.defined[table_id] = None
    work.tokens.of("altered_table", table_id)
    return begin_partitioning(work, table_id, schema, fields)


def begin_partitioning(
    work: Work, table_id: int, schema: TableSchema, fields: Sequence[PartitionField]
) -> int:
    partition_id = work.ids.catalog()
    work.insert(
        t.partition_info,
        [
            {
                "partition_id": partition_id,
                "table_id": table_id,
                "begin_snapshot": work.snapshot_id,
            }
        ],
    )
    columns = partition_columns(schema, fields)
    work.insert(
        t.partition_column,
        [
            {
                "partition_id": partition_id,
                "table_id": table_id,
                "partition_key_index": index,
                "column_id": column.id,
                "transform": field.transform,
            }
            for index, (column, field) in enumerate(zip(columns, fields, strict=True))
        ],
    )
    return partition_id


def set_sorting(work: Work, table_id: int, keys: Sequence[SortKey]) -> None:
    """Other sort keys; without any, none. The schema's version of the table stays."""
    work.end(t.sort_info, t.sort_info.c.table_id == table_id)
    work.tokens.of("altered_table", table_id)
    begin_sorting(work, table_id, keys)


def begin_sorting(work: Work, table_id: int, keys: Sequence[SortKey]) -> None:
    if not keys:
        return
    sort_id = work.ids.catalog()
    work.insert(
        t.sort_info,
        [{"sort_id": sort_id, "table_id": table_id, "begin_snapshot": work.snapshot_id}],
    )
    work.insert(
        t.sort_expression,
        [
            {
                "sort_id": sort_id,
                "table_id": table_id,
                "sort_key_index": index,
                "expression": key.expression,
                "dialect": key.dialect,
                "sort_direction": key.direction,
                "null_order": key.nulls,
            }
            for index, key in enumerate(keys)
        ],
    )
