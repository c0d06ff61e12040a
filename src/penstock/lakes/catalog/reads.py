"""Reading snapshots, schemas and tables: each function is a fixed number of queries.

Files keep the types that they were written with, so earlier versions of columns are read, too.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, Integer, and_, func, or_, select

from penstock.errors import SnapshotNotFound, UnsupportedFeature
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database.faults import (
    NoNumber,
    Record,
    check,
    check_begin,
    check_unique,
    damaged,
)
from penstock.lakes.catalog.database.location import resolve_directory
from penstock.lakes.format.files import PartitionField, Table
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.snapshot import At, Snapshot

_NO_DEFAULT = "NULL"
_BEGUN = ("begin_snapshot",)


def visible(table: FromClause, snapshot_id: int) -> ColumnElement[bool]:
    """The rows of a versioned table that are in force at a snapshot.

    Also rows without a ``begin_snapshot``: nobody would notice their absence, so callers check the
    column (`rows.check_begin`).
    """
    return and_(
        begun(table.c.begin_snapshot, snapshot_id),
        or_(table.c.end_snapshot.is_(None), table.c.end_snapshot > snapshot_id),
    )


def begun(begin: ColumnElement[int], snapshot_id: int) -> ColumnElement[bool]:
    """The condition that a ``begin_snapshot`` is at most ``snapshot_id``, or not a number."""
    return or_(begin <= snapshot_id, NoNumber(begin))


def snapshots_query() -> Any:
    """The fields of a `Snapshot`; these tables are the same in all versions of the format."""
    s, c = metadata.snapshot.c, metadata.snapshot_changes.c
    return select(
        s.snapshot_id,
        s.snapshot_time,
        s.schema_version,
        s.next_catalog_id,
        s.next_file_id,
        func.coalesce(c.changes_made, ""),
        c.author,
        c.commit_message,
        c.commit_extra_info,
    ).join_from(
        metadata.snapshot, metadata.snapshot_changes, s.snapshot_id == c.snapshot_id, isouter=True
    )


def as_snapshot(row: Sequence[Any]) -> Snapshot:
    """A row of `snapshots_query`. Raises CatalogCorrupt without its numbers and its time."""
    numbers = (row[0], *row[2:5])
    if row[1] is None or set(map(type, numbers)) != {int}:
        raise damaged(f"row {row[0]} of ducklake_snapshot lacks its time or one of its numbers")
    return Snapshot(*row)


def latest(connection: Connection) -> Snapshot | None:
    """The newest snapshot; ``None`` in a catalog without any, which is corrupt."""
    row = connection.execute(latest_query()).first()
    return None if row is None else as_snapshot(row)


def newest(connection: Connection) -> Snapshot:
    """`latest`, or CatalogCorrupt."""
    snapshot = latest(connection)
    if snapshot is None:
        raise damaged("it holds no snapshot")
    return snapshot


def latest_query() -> Any:
    """The fields of a `Snapshot`, of the newest."""
    s = metadata.snapshot.c
    top = select(func.max(s.snapshot_id)).scalar_subquery()
    return snapshots_query().where(s.snapshot_id == top)


def snapshots(connection: Connection) -> list[Snapshot]:
    """All snapshots, oldest first."""
    rows = connection.execute(snapshots_query().order_by(metadata.snapshot.c.snapshot_id))
    return [as_snapshot(row) for row in rows]


def snapshot(connection: Connection, at: At) -> Snapshot | None:
    """The snapshot that ``at`` points to, or ``None`` when there is none (any more)."""
    if at.version is not None:
        query = snapshots_query().where(metadata.snapshot.c.snapshot_id == at.version)
        row = connection.execute(query).first()
        return None if row is None else as_snapshot(row)
    if at.timestamp is not None:
        snapshot_id = snapshot_id_at(connection, at.timestamp)
        return None if snapshot_id is None else snapshot(connection, At(version=snapshot_id))
    return latest(connection)


def has_snapshot(connection: Connection, snapshot_id: int) -> bool:
    """Return whether the snapshot exists; a new engine compiles this query faster than
    `snapshot`'s.
    """
    c = metadata.of(connection).snapshot.c
    query = select(c.snapshot_id).where(c.snapshot_id == snapshot_id)
    return connection.execute(query).first() is not None


def snapshot_id_at(connection: Connection, moment: dt.datetime) -> int | None:
    """Return the snapshot in force at a moment: the highest id whose time is not after it.

    Args:
        connection: The catalog.
        moment: A time with a zone.

    Returns:
        Its id; None before the first.
    """
    # On SQLite times are text. ``2026-11-20 21:47:05.5+00`` sorts as the time does (``+`` before
    # ``.`` before digits) as long as all are in UTC, which is how they are written; where one is
    # not, all are compared in Python.
    t = metadata.of(connection)
    c = t.snapshot.c
    if connection.dialect.name == "sqlite":
        foreign = (
            "SELECT EXISTS (SELECT 1 FROM ducklake_snapshot WHERE snapshot_time NOT LIKE '%+00')"
        )
        if connection.exec_driver_sql(foreign).scalar():
            pairs = connection.execute(select(c.snapshot_id, c.snapshot_time))
            return max((i for i, time in pairs if time <= moment), default=None)
    query = select(func.max(c.snapshot_id)).where(c.snapshot_time <= moment)
    return connection.execute(query).scalar()


def snapshot_missing(connection: Connection, at: At) -> SnapshotNotFound:
    """The error for a missing snapshot, which names the snapshots that exist."""
    s = metadata.of(connection).snapshot.c
    first, last = connection.execute(select(func.min(s.snapshot_id), func.max(s.snapshot_id))).one()
    start = connection.execute(select(s.snapshot_time).where(s.snapshot_id == first)).scalar()
    gap = _around(connection, at.version) if at.version is not None else ""
    asked = f"snapshot {at.version}" if at.version is not None else f"snapshot at {at.timestamp}"
    return SnapshotNotFound(
        f"{asked} does not exist",
        hint=f"snapshots {first} to {last} remain{gap}, the first of {start}",
        data={"version": at.version, "timestamp": at.timestamp, "first": first, "last": last},
    )


def _around(connection: Connection, version: int) -> str:
    """For a version that expired between others: its remaining neighbours."""
    c = metadata.of(connection).snapshot.c
    below = select(func.max(c.snapshot_id)).where(c.snapshot_id < version).scalar_subquery()
    above = select(func.min(c.snapshot_id)).where(c.snapshot_id > version).scalar_subquery()
    before, after = connection.execute(select(below, above)).one()
    if before is None or after is None:
        return ""
    return f" (none between {before} and {after}: expired)"


def schema_rows(connection: Connection, snapshot_id: int) -> Sequence[Record]:
    """``(schema_id, schema_name, path, path_is_relative, ...)`` at a snapshot, by name."""
    t = metadata.of(connection)
    c = t.schema.c
    query = select(
        c.schema_id, c.schema_name, c.path, c.path_is_relative, c.begin_snapshot, _parent(t)
    )
    query = query.where(visible(t.schema, snapshot_id)).order_by(c.schema_name)
    rows = connection.execute(query).all()
    for row in rows:
        check(
            row, f"row {row.schema_id} of ducklake_schema", numbers=_BEGUN, texts=("schema_name",)
        )
    check_unique((row.schema_name for row in rows if row.parent_schema_id is None), "schema")
    return rows


def _parent(t: metadata.Tables) -> ColumnElement[int | None]:
    return metadata.optional(t.schema, "parent_schema_id", Integer())


def refuse_nested(row: Record) -> None:
    """Raise UnsupportedFeature for a row of a nested schema, which 1.1 allows."""
    if row.parent_schema_id is not None:
        raise UnsupportedFeature(
            f"schema {row.schema_name!r} is in another schema (of id {row.parent_schema_id}); "
            "nested schemas are not read",
            hint="read its tables with DuckDB; those of other schemas can be read by their names",
            data={"schema": row.schema_name, "parent_schema_id": row.parent_schema_id},
        )


def table_names(
    connection: Connection, snapshot_id: int, name: str | None = None
) -> Sequence[Record]:
    """``(table_id, schema_name, table_name, parent_schema_id, ...)`` at a snapshot.

    With ``name`` only tables that may have it: databases fold more letters than DuckDB does, so
    callers compare the names again.
    """
    t = metadata.of(connection)
    query = (
        select(
            t.table.c.table_id,
            t.schema.c.schema_name,
            t.table.c.table_name,
            *_checked_of(t),
        )
        .join_from(t.table, t.schema, t.table.c.schema_id == t.schema.c.schema_id)
        .where(visible(t.table, snapshot_id), visible(t.schema, snapshot_id))
    )
    if name is not None:
        query = query.where(func.lower(t.table.c.table_name) == func.lower(name))
    return _checked_tables(connection.execute(query).all())


def load_tables(
    connection: Connection, data_path: str, snapshot_id: int, table_id: int | None = None
) -> list[Table]:
    """Every table at a snapshot (or one), with columns and partitioning: five queries.

    Raises UnsupportedFeature where one is in a nested schema.
    """
    columns = _columns(connection, snapshot_id, table_id)
    history = load_history(connection, snapshot_id, table_id)
    partitions = _partitions(connection, snapshot_id, table_id, columns)
    versions = _schema_versions(connection, snapshot_id, table_id)
    tables: list[Table] = []
    for row in _table_rows(connection, snapshot_id, table_id):
        refuse_nested(row)
        schema_path = resolve_directory(data_path, row.schema_path, row.schema_relative)
        partition_id, fields = partitions.get(row.table_id, (None, ()))
        tables.append(
            Table(
                id=row.table_id,
                uuid=row.table_uuid,
                schema_name=row.schema_name,
                name=row.table_name,
                path=resolve_directory(schema_path, row.path, row.path_is_relative),
                schema=build_schema(columns.get(row.table_id, ()), history),
                begin_snapshot=row.begin_snapshot,
                partition_id=partition_id,
                partition_by=fields,
                schema_version=versions.get(row.table_id),
            )
        )
    return tables


def find_table(
    connection: Connection, data_path: str, snapshot_id: int, schema: str, name: str
) -> Table | None:
    """The table of this name, letter case aside. Raises UnsupportedFeature for a nested schema."""
    wanted = (fold(schema), fold(name))
    named = [
        row
        for row in table_names(connection, snapshot_id, name)
        if (fold(row.schema_name), fold(row.table_name)) == wanted
    ]
    # A table in a nested schema of this name is refused, unless another table has the name.
    for row in sorted(named, key=lambda row: row.parent_schema_id is not None):
        refuse_nested(row)
        return load_tables(connection, data_path, snapshot_id, row.table_id)[0]
    return None


def _only(column: ColumnElement[int], table_id: int | None) -> list[ColumnElement[bool]]:
    return [] if table_id is None else [column == table_id]


def _table_rows(connection: Connection, snapshot_id: int, table_id: int | None) -> Sequence[Record]:
    t = metadata.of(connection)
    c, s = t.table.c, t.schema.c
    query = (
        select(
            c.table_id,
            c.table_uuid,
            c.table_name,
            c.path,
            c.path_is_relative,
            *_checked_of(t),
            s.schema_name,
            s.path.label("schema_path"),
            s.path_is_relative.label("schema_relative"),
        )
        .join_from(t.table, t.schema, c.schema_id == s.schema_id)
        .where(visible(t.table, snapshot_id), visible(t.schema, snapshot_id))
        .where(*_only(c.table_id, table_id))
        .order_by(s.schema_name, c.table_name)
    )
    return _checked_tables(connection.execute(query).all())


def _checked_of(t: metadata.Tables) -> list[ColumnElement[Any]]:
    """Return what `_checked_tables` looks at, besides names and ids."""
    return [
        t.table.c.begin_snapshot,
        t.schema.c.begin_snapshot.label("schema_begin"),
        _parent(t),
    ]


def _checked_tables(rows: Sequence[Record]) -> Sequence[Record]:
    for row in rows:
        what = f"row {row.table_id} of ducklake_table"
        check(row, what, numbers=("table_id", *_BEGUN), texts=("schema_name", "table_name"))
        if not isinstance(row.schema_begin, int):
            what = f"schema {row.schema_name!r} in ducklake_schema"
            check(row, what, numbers=("schema_begin",))
    own = (row for row in rows if row.parent_schema_id is None)
    check_unique((f"{row.schema_name}.{row.table_name}" for row in own), "table")
    return rows


def _columns(
    connection: Connection, snapshot_id: int, table_id: int | None
) -> dict[int, list[Record]]:
    t = metadata.of(connection)
    query = (
        select(t.column)
        .where(visible(t.column, snapshot_id), *_only(t.column.c.table_id, table_id))
        .order_by(t.column.c.table_id, t.column.c.column_order)
    )
    grouped: dict[int, list[Record]] = defaultdict(list)
    for row in connection.execute(query):
        grouped[row.table_id].append(row)
    return grouped


def build_schema(rows: Iterable[Record], history: History | None = None) -> TableSchema:
    """The tree of columns from the rows of one table, which come in column order."""
    before = history or {}
    children: dict[int | None, list[Record]] = defaultdict(list)
    ids: set[int | None] = {None}
    for row in rows:
        what = f"column {row.column_id} of table {row.table_id} in ducklake_column"
        check(row, what, numbers=("column_id", *_BEGUN), texts=("column_name", "column_type"))
        if row.column_id in ids:
            raise damaged(f"{what} is there twice at one snapshot")
        ids.add(row.column_id)
        children[row.parent_column].append(row)
    if lost := children.keys() - ids:
        raise damaged(
            f"table {children[min(lost, key=repr)][0].table_id} in ducklake_column has columns "
            f"under column {min(lost, key=repr)}, which is missing"
        )

    def build(row: Record) -> Column:
        return Column(
            name=row.column_name,
            type=row.column_type,
            id=row.column_id,
            nullable=row.nulls_allowed is not False,
            children=tuple(build(child) for child in children.get(row.column_id, ())),
            initial_default=row.initial_default,
            default=None if row.default_value == _NO_DEFAULT else row.default_value,
            default_kind=row.default_value_type or "literal",
            versions=(
                *before.get((row.table_id, row.column_id), ()),
                (row.begin_snapshot, row.column_type),
            ),
        )

    return TableSchema(tuple(build(row) for row in children.get(None, ())))


def _partitions(
    connection: Connection,
    snapshot_id: int,
    table_id: int | None,
    columns: dict[int, list[Record]],
) -> dict[int, tuple[int, tuple[PartitionField, ...]]]:
    t = metadata.of(connection)
    i, c = t.partition_info.c, t.partition_column.c
    query = (
        select(i.table_id, i.partition_id, i.begin_snapshot, c.column_id, c.transform)
        .join_from(t.partition_info, t.partition_column, i.partition_id == c.partition_id)
        .where(visible(t.partition_info, snapshot_id), *_only(i.table_id, table_id))
        .order_by(i.table_id, c.partition_key_index)
    )
    by_table: dict[int, tuple[int, tuple[PartitionField, ...]]] = {}
    rows = connection.execute(query).all()
    check_begin(rows, "partition_info", "partition_id")
    for table, partition_id, _, column_id, transform in rows:
        names = {row.column_id: row.column_name for row in columns.get(table, ())}
        if not isinstance(transform, str):
            raise damaged(f"partitioning {partition_id} of table {table} has no transform")
        field = PartitionField(names.get(column_id, f"#{column_id}"), transform)
        by_table[table] = (partition_id, (*by_table.get(table, (0, ()))[1], field))
    return by_table


def _schema_versions(
    connection: Connection, snapshot_id: int, table_id: int | None
) -> dict[int, int]:
    c = metadata.of(connection).schema_versions.c
    query = (
        select(c.table_id, func.max(c.schema_version))
        .where(c.begin_snapshot <= snapshot_id, *_only(c.table_id, table_id))
        .group_by(c.table_id)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


class OptionRow(NamedTuple):
    """One row of ``ducklake_metadata``."""

    key: str
    value: str
    scope: str | None
    scope_id: int | None


def metadata_rows(connection: Connection) -> Sequence[OptionRow]:
    """Every option; the same in all versions of the format."""
    c = metadata.metadata.c
    rows = connection.execute(select(c.key, c.value, c.scope, c.scope_id))
    return [OptionRow(*row) for row in rows]


def schema_id_of(connection: Connection, table_id: int) -> int | None:
    t = metadata.of(connection)
    query = select(t.table.c.schema_id).where(t.table.c.table_id == table_id)
    return connection.execute(query.order_by(t.table.c.begin_snapshot.desc())).scalar()


def next_column_id(connection: Connection, table_id: int) -> int:
    c = metadata.of(connection).column.c
    query = select(func.max(c.column_id)).where(c.table_id == table_id)
    return (connection.execute(query).scalar() or 0) + 1


# By table and column: the snapshots in which its versions began and their types, oldest first.
History = Mapping[tuple[int, int], tuple[tuple[int, str], ...]]


def load_history(connection: Connection, snapshot_id: int, table_id: int | None) -> History:
    """The versions that ended, up to a snapshot, of one table or of all."""
    c = metadata.of(connection).column.c
    query = select(c.table_id, c.column_id, c.begin_snapshot, c.column_type)
    query = query.where(c.end_snapshot <= snapshot_id).order_by(c.begin_snapshot)
    if table_id is not None:
        query = query.where(c.table_id == table_id)
    ended: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for table, column, begin, kind in connection.execute(query):
        if not isinstance(begin, int):
            raise damaged(
                f"column {column} of table {table} in ducklake_column has {begin!r} as its "
                "begin_snapshot, where a number must be"
            )
        ended[table, column].append((begin, kind))
    return {key: tuple(versions) for key, versions in ended.items()}


def named(column: ColumnElement[str], names: Collection[str] | None) -> list[Any]:
    """Names that may be the same, letter case aside: the database folds more than DuckDB does."""
    if names is None:
        return []
    return [func.lower(column).in_([func.lower(fold(name)) for name in names])]


def is_named(name: str, names: Collection[str] | None) -> bool:
    return names is None or fold(name) in {fold(known) for known in names}
