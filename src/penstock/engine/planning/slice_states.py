"""Derive the states of slices: the one derivation that plan, run, status and restate ask.

What runs recorded of a slice, what other writers and rollbacks did to it since, and the attempts
that published nothing. By a few queries a lake: a project has hundreds of thousands of slices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from penstock.config import Settings
from penstock.engine.planning.intervals import Event, IntervalHistory
from penstock.engine.planning.ranges import (
    CHANGED,
    FAILED,
    MATERIALIZED,
    MISSING,
    OTHER,
    RUNNING,
    SKIPPED,
    STALE,
    UNFINISHED,
    SliceStates,
)
from penstock.engine.planning.restatement_scope import BuildTimes, rebuilds
from penstock.engine.state import reading
from penstock.engine.state.outside import Outside, Undone, Where, look, undone
from penstock.engine.state.reading import Tried
from penstock.engine.state.records import WHOLE, ProcessId, SliceRecord, is_gone
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
class SliceState:
    """``name`` is the state of a slice; ``made`` that of what is recorded of it, whatever was tried
    since; ``since`` the snapshot of other writers behind it.
    """

    name: str
    made: str
    since: int | None = None

    @classmethod
    def of(cls, state: str, since: int | None = None) -> SliceState:
        """One that nothing was tried of since."""
        return cls(state, state, since)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The records of the slices of one target, what others did to them since, and the attempts that
    published nothing: of models by time all, of others the last one of each slice. ``alive`` are
    the runs that have not ended.
    """

    slices: Sequence[SliceRecord] = ()
    outside: Outside = field(default_factory=Outside)
    lost: Undone = field(default_factory=Undone)
    tried: Sequence[Tried] = ()
    alive: Collection[str] = ()

    def states(self, model: Model) -> dict[str, SliceState]:
        """Of a model that is not by time, by the texts of the slices recorded or tried.

        A slice has failed where the last attempt at it failed, was cancelled or killed; it was
        skipped where something above it had failed.
        """
        records = {record.slice: record for record in self.slices}
        found = {text: self._of_record(record, model) for text, record in records.items()}
        for each in self.tried:
            known, record = found.get(each.value), records.get(each.value)
            if known is None and model.partition is None and each.value != WHOLE:
                continue  # of an earlier kind of slices
            pressing = self._pressing(each)
            if pressing == RUNNING or record is None or record.run_id != each.run_id:
                made = MISSING if known is None else known.made
                found[each.value] = SliceState(pressing, made)
        return found

    def _pressing(self, tried: Tried) -> str:
        if tried.state == RUNNING and tried.run_id in self.alive:
            return RUNNING
        return SKIPPED if tried.state == SKIPPED else FAILED

    def _of_record(self, record: SliceRecord, model: Model) -> SliceState:
        if not record.is_slice_of(model):
            return SliceState.of(OTHER)
        return SliceState.of(*self._state_of(record, model))

    def _state_of(self, record: SliceRecord, model: Model) -> tuple[str, int | None]:
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

    def painted(self, model: Model) -> IntervalHistory:
        """The line of a model by time: what was made of it and tried, the last word on each moment.

        They may have been made in other batches each time.
        """
        events = list(self._events(model))
        for tried in self.tried:
            interval = interval_of(tried.value)
            if interval is not None:
                events.append(Event(tried.at, interval, self._pressing(tried), of=tried.value))
        return IntervalHistory.of(events, runs=self.runs, remakes=self.remakes(model))

    def _events(self, model: Model) -> Iterator[Event]:
        """Yield what was made of the intervals of a model, and undone by others."""
        for record in (*self.lost.there, *self.slices):  # of one time the record is the last word
            interval = interval_of(record.slice)
            if interval is None or record.slicing not in (None, model.slicing):
                continue
            if record.slice in self.lost.gone and record.rolled_back is None:
                continue
            at, (state, since) = to_text(record.published_at), self._state_of(record, model)
            yield Event(at, interval, state, since, record.slice)
            parts = self.outside.parts.get((record.target, record.slice), ())
            if state != CHANGED:
                yield from (Event(at, part, CHANGED, by, record.slice) for part, by in parts)

    @property
    def runs(self) -> dict[str, str]:
        return {record.slice: record.run_id for record in self.slices}

    def remakes(self, model: Model) -> bool:
        """Tell whether the next run makes what another writer changed, or a table that is gone."""
        if model.target.qualified not in self.outside.there:
            return True
        return model.strategy.restores if model.by_time is None else model.strategy.time_column


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
    connection: Connection, by_target: Mapping[str, Sequence[SliceRecord]], where: Where
) -> dict[str, Recorded]:
    """Look at what became of the slices of targets; by targets."""
    rolled_back = rollbacks(connection)
    lost = {name: undone(connection, made, rolled_back) for name, made in by_target.items()}
    there = [record for each in lost.values() for record in each.there]
    every = [*(record for made in by_target.values() for record in made), *there]
    outside = look(connection, where, every, rolled_back)
    return {name: Recorded(made, outside, lost[name]) for name, made in by_target.items()}


@dataclass(frozen=True, slots=True)
class KnownSlices:
    """Knowledge of the catalogs, asked when a plan needs it; see `plan.Known`."""

    settings: Settings
    catalogs: Catalogs
    is_gone: Callable[[ProcessId], bool] = is_gone

    def states(self, models: Sequence[Model]) -> Mapping[str, SliceStates]:
        """The states of slices that are there or were tried, by the names of models."""
        recorded = self._recorded(models)
        return {model.name: _slice_states(model, recorded[model.name]) for model in models}

    def intervals(self, models: Sequence[Model]) -> Mapping[str, IntervalHistory]:
        """Return what became of the intervals of models by time, by their names."""
        recorded = self._recorded(models)
        return {model.name: recorded[model.name].painted(model) for model in models}

    def pasts(self, models: Sequence[Model]) -> Mapping[str, BuildTimes]:
        """Return when the tables of models, and their slices, were made, by the names of models.
        Attempts that failed since do not matter: what is there is what was made before.
        """
        by_time = [model for model in models if model.by_time is not None and not rebuilds(model)]
        recorded = self._recorded(by_time, tried=False)
        found: dict[str, BuildTimes] = {}
        for model in models:
            catalog = self.catalogs(model.target.lake)
            if catalog is None or not is_there(catalog, model):
                continue
            if model.name in recorded:
                found[model.name] = BuildTimes(painted=recorded[model.name].painted(model))
            else:
                found[model.name] = State(catalog).read(partial(_past, model=model), BuildTimes())
        return found

    def _recorded(self, models: Sequence[Model], *, tried: bool = True) -> dict[str, Recorded]:
        """By the names of models; without ``tried`` no attempts."""
        found = {model.name: Recorded() for model in models}
        for lake, of_lake in _by_lake(models).items():
            catalog = self.catalogs(lake)
            if catalog is None:
                continue
            where = where_of(self.settings, lake, catalog.data_path, of_lake)
            ask = partial(self._ask, models=of_lake, where=where, tried=tried)
            found |= State(catalog).read(ask, dict[str, Recorded]())
        return found

    def _ask(
        self, connection: Connection, models: Sequence[Model], where: Where, *, tried: bool
    ) -> dict[str, Recorded]:
        targets = [model.target.qualified for model in models]
        made = recorded_of(connection, reading.slices_of(connection, targets), where)
        last = reading.last_outcomes(connection, targets) if tried else {}
        running = reading.running(connection) if tried else ()
        alive = frozenset(run.run_id for run in running if not self.is_gone(run.process))
        found: dict[str, Recorded] = {}
        for model, target in zip(models, targets, strict=True):
            attempts: Sequence[Tried] = ()
            if tried and model.by_time is not None:
                attempts = reading.attempts(connection, target)
            elif tried:
                of_target = last.get(target, {}).items()
                attempts = [Tried(value, "", run, state) for value, (state, run) in of_target]
            known = made.get(target, Recorded())
            found[model.name] = replace(known, tried=attempts, alive=alive)
        return found


def _slice_states(model: Model, recorded: Recorded) -> SliceStates:
    states = {
        text: state.name for text, state in recorded.states(model).items() if state.name != OTHER
    }
    return SliceStates(states, recorded.runs, remakes=recorded.remakes(model))


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


def _past(connection: Connection, model: Model) -> BuildTimes:
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
    return BuildTimes(None if built is None else to_moment(built), parts=parts)
