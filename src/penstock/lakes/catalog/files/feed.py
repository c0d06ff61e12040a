"""The rows of a table that began and ended in a range of snapshots: a fixed number of queries.

A row version begins with its data file (a merged file has a column for it) or as an inlined row. It
ends by a position in a delete file, by an inlined delete, or with its whole file.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, false, func, or_, select

from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database.faults import NoNumber, Record
from penstock.lakes.catalog.files import files
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.format.files import (
    END_COLUMN,
    DataFile,
    FileSet,
    InlinedChanges,
    InlinedDeletes,
    Table,
)
from penstock.lakes.snapshot import At

Bound = int | dt.datetime
_TICK = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Range:
    """Snapshot ids, both inclusive; empty where ``first`` is above ``last``."""

    first: int
    last: int

    def holds(self, snapshot_id: int | None) -> bool:
        return snapshot_id is not None and self.first <= snapshot_id <= self.last


@dataclass(frozen=True, slots=True)
class Changed:
    """The files and inlined rows with changes in ``range``.

    ``begun`` are files with rows that began in the range, ``lost`` files with rows that ended in
    it. Rows end with their whole file by ``ends`` (data file id to snapshot), or one by one by
    ``deletes`` (each data file once for every delete file in force just before the range or begun
    in it) and by ``inlined_deletes`` (all up to the end of the range). Only the data files in
    ``deletes`` have their delete file.
    """

    range: Range
    begun: FileSet
    lost: FileSet
    deletes: tuple[DataFile, ...]
    ends: Mapping[int, int]
    inlined: InlinedChanges
    inlined_deletes: InlinedDeletes

    def may_end(self) -> Callable[[int], bool]:
        """Return whether rows may have ended in a snapshot; doubt is a yes."""
        ends = set(self.ends.values())
        ends |= {
            n for part in self.inlined.ended for n in part.rows[END_COLUMN].unique().to_pylist()
        }
        ends |= set(self.inlined_deletes.rows["snapshot"].unique().to_pylist())
        firsts, lasts = _spans(self._span(file) for file in self.deletes)

        def ended(snapshot_id: int) -> bool:
            index = bisect_right(firsts, snapshot_id)
            return snapshot_id in ends or (index > 0 and snapshot_id <= lasts[index - 1])

        return ended

    def _span(self, file: DataFile) -> tuple[int, int]:
        """The first and the last snapshot in which its delete file may delete rows."""
        delete = file.delete
        assert delete is not None, "listed for its delete file"
        # See _without_last_snapshot.
        unknown = delete.partial_max is None and file.partial is not None
        return delete.begin_snapshot or 0, self.range.last if unknown else delete.partial_max or 0


def _spans(spans: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The ranges as firsts and lasts, ascending; ranges that touch are joined."""
    firsts: list[int] = []
    lasts: list[int] = []
    for first, last in sorted(spans):
        if lasts and first <= lasts[-1]:
            lasts[-1] = max(lasts[-1], last)
        else:
            firsts.append(first)
            lasts.append(max(first, last))
    return firsts, lasts


def load_range(connection: Connection, first: Bound, last: Bound) -> Range:
    """The snapshots between two bounds, which are existing ids or times.

    A time as the lower bound means the first snapshot not before it, as the upper bound the last
    snapshot not after it, as in DuckDB. Raises SnapshotNotFound.
    """
    lower = _since(connection, first) if isinstance(first, dt.datetime) else _at(connection, first)
    return Range(lower, _at(connection, last))


def _at(connection: Connection, bound: Bound) -> int:
    at = At(timestamp=_aware(bound)) if isinstance(bound, dt.datetime) else At(version=bound)
    snapshot = reads.snapshot(connection, at)
    if snapshot is None:
        raise reads.snapshot_missing(connection, at)
    return snapshot.id


def _since(connection: Connection, moment: dt.datetime) -> int:
    """The first snapshot after the last one before a moment: ids and times ascend together."""
    s = metadata.of(connection).snapshot.c
    before = reads.snapshot(connection, At(timestamp=_aware(moment) - _TICK))
    query = select(func.min(s.snapshot_id))
    if before is not None:
        query = query.where(s.snapshot_id > before.id)
    snapshot_id: int | None = connection.execute(query).scalar()
    if snapshot_id is None:
        raise reads.snapshot_missing(connection, At(timestamp=_aware(moment)))
    return snapshot_id


def _aware(moment: dt.datetime) -> dt.datetime:
    """A time without a zone is in UTC, never in the machine's own zone."""
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment


def load_changed(connection: Connection, table: Table, within: Range) -> Changed:
    """See `Changed`. Raises UnsupportedFeature for features that would give wrong rows."""
    t = metadata.of(connection)
    begun = connection.execute(_begun(t, table.id, within)).all()
    by_inlined = inlined.files_that_lost(connection, table.id, within.first, within.last)
    lost = connection.execute(_lost(t, table.id, within, by_inlined)).all()
    once = list({row.data_file_id: row for row in lost}.values())
    ends = {row.data_file_id: row.end_snapshot for row in once}
    files_begun = _files(connection, table, begun)
    files_lost = _files(connection, table, once)
    return Changed(
        range=within,
        begun=files_begun,
        lost=replace(
            files_lost, files=tuple(replace(file, delete=None) for file in files_lost.files)
        ),
        deletes=tuple(f for f in _files(connection, table, lost).files if f.delete is not None),
        ends={key: end for key, end in ends.items() if within.holds(end)},
        inlined=inlined.load_changes(connection, table, within.first, within.last),
        inlined_deletes=inlined.load_delete_changes(connection, table, 0, within.last),
    )


def _files(connection: Connection, table: Table, rows: Sequence[Record]) -> FileSet:
    files.check_rows(rows)
    files.refuse(rows, table)
    return files.as_file_set(connection, table, rows, {})


def _begun(t: metadata.Tables, table_id: int, within: Range) -> Select[Any]:
    """Files whose rows began in the range; of a merged file perhaps only some of them."""
    f = t.data_file.c
    return (
        select(*files.selected(t))
        .join_from(t.data_file, t.delete_file, false(), isouter=True)
        .where(
            f.table_id == table_id,
            reads.begun(f.begin_snapshot, within.last),
            _was_seen(f),
            or_(
                f.begin_snapshot >= within.first,
                NoNumber(f.begin_snapshot),
                f.partial_max >= within.first,
                t.partial_file_info.is_not(None),
            ),
        )
        .order_by(f.data_file_id)
    )


def _lost(
    t: metadata.Tables, table_id: int, within: Range, by_inlined: Sequence[Select[Any]]
) -> Select[Any]:
    """Files whose rows ended in the range, with each delete file in force in it or before it."""
    f, d = t.data_file.c, t.delete_file.c
    of_file = and_(
        d.data_file_id == f.data_file_id,
        d.table_id == table_id,
        reads.begun(d.begin_snapshot, within.last),
        or_(d.end_snapshot.is_(None), d.end_snapshot >= within.first),
    )
    by = [_delete_files(t, table_id, within), *by_inlined]
    return (
        select(*files.selected(t))
        .join_from(t.data_file, t.delete_file, of_file, isouter=True)
        .where(
            f.table_id == table_id,
            reads.begun(f.begin_snapshot, within.last),
            _was_seen(f),
            or_(
                f.end_snapshot.between(within.first, within.last),
                *(f.data_file_id.in_(ids) for ids in by),
                and_(
                    or_(f.partial_max.is_not(None), t.partial_file_info.is_not(None)),
                    f.data_file_id.in_(_without_last_snapshot(t, table_id, within)),
                ),
            ),
        )
        .order_by(f.data_file_id, d.delete_file_id)
    )


def _was_seen(f: Any) -> ColumnElement[bool]:
    """The condition that a file did not end in the snapshot in which it began."""
    return or_(
        f.end_snapshot.is_(None),
        f.end_snapshot > f.begin_snapshot,
        NoNumber(f.begin_snapshot),
    )


def _delete_files(t: metadata.Tables, table_id: int, within: Range) -> Select[int]:
    """Data files with a delete file that deletes, or may delete, in the range."""
    d = t.delete_file.alias("ranged").c
    return select(d.data_file_id).where(
        d.table_id == table_id,
        reads.begun(d.begin_snapshot, within.last),
        or_(
            d.begin_snapshot >= within.first,
            NoNumber(d.begin_snapshot),
            d.partial_max >= within.first,
        ),
    )


def _without_last_snapshot(t: metadata.Tables, table_id: int, within: Range) -> Select[int]:
    """Data files with a delete file that began earlier and has no last snapshot.

    Those of merged files may delete in later snapshots nevertheless: when DuckDB 1.5.5 flushes
    inlined rows, the delete file has all snapshots in a column, but the catalog only the first.
    """
    d = t.delete_file.alias("unbounded").c
    return select(d.data_file_id).where(
        d.table_id == table_id, d.begin_snapshot < within.first, d.partial_max.is_(None)
    )
