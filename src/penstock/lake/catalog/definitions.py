"""Writing definitions: schemas, tables, columns, partitioning; creating, altering, dropping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_

from penstock.errors import CommitConflict
from penstock.lake.catalog import tables as t
from penstock.lake.catalog.paths import store
from penstock.lake.catalog.reads import visible
from penstock.lake.catalog.rows import Record
from penstock.lake.catalog.state import Ids, SchemaEntry
from penstock.lake.changes import NewTable
from penstock.lake.naming import directory_name, fold, new_uuid7
from penstock.lake.partitioning import partition_columns
from penstock.lake.schema import Column, TableSchema

_NO_DEFAULT = "NULL"


def write_schema(
    connection: Connection, data_path: str, snapshot_id: int, ids: Ids, name: str
) -> SchemaEntry:
    schema_id, uuid = ids.catalog(), new_uuid7()
    path = directory_name(name, uuid)
    connection.execute(
        t.schema.insert().values(
            schema_id=schema_id,
            schema_uuid=uuid,
            begin_snapshot=snapshot_id,
            schema_name=name,
            path=path,
            path_is_relative=True,
        )
    )
    return SchemaEntry(schema_id, name, f"{data_path}{path}")


def write_table(
    connection: Connection,
    snapshot_id: int,
    ids: Ids,
    schema: SchemaEntry,
    *,
    name: str,
    new: NewTable,
) -> tuple[int, int | None]:
    """Create a table; its id, and that of its partitioning if it has one."""
    table_id = ids.catalog()
    path, is_relative = store(schema.path, new.path)
    connection.execute(
        t.table.insert().values(
            table_id=table_id,
            table_uuid=new.uuid,
            begin_snapshot=snapshot_id,
            schema_id=schema.id,
            table_name=name,
            path=path,
            path_is_relative=is_relative,
        )
    )
    rows = list(_column_rows(new.schema, table_id, snapshot_id))
    connection.execute(t.column.insert(), rows)
    if not new.partition_by:
        return table_id, None
    partition_id = ids.catalog()
    _write_partitioning(connection, snapshot_id, table_id, partition_id, new)
    return table_id, partition_id


def _write_partitioning(
    connection: Connection, snapshot_id: int, table_id: int, partition_id: int, new: NewTable
) -> None:
    columns = partition_columns(new.schema, new.partition_by)
    connection.execute(
        t.partition_info.insert().values(
            partition_id=partition_id, table_id=table_id, begin_snapshot=snapshot_id
        )
    )
    connection.execute(
        t.partition_column.insert(),
        [
            {
                "partition_id": partition_id,
                "table_id": table_id,
                "partition_key_index": index,
                "column_id": column.id,
                "transform": field.transform,
            }
            for index, (column, field) in enumerate(zip(columns, new.partition_by, strict=True))
        ],
    )


def _column_rows(schema: TableSchema, table_id: int, snapshot_id: int) -> Iterator[dict[str, Any]]:
    for order, (column, parent) in enumerate(_with_parents(schema.columns, None), start=1):
        yield _column_row(column, parent, order, table_id, snapshot_id)


def _with_parents(
    columns: Sequence[Column], parent: int | None
) -> Iterator[tuple[Column, int | None]]:
    for column in columns:
        yield column, parent
        yield from _with_parents(column.children, column.id)


def _column_row(
    column: Column, parent: int | None, order: int, table_id: int, snapshot_id: int
) -> dict[str, Any]:
    return {
        "column_id": column.id,
        "begin_snapshot": snapshot_id,
        "end_snapshot": None,
        "table_id": table_id,
        "column_order": order,
        "column_name": column.name,
        "column_type": column.type,
        "initial_default": column.initial_default,
        "default_value": _NO_DEFAULT if column.default is None else column.default,
        "nulls_allowed": column.nullable,
        "parent_column": parent,
        "default_value_type": "" if column.children else column.default_kind,
        "default_value_dialect": "duckdb",
    }


def alter_table(
    connection: Connection, snapshot_id: int, base_id: int, table_id: int, schema: TableSchema
) -> None:
    """Bring the columns of a table to ``schema``: end the rows that differ, begin their successors.

    ``base_id`` is the snapshot before. Orders are kept where the columns' sequence allows it.
    """
    current = _current_columns(connection, base_id, table_id)
    wanted = list(_with_parents(schema.columns, None))
    orders = _orders(current, wanted)
    ended = [row.column_id for row in current.values()]
    begun: list[dict[str, Any]] = []
    for column, parent in wanted:
        row = _column_row(column, parent, orders[_id(column)], table_id, snapshot_id)
        old = current.get(_id(column))
        if old is not None and _same_row(old, row):
            ended.remove(old.column_id)
        else:
            begun.append(row)
    if ended:
        c = t.column.c
        connection.execute(
            t.column.update()
            .where(c.table_id == table_id, c.end_snapshot.is_(None), c.column_id.in_(ended))
            .values(end_snapshot=snapshot_id)
        )
    if begun:
        connection.execute(t.column.insert(), begun)


def _current_columns(connection: Connection, base_id: int, table_id: int) -> dict[int, Record]:
    query = t.column.select().where(t.column.c.table_id == table_id, visible(t.column, base_id))
    rows = connection.execute(query.order_by(t.column.c.column_order))
    return {row.column_id: row for row in rows}


def _orders(
    current: Mapping[int, Record], wanted: Sequence[tuple[Column, int | None]]
) -> dict[int, int]:
    kept = [_id(column) for column, _ in wanted if _id(column) in current]
    in_sequence = kept == sorted(kept, key=lambda i: current[i].column_order)
    new_last = all(_id(column) in current for column, _ in wanted[: len(kept)])
    if not (in_sequence and new_last):
        return {_id(column): order for order, (column, _) in enumerate(wanted, start=1)}
    top = max((row.column_order for row in current.values()), default=0)
    fresh = (_id(column) for column, _ in wanted if _id(column) not in current)
    return {i: current[i].column_order for i in kept} | {
        i: order for order, i in enumerate(fresh, start=top + 1)
    }


def _id(column: Column) -> int:
    assert column.id is not None, f"column {column.name} has no id"
    return column.id


def _same_row(old: Record, new: Mapping[str, Any]) -> bool:
    ignored = {"begin_snapshot", "end_snapshot", "default_value_type", "default_value_dialect"}
    stored = old._mapping
    return all(stored[key] == value for key, value in new.items() if key not in ignored)


def drop_table(connection: Connection, snapshot_id: int, table_id: int, name: str) -> None:
    """End everything that a table has. Raises CommitConflict when it is not there any more."""
    c = t.table.c
    ended = connection.execute(
        t.table.update()
        .where(and_(c.table_id == table_id, c.end_snapshot.is_(None)))
        .values(end_snapshot=snapshot_id)
    )
    if ended.rowcount != 1:
        raise CommitConflict(f"table {name} is not there any more", hint="run it again")
    parts = (
        *(t.partition_info, t.column, t.column_tag, t.data_file, t.delete_file, t.sort_info),
        t.tag,
    )
    for part in parts:
        key = part.c.object_id if part is t.tag else part.c.table_id
        connection.execute(
            part.update()
            .where(key == table_id, part.c.end_snapshot.is_(None))
            .values(end_snapshot=snapshot_id)
        )


def write_schema_version(
    connection: Connection, snapshot_id: int, schema_version: int, table_ids: Sequence[int]
) -> None:
    if table_ids:
        connection.execute(
            t.schema_versions.insert(),
            [
                {
                    "begin_snapshot": snapshot_id,
                    "schema_version": schema_version,
                    "table_id": table_id,
                }
                for table_id in table_ids
            ],
        )


def find_schema(schemas: Mapping[str, SchemaEntry], name: str) -> SchemaEntry:
    found = schemas.get(fold(name))
    if found is None:
        raise CommitConflict(f"there is no schema {name!r} any more", hint="run it again")
    return found
