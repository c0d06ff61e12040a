"""A run from plan to result: recorded at its start, executed, recorded at its end.

Steps run side by side where the graph allows, each in a thread of its own, which waits for Spark.
Small tables are bound by the driver's latency, and running side by side hides it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, cast

from penstock.engine.planning.needed import edge_to, missing_to, touching
from penstock.engine.planning.no_op import ended, nothing_to_do, rows_and_snapshot
from penstock.engine.planning.plan import Condition, Plan, PlannedStep, count_of
from penstock.engine.planning.recorded_plan import RecordedPlan
from penstock.engine.planning.slice_reason import UP_TO_DATE
from penstock.engine.python.serve import remove_abandoned
from penstock.engine.results import RunResult, StepResult
from penstock.engine.running.bisect import parts_to_make
from penstock.engine.running.step import INTERRUPTED, run_step, skip
from penstock.engine.session.run_context import RunContext
from penstock.engine.state.claims import Claims, user_name
from penstock.engine.state.records import RunRecord, this_process
from penstock.engine.state.run_history import OWN, old_runs, remove
from penstock.engine.state.store import State, now
from penstock.errors import PenstockError
from penstock.events import EventSink, Notice, RunFinished, RunProgress, RunStarted, StepFinished
from penstock.model.definition.graph import made_by, table_key
from penstock.model.slicing.needs import Edge, edge_by_kinds
from penstock.model.time.interval import Interval
from penstock.model.time.slice import Slice
from penstock.model.values.strategy import Output
from penstock.settings.config import Settings
from penstock.settings.retention import Keep
from penstock.states import PUBLISHED, StepState
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from sqlalchemy import Connection

    from penstock.destinations.destination import Destination


# The results of a batch, one for each of its slices.
Results = Mapping[Slice, StepResult]
StepFunction = Callable[[RunContext, PlannedStep], Results]
Ends = tuple[str, str]  # a state, and why
_PACE = 2.0
_LEAST, _SHARE = 20.0, 0.05  # seconds, and share of the slices, before the rest is estimated
_POLL = 0.2  # seconds; only how soon a signal is noticed on systems that do not wake the wait


def run_plan(
    plan: Plan,
    *,
    settings: Settings,
    session: SparkSession | None,
    lakes: Mapping[str, Destination],
    sink: EventSink,
    jobs: int | None,
    waits: bool = True,
    run_id: str | None = None,
    cancelled: threading.Event | None = None,
) -> RunResult:
    """Run the steps of a plan.

    Args:
        plan: The plan. If all of its slices wait for their input, it needs no session.
        settings: The settings of the project.
        session: The Spark session.
        lakes: All that the steps read or write, attached for writing.
        sink: Receives the events of the run.
        jobs: The number of steps side by side; None for the number of cores.
        waits: Wait for slices that other runs hold.
        run_id: The id of the run; None for a new one.
        cancelled: Stops the run when another thread sets it. Other runs then use the session too,
            so that their jobs and those of this run go on.

    Returns:
        The result, with the failures of steps. What is raised concerns the run itself.
    """
    run_id = run_id or new_uuid7()
    with ThreadPoolExecutor(1, thread_name_prefix="penstock-later") as later:
        context = RunContext(
            run_id=run_id,
            plan=plan,
            settings=settings,
            session=cast("SparkSession", session),
            lakes=lakes,
            states=_states(plan, lakes),
            sink=sink,
            later=later,
            cancelled=cancelled or threading.Event(),
            claims=Claims(waits=waits),
            conf=settings.spark.meaning,
            has_shared_session=cancelled is not None,
        )
        _begin(context)
        with context.claims:
            result = (runner := Runner(plan, context, run_step, jobs or settings.jobs)).execute()
        _end(context, result)
        result = replace(result, stale=plan.stale)
        sink(RunFinished(run_id, result.state, result.seconds, runner.states(), result))
    return result


def _states(plan: Plan, lakes: Mapping[str, Destination]) -> dict[str, State]:
    """The records of the lakes that the steps of a plan write."""
    targets = dict.fromkeys(step.model.target.lake for step in plan.steps)
    return {name: State(lakes[name].catalog) for name in targets}


def _begin(context: RunContext) -> None:
    plan = context.plan
    record = RunRecord(
        run_id=context.run_id,
        state="running",
        partition=plan.partition,
        args=plan.args,
        started_at=now(),
        process=this_process(),
        trigger=plan.request.trigger,
        user=user_name(),
        plan=RecordedPlan.of(plan).to_json(),
        retry_of=plan.retry_of,
        environment=context.settings.runs_in,
    )
    notices: list[str] = []
    for name, state in context.states.items():
        models = [s.model for s in plan.steps if s.model.target.lake == name and not s.skipped]
        dead = state.begin_run(record, models)
        notices += [f"run {run} on lake {name} was killed; marked abandoned" for run in dead]
    remove_abandoned()
    counts = tuple(0 if step.skipped else len(step.slices) for step in plan.steps)
    names = tuple(step.name for step in plan.steps)
    context.sink(RunStarted(context.run_id, names, plan.partition, counts))
    for notice in (*notices, *plan.notices):
        context.sink(Notice(notice))


def _end(context: RunContext, result: RunResult) -> None:
    for state in context.states.values():
        # What was published stands, whatever becomes of this last note: the next run reads a run
        # whose process is gone as abandoned.
        with contextlib.suppress(PenstockError):
            state.end_run(context.run_id, result.state, result.exit_code)
            state.write(partial(_remove_old, keep=context.settings.retention.records))


def _remove_old(connection: Connection, *, keep: Keep) -> None:
    """A run removes some old ones at its end: that costs it one look where there are none."""
    old = old_runs(connection, keep, now(), OWN)
    if old:
        remove(connection, old)


@dataclass
class _Line:
    """The batches of one model: at most one of them runs at a time, as all commit to one table.

    ``lost`` says of a slice how it ends where nothing can be made of it, by what failed or is held
    by another run above (``held``), ``changed`` whether anything that it needs got other rows, and
    ``moved`` whether anything that it reads did. The results of its slices are in the order in
    which they ended; ``count`` is how many of them have. A slice that was divided has the results
    of its ``parts``.
    """

    step: PlannedStep
    batches: Iterator[PlannedStep]
    lost: Callable[[Slice], Ends | None] | None = None
    changed: Sequence[Callable[[Slice], bool]] = ()
    moved: Sequence[Callable[[Slice], bool]] = ()
    ended: bool = False
    held: dict[Slice, StepResult] = field(default_factory=dict)
    results: dict[Slice, StepResult] = field(default_factory=dict)
    parts: dict[Slice, tuple[Slice, ...]] = field(default_factory=dict)
    count: int = 0

    def has(self, slice_: Slice) -> bool:
        return slice_ in self.results or slice_ in self.parts

    def in_parts(self) -> Iterator[Slice]:
        for slice_ in self.step.slices:
            yield from self._parts_of(slice_)

    def _parts_of(self, slice_: Slice) -> Iterator[Slice]:
        parts = self.parts.get(slice_, (slice_,))
        if parts == (slice_,):
            yield slice_
        else:
            yield from chain.from_iterable(map(self._parts_of, parts))

    @property
    def bad(self) -> dict[Slice, StepResult]:
        """What readers cannot do without."""
        if self.step.skipped:
            return {}
        return {
            slice_: made for slice_, made in self.results.items() if made.state not in PUBLISHED
        }

    @property
    def failed(self) -> dict[Slice, StepResult]:
        """Return what ended badly, and not because it waits."""
        return {
            slice_: made for slice_, made in self.bad.items() if made.state != StepState.WAITING
        }

    @property
    def done(self) -> list[Slice]:
        """Return what got other rows."""
        return [slice_ for slice_, made in self.results.items() if made.state == "done"]

    def divide(self, slice_: Slice) -> list[Interval]:
        """Return the parts of an interval that is lost, where some of it is not: these are slices
        of the step from now on.
        """
        by_time, lost = self.step.model.by_time, self.lost
        if by_time is None or not isinstance(slice_, Interval) or lost is None:
            return []
        if self.step.work(slice_).waits_for is not None:
            return []
        in_order = self.step.model.in_order
        parts = parts_to_make(
            slice_, by_time.unit, lambda unit: bool(lost(unit)), in_order=in_order
        )
        if len(parts) < 2:
            return []
        self.parts[slice_] = tuple(parts)
        self.count -= len(parts) - 1  # all of them count as one
        self.step = self.step.divided(slice_, parts)
        return parts

    def lacks(self, slice_: Slice) -> Ends | None:
        """Return how a slice ends that cannot be made, and why."""
        work = self.step.work(slice_)
        if work.waits_for is not None:
            return StepState.WAITING, work.waits_for
        assert self.lost is not None, "set where it is due"
        ends = self.lost(slice_)
        if ends is not None:
            return ends
        if work.condition is Condition.ROWS and not any(needs(slice_) for needs in self.changed):
            return "unchanged", "what it reads has not changed"
        if work.condition is Condition.INPUTS and not any(needs(slice_) for needs in self.moved):
            return "unchanged", UP_TO_DATE
        return None


class Pace:
    """Report how far a run is and how long the rest will take, at most once in `_PACE` seconds."""

    def __init__(self, slices: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._slices = slices
        self._clock = clock
        self._began = self._said = clock()
        self._ended = 0

    def at(self, ended: int) -> RunProgress | None:
        """None where that was said a moment ago, or nothing has ended since."""
        now = self._clock()
        if ended == self._ended or now - self._said < _PACE or ended == self._slices:
            return None
        self._said, self._ended = now, ended
        took = now - self._began
        early = took < _LEAST or ended < _SHARE * self._slices  # the first slices say too little
        left = None if early else took / ended * (self._slices - ended)
        return RunProgress(ended, self._slices, left)


class Runner:
    """Runs the steps of one plan once. ``skip`` records that a slice was not tried."""

    def __init__(
        self,
        plan: Plan,
        context: RunContext,
        run_step: StepFunction,
        jobs: int | None,
        *,
        skip: Callable[[RunContext, PlannedStep, str, str], None] = skip,
    ) -> None:
        self._plan = plan
        self._skip = skip
        self._world = context
        self._run_step = run_step
        self._jobs = jobs or os.cpu_count() or 1
        self._lines = {step.name: _Line(step, plan.batches(step)) for step in plan.steps}
        self._pace = Pace(sum(len(step.slices) for step in plan.steps if not step.skipped))

    def execute(self) -> RunResult:
        """Every slice ends in a result. KeyboardInterrupt cancels what runs and what waits."""
        began = time.monotonic()
        with ThreadPoolExecutor(self._jobs, thread_name_prefix="penstock-step") as pool:
            running: dict[Future[Results], PlannedStep] = {}
            while running or not all(line.ended for line in self._lines.values()):
                try:
                    if self._world.cancelled.is_set():
                        # Again and again: a step may have been about to start a job.
                        self._world.interrupt()
                    self._launch(pool, running)
                    self._collect(running)
                except KeyboardInterrupt:
                    self._world.interrupt()
        return RunResult(
            run_id=self._world.run_id,
            state=self._state(),
            partition=self._plan.partition,
            steps=tuple(self._results()),
            seconds=time.monotonic() - began,
        )

    def _launch(
        self,
        pool: ThreadPoolExecutor,
        running: dict[Future[Results], PlannedStep],
    ) -> None:
        for line in self._lines.values():
            # Asked of the futures: Ctrl-C between two lines must not lose sight of a batch.
            if line.ended or any(batch.name == line.step.name for batch in running.values()):
                continue
            if self._world.cancelled.is_set():
                self._end_rest(line, "cancelled", INTERRUPTED)
            elif line.step.skipped:
                self._end_rest(line, line.step.skipped.ends_as, str(line.step.skipped))
            elif len(running) < self._jobs and self._is_due(line):
                batch = self._next(line)
                if batch is not None:
                    running[pool.submit(self._run_step, self._world, batch)] = batch

    def _is_due(self, line: _Line) -> bool:
        """Return whether all that the model reads has ended; then also what it lacks is known."""
        if line.lost is not None:
            return True
        above = [self._lines[name] for name in line.step.after]
        if not all(each.ended for each in above):
            return False
        if line.step.model.strategy.output is Output.VIEW:  # it has no rows: tables are enough
            lacking = [each for each in above if not self._has_table(each)]
            line.lost = _losses(line, lacking, self._plan)
        else:
            line.lost = _losses(line, above, self._plan)
        if line.step.anew:  # what is dropped is made again whole, or stays
            lost = next((why for each in line.step.slices if (why := line.lost(each))), None)
            line.lost = lambda _: lost
        line.changed = _changes(line, above, self._plan)
        if line.step.conditional(Condition.INPUTS):
            line.moved = _changes(line, above, self._plan, whole=True)
        return True

    def _has_table(self, line: _Line) -> bool:
        """Return whether the table of a step is there, whatever became of its slices."""
        if not line.bad:
            return True
        target = line.step.model.target
        lake = self._world.lakes.get(target.lake)
        if lake is None:
            return False
        catalog = lake.catalog
        return catalog.known_table(target.schema, target.table, catalog.latest()) is not None

    def _next(self, line: _Line) -> PlannedStep | None:
        """The next batch without what cannot be made; none where the line has come to its end."""
        while (batch := next(line.batches, None)) is not None:
            if line.failed and line.step.model.in_order:
                self._end_rest(line, "skipped", f"an interval before it failed: {_why(line)}")
                return None
            if line.held and line.step.model.in_order:
                self._end_rest(line, StepState.WAITING, _why_held(line))
                return None
            lost = {slice_: line.lacks(slice_) for slice_ in batch.slices}
            parts = line.divide(batch.only) if len(lost) == 1 and any(lost.values()) else []
            if parts:
                whole = batch.divided(batch.only, parts)
                narrowed = (self._plan.narrowed(whole, [part]) for part in parts)
                line.batches = chain(narrowed, line.batches)
                continue
            for slice_, ends in lost.items():
                if ends is not None:
                    self._end(line, replace(batch, slices=(slice_,)), *ends)
            left = [slice_ for slice_, ends in lost.items() if ends is None]
            if left:
                return self._plan.narrowed(batch, left) if len(left) < len(lost) else batch
        line.ended = True
        return None

    def _collect(self, running: dict[Future[Results], PlannedStep]) -> None:
        finished, _ = wait(running, timeout=_POLL, return_when=FIRST_COMPLETED)
        for future in finished:
            batch = running[future]
            line = self._lines[batch.name]
            results = future.result()
            line.results |= results
            line.held |= {
                each: made for each, made in results.items() if made.state == StepState.WAITING
            }
            if len(batch.slices) == 1:
                line.parts[batch.only] = tuple(results)
            line.count += len(batch.slices)
            del running[future]
        if self._plan.request.range is not None:
            ended = sum(line.count for line in self._lines.values() if not line.step.skipped)
            said = self._pace.at(ended)
            if said is not None:
                self._world.sink(said)

    def _end(self, line: _Line, step: PlannedStep, state: str, reason: str) -> None:
        """A slice that never began."""
        (result,) = ended(step, state, reason)
        line.results[step.only] = result
        line.count += 1
        if state == StepState.WAITING and line.step.work(step.only).waits_for is None:
            line.held[step.only] = result
        if state in {"skipped", StepState.WAITING}:
            with contextlib.suppress(PenstockError):  # it is only for the next run to know
                self._skip(self._world, step, state, reason)
        states = {state: count_of(step.model, step.slices)}
        rows, made_in = result.rows, result.snapshot_id
        self._world.sink(
            StepFinished(
                step.name, state, 0.0, rows, made_in, reason, slice=step.slice, states=states
            )
        )

    def _end_rest(self, line: _Line, state: str, reason: str) -> None:
        """What is left of a model's slices never begins."""
        line.ended = True
        left = [slice_ for slice_ in line.step.slices if not line.has(slice_)]
        results = ended(replace(line.step, slices=tuple(left)), state, reason)
        line.results |= zip(left, results, strict=True)
        name, states = line.step.name, {state: count_of(line.step.model, left)}
        rows, made_in = rows_and_snapshot(results)
        self._world.sink(
            StepFinished(name, state, 0.0, rows, made_in, reason, slices=len(left), states=states)
        )

    def states(self) -> dict[str, int]:
        """Return how many slices of all steps that had some to make ended in each state."""
        counts = Counter[str]()
        lines = (line for line in self._lines.values() if not line.step.skipped)
        for line in lines:
            for slice_, made in line.results.items():
                counts[made.state] += count_of(line.step.model, (slice_,))
        return dict(counts)

    def _results(self) -> Iterator[StepResult]:
        """In the order of the plan."""
        for line in self._lines.values():
            if not line.step.slices:
                yield nothing_to_do(line.step)
            for slice_ in line.in_parts():
                # Ctrl-C between two lines of `_launch` may have lost sight of a step.
                result = line.results.get(slice_)
                if result is None:
                    lost = replace(line.step, slices=(slice_,))
                    (result,) = ended(lost, "cancelled", INTERRUPTED)
                yield result

    def _state(self) -> str:
        if self._world.cancelled.is_set():
            return "cancelled"
        if any(line.failed for line in self._lines.values()):
            return "failed"
        return StepState.WAITING if any(line.bad for line in self._lines.values()) else "done"


def _losses(own: _Line, above: Sequence[_Line], plan: Plan) -> Callable[[Slice], Ends | None]:
    """Return how a slice ends that cannot be made: by the first failure above it, or by what
    another run holds. A failure further up counts as far as the steps between fail with it. A
    slice that reads its own table needs those before it.
    """
    edges = {edge.upstream.name: edge for edge in plan.edges.get(own.step.name, ())}
    itself, moment = edges.get(own.step.name), plan.request.fire_time.astimezone(UTC)
    read = [line for line in above if line.step.name in edges]
    above = _without_warned(own, above, edges)
    above = [line for line in above if line in read or not _is_passed_on(line, read)]

    def needs(line: _Line, slices: Mapping[Slice, StepResult]) -> Callable[[Slice], bool]:
        edge = edges.get(line.step.name) or edge_by_kinds(own.step.model, line.step.model)
        return missing_to(edge, slices, moment)

    found = [
        *((needs(e, e.failed), ("skipped", _cause(e))) for e in above if e.failed),
        *((needs(e, e.held), (StepState.WAITING, _why_held(e))) for e in above if e.held),
    ]

    def lost(slice_: Slice) -> Ends | None:
        ends = next((ends for needs, ends in found if needs(slice_)), None)
        if ends is None and itself is not None:
            if touching(itself, own.failed)(slice_):
                return "skipped", _cause(own)
            if touching(itself, own.held)(slice_):
                return StepState.WAITING, _why_held(own)
        return ends

    return lost


def _without_warned(
    own: _Line, above: Sequence[_Line], edges: Mapping[str, Edge]
) -> Sequence[_Line]:
    """Leave out what only tests with ``severity=warn`` look at, and what stands above that alone:
    it runs before, and no slice needs it.
    """
    tables = {*map(table_key, own.step.model.only_warned)}
    if not tables:
        return above
    warned = [
        line.step
        for line in above
        if line.step.name not in edges and tables & {*map(table_key, made_by(line.step.model))}
    ]
    names = {step.name for step in warned}
    only = names | {name for step in warned for name in step.after if name not in edges}
    others = [line.step for line in above if line.step.name not in only]
    needed = {name for step in others for name in (step.name, *step.after)}
    return [line for line in above if line.step.name in needed or line.step.name in edges]


def _is_passed_on(line: _Line, read: Sequence[_Line]) -> bool:
    """Return whether the steps that a model reads fail with one above them. Views and files
    count for themselves: what a model needs of its inputs looks through them.
    """
    if not any(line.step.name in each.step.after for each in read):
        return False
    model = line.step.model
    return not model.files_written and model.strategy.output is not Output.VIEW


def _changes(
    own: _Line, above: Sequence[_Line], plan: Plan, *, whole: bool = False
) -> list[Callable[[Slice], bool]]:
    """Tell of each input whether a slice needs any that the run has given other rows, and of each
    view whether it has another query; of its own table those that it has until then. With ``whole``
    also of tables that it reads as they are, and of files.
    """
    edges = {edge.upstream.name: edge for edge in plan.edges.get(own.step.name, ())}
    itself = edges.get(own.step.name)
    found: list[Callable[[Slice], bool]] = []
    if itself is not None:
        found.append(partial(_has_changed, itself, own))
    for line in above:
        edge, is_view = edges.get(line.step.name), _reads_view(own, line, edges.values())
        if whole or is_view:
            edge = edge_to(own.step.model, line.step.model, edges)
        if edge is not None:
            late = plan.request.late and edge.need.has_late_rows
            found.append(touching(edge, line.done, whole=whole or is_view or late))
    return found


def _reads_view(own: _Line, line: _Line, edges: Iterable[Edge]) -> bool:
    """Return whether a step builds a view that a model reads, itself or by other views."""
    view = line.step.model
    if view.strategy.output is not Output.VIEW:
        return False
    inputs = map(table_key, own.step.model.changing_inputs)
    return table_key(view.target) in inputs or any(view.name in edge.through for edge in edges)


def _has_changed(edge: Edge, line: _Line, slice_: Slice) -> bool:
    return touching(edge, line.done)(slice_)


def _why_held(line: _Line) -> str:
    first = next(iter(line.held.values()))
    what = line.step.name if first.slice is None else f"{line.step.name} {first.slice}"
    return (
        first.reason
        if "needs " in (first.reason or "") and first.reason
        else f"needs {what}, which another run is making"
    )


def _cause(line: _Line) -> str:
    first, why = next(iter(line.failed.values())), _why(line)
    return why if first.state == "skipped" else f"upstream {line.step.name} failed: {why}"


def _why(line: _Line) -> str:
    """The first line of its first failure."""
    first = next(iter(line.failed.values()))
    return (first.reason or "failed").splitlines()[0]
