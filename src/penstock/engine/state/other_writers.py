"""Find what other writers did to the tables of models: which slices are not what runs recorded.

Whoever is not a run of Penstock is another writer: DuckDB, SQL, a rollback. What a rollback undid
does not count any more, and the rollback itself is judged by what it undid (`rolled_back`).

A change of rows is assigned to slices by the partitions of the files it touched, and to the
intervals of a time range by the bounds of the time column in these files. What cannot be assigned
counts for all slices.

Apply rollbacks of a table to the records of its slices.

A slice that was made after the snapshot that the table went back to is not there any more, unless
an earlier run had made it as well: then that run's rows are there. Records are not touched, as a
rollback is the lake's, which knows no slices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.engine.state import reading
from penstock.engine.state.reading import Published, SliceDrop
from penstock.engine.state.records import WHOLE, SliceRecord, lies_among_others
from penstock.engine.state.tables import to_moment
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.definitions.stored_sql import load_views
from penstock.lakes.catalog.snapshots import history
from penstock.lakes.catalog.snapshots.history import Rollbacks, Touched, rollbacks
from penstock.lakes.format.conflicts import ParsedChanges
from penstock.model.script.declaration import BY_TIME
from penstock.model.time.interval import Interval, interval_of, minus
from penstock.model.time.moments import DEFAULT, TimeFormat, read_format
from penstock.model.time.time_range import TimeRange
from penstock.model.values.strategy import REPLACE, TIME_RANGE, Output, strategy_named
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lakes.format.files import Table
    from penstock.lakes.format.schema import Column

DROP_NOTE = "penstock_drop"  # the key of what a drop notes in its commit
# The notes of steps (`Attempt.execute`) and of `drop`, as LIKE has them.
OWN = ('{"run": %"step": %', f'{{"{DROP_NOTE}": %')
Key = tuple[str, str]  # target and slice
Parts = tuple[tuple[Interval, int], ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """``changed``: the snapshot in which others last changed a slice, None where that expired.

    ``there`` are the targets that the lake has a table of. ``parts``: of the slices of a time
    range, the intervals that others changed, each with the snapshot that did.
    """

    changed: Mapping[Key, int | None] = field(default_factory=dict)
    there: frozenset[str] = frozenset()
    parts: Mapping[Key, Parts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Where:
    """``column`` carries the values of slices; ``times`` are the time ranges of targets."""

    data_path: str
    column: str
    times: Mapping[str, TimeRange] = field(default_factory=dict)


def look(
    connection: Connection,
    where: Where,
    records: Sequence[SliceRecord],
    rolled_back: Mapping[int, Rollbacks],
) -> Outside:
    """Compare what is recorded with what the lake holds.

    Asks the catalog once for all targets; the changes of a table are looked at only where others
    made some. ``rolled_back`` are the rollbacks of the lake's tables.
    """
    if not records:
        return Outside()
    snapshot = reads.newest(connection)
    since = min(record.snapshot_id for record in records)
    by_target: dict[str, list[SliceRecord]] = defaultdict(list)
    for record in records:
        by_target[record.target].append(record)
    changed: dict[Key, int | None] = {}
    parts: dict[Key, Parts] = {}
    there: set[str] = set()
    known = history.tables_by_name(connection, snapshot.id)
    views = _views(connection, snapshot.id, records)
    theirs = history.changes_of_others(connection, since, OWN)
    for target, mine in by_target.items():
        if all(_output(record) is Output.FILES for record in mine):
            continue  # which do not belong to the lake
        name = _name(target)
        if name in views and all(_output(record) is Output.VIEW for record in mine):
            there.add(target)
            at = views[name]
            changed |= {(target, r.slice): at for r in mine if r.made_in != at}
            continue
        if name not in known:
            gone = history.gone_at(connection, name)
            changed |= {(target, record.slice): gone for record in mine}
            continue
        there.add(target)
        moments = _Moments.of(theirs, name, known[name], rolled_back.get(known[name]))
        if moments.last > min(record.snapshot_id for record in mine):
            table = reads.find_table(connection, where.data_path, snapshot.id, *_parts(target))
            touches = _touches(connection, table, mine, moments, where)
            changed |= touches.changed(mine)
            parts |= touches.parts(mine)
    return Outside(changed, frozenset(there), parts)


def _views(
    connection: Connection, snapshot_id: int, records: Sequence[SliceRecord]
) -> dict[tuple[str, str], int]:
    """The snapshot in which each view was made that a record may be of, by folded name."""
    names = [_parts(record.target)[1] for record in records if _output(record) is Output.VIEW]
    found = load_views(connection, snapshot_id, names) if names else []
    return {_name(view.qualified_name): view.begin_snapshot for view in found}


def _output(record: SliceRecord) -> Output:
    return strategy_named(record.strategy).output


def _parts(target: str) -> tuple[str, str]:
    schema, _, table = target.partition(".")
    return schema, table


def _name(target: str) -> tuple[str, str]:
    schema, table = _parts(target)
    return fold(schema), fold(table)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Snapshots of others that changed one table and were not undone: as a whole, or some of its
    rows. ``rollbacks`` are the snapshots of its rollbacks.
    """

    whole: tuple[int, ...]
    rows: tuple[int, ...]
    rollbacks: tuple[int, ...] = ()

    @property
    def last(self) -> int:
        return max((*self.whole, *self.rows), default=-1)

    @classmethod
    def of(
        cls,
        theirs: Sequence[ParsedChanges],
        name: tuple[str, str],
        table_id: int,
        rolled_back: Rollbacks | None,
    ) -> _Moments:
        undone = rolled_back or Rollbacks()
        left = [
            each
            for each in theirs
            if each.snapshot_id not in undone.snapshots and not undone.undid(each.snapshot_id)
        ]
        whole = [each for each in left if name in each.created_tables or table_id in each.altered]
        rows = [each for each in left if table_id in each.inserted | each.deleted]
        return cls(
            tuple(each.snapshot_id for each in whole),
            tuple(each.snapshot_id for each in rows),
            tuple(undone.snapshots),
        )

    def said(self, moments: Sequence[int], since: int) -> int:
        """The snapshot to name for what these did after ``since``: a later rollback kept it."""
        return max(*moments, *(each for each in self.rollbacks if each > since), since)


@dataclass(frozen=True, slots=True)
class _Touches:
    """What the snapshots of others did to the slices of one table: by snapshot the values of
    partitions (None for one that is not known), and the intervals of a time range (None for all).
    """

    moments: _Moments
    values: Mapping[int, frozenset[str | None]]
    intervals: Mapping[int, Sequence[Interval] | None] | None = None

    def changed(self, records: Iterable[SliceRecord]) -> dict[Key, int | None]:
        """The slices that were changed as a whole, with the last snapshot that did."""
        found: dict[Key, int | None] = {}
        for record in records:
            late = [at for at in self.moments.whole if at > record.snapshot_id]
            late += [
                at
                for at in self.moments.rows
                if at > record.snapshot_id and self._touches(record, at)
            ]
            if late:
                said = self.moments.said(late, record.snapshot_id)
                found[record.target, record.slice] = said
        return found

    def _touches(self, record: SliceRecord, moment: int) -> bool:
        """True in doubt, where the change was compacted since or is not by slices."""
        if self.intervals is not None and interval_of(record.slice) is not None:
            return self.intervals.get(moment) is None
        slices = self.values.get(moment, frozenset({None}))
        return record.slice == WHOLE or record.slice in slices or None in slices

    def parts(self, records: Iterable[SliceRecord]) -> dict[Key, Parts]:
        """The intervals of slices that were changed; none of those that were as a whole."""
        found: dict[Key, Parts] = {}
        if self.intervals is None:
            return found
        for record in records:
            own = interval_of(record.slice)
            late = [at for at in self.moments.rows if at > record.snapshot_id]
            if own is None or not late:
                continue
            pieces = [
                (piece, at)
                for at in late
                for touched in self.intervals.get(at) or ()
                if (piece := own.overlap(touched)) is not None
            ]
            if pieces:
                found[record.target, record.slice] = tuple(pieces)
        return found


def _touches(
    connection: Connection,
    table: Table | None,
    records: Sequence[SliceRecord],
    moments: _Moments,
    where: Where,
) -> _Touches:
    since = min(record.snapshot_id for record in records)
    values: Mapping[int, frozenset[str | None]] = {}
    partition = None if table is None else table.schema.find(where.column)
    if table is not None and partition is not None and partition.id is not None:
        of_column = (partition.id, partition.name)
        values = history.values_touched(connection, table.id, of_column, since)
    time_range = where.times.get(records[0].target)
    if time_range is None or table is None:
        return _Touches(moments, values)
    return _Touches(moments, values, _intervals(connection, table, time_range, moments, since))


def _intervals(
    connection: Connection, table: Table, time_range: TimeRange, moments: _Moments, since: int
) -> dict[int, Sequence[Interval] | None]:
    """The intervals whose rows each snapshot may have changed; None where that is not known."""
    column = time_range.column
    own = None if column is None or column.by_expression else table.schema.find(column.name)
    if column is None or own is None or own.id is None:
        return dict.fromkeys(moments.rows)
    read = _reader(own, column.format)
    touched = history.bounds_touched(connection, table.id, (own.id, own.name), since)
    found: dict[int, Sequence[Interval] | None] = {}
    for moment in moments.rows:
        spans = [_span(each, read, time_range) for each in touched if each.holds(moment)]
        known = [span for span in spans if span is not None]
        found[moment] = known if known and len(known) == len(spans) else None
    return found


def _span(
    touched: Touched, read: Callable[[str], datetime | None], time_range: TimeRange
) -> Interval | None:
    """The units of the model that rows of a file may lie in."""
    low = None if touched.low is None else read(touched.low)
    high = None if touched.high is None else read(touched.high)
    if low is None or high is None or high < low:
        return None
    return Interval(time_range.unit.at(low).start, time_range.unit.at(high).end)


def _reader(column: Column, text: str | None) -> Callable[[str], datetime | None]:
    """How the bounds of a time column are read as moments; None for what is none of them."""
    form = read_format(text or DEFAULT)
    if column.type == "date" or column.type.startswith("timestamp"):
        return _iso
    if column.type == "varchar" and not form.sorts:
        return lambda _: None
    return lambda value: _formatted(form, value)


def _iso(value: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _formatted(form: TimeFormat, value: str) -> datetime | None:
    return form.read(value)


@dataclass(frozen=True, slots=True)
class Undone:
    """``gone`` are slices whose records are of rows that are not there; ``there`` records of the
    rows of earlier runs that are. ``back`` are those of them that have no record, as they had been
    dropped before the table went back. ``last`` is the snapshot of the latest rollback.
    """

    gone: frozenset[str] = frozenset()
    there: tuple[SliceRecord, ...] = ()
    last: int | None = None
    back: tuple[SliceRecord, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.gone or self.back)

    def as_is(self, records: Iterable[SliceRecord]) -> dict[str, SliceRecord]:
        """Return the records of the rows that are there, by slices: where a rollback took the rows
        of the latest run, the record of the earlier run.
        """
        earlier = sorted(self.there, key=lambda each: each.published_at)
        kept = {each.slice: each for each in records if each.slice not in self.gone}
        return {each.slice: each for each in earlier} | kept


def undone(
    connection: Connection,
    target: str,
    records: Sequence[SliceRecord],
    known: Mapping[int, Rollbacks],
) -> Undone:
    """``records`` are those of one target, ``known`` the rollbacks of the lake's tables."""
    of_table = _of_table(target, known) if known else None
    if of_table is None:
        return Undone()
    gone = _undone_slices(connection, target, records, of_table)
    drops = _drops(connection, target)
    restored = {d.slice for d in drops if d.snapshot_id and of_table.undid(d.snapshot_id)}
    if not gone and not restored:
        return Undone()
    template = _template(target, records, restored)
    there = tuple(
        replace(
            template,
            slice=text,
            run_id=each.run_id,
            step=each.step,
            definition_hash="",
            fingerprint=None,
            snapshot_id=each.snapshot_id,
            made_in=each.snapshot_id,
            rows=None
            if text != each.slice or lies_among_others(template.strategy, text)
            else each.rows,
            published_at=to_moment(each.at),
            read_id=None,  # which of its attempts that was is not looked up
            rolled_back=of_table.last,
        )
        for each, text in _left(connection, target, of_table, drops)
    )
    return Undone(gone, there, of_table.last, tuple(_back(there, records, restored)))


def undone_of(connection: Connection, target: str, records: Sequence[SliceRecord]) -> Undone:
    """Return what all rollbacks of a table have undone of the records of its target."""
    return undone(connection, target, records, rollbacks(connection))


def _drops(connection: Connection, target: str) -> list[SliceDrop]:
    """Return each drop of a slice of a target, as far as snapshots are kept, and the latest."""
    found = reading.slice_drops(connection, target)
    for snapshot_id, note in history.notes(connection, DROP_NOTE):
        table, text = str(note.get("table", "")), note.get("text", note.get("slice"))
        if text and table.split(".")[-2:] == target.split("."):
            found.append(SliceDrop(str(text), None, snapshot_id))
    return found


def _template(
    target: str, records: Sequence[SliceRecord], restored: Collection[str]
) -> SliceRecord:
    """Return a record of the target. Without any, the form of its slices says how it was built."""
    if records:
        return replace(records[0], keys=None, inputs=None)
    by_time = any(interval_of(text) is not None for text in restored)
    strategy, slicing = (TIME_RANGE, BY_TIME) if by_time else (REPLACE, None)
    unknown = SliceRecord(
        target, WHOLE, "", "", strategy.name, 0, None, None, "", datetime.now(UTC)
    )
    return replace(unknown, slicing=slicing)


def _left(
    connection: Connection, target: str, of_table: Rollbacks, drops: Sequence[SliceDrop]
) -> Iterator[tuple[Published, str]]:
    """Yield the publications whose rows are there, with the slices, or parts of intervals, that no
    drop has removed since. A drop that a rollback has undone does not count.
    """
    live = [each for each in drops if each.snapshot_id and not of_table.undid(each.snapshot_id)]
    empty = [each for each in drops if each.snapshot_id is None and not interval_of(each.slice)]
    for made in reading.publications(connection, target):
        if made.snapshot_id < of_table.since or of_table.undid(made.snapshot_id):
            continue
        if any(d.slice == made.slice and d.at and d.at > made.began for d in empty):
            continue
        gone = [d.slice for d in live if d.snapshot_id and d.snapshot_id > made.snapshot_id]
        own = interval_of(made.slice)
        if own is None:
            texts = [made.slice] if made.slice not in gone else []
        else:
            spans = [span for text in gone if (span := interval_of(text)) is not None]
            texts = [part.text for part in minus((own,), spans)]
        yield from ((made, text) for text in texts)


def _back(
    there: Sequence[SliceRecord], records: Sequence[SliceRecord], restored: Collection[str]
) -> Iterator[SliceRecord]:
    """Yield the latest record of each slice that has none of its own, and whose drop was undone."""
    own = {each.slice for each in records}
    spans = [span for text in restored if (span := interval_of(text)) is not None]
    latest = {each.slice: each for each in sorted(there, key=lambda each: each.published_at)}
    for text, record in latest.items():
        interval = interval_of(text)
        is_part = interval is not None and any(interval.overlap(each) for each in spans)
        if text not in own and (text in restored or is_part):
            yield record


def would_undo(
    connection: Connection,
    target: str,
    records: Sequence[SliceRecord],
    table: tuple[int, int],
    to: int,
) -> Undone:
    """Return what a rollback to a snapshot would do to records of one target that are not undone
    yet. ``table`` is the id of the table and the snapshot of the rollback, the next one.
    """
    table_id, at = table
    known = rollbacks(connection).get(table_id, Rollbacks())
    schema, _, name = target.partition(".")
    known = replace(known, name=(fold(schema), fold(name)))
    earlier = _undone_slices(connection, target, records, known)
    left = [each for each in records if each.slice not in earlier]
    before = undone(connection, target, left, {table_id: known}) if known.made else Undone()
    then = replace(known, made=((at, to), *known.made))
    found = undone(connection, target, left, {table_id: then})
    back = {each.slice for each in before.back}
    return replace(found, back=tuple(each for each in found.back if each.slice not in back))


def marked(connection: Connection, records: Sequence[SliceRecord]) -> list[SliceRecord]:
    """Records of one target, those that a rollback has undone with its snapshot."""
    first = min((_earliest(each) for each in records), default=None)
    known = {} if first is None else rollbacks(connection, first)
    of_table = _of_table(records[0].target, known) if known else None
    if of_table is None:
        return list(records)
    slices = _undone_slices(connection, records[0].target, records, of_table)
    return [
        replace(each, rolled_back=of_table.last) if each.slice in slices else each
        for each in records
    ]


def _earliest(record: SliceRecord) -> int:
    made_in = record.made_in
    return record.snapshot_id if made_in is None else min(made_in, record.snapshot_id)


def _of_table(target: str, known: Mapping[int, Rollbacks]) -> Rollbacks | None:
    schema, _, table = target.partition(".")
    name = (fold(schema), fold(table))
    return next((each for each in known.values() if each.name == name), None)


def _undone_slices(
    connection: Connection, target: str, records: Sequence[SliceRecord], of_table: Rollbacks
) -> frozenset[str]:
    """Return the slices whose records a rollback has undone.

    Empty slices that a run had published before the rollback's point are left out.
    """
    slices = {record.slice: record for record in records if _is_undone(record, of_table)}
    never_filled = {
        text
        for text, record in slices.items()
        if record.made_in is None and not lies_among_others(record.strategy, text)
    }
    if not never_filled:
        return frozenset(slices)
    drops = {drop.slice: drop.at or "" for drop in reading.slice_drops(connection, target)}
    for earlier in reading.publications(connection, target, empty=True):
        if earlier.slice in never_filled and drops.get(earlier.slice, "") <= earlier.began:
            snapshot_id = reads.snapshot_id_at(connection, to_moment(earlier.at))
            if snapshot_id is not None and not of_table.undid(snapshot_id):
                slices.pop(earlier.slice, None)
    return frozenset(slices)


def _is_undone(record: SliceRecord, of_table: Rollbacks) -> bool:
    """An interval whose rows lie among those of others (a merge, a history) may have found them
    there: then it is not as recorded where what was there when it was recorded is not.
    """
    if record.made_in is not None and of_table.undid(record.made_in):
        return True
    by_record = record.made_in is None or lies_among_others(record.strategy, record.slice)
    return by_record and of_table.undid(record.snapshot_id)
