"""Execute a plan: steps side by side where the graph allows, each in a thread of its own.

Spark does the work; the threads only wait for it. Small tables are bound by the driver's latency,
which side by side hides.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from penstock.engine.plan import Plan, PlannedStep
from penstock.engine.results import RunResult, StepResult
from penstock.engine.step import INTERRUPTED, ended
from penstock.engine.world import World
from penstock.events import StepFinished

StepFunction = Callable[[World, PlannedStep], StepResult]
_POLL = 0.2  # seconds; only how soon a signal is noticed on systems that do not wake the wait
GOOD = frozenset({"done", "unchanged"})


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
