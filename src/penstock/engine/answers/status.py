"""Answer what is known of models and slices: questions that the catalogs answer, without Spark.

A slice is materialized, stale, missing, running or failed by what runs recorded, or changed outside
of Penstock since: by DuckDB, by SQL, by a rollback.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from penstock.engine.planning.behind import Inputs, Read, TableChanges, inputs_of
from penstock.engine.planning.slice_states import (
    DerivedState,
    Recorded,
    TableReads,
    files_of,
    recorded_of,
    table_changes,
    where_of,
)
from penstock.engine.results import (
    ModelDetail,
    ModelStatus,
    RecordedCheck,
    RecordedChecks,
    SchemaVersion,
    SliceStatus,
    SnapshotInfo,
    Statuses,
    StepRun,
)
from penstock.engine.state import reading, run_history
from penstock.engine.state.claims import NOBODY, Holders, holders
from penstock.engine.state.other_writers import Outside, Undone, Where
from penstock.engine.state.records import (
    WHOLE,
    CheckRecord,
    ProcessId,
    RunRecord,
    SliceRecord,
    StepRecord,
    column_infos,
    is_gone,
)
from penstock.engine.state.store import State, find_tables
from penstock.lake.catalog import reads
from penstock.lake.catalog.definitions.tables import describe
from penstock.lake.format.objects import COMMENT
from penstock.model.definition.model import Model
from penstock.model.slicing.needs import Edge
from penstock.model.time.interval import Interval
from penstock.model.time.slice import in_time, shown
from penstock.model.values.asset import TableName
from penstock.model.values.strategy import strategy_named
from penstock.settings.config import Settings, SparkSettings
from penstock.settings.environment_tables import is_of_another
from penstock.sql.identifiers import fold
from penstock.states import INTERRUPTED, SliceState

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.catalog.catalog import Catalog, Catalogs


LAST_RUNS = 10


@dataclass(frozen=True, slots=True)
class Reads:
    """The reads of models, by their names: ``edges`` to other models, ``tables`` whose changes of
    rows put slices behind, and VIEW models.
    """

    edges: Mapping[str, Sequence[Edge]]
    tables: TableReads
    views: Mapping[str, Sequence[Model]] = field(default_factory=dict)

    def inputs(
        self,
        model: Model,
        recorded: Mapping[str, Recorded],
        changes: Mapping[str, Sequence[TableChanges]],
    ) -> Inputs:
        edges, views = self.edges.get(model.name, ()), self.views.get(model.name, ())
        return inputs_of(edges, recorded, changes.get(model.name, ()), views=views)

    def above(self, models: Iterable[Model]) -> Iterator[Model]:
        """Return the models whose slices say what is behind.

        Args:
            models: The readers.

        Yields:
            The models that they read, some more than once.
        """
        for model in models:
            yield from (edge.upstream for edge in self.edges.get(model.name, ()))
            yield from self.views.get(model.name, ())


@dataclass(frozen=True, slots=True)
class LakeState:
    """The state tables of one lake, read at one moment. ``attempts`` are the latest at each slice,
    where they have published nothing. Of models by time the latest such attempts count, whatever
    was published since: records say so, and a rollback undoes them.
    """

    slices: tuple[SliceRecord, ...] = ()
    attempts: tuple[StepRecord, ...] = ()
    checks: tuple[CheckRecord, ...] = ()
    running: tuple[RunRecord, ...] = ()
    outside: Outside = field(default_factory=Outside)
    lost: Mapping[str, Undone] = field(default_factory=dict)
    reads: Mapping[str, Read] = field(default_factory=dict)
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    holders: Holders = NOBODY

    @classmethod
    def read(
        cls,
        connection: Connection,
        targets: Sequence[str] | None = None,
        by_time: Collection[str] = (),
    ) -> LakeState:
        """Read the state of tables.

        Args:
            connection: The catalog.
            targets: The tables; None for all of the lake.
            by_time: The tables of models by time.

        Returns:
            What is recorded, without what others did to the tables.
        """
        return cls(
            slices=tuple(reading.slices_in(connection, targets)),
            attempts=tuple(reading.unpublished_attempts(connection, targets, by_time)),
            checks=tuple(reading.last_checks(connection, targets)),
            running=tuple(reading.running(connection)),
            dropped=reading.dropped(connection, targets),
            holders=holders(connection),
        )


def _divided(state: LakeState) -> Mapping[str, LakeState]:
    """Divide a lake's state by targets once: looked through for each of them it takes as long as
    there are models.
    """
    slices, attempts, checks = map(_grouped, (state.slices, state.attempts, state.checks))
    return {
        target: replace(
            state,
            slices=slices.get(target, ()),
            attempts=attempts.get(target, ()),
            checks=checks.get(target, ()),
        )
        for target in {*slices, *attempts, *checks}
    }


def _grouped(records: Iterable[Any]) -> dict[str, tuple[Any, ...]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for record in records:
        found[record.target].append(record)
    return {target: tuple(of) for target, of in found.items()}


def statuses(
    settings: Settings,
    catalogs: Catalogs,
    models: Sequence[Model],
    inputs_read: Reads,
    only: Sequence[Model] | None = None,
) -> Statuses:
    """Return the slices of models.

    Args:
        settings: The settings of the project.
        catalogs: The catalogs of lakes.
        models: All models of the project.
        inputs_read: The reads of all models.
        only: The models whose slices are asked for; None for all.

    Returns:
        A status for each model. Of all models, also those of tables that none makes any more.
    """
    makers = [model for model in models if model.strategy.runs] if only is None else only
    looked_at = {model.name: model for model in (*makers, *inputs_read.above(makers))}
    targets = None if only is None else [model.target.qualified for model in looked_at.values()]
    in_lakes = models if only is None else looked_at.values()
    lakes = sorted({model.target.lake for model in in_lakes})
    states = {name: read_state(settings, catalogs, name, models, targets) for name in lakes}
    divided = {name: _divided(state) for name, state in states.items()}
    own = {
        model.name: divided[model.target.lake].get(model.target.qualified)
        or replace(states[model.target.lake], slices=(), attempts=(), checks=())
        for model in looked_at.values()
    }
    recorded = {name: _recorded(model, own[name]) for name, model in looked_at.items()}
    makers_recorded = {model.name: recorded[model.name] for model in makers}
    changes = table_changes(catalogs, inputs_read.tables, makers_recorded)
    files = files_of(settings, catalogs, makers, recorded)
    made = [
        model_status(
            model,
            own[model.name],
            replace(
                inputs_read.inputs(model, recorded, changes),
                files=files.get(model.name, {}),
            ),
        )
        for model in makers
    ]
    if only is not None:
        return Statuses(made)
    return Statuses((*made, *_unmade(settings, states, models)))


def unmade_statuses(settings: Settings, catalogs: Catalogs, models: Sequence[Model]) -> Statuses:
    """Return the statuses of the tables that runs have made and no model makes any more.

    Args:
        settings: The settings of the project.
        catalogs: The catalogs of lakes.
        models: All models of the project.

    Returns:
        A status for each table.
    """
    makers = {
        (model.target.lake, fold(model.target.qualified)) for model in models if model.strategy.runs
    }
    states: dict[str, LakeState] = {}
    for lake in sorted({model.target.lake for model in models}):
        catalog = catalogs(lake)
        if catalog is not None:
            recorded = State(catalog).read(run_history.list_targets, list[str]())
            targets = [target for target in recorded if (lake, fold(target)) not in makers]
            if targets:
                states[lake] = read_state(settings, catalogs, lake, models, targets)
    return Statuses(_unmade(settings, states, models))


def _unmade(
    settings: Settings, states: Mapping[str, LakeState], models: Sequence[Model]
) -> list[ModelStatus]:
    tables = [each for name, state in states.items() for each in unmade(state, name, models)]
    if tables and (settings.own_tables or settings.suffixes):
        targets = [model.target.qualified for model in models]
        about = (settings.own_tables, settings.suffixes, targets)
        return [table for table in tables if not is_of_another(_in_lake(table.target), *about)]
    return tables


def _in_lake(table: str) -> str:
    """``schema.table`` of a table's name, with or without its lake."""
    return ".".join(table.split(".")[-2:])


def status_of(settings: Settings, catalogs: Catalogs, model: Model, inputs_read: Reads) -> Statuses:
    """The slices of one model."""
    return statuses(settings, catalogs, [model, *inputs_read.above([model])], inputs_read, [model])


def _recorded(model: Model, state: LakeState) -> Recorded:
    """Return what is recorded of a model, as far as its readers look at it."""
    target = model.target.qualified
    slices = tuple(each for each in state.slices if each.target == target)
    lost = state.lost.get(target, Undone())
    dropped = state.dropped.get(target, {})
    return Recorded(slices, state.outside, lost, reads=state.reads, dropped=dropped)


def read_state(
    settings: Settings,
    catalogs: Catalogs,
    lake: str,
    models: Sequence[Model],
    targets: Sequence[str] | None = None,
) -> LakeState:
    """The state of a lake, or of some targets in it, and what others did to its tables; empty
    without a catalog.
    """
    catalog = catalogs(lake)
    if catalog is None:
        return LakeState()
    in_lake = [model for model in models if model.target.lake == lake]
    where = where_of(settings, lake, catalog.data_path, in_lake)
    by_time = frozenset(each.target.qualified for each in in_lake if each.by_time is not None)
    ask = partial(_state, where=where, targets=targets, spark=settings.spark, by_time=by_time)
    return State(catalog).read(ask, LakeState())


def _state(
    connection: Connection,
    where: Where,
    targets: Sequence[str] | None,
    spark: SparkSettings,
    by_time: Collection[str] = (),
) -> LakeState:
    state = LakeState.read(connection, targets, by_time)
    by_target: dict[str, list[SliceRecord]] = defaultdict(list)
    for record in state.slices:
        by_target[record.target].append(record)
    by_target |= {name: [] for name in state.dropped if name not in by_target}
    made = recorded_of(connection, by_target, where, spark)
    outside = next((each.outside for each in made.values()), Outside())
    lost = {name: each.lost for name, each in made.items()}
    reads = reading.lakes_read(connection, list(by_target))
    lacked = reading.lacked(connection, list(by_target))
    slices = tuple(chain.from_iterable(each.slices for each in made.values()))
    if lacked:
        slices = tuple(replace(each, lacked=lacked.get(each.read_id or "")) for each in slices)
    return replace(state, slices=slices, outside=outside, lost=lost, reads=reads)


def model_status(
    model: Model,
    state: LakeState,
    inputs: Inputs | None = None,
    is_gone: Callable[[ProcessId], bool] = is_gone,
) -> ModelStatus:
    """All slices that are there or were tried, in the order of their values."""
    target = model.target.qualified
    lost = state.lost.get(target, Undone())
    records = tuple(each for each in state.slices if each.target == target)
    slices = lost.as_is(records)
    checks = _by_slice(check for check in state.checks if check.target == target)
    alive = {run.run_id for run in state.running if not is_gone(run.process)}
    pressing = _pressing(state, target, alive)
    tried = tuple(pressing.values())
    made = Recorded(records, state.outside, lost, tried, alive, state.reads, inputs or Inputs())
    if model.by_time is not None:
        found = tuple(_of_intervals(model, made, slices, pressing, checks))
    else:
        states = made.states(model) if model.strategy.runs else {}
        if model.partition is None and model.strategy.runs:
            states = {WHOLE: DerivedState.of(SliceState.MISSING)} | states
        found = tuple(
            _slice_status(
                value,
                slices.get(value),
                pressing.get(value),
                checks.get(value, ()),
                states[value],
            )
            for value in sorted(states, key=in_time(model.partition))
        )
    return ModelStatus(
        model=model.name,
        target=str(model.target),
        strategy=model.strategy.name,
        partitioned=model.partition.kind if model.partition else None,
        slices=found,
    )


def _pressing(state: LakeState, target: str, alive: Collection[str]) -> dict[str, StepRecord]:
    """The attempts at slices that say more than what was published, by the texts of slices; those
    that are running with who holds the slice as their reason. An attempt that was interrupted, or
    whose run was killed, has failed.
    """
    found: dict[str, StepRecord] = {}
    for each in state.attempts:
        if each.target != target:
            continue
        is_killed = each.state == SliceState.RUNNING and each.run_id not in alive
        if is_killed or each.state in INTERRUPTED:
            why = "its run was cancelled" if each.state == "cancelled" else "its run was killed"
            found[each.slice] = replace(each, state=SliceState.FAILED, reason=each.reason or why)
        else:
            found[each.slice] = each
    running = [text for text, step in found.items() if step.state == SliceState.RUNNING]
    held = state.holders(target, running)
    return found | {text: replace(found[text], reason=str(by)) for text, by in held.items()}


def _of_intervals(
    model: Model,
    made: Recorded,
    slices: Mapping[str, SliceRecord],
    attempts: Mapping[str, StepRecord],
    checks: Mapping[str, list[CheckRecord]],
) -> Iterator[SliceStatus]:
    """The slices of a model by time as plans see them, and those of earlier kinds of slices.
    ``slices`` are the records of the rows that are there.
    """
    line = made.painted(model)
    for event in line.events:
        text = event.interval.text
        status = _slice_status(
            text,
            slices.get(text) or _piece(slices.get(event.of), text),
            attempts.get(event.of),
            checks.get(text, ()),
            DerivedState(event.state, event.state, event.since, event.behind),
        )
        yield replace(status, intervals=_units(model, event.interval))
    known = {event.of for event in line.events}
    others = [
        record
        for value, record in slices.items()
        if value not in {*known, *made.lost.gone}
        and record.rolled_back is None
        and not record.is_slice_of(model)
    ]
    other = DerivedState.of(SliceState.OTHER_KIND)
    for record in others:
        yield _slice_status(record.slice, record, None, checks.get(record.slice, ()), other)
    if not line.events and not others:
        yield _slice_status(WHOLE, None, None, (), DerivedState.of(SliceState.MISSING))


def _units(model: Model, interval: Interval) -> int:
    assert model.by_time is not None, "asked of models by time"
    return sum(1 for _ in model.by_time.units((interval,)))


def _piece(record: SliceRecord | None, text: str) -> SliceRecord | None:
    """A part of a recorded interval: how many of its rows it has is not recorded."""
    return None if record is None else replace(record, slice=text, rows=None)


def unmade(state: LakeState, lake: str, models: Iterable[Model]) -> list[ModelStatus]:
    """The tables that runs have made and no model makes any more, as far as they are there."""
    makers = (model for model in models if model.strategy.runs)
    made = {fold(model.target.qualified) for model in makers if model.target.lake == lake}
    by_target: dict[str, list[SliceRecord]] = defaultdict(list)
    for record in state.slices:
        if fold(record.target) not in made and record.target in state.outside.there:
            by_target[record.target].append(record)
    return [
        ModelStatus(
            model=None,
            target=str(TableName(lake, *target.split(".", 1))),
            strategy=records[-1].strategy,
            partitioned=None,
            slices=tuple(
                _slice_status(record.slice, record, None, (), DerivedState.of(SliceState.NO_MODEL))
                for record in records
            ),
        )
        for target, records in sorted(by_target.items())
    ]


def detail_of(
    settings: Settings, catalogs: Catalogs, model: Model, inputs_read: Reads
) -> ModelDetail:
    catalog, target = catalogs(model.target.lake), model.target.qualified
    versions: tuple[SchemaVersion, ...] = ()
    runs: tuple[StepRun, ...] = ()
    table = None
    comments: dict[str, str] = {}
    if catalog is not None:
        with catalog.reading() as connection:
            if find_tables(connection):
                versions = reading.schema_versions(connection, target)
                runs = run_history.step_runs(connection, target, LAST_RUNS)
            latest, place = reads.newest(connection), (model.target.schema, model.target.table)
            table = reads.find_table(connection, catalog.data_path, latest.id, *place)
            if table is not None:
                tags = describe(connection, table, latest.id).column_tags
                comments = {
                    fold(name): own[COMMENT] for name, own in tags.items() if COMMENT in own
                }
    return ModelDetail(
        status=status_of(settings, catalogs, model, inputs_read)[0],
        path=str(model.path),
        keys=model.keys,
        inputs=tuple(str(table) for table in model.inputs),
        libraries=model.query.libraries,
        tests=tuple(test.name for test in model.data_tests),
        columns=column_infos(table.schema, comments) if table else (),
        schema_versions=versions,
        query=model.query.text,
        runs=runs,
        about=_about(model),
        unit=_unit(model),
    )


def _unit(model: Model) -> str:
    if model.by_time is not None:
        return f"an interval of time, by {model.by_time.unit.name}"
    return model.partition.slicing if model.partition else "whole table"


def _about(model: Model) -> dict[str, str]:
    about = model.about
    said = {
        "description": about.description,
        "owner": about.owner,
        "tags": ", ".join(model.tags),
        "project": about.project,
        "stamp": about.stamp,
        "grains": "; ".join(", ".join(keys) for keys in about.grains),
        "references": "; ".join(", ".join(keys) for keys in about.references),
        "writes": "" if model.python is None else ", ".join(model.python.writes),
        "timeout": model.timeout,
    }
    said |= {f"column {name}": text for name, text in about.column_descriptions}
    return {name: text for name, text in said.items() if text}


def recorded_checks(model: Model, catalog: Catalog | None) -> RecordedChecks:
    """The latest results of a model's tests, by slice and in the order of the script."""
    if catalog is None:
        return RecordedChecks()
    target, none = model.target.qualified, list[CheckRecord]()
    records = State(catalog).read(
        lambda connection: reading.last_checks(connection, [target]), none
    )
    return RecordedChecks(
        RecordedCheck(
            shown(record.slice),
            record.run_id,
            record.checked_at,
            record.result,
        )
        for record in records
    )


def snapshot_infos(catalogs: Mapping[str, Catalog | None]) -> list[SnapshotInfo]:
    """Of these lakes, newest first."""
    infos = [
        SnapshotInfo(
            lake,
            snapshot.id,
            snapshot.time,
            snapshot.changes,
            snapshot.author,
            snapshot.message,
            snapshot.extra,
        )
        for lake, catalog in catalogs.items()
        if catalog is not None
        for snapshot in reversed(catalog.snapshots())
    ]
    return sorted(infos, key=lambda info: info.time, reverse=True)


def _slice_status(
    value: str,
    known: SliceRecord | None,
    pressing: StepRecord | None,
    checks: Iterable[CheckRecord],
    derived: DerivedState,
) -> SliceStatus:
    """``pressing`` is the last attempt, where that is what the state is of."""
    results = [check.result for check in checks]
    state = derived.state
    if not state.is_attempt:
        pressing = None
    lacked = known.lacked if known and state is SliceState.MATERIALIZED else None
    said = derived.behind or (lacked and f"made with --allow-missing: {lacked}")
    moment = (pressing.finished_at or pressing.started_at) if pressing else None
    counts_rows = known and strategy_named(known.strategy).counts_rows
    is_counted = counts_rows and derived.recorded_state is not SliceState.CHANGED_OUTSIDE
    return SliceStatus(
        slice=shown(value),
        state=state,
        rows=known.rows if known and is_counted else None,
        snapshot_id=known.made_in if known else None,
        time=moment or (known.published_at if known else None),
        tests=len(results),
        tests_failed=sum(result.outcome == "failed" for result in results),
        tests_warned=sum(result.outcome == "warned" for result in results),
        run_id=pressing.run_id if pressing else known.run_id if known else None,
        reason=pressing.reason if pressing else said,
        outside_snapshot=derived.outside_snapshot,
    )


def _by_slice(checks: Iterable[CheckRecord]) -> Mapping[str, list[CheckRecord]]:
    by_slice: dict[str, list[CheckRecord]] = defaultdict(list)
    for check in checks:
        by_slice[check.slice].append(check)
    return by_slice
