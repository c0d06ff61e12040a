"""Drop a model's table, or one slice of it, and what is recorded of it, in one commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.engine.history.current import drop_view
from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.planning.intervals import Replaced, replaced
from penstock.engine.results import Dropped
from penstock.engine.state import reading
from penstock.engine.state.other_writers import DROP_NOTE, undone_of
from penstock.engine.state.records import WHOLE, SliceRecord
from penstock.engine.state.store import State, forget, insert_slice, now
from penstock.errors import ArgumentError, TableNotFound
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, interval_of, minus, union
from penstock.model.time.moments import read_range
from penstock.model.time.slice import shown
from penstock.model.values.asset import TableName
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.destinations.catalog import Catalog
    from penstock.destinations.destination import Destination, StagedTable, Transaction

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class _Known:
    """The records of a target, the slices that were only tried, and those that have no record but
    are there since the table was rolled back.
    """

    records: Sequence[SliceRecord]
    tried: frozenset[str]
    back: tuple[str, ...] = ()

    @property
    def slices(self) -> tuple[str, ...]:
        return (*(record.slice for record in self.records), *self.back)

    def has(self, text: str) -> bool:
        return text in self.tried or text in self.slices


def drop(
    lake: Destination, target: TableName, value: str | None, column: str, model: Model | None = None
) -> Dropped:
    """Drop the table, or its slice ``value``, by the name that `status` shows, or intervals of it;
    ``column`` is the one that carries slices' values. The view of the current versions of a history
    goes with it. ``model`` makes the table, None where none does any more.

    Earlier snapshots keep the rows. What is recorded of a table that another writer has dropped is
    forgotten, as is a slice that was only tried, and no snapshot made. Starts Spark only for a
    slice in files that hold others too. Raises TableNotFound where there is nothing to drop,
    ArgumentError for an unknown slice.
    """
    state = State(lake.catalog)
    state.prepare()
    known = _known(state, target)
    text = None if value is None else _text_of(value, known, model, target)
    said = " ".join(part for part in ("drop", str(target), value) if part)
    note = json.dumps({DROP_NOTE: {"table": str(target), "slice": value, "text": text}})
    records = _Records(target.qualified, text, _part(text, known))
    with lake.transaction(author="penstock", message=said, extra=note) as tx:
        if tx.kind_of(table_name(target)) == "view" and text is None:
            tx.drop_view(table_name(target))
            rows = 0
        else:
            of = _Target(target, column, model)
            rows = _drop(tx.table(table_name(target)), of, text, known)
            if records.part.left and model is not None:
                records = replace(records, part=_counted(tx, target, model, records.part))
            drop_view(tx, target, model.history if model else None)
        tx.on_commit(records.write)
        snapshot = tx.commit()
    if snapshot is None:
        state.write(records.write)
    made_in = snapshot.id if snapshot else None
    return Dropped(str(target), _dropped(text, known), rows, made_in)


def forget_files(
    lake: Destination, target: TableName, uris: Sequence[str], value: str | None
) -> Dropped:
    """Forget the files that a step writes, or those of its slice ``value``; they stay where they
    are. Raises TableNotFound where nothing is recorded, ArgumentError for an unknown slice.
    """
    state = State(lake.catalog)
    state.prepare()
    known = _known(state, target)
    if not known.slices and not known.tried:
        raise TableNotFound(
            f"no run has recorded files {target}", hint="penstock status lists what is there"
        )
    if value is not None and not known.has(value):
        raise _no_slice(target, value, known)
    for uri in dict.fromkeys((target.qualified, *uris)):
        state.forget(uri, value)
    return Dropped(str(target), _dropped(value, known), 0, None, files=True)


def _dropped(text: str | None, known: _Known) -> tuple[str, ...]:
    if text is not None:
        return (shown(text) or text,)
    return tuple(slice_ for slice_ in known.slices if slice_ != WHOLE)


def unmade_target(
    name: str, lakes: Iterable[str], catalogs: Callable[[str], Catalog | None]
) -> TableName | None:
    """The table of a model that is gone, by the name of either."""
    for lake in lakes:
        catalog = catalogs(lake)
        if catalog is None:
            continue
        with State(catalog).reading() as connection:
            records = [] if connection is None else reading.slices(connection)
        for record in records:
            target = TableName(lake, *record.target.split(".", 1))
            if fold(name) in map(fold, (record.step, record.target, str(target))):
                return target
    return None


def _known(state: State, target: TableName) -> _Known:
    with state.reading() as connection:
        assert connection is not None, "it was prepared"
        attempts = reading.unpublished_attempts(connection, [target.qualified])
        tried = frozenset(attempt.slice for attempt in attempts)
        records = reading.slices(connection, target.qualified)
        lost = undone_of(connection, target.qualified, records)
        return _Known(records, tried, tuple(each.slice for each in lost.back))


def _text_of(value: str, known: _Known, model: Model | None, target: TableName) -> str:
    """The slice that a user calls so, as state has it. Raises ArgumentError for an unknown one."""
    if known.has(value):
        return value
    named = [text for text in (*known.slices, *sorted(known.tried)) if shown(text) == value]
    if named:
        return named[0]
    interval = _interval(value, model)
    intervals = [each for text in known.slices if (each := interval_of(text)) is not None]
    if interval is not None and not minus((interval,), union(intervals)):
        return interval.text
    if model is not None and model.by_time is None:
        return value  # the table may have rows of it
    raise _no_slice(target, value, known)


def _no_slice(target: TableName, value: str, known: _Known) -> ArgumentError:
    names = ", ".join([shown(text) or "" for text in known.slices if text != WHOLE][:_SHOWN])
    return ArgumentError(
        f"{target} has no slice {value!r}",
        hint=f"its slices are {names}" if names else "it has none: leave --partition out",
    )


def _interval(value: str, model: Model | None) -> Interval | None:
    """The intervals of a model by time that a text names: one, or ``first to last``."""
    if model is None or model.by_time is None:
        return None
    first, _, last = value.partition(" to ")
    try:
        asked = read_range(first, last or first, datetime.now(UTC))
    except ArgumentError:
        return None
    (whole,) = model.by_time.whole((asked,))
    return whole


def _part(text: str | None, known: _Known) -> Replaced:
    """What becomes of the records that a part of an interval is dropped from."""
    interval = None if text is None else interval_of(text)
    return Replaced() if interval is None else replaced(known.records, interval)


def _counted(tx: Transaction, target: TableName, model: Model, part: Replaced) -> Replaced:
    """Return what is left of intervals with the number of its rows, for records that have one."""
    # Late: it is Spark's to find the rows.
    from penstock.engine.strategies.time_range import rows_of

    table, by_time, dialect = tx.table(table_name(target)), model.ranges, model.query.dialect

    def counted(record: SliceRecord) -> int | None:
        interval = interval_of(record.slice)
        if interval is None or by_time is None or record.rows is None:
            return record.rows
        return rows_of(table, by_time, (interval,), dialect).count()

    left = tuple(replace(record, rows=counted(record)) for record in part.left)
    return replace(part, left=left)


@dataclass(frozen=True, slots=True)
class _Records:
    """Records of a drop: a target is forgotten, a slice of it, or a ``part`` of its intervals."""

    target: str
    slice: str | None
    part: Replaced

    def write(self, connection: Connection, snapshot_id: int | None = None) -> None:
        at = now()
        for gone in self.part.gone:
            forget(connection, self.target, gone, at)
        by = snapshot_id if self.slice else None  # a table that is gone has no readers
        forget(connection, self.target, self.slice, at, by)
        for record in self.part.left:
            insert_slice(connection, record)


@dataclass(frozen=True, slots=True)
class _Target:
    """A table, the column that carries slices' values, and the model that makes it."""

    name: TableName
    column: str
    model: Model | None


def _drop(table: StagedTable, of: _Target, value: str | None, known: _Known) -> int:
    """Stage the drop; returns the number of rows that go."""
    if not table.exists:
        if not (known.slices or known.tried) or (value is not None and not known.has(value)):
            raise TableNotFound(
                f"table {of.name} does not exist, and nothing is recorded of it",
                hint="penstock status lists what is there",
            )
        return 0
    if value is None:
        rows = table.count_rows()
        table.drop()
        return rows
    interval = interval_of(value)
    if interval is not None:
        only_tried = value in known.tried and value not in known.slices
        return 0 if only_tried else _drop_interval(table, interval, of.model)
    in_slices = any(fold(name) == fold(of.column) for name in table.schema.names)
    rows = table.drop_slice(of.column, value) if in_slices else 0
    if not rows and not known.has(value):
        raise _no_slice(of.name, value, known)
    return rows


def _drop_interval(table: StagedTable, interval: Interval, model: Model | None) -> int:
    """Stage the removal of the rows of intervals of time. Raises ArgumentError where the rows of
    intervals cannot be told apart.
    """
    # Late: it is Spark's to find the rows.
    from penstock.engine.strategies.time_range import ranges_of

    by_time = None if model is None else model.ranges
    if model is None or by_time is None:
        raise ArgumentError(
            f"the rows of {interval} in {table.qualified_name} cannot be told from those of others",
            hint="drop the whole table: leave --partition out; or restate it",
        )
    rows = table.to_df()
    ranges = ranges_of(rows, by_time, (interval,), model.query.dialect)
    before = table.count_rows()
    table.replace_ranges(rows.limit(0), ranges)
    return before - table.count_rows()
