"""See which tables of a lake changed after a snapshot, as events of the scheduler.

What a change is comes from the catalog (`lakes.catalog.snapshots.row_changes`). This module adds
the partitions: of a run of Penstock those that it recorded, of another writer those of the files
and rows that it added and removed. Where compaction has mixed the files since, the partition is not
known, and the event is about the whole table.

Expired snapshots are not read. Each table that may have changed in them has one event, without a
partition, of the first snapshot after them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.session.connections import look_again
from penstock.engine.state import reading
from penstock.engine.state.records import WHOLE
from penstock.engine.state.store import find_tables
from penstock.errors import LakeError
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database.location import resolve
from penstock.lakes.catalog.snapshots import history
from penstock.lakes.catalog.snapshots.history import Touched
from penstock.lakes.catalog.snapshots.row_changes import (
    Name,
    RowChange,
    RowChanges,
    deletes_across,
    load_row_changes,
    newest_id,
)
from penstock.lakes.reading.column_values import distinct, snapshots_in
from penstock.model.time.interval import interval_of
from penstock.model.values.asset import TableName
from penstock.scheduler.values import EventKind, TriggerEvent
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lakes.catalog.catalog import Catalog
    from penstock.lakes.snapshot import Snapshot

_Partitions = frozenset[str | None]
_UNKNOWN: _Partitions = frozenset({None})
_MOST_BYTES = 16 * 1024 * 1024  # of a merged file whose rows are looked at


@dataclass(frozen=True, slots=True)
class Changes:
    """Hold the events of a look at a lake.

    Attributes:
        events: The events, by snapshot, table and partition.
        snapshot_id: The newest snapshot, which the next look begins at.
    """

    events: tuple[TriggerEvent, ...]
    snapshot_id: int


class TableWatch:
    """A watch of the tables of one lake. A look writes nothing and needs no Spark session."""

    def __init__(self, catalog: Catalog, lake_name: str, partition_column: str) -> None:
        """Watch a lake, which was not looked at before.

        Args:
            catalog: Its catalog, or the index of a Delta root.
            lake_name: Its name in penstock.toml.
            partition_column: The column that has the partition of each row.
        """
        self._catalog, self._lake, self._column = catalog, lake_name, partition_column
        self._newest: int | None = None

    def has_moved(self) -> bool:
        """Return whether the lake has another newest snapshot than at the last look.

        On a Delta root the versions of its tables are read first, at most every two seconds.

        Returns:
            True also before the first look.
        """
        look_again(self._catalog)
        with self._catalog.reading() as connection:
            return newest_id(connection) != self._newest

    def changes(self, tables: Collection[TableName], since: int) -> Changes:
        """Return the changes of tables after a snapshot.

        Args:
            tables: The tables and views; those of other lakes, and files, are left out.
            since: The snapshot up to which changes are known.

        Returns:
            One event for each table, snapshot and partition.
        """
        look_again(self._catalog)
        sources = {
            (fold(table.schema), fold(table.table)): table.full
            for table in tables
            if table.is_table and table.lake == self._lake
        }
        with self._catalog.reading() as connection:
            row_changes = load_row_changes(connection, sources.keys(), since)
            moved = {
                change for change in row_changes.changes if self._only_moved(connection, change)
            }
            place = (self._catalog.data_path, self._column)
            touched = _Touched.load(connection, place, row_changes, since)
        events: dict[str, TriggerEvent] = {}
        for snapshot, name in self._after_gaps(row_changes):
            event = _event(snapshot, sources[name], None, None)
            events[event.id] = event
        for change in row_changes.changes:
            if change in moved:
                continue
            is_sure = change.snapshot.id not in row_changes.without_base
            if change.is_new and is_sure and not self._has_rows(change):
                continue
            run_id = run_of(change.snapshot)
            for partition in sorted(touched.partitions(change), key=lambda text: text or ""):
                event = _event(change.snapshot, sources[change.name], partition, run_id)
                events.setdefault(event.id, event)
        self._newest = row_changes.newest.id
        ordered = sorted(events.values(), key=lambda event: (event.snapshot_id or 0, event.id))
        return Changes(tuple(ordered), row_changes.newest.id)

    def _only_moved(self, connection: Connection, change: RowChange) -> bool:
        """Return whether a change is a flush of deletes that later ones have taken the place of."""
        if change.table_id is None or change.is_new or not change.only_deletes:
            return False
        files = deletes_across(connection, change)
        if not files:
            return False
        data_path, snapshot_id = self._catalog.data_path, change.snapshot.id
        (table,) = reads.load_tables(connection, data_path, snapshot_id, change.table_id)
        inside = [snapshots_in(resolve(table.path, *file)) for file in files]
        return all(ids is not None and snapshot_id not in ids for ids in inside)

    def _has_rows(self, change: RowChange) -> bool:
        """Return whether a table that got its name in a snapshot has rows, or its name had some."""
        snapshot_id = change.snapshot.id
        rows = self._catalog.count_rows(*change.name, snapshot_id)
        return rows != 0 or bool(self._catalog.count_rows(*change.name, snapshot_id - 1))

    def _after_gaps(self, row_changes: RowChanges) -> Iterator[tuple[Snapshot, Name]]:
        """Yield the tables that may have changed in expired snapshots, with the first ones after.

        Where the snapshot before a gap is there, what was in force at it is on record.
        """
        for snapshot, before in row_changes.after_gaps:
            for name in sorted(row_changes.named):
                with suppress(LakeError):  # a Delta table that cannot be read: its readers say so
                    table = self._catalog.find_table(*name, row_changes.newest.id)
                    if table is not None and self._catalog.changed_since(table, before):
                        yield snapshot, name


@dataclass(frozen=True, slots=True)
class _Touched:
    """The partitions that snapshots changed.

    ``slices`` are those recorded, by run, snapshot and name; ``values`` those of files and rows, by
    table and snapshot. Those of ``unsure`` snapshots are not known. ``merged`` are files that have
    rows of several.
    """

    slices: Mapping[tuple[str, int, Name], Sequence[str]]
    values: Mapping[int, Mapping[int, _Partitions]]
    merged: Mapping[int, Sequence[_Merged]]
    unsure: frozenset[int]

    @classmethod
    def load(
        cls, connection: Connection, place: tuple[str, str], row_changes: RowChanges, since: int
    ) -> _Touched:
        """Look at the tables that changed.

        Args:
            connection: The catalog.
            place: The data path, and the column that has the partition of each row.
            row_changes: The changes.
            since: The snapshot that they come after.

        Returns:
            The partitions of the changes.
        """
        changes = row_changes.changes
        runs = {run_id for change in changes if (run_id := run_of(change.snapshot)) is not None}
        slices: dict[tuple[str, int, Name], list[str]] = {}
        if runs and find_tables(connection):
            published = reading.slices_published(connection, runs, since)
            for (run_id, snapshot_id, target), texts in published.items():
                schema, _, name = target.partition(".")
                slices[run_id, snapshot_id, (fold(schema), fold(name))] = texts
        touched = cls(slices, {}, {}, row_changes.without_base)
        values: dict[int, Mapping[int, _Partitions]] = {}
        merged: dict[int, Sequence[_Merged]] = {}
        # The last change of each table has its columns as they are now.
        latest = {
            change.table_id: change.snapshot.id
            for change in changes
            if change.table_id is not None and not touched.recorded(change)
        }
        for table_id, snapshot_id in latest.items():
            for table in reads.load_tables(connection, place[0], snapshot_id, table_id):
                column = table.schema.find(place[1])
                if column is not None and column.id is not None:
                    key = (column.id, column.name)
                    values[table_id] = history.values_touched(connection, table_id, key, since)
                    spans = history.bounds_touched(connection, table_id, key, since)
                    merged[table_id] = [
                        _Merged(span, table.path, column.id) for span in spans if span.is_merged
                    ]
        return cls(slices, values, merged, row_changes.without_base)

    def recorded(self, change: RowChange) -> Sequence[str]:
        """Return the slices that a run recorded for a change.

        Args:
            change: The change.

        Returns:
            Their texts; none where it was not a run, or its records are gone.
        """
        key = (run_of(change.snapshot) or "", change.snapshot.id, change.name)
        return self.slices.get(key, ())

    def partitions(self, change: RowChange) -> _Partitions:
        """Return the partitions of a change.

        Args:
            change: The change.

        Returns:
            The partitions; only None where one of them is not known.
        """
        snapshot_id = change.snapshot.id
        recorded = self.recorded(change)
        if recorded:
            return _whole_if_unknown(None if _is_no_value(text) else text for text in recorded)
        if change.table_id is None or change.is_new or snapshot_id in self.unsure:
            return _UNKNOWN
        values = set(self.values.get(change.table_id, {}).get(snapshot_id, ()))
        for file in self.merged.get(change.table_id, ()):
            if file.touched.holds(snapshot_id):
                values |= file.values().get(snapshot_id, set()) if file.is_readable else _UNKNOWN
        return _whole_if_unknown(values)


def _whole_if_unknown(values: Iterable[str | None]) -> _Partitions:
    partitions = frozenset(values)
    return _UNKNOWN if None in partitions or not partitions else partitions


def _is_no_value(text: str) -> bool:
    """Return whether a slice is the whole of a table, or an interval of a model by time."""
    return text == WHOLE or interval_of(text) is not None


@dataclass(slots=True)
class _Merged:
    """A file with rows, or deletes, of several snapshots. The rows of a small one are looked at."""

    touched: Touched
    base: str
    column_id: int
    _values: Mapping[int, set[str | None]] | None = None

    @property
    def is_readable(self) -> bool:
        """Return whether it is of one partition, and its rows tell the snapshots that wrote it."""
        file, low = self.touched.file, self.touched.low
        is_small = file is not None and file.bytes <= _MOST_BYTES
        return is_small and low is not None and low == self.touched.high

    def values(self) -> Mapping[int, set[str | None]]:
        """Return the partitions by snapshot.

        Returns:
            The partitions; snapshots of which the file has no row are left out.
        """
        file = self.touched.file
        if self._values is None and file is not None:
            path = resolve(self.base, file.path, file.is_relative)
            pairs = distinct(path, self.column_id, by_snapshot=True)
            within = range(self.touched.first, self.touched.last + 1)
            by_snapshot: dict[int, set[str | None]] = defaultdict(set)
            if pairs is None:
                by_snapshot |= {snapshot_id: {None} for snapshot_id in within}
            for value, snapshot_id in pairs or ():
                by_snapshot[self.touched.first if snapshot_id is None else snapshot_id].add(value)
            self._values = by_snapshot
        return self._values or {}


def run_of(snapshot: Snapshot) -> str | None:
    """Return the run of Penstock that made a snapshot, by the note of its commit.

    Args:
        snapshot: The snapshot.

    Returns:
        The id of the run; None of another writer, a rollback, or a drop.
    """
    with suppress(ValueError, KeyError, TypeError):  # the notes of other programs are anything
        note = json.loads(snapshot.extra or "")
        run_id = note["run"]
        if "step" in note and isinstance(run_id, str):
            return run_id
    return None


def _event(
    snapshot: Snapshot, source: str, partition: str | None, run_id: str | None
) -> TriggerEvent:
    suffix = "" if partition is None else f"/{partition}"
    return TriggerEvent(
        id=f"asset:{source}@{snapshot.id}{suffix}",
        kind=EventKind.ASSET,
        source=source,
        time=snapshot.time,
        partition=partition,
        snapshot_id=snapshot.id,
        run_id=run_id,
    )
