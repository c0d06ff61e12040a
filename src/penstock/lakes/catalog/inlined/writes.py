"""Writing inlined rows: the limit (``data_inlining_row_limit``), inserts, ends, deletes in files.

As DuckDB 1.5.5 does it (measured): a table has one inlined table for each version of its columns,
made when the table is created or altered, or by the first insert (then the version of the lake's
schema goes up by one, for others to see it, without a row in ``ducklake_schema_versions``). DuckDB
inserts into the newest one, whatever the table's columns are by then: so every alteration of a
table that has one makes another. A commit takes one file id for each table that gets inlined rows
and no file: attached DuckDBs hold a table's statistics for as long as ``next_file_id`` stays the
same, and would find no new row by its bounds and give row ids twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Protocol

from sqlalchemy import Connection, TextClause, func, select, text

from penstock.errors import CommitConflict
from penstock.lakes.catalog.commit_context import CommitContext, Target
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.engine import metadata_schema
from penstock.lakes.catalog.database.round_trips import chunks
from penstock.lakes.catalog.definitions import tables
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.catalog.inlined.columns import bound, placeholder, storage_type
from penstock.lakes.catalog.options import Options
from penstock.lakes.catalog.reads import build_schema, visible
from penstock.lakes.catalog.statistics import totals
from penstock.lakes.format.changes import InlineChange
from penstock.lakes.format.files import BEGIN_COLUMN, END_COLUMN, ROW_ID_COLUMN, DataFile, Table
from penstock.lakes.format.inlined.text import may_inline
from penstock.lakes.format.naming import quote_identifier
from penstock.lakes.format.option_values import INLINING_ROW_LIMIT
from penstock.lakes.format.schema import TableSchema, same_columns

_SYSTEM = (ROW_ID_COLUMN, BEGIN_COLUMN, END_COLUMN)


def lacks_table(context: CommitContext, table_id: int | None) -> bool:
    """Return whether rows of an existing table need a new inlined table although the columns do not
    change: then the lake's schema gets a new version.
    """
    return table_id is not None and _for_rows(context, table_id) is None


def define(context: CommitContext, target: Target, schema_name: str) -> None:
    """Create the inlined table of a table that this commit creates or alters, where needed.

    With inlining off it is needed only if an older one exists: DuckDB would insert into that.
    """
    registered = t.inlined_data_tables.c
    known = select(registered.schema_version).where(registered.table_id == target.id)
    versions = set(context.connection.execute(known).scalars())
    if not may_inline(target.schema) or context.schema_version in versions:
        return
    if versions or makes_table(context, target, schema_name):
        _make(context, target)


def write(
    context: CommitContext, target: Target, change: InlineChange, *, adds_files: bool
) -> None:
    """Write the change of one table; ``adds_files``: the commit adds files to it, too.

    Raises CommitConflict where a row or file that it removes or deletes from has ended.
    """
    if change.end_rows:
        _end(context, target, change.end_rows)
    if change.delete:
        _delete(context, target, change)
    if change.end_rows or change.delete:
        context.tokens.of("inlined_delete", target.id)
    if change.insert is not None and change.insert.num_rows:
        name = _for_rows(context, target.id) or _make(context, target)
        _insert(context, target, change, name)
        if not adds_files:
            context.ids.file()  # by which attached DuckDBs see that statistics have changed
        context.tokens.of("inlined_insert", target.id)


def _for_rows(context: CommitContext, table_id: int) -> str | None:
    """`_newest`, asked once in a commit unless the columns change in it."""
    if table_id in context.defined:
        return _newest(context.connection, table_id)
    if table_id not in context.inline_tables:
        context.inline_tables[table_id] = _newest(context.connection, table_id)
    return context.inline_tables[table_id]


def _newest(connection: Connection, table_id: int) -> str | None:
    """The inlined table for the columns in force, if there is one."""
    r, v = t.inlined_data_tables.c, t.schema_versions.c
    altered = select(func.max(v.schema_version)).where(v.table_id == table_id).scalar_subquery()
    query = select(r.table_name, r.schema_version, altered).where(r.table_id == table_id)
    row = connection.execute(query.order_by(r.schema_version.desc()).limit(1)).first()
    if row is None:
        return None
    name, version, newest = row
    if newest is None or newest <= version:
        return str(name)
    return str(name) if _unaltered(connection, table_id, version) else None


def _unaltered(connection: Connection, table_id: int, version: int) -> bool:
    """Return whether the columns equal those of an older version: a new default makes a version,
    too.
    """
    v, c = t.schema_versions.c, t.column
    at = select(func.max(v.begin_snapshot)).where(
        v.table_id == table_id, v.schema_version <= version
    )
    begin = connection.execute(at).scalar()
    if begin is None:
        return False
    then, now = (
        build_schema(
            connection.execute(
                select(c).where(c.c.table_id == table_id, there).order_by(c.c.column_order)
            ).all()
        )
        for there in (visible(c, begin), c.c.end_snapshot.is_(None))
    )
    return then.names == now.names and same_columns(then, now)


def _make(context: CommitContext, target: Target) -> str:
    connection, version = context.connection, context.schema_version
    name = f"ducklake_inlined_data_{target.id}_{version}"
    make_table(connection, name, target.schema)
    connection.execute(
        t.inlined_data_tables.insert().values(
            table_id=target.id, table_name=name, schema_version=version
        )
    )
    return name


def make_table(connection: Connection, name: str, schema: TableSchema) -> None:
    """The inlined table of this name, for rows of these columns."""
    dialect = connection.dialect.name
    listed = [f"{column} BIGINT" for column in _SYSTEM]
    listed += [
        f"{quote_identifier(column.name)} {storage_type(column, dialect)}"
        for column in schema.columns
    ]
    connection.execute(text(f"CREATE TABLE {qualified(connection, name)}({', '.join(listed)})"))


def qualified(connection: Connection, name: str) -> str:
    """The table as SQL names it."""
    schema = metadata_schema(connection)
    own = quote_identifier(name)
    return own if schema is None else f"{quote_identifier(schema)}.{own}"


def _insert(context: CommitContext, target: Target, change: InlineChange, name: str) -> None:
    assert change.insert is not None, "asked before"
    rows, dialect = change.insert, context.connection.dialect.name
    first = totals.of(context, target.id).next_row_id
    ids = change.row_ids or (None,) * rows.num_rows
    fresh = count(first)
    row_ids = [next(fresh) if row_id is None else row_id for row_id in ids]
    columns = [
        [bound(value, column, dialect) for value in rows[str(column.id)].to_pylist()]
        for column in target.schema.columns
    ]
    places = [placeholder(column, dialect) for column in target.schema.columns]
    statement = _insert_into(qualified(context.connection, name), tuple(places))
    values = [
        {"p0": row_id, "p1": context.snapshot_id}
        | {f"p{n}": value for n, value in enumerate(row, 3)}
        for row_id, row in zip(row_ids, zip(*columns, strict=True), strict=True)
    ]
    context.later(statement, values)
    new = sum(row_id is None for row_id in ids)
    like = DataFile("", rows.num_rows, 0, 0, stats=change.stats)
    totals.add(context, target, [like], row_ids=new)  # updated rows take no new ids


@lru_cache(256)  # the driver and PostgreSQL know a statement again that is the same
def _insert_into(table: str, places: tuple[str, ...]) -> TextClause:
    marks = ", ".join(
        place.replace("?", f":p{n}", 1) for n, place in enumerate(["?", "?", "NULL", *places])
    )
    return text(f"INSERT INTO {table} VALUES ({marks})")


def _end(context: CommitContext, target: Target, row_ids: Sequence[int]) -> None:
    ended = 0
    for stored in inlined.row_tables(context.connection, target.id):
        ended += sum(
            context.end(stored, stored.c[ROW_ID_COLUMN].in_(ids)) for ids in chunks(row_ids)
        )
    if ended != len(row_ids):
        raise _gone(target)


def _delete(context: CommitContext, target: Target, change: InlineChange) -> None:
    connection = context.connection
    _check_files(context, target, list(change.delete))
    name = f"ducklake_inlined_delete_{target.id}"
    known = inlined.delete_tables(connection, target.id)
    if not known:
        columns = "file_id BIGINT, row_id BIGINT, begin_snapshot BIGINT"
        connection.execute(text(f"CREATE TABLE {qualified(connection, name)}({columns})"))
    for stored in known:
        for file_id, positions in change.delete.items():
            for some in chunks(positions):
                there = (stored.c.file_id == file_id, stored.c.row_id.in_(some))
                if connection.execute(select(func.count()).where(*there)).scalar_one():
                    raise _gone(target)
    connection.execute(
        text(f"INSERT INTO {qualified(connection, name)} VALUES (:p0, :p1, :p2)"),
        [
            {"p0": file_id, "p1": position, "p2": context.snapshot_id}
            for file_id, positions in change.delete.items()
            for position in positions
        ],
    )


def _check_files(context: CommitContext, target: Target, file_ids: Sequence[int]) -> None:
    c = t.data_file.c
    for ids in chunks(file_ids):
        there = (c.data_file_id.in_(ids), c.table_id == target.id, c.end_snapshot.is_(None))
        if context.connection.execute(select(func.count()).where(*there)).scalar_one() != len(ids):
            raise _gone(target)


def _gone(target: Target) -> CommitConflict:
    return CommitConflict(
        f"rows of table {target.name} that this commit changes no longer exist",
        hint="run it again on the table as it is now",
    )


DEFAULT_LIMIT = 10  # rows; the extension's
# DataFrames are inlined only where a limit was set: they are small by chance more often than by
# intent, and writing them takes a Spark job either way.
OF_FRAMES = 0


class _Catalog(Protocol):
    inlining_row_limit: int | None

    def option(self, key: str, table: Table | None, schema: str | None = None, /) -> str | None: ...

    def option_of(self, options: Options, key: str, table: Table | None, /) -> str | None: ...


def makes_table(context: CommitContext, target: Target, schema_name: str) -> bool:
    """Return whether inserts of a few rows into this table are inlined: DuckDB 1.5.5 makes no
    inlined table otherwise, so that a role without the right to create tables can write (measured).
    """
    c = t.metadata.c
    query = select(c.key, c.value, c.scope, c.scope_id).where(c.key == INLINING_ROW_LIMIT)
    options = Options(context.connection.execute(query).all())
    schema_id = None
    if options.by_schema(INLINING_ROW_LIMIT):
        schema_id = tables.find_schema(context.schemas, schema_name).id
    limit = options.value(INLINING_ROW_LIMIT, target.id, schema_id)
    return context.inlines if limit is None else limit != "0"


def row_limit(
    catalog: _Catalog,
    table: Table | None,
    default: int = DEFAULT_LIMIT,
    options: Options | None = None,
    schema: str | None = None,
) -> int:
    """Return how many rows of a write may be inlined: by the option of the table, else of its
    schema, else of the lake, else by the argument of attach, else DuckDB's default.

    ``schema`` is the schema of a table that does not exist yet.
    """
    key = INLINING_ROW_LIMIT
    if options:
        limit = catalog.option_of(options, key, table)
    else:
        limit = catalog.option(key, table, schema)
    if limit is not None:
        return int(limit)
    return default if catalog.inlining_row_limit is None else catalog.inlining_row_limit
