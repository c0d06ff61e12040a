"""Answer what past runs did: lists of runs, and all that is known of one, without Spark.

A run is recorded in each lake that it writes; an answer has those records together. What is large
(the plan's text, errors, prints, queries) is in the run's log, and read only for one run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.engine.answers.logs import StepErrorText, errors, of_step, phases
from penstock.engine.planning.recorded_plan import RecordedPlan, as_command
from penstock.engine.results import CheckResult
from penstock.engine.state import run_history, run_log
from penstock.engine.state.records import ProcessId, RunRecord, StepRecord, is_gone
from penstock.engine.state.run_history import AskedRuns, Recorded
from penstock.engine.state.store import State
from penstock.errors import ArgumentError
from penstock.model.time.slice import WHOLE, shown
from penstock.model.values.asset import DEFAULT_LAKE
from penstock.rendering.columns import Answers, read_columns
from penstock.rendering.text import line, seconds

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog
    from penstock.destinations.values import Written

ExistingCatalogs = Mapping[str, "Catalog"]  # by the names of their lakes
INTERRUPTED = "interrupted"  # of a run whose process ended without saying so
FAILED_RUNS = frozenset({"failed", INTERRUPTED})


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run as lists show it.

    ``state`` is ``running``, ``done``, ``waiting``, ``failed``, ``cancelled`` or ``interrupted``
    (its process ended without saying so). ``steps`` are numbers of slices by their states; what was
    ``skipped`` is so because something above it failed. ``exit_code`` and ``user`` are None where
    they are not recorded, and neither is the ``environment`` of old runs. ``retry_of`` is the run
    that it carries on with.
    """

    run_id: str
    state: str
    exit_code: int | None
    trigger: str
    user: str | None
    host: str
    pid: int
    started_at: datetime
    seconds: float | None
    partition: str | None
    lakes: tuple[str, ...]
    steps: Mapping[str, int] = field(default_factory=dict)
    retry_of: str | None = None
    environment: str | None = None

    def __repr__(self) -> str:
        said = ", ".join(f"{number} {state}" for state, number in self.steps.items())
        return line(self, f"{self.run_id}: {self.state}", said, seconds(self.seconds))


class PastRuns(Answers[PastRun]):
    """The result of `Project.runs`."""

    __slots__ = ()
    columns = read_columns(
        "run=short_id started=started_at state exit=exit_code how=trigger who slices=step_counts "
        "partition time=duration"
    )


@dataclass(frozen=True, slots=True)
class PastStep:
    """An attempt of a step at a slice; ``slice`` is None for a whole table.

    ``files``, ``bytes``, ``written`` and ``deleted`` are what its commit wrote, as far as the lake
    still knows: files of data, their bytes and rows, and rows that were deleted. A commit of many
    slices has them at the first. ``tests`` are the results of its data tests.
    """

    step: str
    table: str
    slice: str | None
    state: str
    started_at: datetime
    seconds: float | None
    rows: int | None
    snapshot_id: int | None
    reason: str | None
    files: int | None = None
    bytes: int | None = None
    written: int | None = None
    deleted: int | None = None
    tests: tuple[CheckResult, ...] = ()
    columns: ClassVar = read_columns(
        "started=started_at step slice=slice_name state=slice_state rows snapshot=snapshot_id "
        "files bytes written deleted tests=passed_tests time=duration"
    )


@dataclass(frozen=True, slots=True)
class PlannedReason:
    """Slices of a step of the plan and why they are made, or why there was nothing to do."""

    step: str
    slices: str | None
    count: int
    reason: str
    why: str | None = None


@dataclass(frozen=True, slots=True)
class StepInput:
    """A table or file that a step read: ``snapshot`` is that of its lake, ``rows`` those that the
    table had then, where that is known.
    """

    step_table: str
    kind: str
    name: str
    snapshot: int | None
    rows: int | None = None
    columns: ClassVar = read_columns("for=step_table input=name snapshot rows")


@dataclass(frozen=True, slots=True)
class RunDetail:
    """All that is known of a run. ``command`` is what was asked for, as a command. ``phases`` are
    seconds by step, and ``errors`` whole, of the run's ``log``, where that is on this machine.
    """

    run: PastRun
    command: str | None
    fire_time: datetime | None
    arguments: Mapping[str, str | None]
    payload: Mapping[str, Any] | None
    plan: tuple[PlannedReason, ...]
    steps: tuple[PastStep, ...]
    inputs: tuple[StepInput, ...] = ()
    phases: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    errors: tuple[StepErrorText, ...] = ()
    log: str | None = None

    def with_log(self, path: Path | None) -> RunDetail:
        """Add what its log knows, where there is one."""
        if path is None or not path.is_file():
            return self
        lines, _ = run_log.read(path)
        return replace(self, phases=phases(lines), errors=errors(lines), log=str(path))


@dataclass(frozen=True, slots=True)
class RunLogLines:
    """The log of a run; of one ``step``, with the lines of the run itself, where that is set."""

    path: Path
    step: str | None = None

    @property
    def run_id(self) -> str:
        return self.path.stem

    @property
    def lines(self) -> list[Mapping[str, Any]]:
        """Return what it has so far, a value a line: the time ``at``, the ``event``, its fields."""
        return self.since(0)[0]

    def since(self, offset: int) -> tuple[list[Mapping[str, Any]], int]:
        """Return the lines from an offset on, and where the next begins."""
        found, end = run_log.read(self.path, offset)
        return of_step(found, self.step), end


def no_log(catalogs: ExistingCatalogs, run_id: str) -> ArgumentError:
    """The error of a run whose log is not on this machine, with where it ran."""
    run = run_detail(catalogs, run_id).run
    return ArgumentError(
        f"the log of run {run_id} is not here: it ran on {run.host} as {run.user or 'unknown'}",
        hint="logs are files of that machine, and are removed as [logs] says: "
        f"penstock runs show {run_id}",
    )


def past_runs(
    catalogs: ExistingCatalogs,
    asked: AskedRuns,
    lake: str | None = None,
    gone: Callable[[ProcessId], bool] = is_gone,
) -> PastRuns:
    """The runs that are asked for, newest first; of one ``lake`` where a table is asked for."""
    found: dict[str, PastRun] = {}
    for name, catalog in catalogs.items():
        if lake is not None and name != lake:
            continue
        ask = partial(_listed, asked=asked, lake=name, gone=gone)
        for run in State(catalog).read(ask, list[PastRun]()):
            found[run.run_id] = _joined(found.get(run.run_id), run)
    chosen = [run for run in found.values() if not asked.failed or run.state in FAILED_RUNS]
    chosen.sort(key=lambda run: run.started_at, reverse=True)
    return PastRuns(chosen[: asked.limit])


def _listed(
    connection: Any, *, asked: AskedRuns, lake: str, gone: Callable[[ProcessId], bool]
) -> list[PastRun]:
    records = run_history.runs(connection, asked)
    counts = run_history.counts(connection, [record.run_id for record in records])
    return [past_run(each, lake, counts.get(each.run_id, {}), gone) for each in records]


def past_run(
    record: RunRecord,
    lake: str,
    steps: Mapping[str, int],
    gone: Callable[[ProcessId], bool] = is_gone,
) -> PastRun:
    """A record as a list shows it."""
    dead = record.state == "running" and gone(record.process)
    state = INTERRUPTED if dead or record.state == "abandoned" else record.state
    if state == INTERRUPTED:
        steps = Counter({state_of_dead(name): 0 for name in steps}) | _summed(steps)
    ended = record.finished_at if state != INTERRUPTED else None
    return PastRun(
        run_id=record.run_id,
        state=state,
        exit_code=record.exit_code,
        trigger=record.trigger,
        user=record.user,
        host=record.process.host,
        pid=record.process.pid,
        started_at=record.started_at,
        seconds=None if ended is None else (ended - record.started_at).total_seconds(),
        partition=record.partition,
        lakes=(lake,),
        steps=dict(steps),
        retry_of=record.retry_of,
        environment=None if record.environment is None else record.environment.name,
    )


def _summed(steps: Mapping[str, int]) -> Counter[str]:
    found = Counter[str]()
    for state, number in steps.items():
        found[state_of_dead(state)] += number
    return found


def state_of_dead(state: str) -> str:
    """Return the state of a step in a run whose process is gone.

    Args:
        state: The state that is recorded.

    Returns:
        ``interrupted`` for a step that has not ended by itself.
    """
    return INTERRUPTED if state in ("running", "abandoned") else state


def _joined(known: PastRun | None, run: PastRun) -> PastRun:
    """The records of a run in two lakes as one."""
    if known is None:
        return run
    steps = dict(Counter(known.steps) + Counter(run.steps))
    return replace(known, lakes=(*known.lakes, *run.lakes), steps=steps)


def run_id_of(catalogs: ExistingCatalogs, text: str, suffix: str | None = None) -> str:
    """The id of the run that a text names: an id, a part that only one begins or ends with, or
    ``last``, of those with a ``suffix`` as in `AskedRuns`. Raises ArgumentError.
    """
    states = [State(catalog) for catalog in catalogs.values()]
    if text == "last":
        ask_last = partial(run_history.last_id, suffix=suffix)
        last = [found for state in states if (found := state.read(ask_last, None))]
        if last:
            return max(last)[1]
    else:
        ask = partial(run_history.ids_like, text=text.strip())
        ids = dict.fromkeys(id_ for state in states for id_ in state.read(ask, list[str]()))
        if text in ids or len(ids) == 1:
            return text if text in ids else next(iter(ids))
        if ids:
            raise ArgumentError(
                f"{text!r} is the beginning of several runs: {', '.join(ids)}",
                hint="give more of the id: penstock runs lists them",
            )
    raise ArgumentError(f"no run {text!r} is recorded", hint="penstock runs lists those that are")


def run_detail(
    catalogs: ExistingCatalogs, run_id: str, gone: Callable[[ProcessId], bool] = is_gone
) -> RunDetail:
    """All that is recorded of a run. Raises ArgumentError where there is no such run."""
    found: dict[str, Recorded] = {}
    written: dict[str, Mapping[tuple[int, str], Written]] = {}
    inputs: list[StepInput] = []
    for name, catalog in catalogs.items():
        own = State(catalog).read(partial(run_history.recorded, run_id=run_id), None)
        if own is None:
            continue
        found[name] = own
        ids = sorted({each.snapshot_id for each in own.steps if each.snapshot_id is not None})
        written[name] = catalog.written_in(ids)
    if not found:
        raise ArgumentError(f"no run {run_id!r} is recorded", hint="penstock runs lists them")
    run: PastRun | None = None
    for name, own in found.items():
        states = Counter(step.state for step in own.steps)
        run = _joined(run, past_run(own.run, name, states, gone))
        inputs += _inputs(own, name, catalogs)
    assert run is not None, "something is found"
    record = next(iter(found.values())).run
    plan = None if record.plan is None else RecordedPlan.parse(record.plan)
    steps = [step for name, own in found.items() for step in _steps(own, name, written[name], run)]
    steps.sort(key=lambda step: step.started_at)
    request = None if plan is None else plan.request
    return RunDetail(
        run=run,
        command=None if request is None else as_command(request, run.started_at),
        fire_time=None if request is None else request.fire_time,
        arguments=record.args,
        payload=None if request is None else request.payload,
        plan=() if plan is None else tuple(_reasons(plan)),
        steps=tuple(steps),
        inputs=tuple(inputs),
    )


def _reasons(plan: RecordedPlan) -> Iterator[PlannedReason]:
    for step in plan.steps:
        if step.skipped is not None:
            yield PlannedReason(step.step, None, 0, "nothing to do", step.skipped)
        for each in step.ranges:
            slices = None if each["slices"] == str(WHOLE) else each["slices"]
            yield PlannedReason(step.step, slices, each["count"], each["reason"], each["why"])


def _steps(
    own: Recorded, lake: str, written: Mapping[tuple[int, str], Written], run: PastRun
) -> Iterator[PastStep]:
    tests: dict[tuple[str, str], list[CheckResult]] = {}
    for check in own.checks:
        tests.setdefault((check.target, check.slice), []).append(check.result)
    said = set[tuple[int, str]]()
    for step in own.steps:
        key = (step.snapshot_id or -1, step.target)
        is_new = step.state == "done" and key not in said
        said.add(key)
        results = tuple(tests.get((step.target, step.slice), ()))
        yield _step(step, lake, run, written.get(key) if is_new else None, results)


def _step(
    step: StepRecord,
    lake: str,
    run: PastRun,
    written: Written | None,
    tests: Sequence[CheckResult],
) -> PastStep:
    ended = step.finished_at
    return PastStep(
        step=step.step,
        table=f"{lake}.{step.target}" if len(run.lakes) > 1 else step.target,
        slice=shown(step.slice),
        state=state_of_dead(step.state) if run.state == INTERRUPTED else step.state,
        started_at=step.started_at,
        seconds=(ended - step.started_at).total_seconds() if ended else None,
        rows=step.rows,
        snapshot_id=step.snapshot_id,
        reason=step.reason,
        files=None if written is None else written.files,
        bytes=None if written is None else written.bytes,
        written=None if written is None else written.rows,
        deleted=None if written is None else written.deleted,
        tests=tuple(tests),
    )


def _inputs(own: Recorded, lake: str, catalogs: ExistingCatalogs) -> Iterator[StepInput]:
    for target, read in (own.reads or {}).items():
        for each in read.inputs:
            if each.kind != "table":
                yield StepInput(target, each.kind, each.name, None)
                continue
            *of, schema, name = each.name.split(".")
            home = of[0] if of else DEFAULT_LAKE
            at = each.snapshot or read.lakes.get(home, read.lakes.get(lake))
            catalog = catalogs.get(home)
            rows = None if catalog is None or at is None else catalog.count_rows(schema, name, at)
            yield StepInput(target, each.kind, each.name, at, rows)
