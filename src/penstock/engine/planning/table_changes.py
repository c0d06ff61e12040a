"""Read from catalogs which rows of tables changed after they were read, for what is behind them.

By one query of the changes of a lake, and a few for each table that has some. Compactions and
flushes change no rows. Bounds of files say which slices rows may be of; where those of a small file
span several, its values are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from penstock.engine.planning.behind import RowsTouched, TableChanges
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database.location import resolve
from penstock.lakes.catalog.definitions.stored_sql import load_views
from penstock.lakes.catalog.snapshots import history
from penstock.lakes.catalog.snapshots.history import AddedFile, Rollbacks, Touched
from penstock.lakes.format.conflicts import ParsedChanges
from penstock.lakes.reading.column_values import distinct
from penstock.lakes.snapshot import At
from penstock.model.slicing.table_reads import TableRead
from penstock.model.time.slice import zone_of
from penstock.model.values.asset import TableName
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lakes.catalog.catalog import Catalog
    from penstock.lakes.format.files import Table
    from penstock.lakes.format.schema import Column

_MOST_BYTES = 16 * 1024 * 1024  # of a file whose values are looked at


def rows_changed(catalog: Catalog, table: TableName, since: int) -> bool:
    """Return whether rows of a table changed after a snapshot: by a writer, or a rollback."""
    key = (fold(table.schema), fold(table.table))
    with catalog.reading() as connection:
        own = history.tables_by_name(connection, reads.newest(connection).id).get(key)
        if own is None:  # a view, or gone: the run says so
            return False
        if own in history.rollbacks(connection, since):
            return True
        return any(
            own in each.inserted | each.deleted or key in each.created_tables
            for each in history.changes_of_others(connection, since, ())
        )


def last_change(catalog: Catalog | None, table: TableName) -> datetime | str:
    """Return when rows of a table last changed, in UTC; or why that is not known."""
    if catalog is None:
        return "does not exist"
    key = (fold(table.schema), fold(table.table))
    with catalog.reading() as connection:
        latest = reads.newest(connection).id
        own = history.tables_by_name(connection, latest).get(key)
        if own is None:
            views = load_views(connection, latest, [table.table])
            is_view = any(fold(view.schema_name) == key[0] for view in views)
            return "is a view, which has no age" if is_view else "does not exist"
        for changes in reversed(history.changes_of_others(connection, -1, ())):
            if own in changes.inserted | changes.deleted or key in changes.created_tables:
                snapshot = reads.snapshot(connection, At(version=changes.snapshot_id))
                if snapshot is not None:
                    return snapshot.time.astimezone(UTC)
                break
    return "has not changed in the snapshots that are kept"


@dataclass(frozen=True, slots=True)
class _Lake:
    """The changes of a lake after ``since``; ``first`` is the first snapshot that it still has."""

    catalog: Catalog
    connection: Connection
    since: int
    first: int
    latest: int
    every: tuple[ParsedChanges, ...]
    rollbacks: Mapping[int, Rollbacks]
    ids: Mapping[tuple[str, str], int]


def changes_of(catalog: Catalog, of: Iterable[TableRead], since: int) -> list[TableChanges]:
    """Return what became of each table after a snapshot."""
    with catalog.reading() as connection:
        latest = reads.newest(connection).id
        every = tuple(history.changes_of_others(connection, since, ()))
        first = every[0].snapshot_id if every else latest
        if first > since + 1:
            first = history.first_snapshot(connection)
        ids = history.tables_by_name(connection, latest)
        rolled = history.rollbacks(connection, since)
        lake = _Lake(catalog, connection, since, first, latest, every, rolled, ids)
        return [_of_table(lake, each) for each in of]


def _of_table(lake: _Lake, read: TableRead) -> TableChanges:
    name, found = read.table, TableChanges(read, known_since=lake.first - 1)
    key = (fold(name.schema), fold(name.table))
    own = lake.ids.get(key)
    if own is None:  # a view, or gone: its readers say so
        return replace(found, is_table=False)
    undone = lake.rollbacks.get(own, Rollbacks())
    moments = tuple(
        each.snapshot_id
        for each in lake.every
        if not undone.undid(each.snapshot_id)
        and (own in each.inserted | each.deleted or key in each.created_tables)
    )
    back = dict(undone.made)
    anew = max((e.snapshot_id for e in lake.every if key in e.created_tables), default=-1)
    touched: dict[str, tuple[RowsTouched, ...]] = {}
    table = None
    if moments and read.columns:
        path = lake.catalog.data_path
        table = reads.find_table(lake.connection, path, lake.latest, name.schema, name.table)
    if table is not None:
        for column in read.columns:
            touched[column] = tuple(_touched(lake, table, column, read, moments))
    altered = max((e.snapshot_id for e in lake.every if own in e.altered), default=-1)
    return TableChanges(read, moments, touched, back, anew, lake.first - 1, altered)


def _touched(
    lake: _Lake, table: Table, name: str, read: TableRead, moments: tuple[int, ...]
) -> Iterable[RowsTouched]:
    column = next((each for each in table.schema.columns if fold(each.name) == name), None)
    if column is None or column.id is None:
        return
    of = _reader(column, zone_of(read.reader.partition))
    own = (column.id, column.name)
    for each in history.bounds_touched(lake.connection, table.id, own, lake.since):
        within = tuple(at for at in moments if each.holds(at))
        if within:
            low, high = (None if text is None else of(text) for text in (each.low, each.high))
            yield RowsTouched(within, low, high, _values(table, column.id, each, of), each.is_row)


def _values(
    table: Table, column_id: int, touched: Touched, read: Callable[[str], datetime | None]
) -> Callable[[], Mapping[datetime, int] | None]:
    """Return a way to the values of a file, each with the last snapshot that added a row of it."""
    file = touched.file
    if file is None or file.bytes > _MOST_BYTES:
        return lambda: None
    return cache(partial(_look, table.path, column_id, file, touched.first, read))


def _look(
    base: str,
    column_id: int,
    file: AddedFile,
    first: int,
    read: Callable[[str], datetime | None],
) -> Mapping[datetime, int] | None:
    path = resolve(base, file.path, file.is_relative)
    found = distinct(path, column_id, by_snapshot=file.is_merged)
    if found is None:
        return None
    values: dict[datetime, int] = {}
    for text, snapshot in found:
        moment = read(text)
        if moment is None:
            return None
        values[moment] = max(values.get(moment, first), first if snapshot is None else snapshot)
    return values


def _reader(column: Column, zone: ZoneInfo) -> Callable[[str], datetime | None]:
    """Return how values of a column are read as moments; those without a zone are the reader's."""
    if column.type != "varchar" and not column.type.startswith(("date", "timestamp")):
        return lambda _: None

    def read(text: str) -> datetime | None:
        try:
            moment = datetime.fromisoformat(text.strip())
        except ValueError:
            return None
        return (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).astimezone(UTC)

    return read
