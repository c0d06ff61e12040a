"""Answer what is known of models and slices: questions that the catalogs answer, without Spark.

A slice is materialized, stale, missing, running or failed by what runs recorded, or changed outside
of Penstock since: by DuckDB, by SQL, by a rollback.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.answers.ages import mark_overdue
from penstock.engine.planning.slice_states import (
    DerivedState,
    KnownSlices,
    Recorded,
    recorded_of,
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
from penstock.engine.state.other_writers import Where
from penstock.engine.state.records import (
    WHOLE,
    CheckRecord,
    SliceRecord,
    StepRecord,
    column_infos,
)
from penstock.engine.state.store import State, find_tables
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.definitions.tables import describe
from penstock.lakes.format.objects import COMMENT
from penstock.model.definition.model import Model
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

    from penstock.lakes.catalog.catalog import Catalog, Catalogs


LAST_RUNS = 10


def statuses(
    knowledge: KnownSlices,
    models: Sequence[Model],
    only: Sequence[Model] | None = None,
    moment: datetime | None = None,
) -> Statuses:
    """Return the slices of models.

    Args:
        knowledge: What the catalogs know of slices.
        models: All models of the project.
        only: The models whose slices are asked for; None for all.
        moment: The time at which slices are too old or not; now without it.

    Returns:
        A status for each model. Of all models, also those of tables that none makes any more.
    """
    makers = [model for model in models if model.strategy.runs] if only is None else only
    recorded = replace(knowledge, reads_details=True, known={}, cache=None).recorded(makers)
    moment = moment or datetime.now(UTC)
    made = [
        mark_overdue(
            knowledge,
            model_status(model, recorded[model.name]),
            model,
            recorded[model.name],
            moment,
        )
        for model in makers
    ]
    if only is not None:
        return Statuses(made)
    return Statuses((*made, *unmade_statuses(knowledge.settings, knowledge.catalogs, models)))


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
    tables: list[ModelStatus] = []
    for lake in sorted({model.target.lake for model in models}):
        catalog = catalogs(lake)
        if catalog is None:
            continue
        state = State(catalog)
        listed = dict.fromkeys(state.read(run_history.list_targets, list[str]()))
        listed |= dict.fromkeys(state.read(reading.dropped, dict[str, dict[str, int]]()))
        targets = [target for target in listed if (lake, fold(target)) not in makers]
        if targets:
            in_lake = [model for model in models if model.target.lake == lake]
            where = where_of(settings, lake, catalog.data_path, in_lake)
            ask = partial(_unmade_records, targets=targets, where=where, spark=settings.spark)
            recorded = state.read(ask, dict[str, Recorded]())
            tables += unmade(recorded, lake)
    if tables and (settings.own_tables or settings.suffixes):
        every = [model.target.qualified for model in models]
        about = (settings.own_tables, settings.suffixes, every)
        tables = [table for table in tables if not is_of_another(_in_lake(table.target), *about)]
    return Statuses(tables)


def _unmade_records(
    connection: Connection, targets: Sequence[str], where: Where, spark: SparkSettings
) -> dict[str, Recorded]:
    known = reading.slices_of(connection, targets)
    by_target = {target: known.get(target, []) for target in targets}
    return recorded_of(connection, by_target, where, spark)


def _in_lake(table: str) -> str:
    """``schema.table`` of a table's name, with or without its lake."""
    return ".".join(table.split(".")[-2:])


def model_status(model: Model, recorded: Recorded) -> ModelStatus:
    """Return all slices that are there or were tried, in the order of their values."""
    target, details = model.target.qualified, recorded.details
    slices = recorded.lost.as_is(recorded.slices)
    if details.lacked:
        slices |= {
            text: replace(record, lacked=lacked)
            for text, record in slices.items()
            if (lacked := details.lacked.get(record.read_id or "")) is not None
        }
    checks = details.checks.get(target, {})
    attempts = _pressing(recorded, target)
    recorded = replace(recorded, tried=tuple(attempts.values()))
    if model.by_time is not None:
        found = tuple(_of_intervals(model, recorded, slices, attempts, checks))
    else:
        states = recorded.states(model) if model.strategy.runs else {}
        if model.partition is None and model.strategy.runs:
            states = {WHOLE: DerivedState.of(SliceState.MISSING)} | states
        found = tuple(
            _slice_status(
                value,
                slices.get(value),
                attempts.get(value),
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


def _pressing(recorded: Recorded, target: str) -> dict[str, StepRecord]:
    """Return the attempts at slices that say more than what was published, by the texts of slices.

    Those that are running have the run that holds the slice as their reason. An attempt that was
    interrupted, or whose run was killed, has failed.
    """
    attempts: dict[str, StepRecord] = {}
    for attempt in recorded.tried:
        is_running = attempt.state == SliceState.RUNNING
        attempts[attempt.slice] = attempt
        if attempt.state in INTERRUPTED or (is_running and attempt.run_id not in recorded.alive):
            how = "cancelled" if attempt.state == "cancelled" else "killed"
            reason = attempt.reason or f"its run was {how}"
            failed = replace(attempt, state=SliceState.FAILED, reason=reason)
            attempts[attempt.slice] = failed
    running = [text for text, step in attempts.items() if step.state == SliceState.RUNNING]
    held = recorded.details.holders(target, running)
    return attempts | {text: replace(attempts[text], reason=str(by)) for text, by in held.items()}


def _of_intervals(
    model: Model,
    made: Recorded,
    slices: Mapping[str, SliceRecord],
    attempts: Mapping[str, StepRecord],
    checks: Mapping[str, Sequence[CheckRecord]],
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


def unmade(recorded: Mapping[str, Recorded], lake: str) -> list[ModelStatus]:
    """Return the statuses of tables that no model makes, as far as they are there.

    Args:
        recorded: What is recorded of the tables, by their names.
        lake: Their lake.

    Returns:
        The statuses, in the order of names.
    """
    by_target = {
        name: of.slices for name, of in recorded.items() if of.slices and name in of.outside.there
    }
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


def detail_of(knowledge: KnownSlices, model: Model) -> ModelDetail:
    """Return everything that is known of a model.

    Args:
        knowledge: What the catalogs know of slices.
        model: The model.

    Returns:
        Its declaration, its slices, and its last runs.
    """
    catalog, target = knowledge.catalogs(model.target.lake), model.target.qualified
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
        status=statuses(knowledge, [model], [model])[0],
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
