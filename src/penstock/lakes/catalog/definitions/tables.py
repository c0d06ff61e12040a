"""Schemas, tables and columns: creating, altering, renaming, dropping and describing them.

How files are laid out is defined, too: partitioned by transforms, sorted by expressions.

Names have to be free at the commit: tables and views share theirs, macros have them by kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, literal, select, union_all

from penstock.errors import CommitConflict
from penstock.lakes.catalog.commit_context import CommitContext, SchemaEntry
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.faults import Record, check_begin
from penstock.lakes.catalog.database.location import store
from penstock.lakes.catalog.definitions import tags
from penstock.lakes.catalog.reads import visible
from penstock.lakes.format.changes import ChangeSet, NewTable
from penstock.lakes.format.files import PartitionField, Table
from penstock.lakes.format.naming import directory_name, fold, new_uuid7
from penstock.lakes.format.objects import Description, SortKey
from penstock.lakes.format.partitioning import partition_columns
from penstock.lakes.format.schema import Column, TableSchema

_NO_DEFAULT = "NULL"


def write_table(
    context: CommitContext, schema: SchemaEntry, name: str, new: NewTable
) -> tuple[int, int | None]:
    """Create a table; its id, and that of its partitioning if it has one."""
    table_id = context.ids.catalog()
    path, is_relative = store(schema.path, new.path)
    row = {
        "table_id": table_id,
        "table_uuid": new.uuid,
        "begin_snapshot": context.snapshot_id,
        "schema_id": schema.id,
        "table_name": name,
        "path": path,
        "path_is_relative": is_relative,
    }
    context.insert(t.table, [row])
    columns = [
        _column_row(column, parent, order, table_id, context.snapshot_id)
        for order, (column, parent) in enumerate(_with_parents(new.schema.columns, None), start=1)
    ]
    context.insert(t.column, columns)
    partition_id = None
    if new.partition_by:
        partition_id = begin_partitioning(context, table_id, new.schema, new.partition_by)
    begin_sorting(context, table_id, new.sort_by)
    tags.write(context, table_id, new.tags, fresh=True)
    tags.write_columns(context, table_id, new.column_tags, fresh=True)
    context.defined[table_id] = None
    context.tokens.named("created_table", schema.name, name)
    return table_id, partition_id


def alter_table(context: CommitContext, table_id: int, schema: TableSchema) -> None:
    """Give a table the columns of ``schema``: end the rows that differ, insert their successors.

    Columns keep their order numbers where their sequence allows it. If nothing differs, only the
    schema version is new, as in the real extension.
    """
    query = t.column.select().where(
        t.column.c.table_id == table_id, visible(t.column, context.base.id)
    )
    rows = context.connection.execute(query.order_by(t.column.c.column_order))
    current: dict[int, Record] = {row.column_id: row for row in rows}
    wanted = list(_with_parents(schema.columns, None))
    orders = _orders(current, wanted)
    ended = dict.fromkeys(row.column_id for row in current.values())
    begun: list[dict[str, Any]] = []
    for column, parent in wanted:
        row = _column_row(column, parent, orders[_id(column)], table_id, context.snapshot_id)
        old = current.get(_id(column))
        if old is not None and _same_row(old, row):
            del ended[old.column_id]
        else:
            begun.append(row)
    if ended:
        c = t.column.c
        context.end(t.column, c.table_id == table_id, c.column_id.in_(list(ended)))
        gone = [column_id for column_id in ended if column_id not in orders]
        tags.end_columns(context, table_id, gone)
    context.insert(t.column, begun)
    context.defined[table_id] = None
    context.tokens.of("altered_table", table_id)


def rename_table(context: CommitContext, table_id: int, new_name: str, label: str) -> None:
    """Rename a table; its directory stays. ``label`` is its name in messages.

    The token is that of a creation, as the real extension has it. Raises CommitConflict.
    """
    c = t.table.c
    query = t.table.select().where(c.table_id == table_id, c.end_snapshot.is_(None))
    old = context.connection.execute(query).first()
    if old is None or context.end(t.table, c.table_id == table_id) != 1:
        raise _gone(label)
    context.insert(
        t.table,
        [
            dict(old._mapping)
            | {"begin_snapshot": context.snapshot_id, "end_snapshot": None, "table_name": new_name}
        ],
    )
    schema = next(entry for entry in context.schemas.values() if entry.id == old.schema_id)
    context.defined[table_id] = None
    context.tokens.named("created_table", schema.name, new_name)


def drop_table(context: CommitContext, table_id: int, label: str) -> None:
    """End everything that a table has. Raises CommitConflict when it no longer exists."""
    if context.end(t.table, t.table.c.table_id == table_id) != 1:
        raise _gone(label)
    parts = (t.partition_info, t.column, t.column_tag, t.data_file, t.delete_file, t.sort_info)
    for part in parts:
        context.end(part, part.c.table_id == table_id)
    context.end(t.tag, t.tag.c.object_id == table_id)
    context.tokens.of("dropped_table", table_id)


def write_schema_versions(context: CommitContext) -> None:
    """The schema version of tables that this commit creates or alters."""
    context.insert(
        t.schema_versions,
        [
            {
                "begin_snapshot": context.snapshot_id,
                "schema_version": context.schema_version,
                "table_id": table_id,
            }
            for table_id in context.defined
        ],
    )


def _gone(label: str) -> CommitConflict:
    return CommitConflict(f"table {label} no longer exists", hint="run it again")


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


def _orders(
    current: Mapping[int, Record], wanted: Sequence[tuple[Column, int | None]]
) -> dict[int, int]:
    """The order number of each column: its present one, or for new columns their id.

    Where the fields of one parent change their sequence, all are renumbered.
    """
    top = max((row.column_order for row in current.values()), default=0)
    orders = {
        _id(column): current[_id(column)].column_order
        if _id(column) in current
        else _id(column) + (top if _id(column) <= top else 0)
        for column, _ in wanted
    }
    families = (
        [orders[_id(column)] for column, parent in wanted if parent == common]
        for common in {parent for _, parent in wanted}
    )
    if all(siblings == sorted(siblings) for siblings in families):
        return orders
    return {_id(column): order for order, (column, _) in enumerate(wanted, start=1)}


def _id(column: Column) -> int:
    assert column.id is not None, f"column {column.name} has no id"
    return column.id


def _same_row(old: Record, new: Mapping[str, Any]) -> bool:
    """Return whether a column is unchanged, apart from NOT NULL of fields.

    The real extension writes fields that it renames or adds as NOT NULL without meaning it.
    """
    ignored = {"begin_snapshot", "end_snapshot", "default_value_dialect"}
    if old.default_value == new["default_value"]:
        ignored.add("default_value_type")
    if new["parent_column"] is not None:
        ignored.add("nulls_allowed")
    stored = old._mapping
    return all(stored[key] == value for key, value in new.items() if key not in ignored)


def create_schema(context: CommitContext, name: str) -> None:
    """Create a schema. Raises CommitConflict when a schema of this name exists."""
    if fold(name) in context.schemas:
        raise CommitConflict(f"there is a schema {name!r} already", hint="run it again")
    schema_id, uuid = context.ids.catalog(), new_uuid7()
    path = directory_name(name, uuid)
    row = {
        "schema_id": schema_id,
        "schema_uuid": uuid,
        "begin_snapshot": context.snapshot_id,
        "schema_name": name,
        "path": path,
        "path_is_relative": True,
    }
    context.insert(t.schema, [row])
    context.schemas[fold(name)] = SchemaEntry(schema_id, name, f"{context.data_path}{path}")
    context.tokens.named("created_schema", name)


def drop_schema(context: CommitContext, schema_id: int) -> None:
    """Drop a schema, which is empty by now. Raises CommitConflict when it no longer exists."""
    key = next((key for key, entry in context.schemas.items() if entry.id == schema_id), None)
    if key is None or context.end(t.schema, t.schema.c.schema_id == schema_id) != 1:
        raise CommitConflict("the schema to drop no longer exists", hint="run it again")
    del context.schemas[key]
    context.tokens.of("dropped_schema", schema_id)


def find_schema(schemas: Mapping[str, SchemaEntry], name: str) -> SchemaEntry:
    """The schema of this name. Raises CommitConflict when it does not exist."""
    entry = schemas.get(fold(name))
    if entry is None:
        raise CommitConflict(f"schema {name!r} no longer exists", hint="run it again")
    return entry


@dataclass(frozen=True, slots=True)
class Entry:
    """A table, view or macro of a schema. ``kind`` is ``table``, ``view`` or ``macro``."""

    kind: str
    id: int
    schema_id: int
    name: str


def check_free_names(context: CommitContext, changes: ChangeSet) -> None:
    """Raise CommitConflict where a name is taken, or a schema to drop holds what others made.

    Others may have taken a name since the transaction looked; the record of what they did has
    names, but not the ids of what got them.
    """
    wanted = dict(_wanted(changes))
    if not wanted and not changes.drop_schemas:
        return
    gone = _names_that_go(changes)
    schemas = {entry.id: entry.name for entry in context.schemas.values()}
    for entry in entries(context.connection, context.base.id):
        if (entry.kind, entry.id) in gone or entry.schema_id not in schemas:
            continue
        schema = schemas[entry.schema_id]
        if entry.schema_id in changes.drop_schemas:
            raise CommitConflict(
                f"schema {schema} holds {entry.kind} {entry.name}, which was made there meanwhile",
                hint="nothing was changed; run it again",
                data={"schema": schema, entry.kind: entry.name},
            )
        if entry.kind != "macro" and (fold(schema), fold(entry.name)) in wanted:
            raise CommitConflict(
                f"there is a {entry.kind} {schema}.{entry.name} already",
                hint="nothing was changed; run it again",
                data={"schema": schema, entry.kind: entry.name},
            )


def entries(connection: Connection, snapshot_id: int) -> list[Entry]:
    """Every table, view and macro at a snapshot."""
    t = metadata.of(connection)
    kinds = (
        ("table", t.table, t.table.c.table_id, t.table.c.table_name),
        ("view", t.view, t.view.c.view_id, t.view.c.view_name),
        ("macro", t.macro, t.macro.c.macro_id, t.macro.c.macro_name),
    )
    query = union_all(
        *(
            select(literal(kind).label("kind"), key, source.c.schema_id, name).where(
                visible(source, snapshot_id)
            )
            for kind, source, key, name in kinds
        )
    )
    return [Entry(*row) for row in connection.execute(query)]


def _wanted(changes: ChangeSet) -> Iterator[tuple[tuple[str, str], None]]:
    for change in changes.tables:
        if change.create is not None or change.rename_to is not None:
            name = change.rename_to or change.name
            yield (fold(change.schema_name), fold(name)), None
    for view in changes.create_views:
        yield (fold(view.schema_name), fold(view.name)), None


def _names_that_go(changes: ChangeSet) -> set[tuple[str, int]]:
    """The ids, with their kinds, that lose their name in this commit."""
    gone = {("view", view_id) for view_id in (*changes.drop_views, *changes.rename_views)}
    gone |= {("view", view.replaces) for view in changes.create_views if view.replaces is not None}
    gone |= {("macro", macro) for macro in changes.drop_macros}
    gone |= {
        ("macro", macro.replaces) for macro in changes.create_macros if macro.replaces is not None
    }
    for change in changes.tables:
        if change.drops is not None:
            gone.add(("table", change.drops))
        if change.table_id is not None and change.rename_to is not None:
            gone.add(("table", change.table_id))
    return gone


def set_partitioning(
    context: CommitContext, table_id: int, schema: TableSchema, fields: Sequence[PartitionField]
) -> int:
    """Set the partitioning of later files, without keys if ``fields`` is empty; its id."""
    context.end(t.partition_info, t.partition_info.c.table_id == table_id)
    context.defined[table_id] = None
    context.tokens.of("altered_table", table_id)
    return begin_partitioning(context, table_id, schema, fields)


def begin_partitioning(
    context: CommitContext, table_id: int, schema: TableSchema, fields: Sequence[PartitionField]
) -> int:
    partition_id = context.ids.catalog()
    context.insert(
        t.partition_info,
        [
            {
                "partition_id": partition_id,
                "table_id": table_id,
                "begin_snapshot": context.snapshot_id,
            }
        ],
    )
    columns = partition_columns(schema, fields)
    context.insert(
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


def set_sorting(context: CommitContext, table_id: int, keys: Sequence[SortKey]) -> None:
    """Replace the sort keys, or remove them. The table's schema version stays."""
    context.end(t.sort_info, t.sort_info.c.table_id == table_id)
    context.tokens.of("altered_table", table_id)
    begin_sorting(context, table_id, keys)


def begin_sorting(context: CommitContext, table_id: int, keys: Sequence[SortKey]) -> None:
    if not keys:
        return
    sort_id = context.ids.catalog()
    context.insert(
        t.sort_info,
        [{"sort_id": sort_id, "table_id": table_id, "begin_snapshot": context.snapshot_id}],
    )
    context.insert(
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


def describe(connection: Connection, table: Table, snapshot_id: int) -> Description:
    """The tags of a table and of its columns, and its sort keys."""
    t = metadata.of(connection)
    c = t.column_tag.c
    names = {column.id: column.name for column in table.schema.columns}
    column_tags: dict[str, dict[str, str]] = defaultdict(dict)
    query = select(c.table_id, c.column_id, c.key, c.value, c.begin_snapshot).where(
        c.table_id == table.id, visible(t.column_tag, snapshot_id)
    )
    rows = connection.execute(query).all()
    check_begin(rows, "column_tag", "table_id")
    for row in rows:
        if row.column_id in names:
            column_tags[names[row.column_id]][row.key] = row.value
    return Description(
        tags=tags.load_tags(connection, snapshot_id, [table.id]).get(table.id, {}),
        column_tags=dict(column_tags),
        sorted_by=sort_keys(connection, table.id, snapshot_id),
    )


def sort_keys(connection: Connection, table_id: int, snapshot_id: int) -> tuple[SortKey, ...]:
    """The keys that the rows of a table are sorted by when files are written, in order."""
    t = metadata.of(connection)
    i, e = t.sort_info.c, t.sort_expression.c
    query = (
        select(
            *(e.expression, e.dialect, e.sort_direction, e.null_order),
            *(i.sort_id, i.begin_snapshot),
        )
        .join_from(t.sort_info, t.sort_expression, i.sort_id == e.sort_id)
        .where(i.table_id == table_id, visible(t.sort_info, snapshot_id))
        .order_by(e.sort_key_index)
    )
    rows = connection.execute(query).all()
    check_begin(rows, "sort_info", "sort_id")
    return tuple(SortKey(*row[:4]) for row in rows)
