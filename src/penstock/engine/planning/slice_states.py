"""Derive the states of slices: the one derivation that plan, run, status and restate ask.

What runs recorded of a slice, what other writers and rollbacks did to it since, and the attempts
that published nothing. By a few queries a lake: a project has hundreds of thousands of slices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from penstock.engine.planning.behind import Changed, Inputs, Read, TableChanges, inputs_of
from penstock.engine.planning.intervals import Event, IntervalHistory
from penstock.engine.planning.ranges import (
    SliceStates,
    by_others,
    is_unfinished,
    unfinished_of,
)
from penstock.engine.planning.restatement_scope import BuildTimes, rebuilds
from penstock.engine.planning.slice_details import Details
from penstock.engine.planning.state_cache import StateCache
from penstock.engine.state import reading
from penstock.engine.state.other_writers import Outside, Undone, Where, look, undone
from penstock.engine.state.records import (
    WHOLE,
    ProcessId,
    SliceRecord,
    StepRecord,
    is_gone,
    may_be_slice,
)
from penstock.engine.state.store import State
from penstock.engine.state.tables import to_moment, to_text
from penstock.lakes.catalog.snapshots.history import rollbacks
from penstock.model.definition.model import Model
from penstock.model.slicing.needs import Edge
from penstock.model.slicing.table_reads import TableRead
from penstock.model.time.interval import Interval, interval_of
from penstock.model.time.slice import WHOLE as WHOLE_TABLE
from penstock.model.time.slice import Part, Slice
from penstock.settings.config import Settings, SparkSettings
from penstock.states import SliceState

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lakes.catalog.catalog import Catalog, Catalogs

TableReads = Mapping[str, Sequence[TableRead]]  # of models, by their names


@dataclass(frozen=True, slots=True)
class DerivedState:
    """The state of a slice, and what it was derived from.

    Attributes:
        state: The state now.
        recorded_state: The state of the recorded rows, without later attempts.
        outside_snapshot: The snapshot in which another writer changed the slice.
        behind: Why the slice is behind its input, or stale.
        is_late: Whether it is behind because of late rows.
    """

    state: SliceState
    recorded_state: SliceState
    outside_snapshot: int | None = None
    behind: str | None = None
    is_late: bool = False

    @classmethod
    def of(cls, state: SliceState, outside_snapshot: int | None = None) -> DerivedState:
        """Return the state of a slice that nothing was tried of since.

        Args:
            state: The state of the recorded rows.
            outside_snapshot: The snapshot in which another writer changed the slice.
        """
        return cls(state, state, outside_snapshot)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The records of the slices of one target, what others did to them since, and the attempts that
    published nothing: of models by time all, of others the last one of each slice. ``alive`` are
    the runs that have not ended. ``dropped`` are slices that were, each with the snapshot that did.
    ``reads`` are the snapshots that slices were made from, by the ids
    of reads, and ``inputs`` what the model reads, to tell what is behind that. ``details`` are
    there if they were asked for.
    """

    slices: Sequence[SliceRecord] = ()
    outside: Outside = field(default_factory=Outside)
    lost: Undone = field(default_factory=Undone)
    tried: Sequence[StepRecord] = ()
    alive: Collection[str] = ()
    reads: Mapping[str, Read] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=Inputs)
    dropped: Mapping[str, int] = field(default_factory=dict)
    details: Details = field(default_factory=Details)

    def states(self, model: Model) -> dict[str, DerivedState]:
        """Of a model that is not by time, by the texts of the slices recorded or tried.

        A slice has failed where the last attempt at it failed, was cancelled or killed; it was
        skipped where something above it had failed.
        """
        records = {record.slice: record for record in self.slices}
        of_record = self._of_records(model)
        found = {text: of_record(record) for text, record in records.items()}
        if model.looks_at_rows:
            found |= self._behind(found, records)
        for attempt in self.tried:
            known, record = found.get(attempt.slice), records.get(attempt.slice)
            if known is None and model.partition is None and attempt.slice != WHOLE:
                continue  # of an earlier kind of slices
            pressing = self._pressing(attempt)
            if pressing == SliceState.RUNNING or record is None or record.run_id != attempt.run_id:
                made = SliceState.MISSING if known is None else known.recorded_state
                found[attempt.slice] = DerivedState(pressing, made)
        return found

    def _behind(
        self, states: Mapping[str, DerivedState], records: Mapping[str, SliceRecord]
    ) -> Iterator[tuple[str, DerivedState]]:
        """Yield those that are materialized, and were made from input that has changed since."""
        if not self.inputs:
            return
        made = {
            _slice_of(text): read
            for text, state in states.items()
            if state.state is SliceState.MATERIALIZED
            and (read := self._read(records[text])) is not None
        }
        for slice_, why in self.inputs.behind(made).items():
            name = self.inputs.state(why)
            is_late = why.state == SliceState.LATE
            yield slice_.text, DerivedState(name, name, behind=str(why), is_late=is_late)
        for slice_ in made:
            if (changed := self.inputs.files.get(slice_.text)) is not None:
                yield slice_.text, replace(DerivedState.of(SliceState.BEHIND), behind=changed)

    def _read(self, record: SliceRecord) -> Read | None:
        return None if record.read_id is None else self.reads.get(record.read_id)

    def first_read(self, lake: str) -> int | None:
        """The earliest snapshot at which a slice read a lake; None where none is known."""
        read = (self._read(record) for record in self.slices)
        return min((of[lake] for of in read if of is not None and lake in of), default=None)

    def changes(self, model: Model) -> list[Changed]:
        """The slices that are there, each with the snapshot in which it last got other rows."""
        if model.by_time is not None:
            # An attempt that failed since leaves the rows, and the snapshot that changed them.
            events = replace(self, tried=()).painted(model).events
            made = [Changed(e.interval, e.changed) for e in events if e.changed is not None]
            return [*made, *self._gone(), *self._dropped(model)]
        found = list(self._dropped(model))
        for record in self.slices:
            if record.is_slice_of(model) and (at := self._changed(record)) is not None:
                found.append(Changed(_slice_of(record.slice), at))
        return found

    def _dropped(self, model: Model) -> Iterator[Changed]:
        """Yield the slices of the model that were dropped: made again, they have a record too."""
        for text, at in self.dropped.items():
            interval = interval_of(text)
            if model.by_time is not None and interval is not None:
                yield Changed(interval, at)
            elif model.by_time is None and may_be_slice(text, model):
                yield Changed(_slice_of(text), at)

    def _gone(self) -> Iterator[Changed]:
        """Yield the intervals that a rollback has undone, which have no event."""
        for record in self.slices:
            interval = interval_of(record.slice)
            is_gone = record.slice in self.lost.gone and record.rolled_back is None
            if is_gone and interval is not None and self.lost.last is not None:
                yield Changed(interval, self.lost.last)

    def _changed(self, record: SliceRecord) -> int | None:
        """The snapshot in which the rows of a slice last changed; None where it never had any."""
        known = [record.last_made_in, self.outside.changed.get((record.target, record.slice))]
        if record.slice in self.lost.gone:
            known.append(self.lost.last)
        return max((at for at in known if at is not None), default=None)

    @property
    def newest(self) -> int:
        """The last snapshot in which any of the slices got other rows; -1 for none."""
        parts = [at for of in self.outside.parts.values() for _, at in of]
        as_recorded = not self.outside.changed and not self.lost
        last = attrgetter("last_made_in") if as_recorded else self._changed
        made = [at for at in map(last, self.slices) if at is not None]
        return max((*made, *parts, *self.dropped.values()), default=-1)

    def _pressing(self, tried: StepRecord) -> SliceState:
        if tried.state == SliceState.RUNNING and tried.run_id in self.alive:
            return SliceState.RUNNING
        if tried.state in (SliceState.SKIPPED, SliceState.WAITING):
            return SliceState(tried.state)
        return SliceState.FAILED

    def _of_records(self, model: Model) -> Callable[[SliceRecord], DerivedState]:
        """Return `_of_record`, quick for records as most are: of the model as it is, and nothing
        was done to their slices since.
        """
        gone, changed, is_unfinished = self.lost.gone, self.outside.changed, unfinished_of(model)
        as_now = (model.slicing, model.definition_hash)
        materialized = DerivedState.of(SliceState.MATERIALIZED)

        def of(record: SliceRecord) -> DerivedState:
            is_plain = (
                (record.slicing, record.definition_hash) == as_now
                and record.other_settings is None
                and record.slice not in gone
                and record.rolled_back is None
                and not (changed and (record.target, record.slice) in changed)
                and not is_unfinished(record.slice, record.published_at)
            )
            return materialized if is_plain else self._of_record(record, model)

        return of

    def _of_record(self, record: SliceRecord, model: Model) -> DerivedState:
        if not record.is_slice_of(model):
            return DerivedState.of(SliceState.OTHER_KIND)
        state, since = self._state_of(record, model)
        return DerivedState(state, state, since, _why_stale(state, record, model))

    def _state_of(self, record: SliceRecord, model: Model) -> tuple[SliceState, int | None]:
        """The state of a record of the model's slices, and the snapshot of others behind it."""
        key = (record.target, record.slice)
        is_gone = record.slice in self.lost.gone and record.rolled_back is None
        if is_gone and record.slice == WHOLE:
            return SliceState.CHANGED_OUTSIDE, self.lost.last
        if is_gone and all(each.slice != record.slice for each in self.lost.there):
            return SliceState.MISSING, None
        if key in self.outside.changed:
            return SliceState.CHANGED_OUTSIDE, self.outside.changed[key]
        if is_gone or record.rolled_back is not None:
            return SliceState.STALE, None  # rows of an earlier run
        if is_unfinished(record.slice, record.published_at, model):
            return SliceState.UNFINISHED, None
        is_as_now = record.definition_hash == model.definition_hash
        same = model.forward_only or (is_as_now and record.other_settings is None)
        return SliceState.MATERIALIZED if same else SliceState.STALE, None

    def painted(self, model: Model) -> IntervalHistory:
        """The line of a model by time: what was made of it and tried, the last word on each moment.

        They may have been made in other batches each time.
        """
        events = list(self._events(model))
        for tried in self.tried:
            interval = interval_of(tried.slice)
            if interval is not None:
                started_at = to_text(tried.started_at)
                events.append(Event(started_at, interval, self._pressing(tried), of=tried.slice))
        found = IntervalHistory.of(events, runs=self.runs, remakes=self.remakes(model))
        made: dict[Slice, Read] = {
            event.interval: event.read
            for event in found.events
            if event.state == SliceState.MATERIALIZED and event.read is not None
        }
        behind, files = self.inputs.behind(made), self.inputs.files
        if not behind and not files:
            return found
        told: list[Event] = []
        for event in found.events:
            if event.state != SliceState.MATERIALIZED:
                told.append(event)
            elif event.of in files:
                told.append(replace(event, state=SliceState.BEHIND, behind=files[event.of]))
            else:
                told += self._by_cause(event, model) if event.interval in behind else [event]
        return replace(found, events=tuple(told))

    def _by_cause(self, event: Event, model: Model) -> Iterator[Event]:
        """Yield the parts of an interval, which was made at once, by what each is behind: none of
        it may be but a few of its units.
        """
        assert model.by_time is not None, "events are of models by time"
        assert event.read is not None, "what is behind has been read"
        units = tuple(model.by_time.units((event.interval,)))
        causes = self.inputs.behind(dict.fromkeys(units, event.read))
        for why, of in groupby(units, causes.get):
            first, *others = of
            end = others[-1].end if others else first.end
            part = replace(event, interval=Interval(first.start, end))
            if why is not None:
                part = replace(part, state=self.inputs.state(why), behind=str(why))
            yield part

    def _events(self, model: Model) -> Iterator[Event]:
        """Yield what was made of the intervals of a model, and undone by others."""
        for record in (*self.lost.there, *self.slices):  # of one time the record is the last word
            interval = interval_of(record.slice)
            if interval is None or record.slicing not in (None, model.slicing):
                continue
            if record.slice in self.lost.gone and record.rolled_back is None:
                continue
            at, (state, since) = to_text(record.published_at), self._state_of(record, model)
            changed, read = self._changed(record), self._read(record)
            why = _why_stale(state, record, model)
            yield Event(at, interval, state, since, record.slice, changed, read, why)
            parts = self.outside.parts.get((record.target, record.slice), ())
            if state != SliceState.CHANGED_OUTSIDE:
                yield from (
                    Event(at, part, SliceState.CHANGED_OUTSIDE, by, record.slice, by)
                    for part, by in parts
                )

    @property
    def runs(self) -> dict[str, str]:
        return {record.slice: record.run_id for record in self.slices}

    def remakes(self, model: Model) -> bool:
        """Tell whether the next run makes what another writer changed, or a table that is gone."""
        if model.target.qualified not in self.outside.there:
            return True
        return model.strategy.restores if model.by_time is None else model.strategy.time_column


def _why_stale(state: SliceState, record: SliceRecord, model: Model) -> str | None:
    """Return which settings of Spark were others, where no other definition says it all."""
    is_as_now = record.definition_hash == model.definition_hash
    return record.other_settings if state == SliceState.STALE and is_as_now else None


def _slice_of(text: str) -> Slice:
    return Part(text) if text else WHOLE_TABLE


def where_of(settings: Settings, lake: str, data_path: str, models: Iterable[Model]) -> Where:
    times = {model.target.qualified: model.ranges for model in models if model.ranges is not None}
    return Where(data_path, settings.lakes[lake].partition_column, times)


def recorded_of(
    connection: Connection,
    by_target: Mapping[str, Sequence[SliceRecord]],
    where: Where,
    spark: SparkSettings,
) -> dict[str, Recorded]:
    """Look at what became of the slices of targets, of which some may have been made under other
    settings of Spark; by targets.
    """
    others = reading.other_settings(connection, list(by_target), spark.meaning)
    if others:
        by_target = {
            name: [replace(r, other_settings=others.get(r.read_id or "")) for r in of]
            for name, of in by_target.items()
        }
    rolled_back = rollbacks(connection)
    lost = {name: undone(connection, name, made, rolled_back) for name, made in by_target.items()}
    # Back first: of one moment the record itself is the last word.
    by_target = {name: [*lost[name].back, *made] for name, made in by_target.items()}
    every = [record for records in by_target.values() for record in records]
    for name, records in by_target.items():
        # An earlier record of a slice that was built again does not describe the current rows.
        current = {record.slice for record in records} - lost[name].gone
        every += [record for record in lost[name].there if record.slice not in current]
    outside = look(connection, where, every, rolled_back)
    return {name: Recorded(made, outside, lost[name]) for name, made in by_target.items()}


@dataclass(frozen=True, slots=True)
class KnownSlices:
    """Knowledge of the catalogs, asked when a plan needs it; see `plan.Known`. ``tables`` are those
    whose changes of rows models are behind, ``views`` the VIEW models that they read; ``late``:
    slices with late rows are to be made; ``files``: those of changed files are behind. States that
    are in the ``cache`` are not derived. What was asked of a model stays ``known``, with details of
    it where it ``reads_details``.
    """

    settings: Settings
    catalogs: Catalogs
    edges: Mapping[str, Sequence[Edge]] = field(default_factory=dict)
    tables: Callable[[], TableReads] = dict
    late: bool = False
    is_gone: Callable[[ProcessId], bool] = is_gone
    views: Callable[[], Mapping[str, Sequence[Model]]] = dict
    files: bool = False
    cache: StateCache | None = None
    reads_details: bool = False
    known: dict[str, Recorded] = field(default_factory=dict, compare=False, repr=False)

    def states(self, models: Sequence[Model]) -> Mapping[str, SliceStates]:
        """The states of slices that are there or were tried, by the names of models."""
        cache = self.cache
        states = {} if cache is None else cache.recall_states(models, self.catalogs)
        unknown = [model for model in models if model.name not in states]
        recorded = self.recorded(unknown) if unknown else {}
        for model in unknown:
            states[model.name] = _slice_states(model, recorded[model.name])
            if cache is not None:
                cache.keep(model, states[model.name])
        return states

    def intervals(self, models: Sequence[Model]) -> Mapping[str, IntervalHistory]:
        """Return what became of the intervals of models by time, by their names."""
        cache = self.cache
        histories = {} if cache is None else cache.recall_histories(models, self.catalogs)
        unknown = [model for model in models if model.name not in histories]
        recorded = self.recorded(unknown) if unknown else {}
        for model in unknown:
            histories[model.name] = recorded[model.name].painted(model)
            if cache is not None:
                cache.keep(model, histories[model.name])
        return histories

    def pasts(self, models: Sequence[Model]) -> Mapping[str, BuildTimes]:
        """Return when the tables of models, and their slices, were made, by the names of models.
        Attempts that failed since do not matter: what is there is what was made before.
        """
        by_time = [model for model in models if model.by_time is not None and not rebuilds(model)]
        recorded = self.recorded(by_time, tried=False)
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

    def recorded(self, models: Sequence[Model], *, tried: bool = True) -> dict[str, Recorded]:
        """By the names of models, with what they read; without ``tried`` no attempts."""
        edges = [edge for model in models for edge in self.edges.get(model.name, ())]
        above = {edge.upstream.name: edge.upstream for edge in edges}
        above |= {view.name: view for model in models for view in self.views().get(model.name, ())}
        known = self._remembered([*models, *above.values()])
        found = {model.name: known[model.name] for model in models}
        is_made = any(each.reads for each in found.values())
        tables = table_changes(self.catalogs, self.tables(), found) if is_made else {}
        files = files_of(self.settings, self.catalogs, models, found) if self.files else {}
        run = {model.name for model in models if self.late or model.late_run}
        return {
            name: replace(
                each,
                tried=each.tried if tried else (),
                inputs=replace(
                    inputs_of(
                        self.edges.get(name, ()),
                        known,
                        tables.get(name, ()),
                        SliceState.BEHIND if name in run else SliceState.LATE,
                        self.views().get(name, ()),
                    ),
                    files=files.get(name, {}),
                ),
            )
            for name, each in found.items()
        }

    def _remembered(self, models: Iterable[Model]) -> dict[str, Recorded]:
        """Ask of each model once: all answers of one plan are of one moment."""
        wanted = {model.name: model for model in models}
        new = [model for name, model in wanted.items() if name not in self.known]
        if new:
            if self.cache is not None:  # before the records, which may be of a later moment
                self.cache.read_moments(new, self.catalogs)
            self.known.update(self._of_models(new))
        return {name: self.known[name] for name in wanted}

    def _of_models(self, models: Sequence[Model]) -> dict[str, Recorded]:
        found = {model.name: Recorded() for model in models}
        for lake, of_lake in _by_lake(models).items():
            catalog = self.catalogs(lake)
            if catalog is None:
                continue
            where = where_of(self.settings, lake, catalog.data_path, of_lake)
            ask = partial(self._ask, models=of_lake, where=where)
            found |= State(catalog).read(ask, dict[str, Recorded]())
        return found

    def _ask(
        self, connection: Connection, models: Sequence[Model], where: Where
    ) -> dict[str, Recorded]:
        targets = [model.target.qualified for model in models]
        known = reading.slices_of(connection, targets)
        slices = {target: known.get(target, []) for target in targets}
        made = recorded_of(connection, slices, where, self.settings.spark)
        by_time = [model.target.qualified for model in models if model.by_time is not None]
        attempts: dict[str, list[StepRecord]] = defaultdict(list)
        for attempt in reading.unpublished_attempts(connection, targets, by_time):
            attempts[attempt.target].append(attempt)
        running = reading.running(connection)
        alive = frozenset(run.run_id for run in running if not self.is_gone(run.process))
        reads = reading.lakes_read(connection, targets)
        dropped = reading.dropped(connection, targets)
        details = Details.read(connection, targets) if self.reads_details else Details()
        return {
            model.name: replace(
                made.get(target, Recorded()),
                dropped=dropped.get(target, {}),
                tried=attempts.get(target, ()),
                alive=alive,
                reads=reads,
                details=details,
            )
            for model, target in zip(models, targets, strict=True)
        }


def table_changes(
    catalogs: Catalogs, tables: TableReads, known: Mapping[str, Recorded]
) -> Mapping[str, list[TableChanges]]:
    """Return what became of the tables that models read since their slices did, by their names."""
    by_lake: dict[str, list[TableRead]] = defaultdict(list)
    since: dict[str, int] = {}
    for name, recorded in known.items():
        for read in tables.get(name, ()):
            lake = read.table.lake
            first = recorded.first_read(lake)
            if first is not None:
                by_lake[lake].append(read)
                since[lake] = min(first, since.get(lake, first))
    found: dict[str, list[TableChanges]] = defaultdict(list)
    for lake, of in by_lake.items():
        catalog = catalogs(lake)
        if catalog is not None:
            # Late: projects whose models read only each other load nothing of it.
            from penstock.engine.planning.table_changes import changes_of

            for changes in changes_of(catalog, of, since[lake]):
                found[changes.read.reader.name].append(changes)
    return found


def files_of(
    settings: Settings, catalogs: Catalogs, models: Sequence[Model], known: Mapping[str, Recorded]
) -> Mapping[str, Mapping[str, str]]:
    """Return what became of the files that slices were made from, by the names of models."""
    reading_files = [model for model in models if model.query.files]
    if not reading_files:
        return {}
    # Late: projects that read no files load nothing of it.
    from penstock.engine.planning.files_behind import files_behind

    records = {model.name: known[model.name].slices for model in reading_files}
    return files_behind(settings.root, catalogs, reading_files, records)


def _slice_states(model: Model, recorded: Recorded) -> SliceStates:
    known = recorded.states(model)
    states = {
        text: derived.state
        for text, derived in known.items()
        if derived.state is not SliceState.OTHER_KIND
    }
    causes = {text: why for text, state in known.items() if (why := _cause(state)) is not None}
    late = frozenset(text for text, state in known.items() if state.is_late)
    return SliceStates(states, recorded.runs, recorded.remakes(model), causes, late)


def _cause(state: DerivedState) -> str | None:
    snapshot_id = state.outside_snapshot
    return state.behind or (None if snapshot_id is None else by_others(snapshot_id))


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
    # A view, for one: what is missing is seen when it is read.
    return model.partition is None and model.by_time is None


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
