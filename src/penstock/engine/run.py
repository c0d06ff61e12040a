"""A run from plan to result: recorded at its start, executed, recorded at its end.

Steps run side by side where the graph allows, each in a thread of its own, which waits for Spark.
Small tables are bound by the driver's latency, and running side by side hides it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.config import Settings
from penstock.engine.plan import Plan, PlannedStep
from penstock.engine.results import RunResult, StepResult
from penstock.engine.state.records import RunRecord, this_process
from penstock.engine.state.store import State, now
from penstock.engine.step import INTERRUPTED, ended, run_step
from penstock.engine.world import World
from penstock.errors import ArgumentError, PenstockError
from penstock.events import Event, EventSink, Notice, RunFinished, RunStarted, StepFinished
from penstock.lake.format.naming import new_uuid7

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lake.lake import Lake


StepFunction = Callable[[World, PlannedStep], StepResult]
_POLL = 0.2  # seconds; only how soon a signal is noticed on systems that do not wake the wait
GOOD = frozenset({"done", "unchanged"})


def require_jobs(jobs: int | None) -> None:
    """Raise ArgumentError for a number of steps side by side that lets none run."""
    if jobs is not None and jobs < 1:
        raise ArgumentError(
            f"jobs is {jobs}, and a run needs one or more", hint="leave it out to go by cores"
        )


def run_plan(
    plan: Plan,
    *,
    settings: Settings,
    session: SparkSession,
    lakes: Mapping[str, Lake],
    sink: EventSink,
    jobs: int | None,
) -> RunResult:
    """Execute ``plan``. ``lakes`` are all that its steps read or write, attached for writing.

    Failures of steps are in the result; what is raised concerns the run itself (a catalog that
    cannot be written, for one).
    """
    notices: list[Notice] = []

    def noting(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event)
        sink(event)

    targets = dict.fromkeys(step.model.target.lake for step in plan.steps)
    with ThreadPoolExecutor(1, thread_name_prefix="penstock-later") as later:
        world = World(
            run_id=new_uuid7(),
            plan=plan,
            settings=settings,
            session=session,
            lakes=lakes,
            states={name: State(lakes[name].catalog) for name in targets},
            sink=noting,
            later=later,
        )
        _begin(world)
        sink(RunStarted(world.run_id, tuple(step.name for step in plan.steps), plan.partition))
        for notice in plan.notices:
            noting(Notice(notice))
        result = Runner(plan, world, run_step, jobs or settings.jobs).execute()
        _end(world, result)
    sink(RunFinished(result.run_id, result.state, result.seconds))
    return replace(result, notices=tuple(notices))


def _begin(world: World) -> None:
    plan = world.plan
    record = RunRecord(
        run_id=world.run_id,
        state="running",
        partition=plan.partition,
        args=plan.args,
        started_at=now(),
        process=this_process(),
        trigger=plan.request.trigger,
    )
    for name, state in world.states.items():
        for dead in state.begin_run(record):
            world.sink(Notice(f"run {dead} on lake {name} was killed; marked abandoned"))


def _end(world: World, result: RunResult) -> None:
    for state in world.states.values():
        # What was published stands, whatever becomes of this last note: the next run reads a run
        # whose process is gone as abandoned.
        with contextlib.suppress(PenstockError):
            state.end_run(world.run_id, result.state)


class Runner:
    """Runs the steps of one plan once."""

    def __init__(self, plan: Plan, world: World, run_step: StepFunction, jobs: int | None) -> None:
        self._plan = plan
        self._world = world
        self._run_step = run_step
        self._jobs = jobs or os.cpu_count() or 1
        self._results: dict[str, StepResult] = {}
        self._waiting = {step.name: step for step in plan.steps}

    def execute(self) -> RunResult:
        """Every step ends in a result. KeyboardInterrupt cancels what runs and what waits."""
        began = time.monotonic()
        with ThreadPoolExecutor(self._jobs, thread_name_prefix="penstock-step") as pool:
            running: dict[Future[StepResult], PlannedStep] = {}
            while self._waiting or running:
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
            steps=tuple(self._result(step) for step in self._plan.steps),
            seconds=time.monotonic() - began,
        )

    def _launch(
        self, pool: ThreadPoolExecutor, running: dict[Future[StepResult], PlannedStep]
    ) -> None:
        for step in list(self._waiting.values()):
            if self._world.cancelled.is_set():
                self._end(step, "cancelled", INTERRUPTED)
                continue
            if reason := step.skipped or self._failed_upstream(step):
                self._end(step, "skipped", reason)
            elif all(name in self._results for name in step.after) and len(running) < self._jobs:
                running[pool.submit(self._run_step, self._world, step)] = step
                del self._waiting[step.name]

    def _collect(self, running: dict[Future[StepResult], PlannedStep]) -> None:
        finished, _ = wait(running, timeout=_POLL, return_when=FIRST_COMPLETED)
        for future in finished:
            self._results[running[future].name] = future.result()
            del running[future]

    def _failed_upstream(self, step: PlannedStep) -> str | None:
        """Why a step cannot run: the first failure above it, however far up."""
        for name in step.after:
            result = self._results.get(name)
            if result is not None and result.state == "failed":
                cause = (result.reason or "failed").splitlines()[0]
                return f"upstream {name} failed: {cause}"
        return None

    def _end(self, step: PlannedStep, state: str, reason: str) -> None:
        """A step that never began."""
        del self._waiting[step.name]
        self._results[step.name] = ended(step, state, reason)
        self._world.sink(StepFinished(step.name, state, 0.0, reason=reason))

    def _result(self, step: PlannedStep) -> StepResult:
        # Ctrl-C between two lines of `_launch` may have lost sight of a step.
        return self._results.get(step.name) or ended(step, "cancelled", INTERRUPTED)

    def _state(self) -> str:
        if self._world.cancelled.is_set():
            return "cancelled"
        good = all(step.skipped or self._result(step).state in GOOD for step in self._plan.steps)
        return "done" if good else "failed"
