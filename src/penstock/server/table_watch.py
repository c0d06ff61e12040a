"""Find the tables of a lake that changed after a snapshot, as events of the scheduler.

`lakes.catalog.snapshots.row_changes` defines which snapshots are changes. This module adds the
partitions. A run of Penstock records the partitions that it changes. For other writers, they are
read from the files and rows that the snapshot added and removed. After a compaction has merged
these files, the partition may be unknown. Then the event is about the whole table.

Expired snapshots cannot be read. A table that may have changed in them has one event without a
partition, for the first snapshot after them.
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
_SliceKey = tuple[str, int, Name]  # a run, a snapshot and a table
_UNKNOWN: _Partitions = frozenset({None})
_MAX_BYTES = 16 * 1024 * 1024  # the largest merged file whose rows are read


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a lake after a snapshot.

    Attributes:
        events: The events, ordered by snapshot, table and partition.
        snapshot_id: The newest snapshot. The next call of `TableWatch.changes` starts after it.
    """

    events: tuple[TriggerEvent, ...]
    snapshot_id: int


class TableWatch:
    """Finds changes of the tables of one lake. It writes nothing and needs no Spark session."""

    def __init__(self, catalog: Catalog, lake_name: str, partition_column: str) -> None:
        """Create a watch that has not read the lake.

        Args:
            catalog: The catalog of the lake, or the index of a Delta root.
            lake_name: The name of the lake in penstock.toml.
            partition_column: The column that contains the partition of each row.
        """
        self._catalog, self._lake, self._column = catalog, lake_name, partition_column
        self._newest: int | None = None

    def has_moved(self) -> bool:
        """Return whether the lake has a new snapshot since the last call of `changes`.

        On a Delta root, this first reads the versions of the tables, at most every two seconds.

        Returns:
            True also before the first call.
        """
        look_again(self._catalog)
        with self._catalog.reading() as connection:
            return newest_id(connection) != self._newest

    def changes(self, tables: Collection[TableName], since: int) -> Changes:
        """Return the changes of tables after a snapshot.

        Args:
            tables: The tables and views. Files, and tables of other lakes, are ignored.
            since: The last snapshot whose changes are known.

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
            flushes = {
                change for change in row_changes.changes if self._is_flush(connection, change)
            }
            place = (self._catalog.data_path, self._column)
            changed = _ChangedPartitions.load(connection, place, row_changes, since)
        events: dict[str, TriggerEvent] = {}
        for snapshot, name in self._find_changes_in_gaps(row_changes):
            event = _make_event(snapshot, sources[name], None, None)
            events[event.id] = event
        for change in row_changes.changes:
            if change in flushes or self._is_still_empty(change, row_changes):
                continue
            run_id = run_of(change.snapshot)
            for partition in sorted(changed.partitions(change), key=lambda text: text or ""):
                event = _make_event(change.snapshot, sources[change.name], partition, run_id)
                events.setdefault(event.id, event)
        self._newest = row_changes.newest.id
        ordered = sorted(events.values(), key=lambda event: (event.snapshot_id or 0, event.id))
        return Changes(tuple(ordered), row_changes.newest.id)

    def _is_flush(self, connection: Connection, change: RowChange) -> bool:
        """Return whether a change only wrote deletes of earlier snapshots into files."""
        if change.table_id is None or change.is_new or not change.only_deletes:
            return False
        files = deletes_across(connection, change)
        if not files:
            return False
        data_path, snapshot_id = self._catalog.data_path, change.snapshot.id
        (table,) = reads.load_tables(connection, data_path, snapshot_id, change.table_id)
        ids_of_files = [snapshots_in(resolve(table.path, *file)) for file in files]
        return all(ids is not None and snapshot_id not in ids for ids in ids_of_files)

    def _is_still_empty(self, change: RowChange, row_changes: RowChanges) -> bool:
        """Return whether a table was created or renamed, and its name has no rows as before."""
        snapshot_id = change.snapshot.id
        if not change.is_new or snapshot_id in row_changes.without_base:
            return False
        rows = self._catalog.count_rows(*change.name, snapshot_id)
        return rows == 0 and not self._catalog.count_rows(*change.name, snapshot_id - 1)

    def _find_changes_in_gaps(self, row_changes: RowChanges) -> Iterator[tuple[Snapshot, Name]]:
        """Yield the tables that may have changed in expired snapshots, with the snapshots after.

        The catalog still has what was valid at the snapshot before a gap.
        """
        for snapshot, before in row_changes.after_gaps:
            for name in sorted(row_changes.named):
                with suppress(LakeError):  # a broken Delta table: its readers report it
                    table = self._catalog.find_table(*name, row_changes.newest.id)
                    if table is not None and self._catalog.changed_since(table, before):
                        yield snapshot, name


@dataclass(frozen=True, slots=True)
class _ChangedPartitions:
    """The partitions that snapshots changed.

    Attributes:
        slices: The slices that runs recorded.
        values: The partitions of files and rows, by table and snapshot.
        merged: The files with rows of several snapshots, by table.
        unsure: The snapshots whose partitions are unknown.
    """

    slices: Mapping[_SliceKey, Sequence[str]]
    values: Mapping[int, Mapping[int, _Partitions]]
    merged: Mapping[int, Sequence[_MergedFile]]
    unsure: frozenset[int]

    @classmethod
    def load(
        cls, connection: Connection, place: tuple[str, str], row_changes: RowChanges, since: int
    ) -> _ChangedPartitions:
        """Read the changed partitions of tables from the catalog.

        Args:
            connection: The catalog.
            place: The data path, and the column that contains the partition of each row.
            row_changes: The changes.
            since: The snapshot before the first change.

        Returns:
            The partitions of the changes.
        """
        slices = _load_slices(connection, row_changes.changes, since)
        values: dict[int, Mapping[int, _Partitions]] = {}
        merged: dict[int, Sequence[_MergedFile]] = {}
        # The table at its last change has the current columns.
        latest = {
            change.table_id: change.snapshot.id
            for change in row_changes.changes
            if change.table_id is not None and not slices.get(_slice_key(change))
        }
        for table_id, snapshot_id in latest.items():
            for table in reads.load_tables(connection, place[0], snapshot_id, table_id):
                column = table.schema.find(place[1])
                if column is not None and column.id is not None:
                    key = (column.id, column.name)
                    values[table_id] = history.values_touched(connection, table_id, key, since)
                    spans = history.bounds_touched(connection, table_id, key, since)
                    merged[table_id] = [
                        _MergedFile(span, table.path, column.id) for span in spans if span.is_merged
                    ]
        return cls(slices, values, merged, row_changes.without_base)

    def partitions(self, change: RowChange) -> _Partitions:
        """Return the partitions of a change.

        Args:
            change: The change.

        Returns:
            The partitions; only None if a partition is unknown.
        """
        snapshot_id = change.snapshot.id
        recorded = self.slices.get(_slice_key(change))
        if recorded:
            return _whole_if_unknown(None if _is_no_partition(text) else text for text in recorded)
        if change.table_id is None or change.is_new or snapshot_id in self.unsure:
            return _UNKNOWN
        values = set(self.values.get(change.table_id, {}).get(snapshot_id, ()))
        for file in self.merged.get(change.table_id, ()):
            if file.touched.holds(snapshot_id):
                values |= file.values().get(snapshot_id, set()) if file.is_readable else _UNKNOWN
        return _whole_if_unknown(values)


def _load_slices(
    connection: Connection, changes: Iterable[RowChange], since: int
) -> Mapping[_SliceKey, Sequence[str]]:
    """Return the slices that runs recorded for changes."""
    runs = {run_id for change in changes if (run_id := run_of(change.snapshot)) is not None}
    slices: dict[_SliceKey, list[str]] = {}
    if runs and find_tables(connection):
        published = reading.slices_published(connection, runs, since)
        for (run_id, snapshot_id, target), texts in published.items():
            schema, _, name = target.partition(".")
            slices[run_id, snapshot_id, (fold(schema), fold(name))] = texts
    return slices


def _slice_key(change: RowChange) -> _SliceKey:
    return run_of(change.snapshot) or "", change.snapshot.id, change.name


def _whole_if_unknown(values: Iterable[str | None]) -> _Partitions:
    partitions = frozenset(values)
    return _UNKNOWN if None in partitions or not partitions else partitions


def _is_no_partition(text: str) -> bool:
    """Return whether a slice is a whole table, or an interval of time."""
    return text == WHOLE or interval_of(text) is not None


@dataclass(slots=True)
class _MergedFile:
    """A file with rows, or deletes, of several snapshots. The rows are read if the file is small.

    Attributes:
        touched: The snapshots of the file, and the bounds of its partition column.
        base: The path of its table.
        column_id: The id of the partition column.
    """

    touched: Touched
    base: str
    column_id: int
    _values: Mapping[int, set[str | None]] | None = None

    @property
    def is_readable(self) -> bool:
        """Return whether the file is small enough to be read, and contains a single partition."""
        file, low = self.touched.file, self.touched.low
        is_small = file is not None and file.bytes <= _MAX_BYTES
        return is_small and low is not None and low == self.touched.high

    def values(self) -> Mapping[int, set[str | None]]:
        """Return the partitions by snapshot.

        Returns:
            The partitions. A snapshot without rows in the file is left out.
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
    """Return the Penstock run that committed a snapshot, from the note of the commit.

    Args:
        snapshot: The snapshot.

    Returns:
        The id of the run; None for another writer, a rollback or a drop.
    """
    with suppress(ValueError, KeyError, TypeError):  # other programs write notes of any form
        note = json.loads(snapshot.extra or "")
        run_id = note["run"]
        if "step" in note and isinstance(run_id, str):
            return run_id
    return None


def _make_event(
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
