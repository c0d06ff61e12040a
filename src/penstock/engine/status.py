"""What is known of models and their slices: questions that the catalogs answer, without Spark.

A slice is materialized, stale, missing, running or failed by what runs recorded, or changed outside
of Penstock since: by DuckDB, by SQL, by a rollback.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.config import Settings
from penstock.engine.results import (
    ModelDetail,
    ModelStatus,
    RecordedCheck,
    SchemaVersion,
    SliceStatus,
    SnapshotInfo,
    Statuses,
    StepRun,
)
from penstock.engine.state import reading
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
from penstock.errors import PartitionError
from penstock.lake.catalog import reads
from penstock.lake.catalog.definitions.tables import describe
from penstock.lake.catalog.definitions.views import load_views
from penstock.lake.catalog.snapshots import history
from penstock.lake.format.conflicts import ParsedChanges
from penstock.lake.format.naming import fold
from penstock.lake.format.objects import COMMENT
from penstock.model.asset import TableName
from penstock.model.interval import interval_of
from penstock.model.kinds import EMBEDDED, FILES, VIEW, WITHOUT_ROWS
from penstock.model.model import Model
from penstock.model.partition import PartitionSpec, bucket_of
from penstock.model.slice import shown

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.catalog.catalog import Catalog
    from penstock.lake.format.files import Table


_PRESSING = ("running", "failed")  # attempts that say more than what was published before
LAST_RUNS = 10
# The notes of steps (`Attempt.execute`) and of `drop`, as LIKE has them.
OWN = ('{"run": %"step": %', '{"penstock_drop": %')
Key = tuple[str, str]  # target and slice
Catalogs = Callable[[str], "Catalog | None"]  # by a lake's name; None: no run has made it


@dataclass(frozen=True, slots=True)
class Outside:
    """``changed``: the snapshot in which others last changed a slice, None where that expired.

    ``there`` are the targets that the lake has a table of.
    """

    changed: Mapping[Key, int | None] = field(default_factory=dict)
    there: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LakeState:
    """The state tables of one lake, read at one moment."""

    slices: tuple[SliceRecord, ...] = ()
    attempts: tuple[StepRecord, ...] = ()
    checks: tuple[CheckRecord, ...] = ()
    running: tuple[RunRecord, ...] = ()
    outside: Outside = field(default_factory=Outside)

    @classmethod
    def read(cls, connection: Connection, target: str | None = None) -> LakeState:
        return cls(
            slices=tuple(reading.slices(connection, target)),
            attempts=tuple(reading.last_attempts(connection, target)),
            checks=tuple(reading.last_checks(connection, target)),
            running=tuple(reading.running(connection)),
        )


def statuses(settings: Settings, catalogs: Catalogs, models: Sequence[Model]) -> Statuses:
    """The slices of all models of a project, and the tables in their lakes that none makes."""
    lakes = sorted({model.target.lake for model in models})
    states = {
        name: read_state(catalogs(name), settings.lakes[name].partition_column) for name in lakes
    }
    made = [model for model in models if model.strategy != EMBEDDED]
    known = [model_status(model, states[model.target.lake]) for model in made]
    others = (each for name, state in states.items() for each in unmade(state, name, models))
    return Statuses((*known, *others))


def status_of(settings: Settings, catalogs: Catalogs, model: Model) -> Statuses:
    """The slices of one model."""
    target = model.target
    column = settings.lakes[target.lake].partition_column
    state = read_state(catalogs(target.lake), column, target.qualified)
    return Statuses([model_status(model, state)])


def read_state(catalog: Catalog | None, column: str, target: str | None = None) -> LakeState:
    """The state of a lake, and what others did to its tables; empty without a catalog.

    ``column`` carries the values of slices.
    """
    if catalog is None:
        return LakeState()

    def ask(connection: Connection) -> LakeState:
        return _state(connection, catalog, column, target)

    return State(catalog).read(ask, LakeState())


def _state(connection: Connection, catalog: Catalog, column: str, target: str | None) -> LakeState:
    state = LakeState.read(connection, target)
    return replace(state, outside=look(connection, catalog.data_path, state.slices, column))


def model_status(
    model: Model, state: LakeState, is_gone: Callable[[ProcessId], bool] = is_gone
) -> ModelStatus:
    """All slices that are there or were tried, in the order of their values."""
    target = model.target.qualified
    slices = {slice_.slice: slice_ for slice_ in state.slices if slice_.target == target}
    attempts = {attempt.slice: attempt for attempt in state.attempts if attempt.target == target}
    checks = _by_slice(check for check in state.checks if check.target == target)
    alive = {run.run_id for run in state.running if not is_gone(run.process)}
    values = {value for value, attempt in attempts.items() if attempt.state in _PRESSING}
    values |= slices.keys()
    if model.strategy == EMBEDDED:
        values = set()
    elif model.by_time is not None:
        values = {value for value in values if not _is_past(attempts.get(value), slices)}
        values |= slices.keys() or {WHOLE}
    elif model.partition is None:
        values = {WHOLE, *slices}
    changed = state.outside.changed
    return ModelStatus(
        model=model.name,
        target=str(model.target),
        strategy=model.strategy,
        partitioned=model.partition.kind if model.partition else None,
        slices=tuple(
            _slice_status(
                value,
                slices.get(value),
                _last_attempt(attempts.get(value), alive),
                checks.get(value, ()),
                _what_changed(slices.get(value), model, changed),
            )
            for value in sorted(values, key=_in_time(model.partition))
        ),
    )


def _in_time(spec: PartitionSpec | None) -> Callable[[str], tuple[int, Any]]:
    """The order of slices: their texts, which sort as times do; with a format of its own their
    times, and values of another one come last.
    """

    def key(value: str) -> tuple[int, Any]:
        if spec is None or spec.format is None:
            return 0, value
        try:
            return 0, bucket_of(spec, value)
        except PartitionError:
            return 1, value

    return key


def _is_past(attempt: StepRecord | None, slices: Mapping[str, SliceRecord]) -> bool:
    """Whether a part of the interval that was tried was made since."""
    own = None if attempt is None else interval_of(attempt.slice)
    if attempt is None or own is None:
        return True
    since = (each for each in slices.values() if each.published_at > attempt.started_at)
    others = (interval_of(each.slice) for each in since)
    return any(other is not None and own.overlap(other) for other in others)


def unmade(state: LakeState, lake: str, models: Iterable[Model]) -> list[ModelStatus]:
    """The tables that runs have made and no model makes any more, as far as they are there."""
    makers = (model for model in models if model.strategy != EMBEDDED)
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
                _slice_status(record.slice, record, None, (), ("no model", None))
                for record in records
            ),
        )
        for target, records in sorted(by_target.items())
    ]


def detail_of(model: Model, catalog: Catalog | None, column: str) -> ModelDetail:
    target = model.target.qualified
    versions: tuple[SchemaVersion, ...] = ()
    runs: tuple[StepRun, ...] = ()
    table, state = None, LakeState()
    comments: dict[str, str] = {}
    if catalog is not None:
        with catalog.reading() as connection:
            if find_tables(connection):
                versions = reading.schema_versions(connection, target)
                runs = reading.step_runs(connection, target, LAST_RUNS)
                state = _state(connection, catalog, column, target)
            latest, place = reads.newest(connection), (model.target.schema, model.target.table)
            table = reads.find_table(connection, catalog.data_path, latest.id, *place)
            if table is not None:
                tags = describe(connection, table, latest.id).column_tags
                comments = {
                    fold(name): own[COMMENT] for name, own in tags.items() if COMMENT in own
                }
    return ModelDetail(
        status=model_status(model, state),
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


def recorded_checks(model: Model, catalog: Catalog | None) -> tuple[RecordedCheck, ...]:
    """The latest results of a model's tests, by slice and in the order of the script."""
    if catalog is None:
        return ()
    target, none = model.target.qualified, list[CheckRecord]()
    records = State(catalog).read(lambda connection: reading.last_checks(connection, target), none)
    return tuple(
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


def _what_changed(
    known: SliceRecord | None, model: Model, changed: Mapping[Key, int | None]
) -> tuple[str, int | None]:
    """The state of a slice that no attempt presses, and the snapshot of others that made it so."""
    if known is None:
        return "missing", None
    if not known.is_slice_of(model):
        return "other kind", None
    key = (known.target, known.slice)
    if key in changed:
        return "changed outside", changed[key]
    same = model.forward_only or known.definition_hash == model.definition_hash
    return "materialized" if same else "stale", None


def _last_attempt(attempt: StepRecord | None, alive: set[str]) -> StepRecord | None:
    """No attempt where it still says that it runs, and its run was killed."""
    if attempt is not None and attempt.state == "running" and attempt.run_id not in alive:
        return None
    return attempt


def _slice_status(
    value: str,
    known: SliceRecord | None,
    attempt: StepRecord | None,
    checks: Iterable[CheckRecord],
    unpressed: tuple[str, int | None],
) -> SliceStatus:
    """``unpressed`` is the state where no attempt presses, and the snapshot of others behind it."""
    results = [check.result for check in checks]
    pressing = attempt if attempt and attempt.state in _PRESSING else None
    state, outside = (pressing.state, None) if pressing is not None else unpressed
    moment = (pressing.finished_at or pressing.started_at) if pressing else None
    counted = known and known.strategy not in WITHOUT_ROWS and unpressed[0] != "changed outside"
    return SliceStatus(
        slice=shown(value),
        state=state,
        rows=known.rows if known and counted else None,
        snapshot_id=known.made_in if known else None,
        time=moment or (known.published_at if known else None),
        tests=len(results),
        tests_failed=sum(result.outcome == "failed" for result in results),
        tests_warned=sum(result.outcome == "warned" for result in results),
        run_id=pressing.run_id if pressing else known.run_id if known else None,
        reason=pressing.reason if pressing else None,
        outside_snapshot=outside,
    )


def _by_slice(checks: Iterable[CheckRecord]) -> Mapping[str, list[CheckRecord]]:
    by_slice: dict[str, list[CheckRecord]] = defaultdict(list)
    for check in checks:
        by_slice[check.slice].append(check)
    return by_slice


def look(
    connection: Connection, data_path: str, records: Sequence[SliceRecord], column: str
) -> Outside:
    """Compare what is recorded with what the lake holds; ``column`` carries slices' values.

    Asks the catalog once for all targets; the changes of a table are looked at only where others
    made some.
    """
    if not records:
        return Outside()
    snapshot = reads.newest(connection)
    since = min(record.snapshot_id for record in records)
    by_target: dict[str, list[SliceRecord]] = defaultdict(list)
    for record in records:
        by_target[record.target].append(record)
    changed: dict[Key, int | None] = {}
    there: set[str] = set()
    known = history.tables_by_name(connection, snapshot.id)
    views = _views(connection, snapshot.id, records)
    theirs = history.changes_of_others(connection, since, OWN)
    for target, mine in by_target.items():
        if all(record.strategy == FILES for record in mine):
            continue  # which do not belong to the lake
        name = _name(target)
        if name in views and all(record.strategy == VIEW for record in mine):
            there.add(target)
            at = views[name]
            changed |= {(target, r.slice): at for r in mine if r.made_in != at}
            continue
        if name not in known:
            gone = history.gone_at(connection, name)
            changed |= {(target, record.slice): gone for record in mine}
            continue
        there.add(target)
        moments = _Moments.of(theirs, name, known[name])
        if moments.last > min(record.snapshot_id for record in mine):
            table = reads.find_table(connection, data_path, snapshot.id, *_parts(target))
            changed |= _changed(connection, table, mine, moments, column)
    return Outside(changed, frozenset(there))


def _views(
    connection: Connection, snapshot_id: int, records: Sequence[SliceRecord]
) -> dict[tuple[str, str], int]:
    """The snapshot in which each view was made that a record may be of, by folded name."""
    names = [_parts(record.target)[1] for record in records if record.strategy == VIEW]
    found = load_views(connection, snapshot_id, names) if names else []
    return {_name(view.qualified_name): view.begin_snapshot for view in found}


def _parts(target: str) -> tuple[str, str]:
    schema, _, table = target.partition(".")
    return schema, table


def _name(target: str) -> tuple[str, str]:
    schema, table = _parts(target)
    return fold(schema), fold(table)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Snapshots of others that changed one table: as a whole, or some of its rows."""

    whole: tuple[int, ...]
    rows: tuple[int, ...]

    @property
    def last(self) -> int:
        return max((*self.whole, *self.rows), default=-1)

    @classmethod
    def of(cls, theirs: Sequence[ParsedChanges], name: tuple[str, str], table_id: int) -> _Moments:
        whole = [t for t in theirs if name in t.created_tables or table_id in t.altered]
        rows = [t for t in theirs if table_id in t.inserted | t.deleted]
        return cls(tuple(t.snapshot_id for t in whole), tuple(t.snapshot_id for t in rows))


def _changed(
    connection: Connection,
    table: Table | None,
    records: Sequence[SliceRecord],
    moments: _Moments,
    column: str,
) -> dict[Key, int | None]:
    """The slices of one table that were changed, with the last snapshot that did."""
    partition = None if table is None else table.schema.find(column)
    values: Mapping[int, frozenset[str | None]] = {}
    if table is not None and partition is not None and partition.id is not None:
        since = min(record.snapshot_id for record in records)
        where = (partition.id, partition.name)
        values = history.values_touched(connection, table.id, where, since)

    def touches(record: SliceRecord, moment: int) -> bool:
        """True in doubt, where the change was compacted since or is not by slices."""
        slices = values.get(moment, frozenset({None}))
        return record.slice == WHOLE or record.slice in slices or None in slices

    changed: dict[Key, int | None] = {}
    for record in records:
        late = [whole for whole in moments.whole if whole > record.snapshot_id]
        late += [row for row in moments.rows if row > record.snapshot_id and touches(record, row)]
        if late:
            changed[record.target, record.slice] = max(late)
    return changed
