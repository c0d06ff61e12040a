"""What of a table came and went in a range of snapshots: a fixed number of queries.

A row version begins with its data file (in a merged file: as the file tells) or as an inlined row.
It ends by a position in a delete file, by an inlined delete, or with its whole file.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, false, func, or_, select

from penstock.lake.catalog import reads
from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.database.rows import NoNumber, Record
from penstock.lake.catalog.files import files
from penstock.lake.catalog.inlined import inlined
from penstock.lake.format.files import (
    END_COLUMN,
    DataFile,
    FileSet,
    InlinedChanges,
    InlinedDeletes,
    Table,
)
from penstock.lake.snapshot import At

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
    """What came and went in ``range``. Data files are without deletes, but for ``deletes``.

    ``begun`` have rows that began in it, ``lost`` rows that ended in it: as a whole by ``ends``
    (data file id to snapshot), one by one by ``deletes`` (a data file once for each delete file
    that was in force just before the range or came in it) and by ``inlined_deletes`` (all up to
    the end of the range).
    """

    range: Range
    begun: FileSet
    lost: FileSet
    deletes: tuple[DataFile, ...]
    ends: Mapping[int, int]
    inlined: InlinedChanges
    inlined_deletes: InlinedDeletes

    def may_end(self) -> Callable[[int], bool]:
        """Whether rows may have ended in a snapshot; doubt is a yes."""
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
        """From which snapshot to which, at most, its delete file deletes."""
        delete = file.delete
        assert delete is not None, "listed for its delete file"
        untold = delete.partial_max is None and file.partial is not None  # see _untold
        return delete.begin_snapshot or 0, self.range.last if untold else delete.partial_max or 0


def _spans(spans: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Their firsts and lasts, those that touch as one, ascending."""
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
    """The snapshots that two bounds name: ids that there are, or times.

    A lower bound that is a time means the first snapshot not before it, an upper one the last not
    after it, as DuckDB has it. Raises SnapshotNotFound.
    """
    lower = _since(connection, first) if isinstance(first, dt.datetime) else _at(connection, first)
    return Range(lower, _at(connection, last))


def _at(connection: Connection, bound: Bound) -> int:
    at = At(timestamp=_aware(bound)) if isinstance(bound, dt.datetime) else At(version=bound)
    found = reads.snapshot(connection, at)
    if found is None:
        raise reads.snapshot_missing(connection, at)
    return found.id


def _since(connection: Connection, moment: dt.datetime) -> int:
    """The first snapshot after the last one before a moment: ids and times ascend together."""
    s = metadata.of(connection).snapshot.c
    before = reads.snapshot(connection, At(timestamp=_aware(moment) - _TICK))
    query = select(func.min(s.snapshot_id))
    if before is not None:
        query = query.where(s.snapshot_id > before.id)
    found: int | None = connection.execute(query).scalar()
    if found is None:
        raise reads.snapshot_missing(connection, At(timestamp=_aware(moment)))
    return found


def _aware(moment: dt.datetime) -> dt.datetime:
    """A time without a zone is taken for UTC, never for the machine's own."""
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment


def load_changed(connection: Connection, table: Table, within: Range) -> Changed:
    """See `Changed`. Raises UnsupportedFeature for what would give wrong rows."""
    t = metadata.of(connection)
    begun = connection.execute(_begun(t, table.id, within)).all()
    by_inlined = inlined.files_that_lost(connection, table.id, within.first, within.last)
    lost = connection.execute(_lost(t, table.id, within, by_inlined)).all()
    once = list({row.data_file_id: row for row in lost}.values())
    ends = {row.data_file_id: row.end_snapshot for row in once}
    return Changed(
        range=within,
        begun=_files(connection, table, begun),
        lost=_without_deletes(_files(connection, table, once)),
        deletes=tuple(f for f in _files(connection, table, lost).files if f.delete is not None),
        ends={key: end for key, end in ends.items() if within.holds(end)},
        inlined=inlined.load_changes(connection, table, within.first, within.last),
        inlined_deletes=inlined.load_delete_changes(connection, table, 0, within.last),
    )


def _files(connection: Connection, table: Table, rows: Sequence[Record]) -> FileSet:
    files.check_rows(rows)
    files.refuse(rows, table)
    return files.as_file_set(connection, table, rows, {})


def _without_deletes(found: FileSet) -> FileSet:
    return replace(found, files=tuple(replace(file, delete=None) for file in found.files))


def _begun(t: metadata.Tables, table_id: int, within: Range) -> Select[Any]:
    """Files whose rows began in the range, all or, of a merged file, maybe some."""
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
    told = and_(
        d.data_file_id == f.data_file_id,
        d.table_id == table_id,
        reads.begun(d.begin_snapshot, within.last),
        or_(d.end_snapshot.is_(None), d.end_snapshot >= within.first),
    )
    by = [_delete_files(t, table_id, within), *by_inlined]
    return (
        select(*files.selected(t))
        .join_from(t.data_file, t.delete_file, told, isouter=True)
        .where(
            f.table_id == table_id,
            reads.begun(f.begin_snapshot, within.last),
            _was_seen(f),
            or_(
                f.end_snapshot.between(within.first, within.last),
                *(f.data_file_id.in_(ids) for ids in by),
                and_(
                    or_(f.partial_max.is_not(None), t.partial_file_info.is_not(None)),
                    f.data_file_id.in_(_untold(t, table_id, within)),
                ),
            ),
        )
        .order_by(f.data_file_id, d.delete_file_id)
    )


def _was_seen(f: Any) -> ColumnElement[bool]:
    """Not of a file that ended in the snapshot in which it began."""
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


def _untold(t: metadata.Tables, table_id: int, within: Range) -> Select[int]:
    """Data files with a delete file that began earlier and has no last snapshot.

    Those of merged files may delete later all the same: when DuckDB 1.5.5 flushes inlined rows,
    their delete file tells in its column of all snapshots, and the catalog only of the first.
    """
    d = t.delete_file.alias("untold").c
    return select(d.data_file_id).where(
        d.table_id == table_id, d.begin_snapshot < within.first, d.partial_max.is_(None)
    )
