"""Reading views, macros, tags, sort keys and options: a fixed number of queries each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Subquery, case, func, or_, select

from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.database.rows import NoNumber, Record, check_begin, damaged
from penstock.lake.catalog.reads import visible
from penstock.lake.format.files import DataFile, DeleteFile, Table
from penstock.lake.format.naming import fold
from penstock.lake.format.objects import Description, ListedFile, Option, SortKey, View
from penstock.sql.macros import Macro, MacroForm, Parameter

_NO_TYPE = "unknown"
_NO_DEFAULT = "NULL"
# What options that the real extension stores are for, in our words.
_DESCRIPTIONS = {
    "version": "version of the format",
    "created_by": "what made the lake",
    "data_path": "where data files are",
    "encrypted": "whether data files are encrypted",
    "data_inlining_row_limit": "up to how many rows an insert stays in the catalog",
    "target_file_size": "size of data files that writes and compactions aim at, in bytes",
    "parquet_compression": "compression of Parquet files",
    "parquet_compression_level": "level of that compression",
    "parquet_version": "version of Parquet's data pages",
    "parquet_row_group_size": "rows of a row group",
    "parquet_row_group_size_bytes": "bytes of a row group",
    "hive_file_pattern": "whether partitioned files go to directories named for their values",
    "require_commit_message": "whether a commit needs a message",
    "rewrite_delete_threshold": "share of deleted rows from which a file is rewritten",
    "delete_older_than": "age from which unused files are removed",
    "expire_older_than": "age from which snapshots are expired",
    "auto_compact": "whether compaction without arguments includes the table",
    "per_thread_output": "whether every thread writes a file of its own",
}
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def views(
    connection: Connection, snapshot_id: int, names: Collection[str] | None = None
) -> list[View]:
    """The views at a snapshot, by schema and name; of these names only, where given."""
    t = metadata.of(connection)
    v, s = t.view.c, t.schema.c
    query = (
        select(
            v.view_id, v.view_name, v.dialect, v.sql, v.column_aliases, v.begin_snapshot,
            s.schema_name,
        )
        .join_from(t.view, t.schema, v.schema_id == s.schema_id)
        .where(visible(t.view, snapshot_id), visible(t.schema, snapshot_id))
        .where(*_named(v.view_name, names))
        .order_by(s.schema_name, v.view_name)
    )  # fmt: skip
    rows = [row for row in connection.execute(query) if _is_named(row.view_name, names)]
    check_begin(rows, "view", "view_id")
    ids = [row.view_id for row in rows]
    tags = _tags(connection, snapshot_id, ids)
    columns = _view_column_tags(connection, snapshot_id, ids)
    return [_view(row, tags.get(row.view_id, {}), columns.get(row.view_id, {})) for row in rows]


def view_names(connection: Connection, snapshot_id: int) -> list[str]:
    """``main.v`` of every view at a snapshot."""
    t = metadata.of(connection)
    query = (
        select(t.schema.c.schema_name, t.view.c.view_name)
        .join_from(t.view, t.schema, t.view.c.schema_id == t.schema.c.schema_id)
        .where(visible(t.view, snapshot_id), visible(t.schema, snapshot_id))
    )
    return [f"{schema}.{name}" for schema, name in connection.execute(query)]


def _view(
    row: Record, tags: Mapping[str, str], column_tags: Mapping[str, Mapping[str, str]]
) -> View:
    return View(
        id=row.view_id,
        schema_name=row.schema_name,
        name=row.view_name,
        dialect=(row.dialect or "duckdb").lower(),
        sql=row.sql,
        aliases=_aliases(row.column_aliases),
        begin_snapshot=row.begin_snapshot,
        tags=tags,
        column_tags=column_tags,
    )


def _view_column_tags(
    connection: Connection, snapshot_id: int, ids: Collection[int]
) -> dict[int, dict[str, dict[str, str]]]:
    """By view and column name. Only format 1.1 has them; its column names are those of the view."""
    t = metadata.of(connection)
    c = t.view_column_tag.c
    if not ids or isinstance(t.view_column_tag, Subquery):  # the empty one of other versions
        return {}
    query = select(c.view_id, c.column_name, c.key, c.value, c.begin_snapshot).where(
        c.view_id.in_(list(ids)), visible(t.view_column_tag, snapshot_id)
    )
    rows = connection.execute(query).all()
    check_begin(rows, "view_column_tag", "view_id")
    found: dict[int, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row.value is not None:
            found[row.view_id][row.column_name][row.key] = row.value
    return {view: dict(of) for view, of in found.items()}


def _aliases(text: str | None) -> tuple[str, ...]:
    """``"a","b"`` as DuckDB writes them, quotes inside doubled."""
    return tuple(name.replace('""', '"') for name in _QUOTED.findall(text or ""))


def macros(
    connection: Connection, snapshot_id: int, names: Collection[str] | None = None
) -> list[Macro]:
    """The macros at a snapshot, by schema and name; of these names only, where given."""
    t = metadata.of(connection)
    m, s = t.macro.c, t.schema.c
    query = (
        select(m.macro_id, m.macro_name, m.begin_snapshot, s.schema_name)
        .join_from(t.macro, t.schema, m.schema_id == s.schema_id)
        .where(visible(t.macro, snapshot_id), visible(t.schema, snapshot_id))
        .where(*_named(m.macro_name, names))
        .order_by(s.schema_name, m.macro_name)
    )
    rows = [row for row in connection.execute(query) if _is_named(row.macro_name, names)]
    check_begin(rows, "macro", "macro_id")
    forms = _forms(connection, [row.macro_id for row in rows])
    return [
        Macro(
            row.macro_id,
            row.schema_name,
            row.macro_name,
            forms.get(row.macro_id, ()),
            row.begin_snapshot,
        )
        for row in rows
    ]


def _forms(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[MacroForm, ...]]:
    if not ids:
        return {}
    t = metadata.of(connection)
    p, i = t.macro_parameters.c, t.macro_impl.c
    parameters: dict[tuple[int, int], list[Parameter]] = defaultdict(list)
    query = select(t.macro_parameters).where(p.macro_id.in_(ids))
    for row in connection.execute(query.order_by(p.macro_id, p.impl_id, p.column_id)):
        parameters[row.macro_id, row.impl_id].append(_parameter(row))
    forms: dict[int, tuple[MacroForm, ...]] = {}
    query = select(t.macro_impl).where(i.macro_id.in_(ids))
    for row in connection.execute(query.order_by(i.macro_id, i.impl_id)):
        form = MacroForm(
            kind=row.type.lower(),
            dialect=(row.dialect or "duckdb").lower(),
            sql=row.sql,
            parameters=tuple(parameters[row.macro_id, row.impl_id]),
        )
        forms[row.macro_id] = (*forms.get(row.macro_id, ()), form)
    return forms


def _parameter(row: Record) -> Parameter:
    """A default of NULL with an unknown type is none (measured)."""
    has_default = row.default_value_type not in {_NO_TYPE, None} or (
        row.default_value not in {_NO_DEFAULT, None}
    )
    return Parameter(
        name=row.parameter_name,
        type=None if row.parameter_type == _NO_TYPE else row.parameter_type,
        default=row.default_value if has_default else None,
        default_type=row.default_value_type if has_default else None,
    )


def describe(connection: Connection, table: Table, snapshot_id: int) -> Description:
    """The tags of a table and its columns, and what its rows are sorted by."""
    t = metadata.of(connection)
    c = t.column_tag.c
    names = {column.id: column.name for column in table.schema.columns}
    found: dict[str, dict[str, str]] = defaultdict(dict)
    query = select(c.table_id, c.column_id, c.key, c.value, c.begin_snapshot).where(
        c.table_id == table.id, visible(t.column_tag, snapshot_id)
    )
    rows = connection.execute(query).all()
    check_begin(rows, "column_tag", "table_id")
    for row in rows:
        if row.column_id in names:
            found[names[row.column_id]][row.key] = row.value
    return Description(
        tags=_tags(connection, snapshot_id, [table.id]).get(table.id, {}),
        column_tags=dict(found),
        sorted_by=sort_keys(connection, table.id, snapshot_id),
    )


def sort_keys(connection: Connection, table_id: int, snapshot_id: int) -> tuple[SortKey, ...]:
    """What the rows of a table are sorted by when files are written, in key order."""
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


def tags(connection: Connection, snapshot_id: int, object_id: int) -> dict[str, str]:
    """The tags of a schema, table or view, by key."""
    return _tags(connection, snapshot_id, [object_id]).get(object_id, {})


def _tags(
    connection: Connection, snapshot_id: int, ids: Collection[int]
) -> dict[int, dict[str, str]]:
    if not ids:
        return {}
    t = metadata.of(connection)
    c = t.tag.c
    query = select(c.object_id, c.key, c.value, c.begin_snapshot).where(
        c.object_id.in_(list(ids)), visible(t.tag, snapshot_id)
    )
    rows = connection.execute(query).all()
    check_begin(rows, "tag", "object_id")
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for object_id, key, value, _ in rows:
        if value is not None:
            found[object_id][key] = value
    return found


def options(connection: Connection) -> list[Option]:
    """Every option that is stored, by name; what it is set for by its name of now."""
    t = metadata.of(connection)
    m = t.metadata.c
    rows = connection.execute(select(m.key, m.value, m.scope, m.scope_id)).all()
    scoped = {row.scope for row in rows if row.scope}
    entries = _entries(connection) if scoped else {}
    found = [
        Option(
            name=row.key,
            value=row.value,
            scope=(row.scope or "global").upper(),
            entry=entries.get((row.scope, row.scope_id)) if row.scope else None,
            description=_DESCRIPTIONS.get(row.key, ""),
        )
        for row in rows
    ]
    order = {"GLOBAL": 0, "SCHEMA": 1, "TABLE": 2}
    return sorted(found, key=lambda o: (o.name, order.get(o.scope, 3), o.entry or ""))


def _entries(connection: Connection) -> dict[tuple[str, int], str]:
    """Names of schemas and tables, those of dropped ones as well, by scope and id."""
    t = metadata.of(connection)
    s, c = t.schema.c, t.table.c
    schemas = {row[0]: row[1] for row in connection.execute(select(s.schema_id, s.schema_name))}
    query = select(c.table_id, c.schema_id, c.table_name).order_by(c.begin_snapshot)
    named = {
        ("table", table_id): f"{schemas.get(schema_id, '')}.{name}"
        for table_id, schema_id, name in connection.execute(query)
    }
    return named | {("schema", schema_id): name for schema_id, name in schemas.items()}


def _named(column: ColumnElement[str], names: Collection[str] | None) -> list[Any]:
    """Names that may be the same, letter case aside: the database folds more than DuckDB does."""
    if names is None:
        return []
    return [func.lower(column).in_([func.lower(fold(name)) for name in names])]


def _is_named(name: str, names: Collection[str] | None) -> bool:
    return names is None or fold(name) in {fold(one) for one in names}


def listed(files: Iterable[DataFile]) -> list[ListedFile]:
    """Files as ``ducklake_list_files`` has them: one of several delete files once for each."""
    return [_listed(file, delete) for file in files for delete in file.deletes or (None,)]


def _listed(file: DataFile, delete: DeleteFile | None) -> ListedFile:
    if delete is None:
        return ListedFile(file.path, file.size_bytes, file.footer_size)
    return ListedFile(
        file.path,
        file.size_bytes,
        file.footer_size,
        delete_file=delete.path,
        delete_file_size_bytes=delete.size_bytes,
        delete_file_footer_size=delete.footer_size,
    )


def table_sizes(connection: Connection, snapshot_id: int) -> list[tuple[Any, ...]]:
    """Files and deletes of every table in force, as ``ducklake_table_info`` has them."""
    t = metadata.of(connection)
    c = t.table.c
    named = select(c.table_name, c.schema_id, c.table_id, c.table_uuid)
    named = named.where(visible(t.table, snapshot_id)).order_by(c.table_id)
    data = _sizes(connection, t.data_file, snapshot_id)
    deletes = _sizes(connection, t.delete_file, snapshot_id)
    return [
        (
            *(row.table_name, row.schema_id, row.table_id, str(row.table_uuid)),
            *data.get(row.table_id, (0, 0)),
            *deletes.get(row.table_id, (0, 0)),
        )
        for row in connection.execute(named)
    ]


def _sizes(
    connection: Connection, files: FromClause, snapshot_id: int
) -> dict[int, tuple[int, int]]:
    c = files.c
    bad = case((or_(NoNumber(c.begin_snapshot), NoNumber(c.file_size_bytes)), 1), else_=0)
    query = select(c.table_id, func.count(), func.sum(c.file_size_bytes), func.sum(bad))
    query = query.where(visible(files, snapshot_id)).group_by(c.table_id)
    rows = connection.execute(query).all()
    for row in rows:
        if row[3]:
            raise damaged(
                f"{row[3]} rows of table {row[0]} in {files.description} have no begin_snapshot "
                "or no file_size_bytes"
            )
    return {row[0]: (int(row[1]), int(row[2] or 0)) for row in rows}
