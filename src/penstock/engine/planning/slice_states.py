"""Derive the states of slices: the one derivation that plan, run, status and restate ask.

What runs recorded of a slice, what other writers and rollbacks did to it since, and the attempts
that published nothing. By a few queries a lake: a project has hundreds of thousands of slices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from penstock.config import Settings
from penstock.engine.planning.intervals import Event, Painted
from penstock.engine.planning.ranges import (
    CHANGED,
    FAILED,
    MATERIALIZED,
    MISSING,
    RUNNING,
    SKIPPED,
    STALE,
    UNFINISHED,
    SliceStates,
)
from penstock.engine.planning.restatement_scope import Past, rebuilds
from penstock.engine.state import reading
from penstock.engine.state.outside import Outside, Where, look
from penstock.engine.state.records import WHOLE, ProcessId, SliceRecord, is_gone
from penstock.engine.state.rolled_back import Undone, undone
from penstock.engine.state.store import State
from penstock.engine.state.tables import to_moment, to_text
from penstock.errors import PartitionError
from penstock.lake.catalog.snapshots.history import rollbacks
from penstock.model.definition.model import Model
from penstock.model.time.interval import interval_of
from penstock.model.time.partition import TIME_KINDS, PartitionSpec, bucket_at, render
from penstock.model.time.slice import Part

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.catalog.catalog import Catalog

Catalogs = Callable[[str], "Catalog | None"]  # by a lake's name; None: no run has made it


@dataclass(frozen=True, slots=True)
class Recorded:
    """Records of the slices of one target, and what changed since."""

    slices: Sequence[SliceRecord] = ()
    outside: Outside = field(default_factory=Outside)
    lost: Undone = field(default_factory=Undone)

    def state_of(self, record: SliceRecord, model: Model) -> tuple[str, int | None]:
        """The state of a record of the model's slices, and the snapshot of others behind it."""
        key = (record.target, record.slice)
        is_gone = record.slice in self.lost.gone and record.rolled_back is None
        if is_gone and record.slice == WHOLE:
            return CHANGED, self.lost.last
        if is_gone and all(each.slice != record.slice for each in self.lost.there):
            return MISSING, None
        if key in self.outside.changed:
            return CHANGED, self.outside.changed[key]
        if is_gone or record.rolled_back is not None:
            return STALE, None  # rows of an earlier run
        if is_unfinished(record, model):
            return UNFINISHED, None
        same = model.forward_only or record.definition_hash == model.definition_hash
        return MATERIALIZED if same else STALE, None

    def events(self, model: Model) -> Iterator[Event]:
        """Yield what was made of the intervals of a model, and undone by others."""
        for record in (*self.lost.there, *self.slices):  # of one time the record is the last word
            interval = interval_of(record.slice)
            if interval is None or record.slicing not in (None, model.slicing):
                continue
            if record.slice in self.lost.gone and record.rolled_back is None:
                continue
            at, (state, since) = to_text(record.published_at), self.state_of(record, model)
            yield Event(at, interval, state, since, record.slice)
            parts = self.outside.parts.get((record.target, record.slice), ())
            if state != CHANGED:
                yield from (Event(at, part, CHANGED, by, record.slice) for part, by in parts)


def is_unfinished(record: SliceRecord, model: Model) -> bool:
    """Return whether a partition was made before its time was over, so that rows may have come
    since. Not where making it again would add rows twice.
    """
    spec = model.partition
    if spec is None or spec.kind not in TIME_KINDS:
        return False
    if not model.strategy.restores:
        return False
    value = _value_at(spec, record.published_at.replace(second=0, microsecond=0))
    if value is None or spec.format is not None:
        return record.slice == value
    return record.slice >= value  # its texts sort as times do


@lru_cache(maxsize=4096)
def _value_at(spec: PartitionSpec, moment: datetime) -> str | None:
    """The value of the slice that a moment is in; None where its zone has none."""
    try:
        return render(spec, bucket_at(spec, moment))
    except PartitionError:
        return None


def where_of(settings: Settings, lake: str, data_path: str, models: Iterable[Model]) -> Where:
    times = {model.target.qualified: model.ranges for model in models if model.ranges is not None}
    return Where(data_path, settings.lakes[lake].partition_column, times)


def recorded_of(
    connection: Connection, targets: Sequence[str], where: Where
) -> dict[str, Recorded]:
    """Return what is recorded of targets, by them."""
    slices = reading.slices_of(connection, targets)
    rolled_back = rollbacks(connection)
    lost = {name: undone(connection, made, rolled_back) for name, made in slices.items()}
    there = [record for each in lost.values() for record in each.there]
    every = [*(record for made in slices.values() for record in made), *there]
    outside = look(connection, where, every, rolled_back)
    return {name: Recorded(made, outside, lost[name]) for name, made in slices.items()}


@dataclass(frozen=True, slots=True)
class KnownSlices:
    """Knowledge of the catalogs, asked when a plan needs it; see `plan.Known`."""

    settings: Settings
    catalogs: Catalogs
    is_gone: Callable[[ProcessId], bool] = is_gone

    def states(self, models: Sequence[Model]) -> Mapping[str, SliceStates]:
        """The states of slices that are there or were tried, by the names of models.

        A slice has failed where the last attempt at it failed, was cancelled or killed; it was
        skipped where something above it had failed.
        """
        found: dict[str, SliceStates] = {}
        for lake, of_lake in _by_lake(models).items():
            catalog = self.catalogs(lake)
            if catalog is not None:
                found |= self._of_lake(lake, catalog, of_lake)
        return {model.name: found.get(model.name, SliceStates()) for model in models}

    def _of_lake(
        self, lake: str, catalog: Catalog, models: Sequence[Model]
    ) -> dict[str, SliceStates]:
        targets = [model.target.qualified for model in models]
        where = where_of(self.settings, lake, catalog.data_path, models)
        there = {model.name: is_there(catalog, model) for model in models}

        def ask(connection: Connection) -> dict[str, SliceStates]:
            alive = self._alive(connection)
            made = recorded_of(connection, targets, where)
            tried = reading.last_outcomes(connection, targets)
            return {
                model.name: _states(
                    model,
                    made.get(model.target.qualified, Recorded()),
                    tried.get(model.target.qualified, {}),
                    alive,
                    is_there=there[model.name],
                )
                for model in models
            }

        return State(catalog).read(ask, {})

    def _alive(self, connection: Connection) -> set[str]:
        running = reading.running(connection)
        return {run.run_id for run in running if not self.is_gone(run.process)}

    def intervals(self, models: Sequence[Model]) -> Mapping[str, Painted]:
        """Return what became of the intervals of models by time, by their names.

        They may have been made in other batches each time.
        """
        return self._painted(models, tried=True)

    def _painted(self, models: Sequence[Model], *, tried: bool) -> dict[str, Painted]:
        found: dict[str, Painted] = {}
        for lake, of_lake in _by_lake(models).items():
            catalog = self.catalogs(lake)
            if catalog is not None:
                found |= self._painted_in(lake, catalog, of_lake, tried=tried)
        return found

    def _painted_in(
        self, lake: str, catalog: Catalog, models: Sequence[Model], *, tried: bool
    ) -> dict[str, Painted]:
        where = where_of(self.settings, lake, catalog.data_path, models)
        there = {model.name: is_there(catalog, model) for model in models}

        def ask(connection: Connection) -> dict[str, Painted]:
            alive = self._alive(connection)
            targets = [model.target.qualified for model in models]
            made = recorded_of(connection, targets, where)
            found: dict[str, Painted] = {}
            for model in models:
                target = model.target.qualified
                asks = tried and there[model.name]
                found[model.name] = painted(
                    model,
                    made.get(target, Recorded()),
                    reading.attempts(connection, target) if asks else [],
                    alive,
                    is_there=there[model.name],
                )
            return found

        return State(catalog).read(ask, {})

    def pasts(self, models: Sequence[Model]) -> Mapping[str, Past]:
        """Return when the tables of models, and their slices, were made, by the names of models.
        Attempts that failed since do not matter: what is there is what was made before.
        """
        by_time = [model for model in models if model.by_time is not None and not rebuilds(model)]
        lines = self._painted(by_time, tried=False)
        found: dict[str, Past] = {}
        for model in models:
            catalog = self.catalogs(model.target.lake)
            if catalog is None or not is_there(catalog, model):
                continue
            if model in by_time:
                found[model.name] = Past(painted=lines.get(model.name, Painted()))
            else:
                found[model.name] = State(catalog).read(partial(_past, model=model), Past())
        return found


def _by_lake(models: Iterable[Model]) -> Mapping[str, list[Model]]:
    by_lake: dict[str, list[Model]] = defaultdict(list)
    for model in models:
        by_lake[model.target.lake].append(model)
    return by_lake


def is_there(catalog: Catalog, model: Model) -> bool:
    target, latest = model.target, catalog.latest()
    if not target.is_table:
        return True  # a step sees itself whether its files are in their places
    if catalog.known_table(target.schema, target.table, latest) is not None:
        return True
    return (
        model.partition is None and model.by_time is None
    )  # a view, for one; what is missing is seen when it is read


def _states(
    model: Model,
    made: Recorded,
    tried: Mapping[str, tuple[str, str]],
    alive: set[str],
    *,
    is_there: bool,
) -> SliceStates:
    runs = {record.slice: record.run_id for record in made.slices}
    states: dict[str, str] = {
        record.slice: made.state_of(record, model)[0]
        for record in made.slices
        if record.slicing is None or record.slicing == model.slicing
    }
    if not is_there:
        return SliceStates(dict.fromkeys(states, CHANGED), runs)
    for value, (state, run_id) in tried.items():
        if state == RUNNING and run_id in alive:
            states[value] = RUNNING
        elif runs.get(value) != run_id:  # unless that very run has published it after all
            states[value] = SKIPPED if state == SKIPPED else FAILED
    return SliceStates(states, runs, remakes=model.strategy.restores)


def painted(
    model: Model,
    made: Recorded,
    attempts: Iterable[reading.Tried],
    alive: set[str],
    *,
    is_there: bool = True,
) -> Painted:
    """The line of a model by time: what was made of it and tried, the last word on each moment."""
    runs = {record.slice: record.run_id for record in made.slices}
    events = list(made.events(model))
    if not is_there:
        gone = (Event("", e.interval, CHANGED, e.since, e.of) for e in events)
        return Painted.of(gone, runs=runs)
    events += (event for each in attempts if (event := _event(each, alive)) is not None)
    return Painted.of(events, runs=runs, remakes=model.strategy.time_column)


def _event(tried: reading.Tried, alive: set[str]) -> Event | None:
    interval = interval_of(tried.value)
    if interval is None:
        return None
    running = tried.state == RUNNING and tried.run_id in alive
    state = RUNNING if running else SKIPPED if tried.state == SKIPPED else FAILED
    return Event(tried.at, interval, state, of=tried.value)


def _past(connection: Connection, model: Model) -> Past:
    target = model.target.qualified
    parts: tuple[tuple[Part, datetime], ...] = ()
    if model.partition is not None:
        records = reading.slices_of(connection, [target]).get(target, [])
        parts = tuple(
            (Part(each.slice), each.published_at)
            for each in records
            if each.slicing in (None, model.slicing)
        )
    built = reading.built(connection, target)
    return Past(None if built is None else to_moment(built), parts=parts)
