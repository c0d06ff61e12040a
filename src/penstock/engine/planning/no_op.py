"""Steps that do not run, and runs without a step that does: no Spark, and nothing is recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from penstock.engine.planning.plan import Plan, PlannedStep
from penstock.engine.results import RunResult, StepResult
from penstock.events import EventSink, Notice, RunFinished, RunStarted, StepFinished
from penstock.model.time.slice import WHOLE, described
from penstock.states import StepState
from penstock.uuid7 import new_uuid7


def ended(planned: PlannedStep, state: str, reason: str | None = None) -> tuple[StepResult, ...]:
    """The results of a step all of whose slices ended in ``state``. Those that stay as they are
    have the rows and the snapshot that are recorded.
    """
    model, results = planned.model, list[StepResult]()
    for slice_ in planned.slices:
        built_from = planned.work(slice_).built_from
        known = built_from if state == StepState.UNCHANGED else None
        result = StepResult(
            model.name,
            str(model.target),
            model.strategy.name,
            described((slice_,)),
            state,
            rows=None if known is None else known.rows,
            snapshot_id=None if known is None else known.made_in,
            reason=reason,
        )
        results.append(result)
    return tuple(results)


def nothing_to_do(planned: PlannedStep) -> StepResult:
    """The result of a step without slices."""
    (result,) = _skipped_slices(replace(planned, slices=(WHOLE,)))
    return result


def is_idle(plan: Plan) -> bool:
    """Return whether a run of the plan has nothing to do."""
    return all(step.skipped for step in plan.steps)


def all_waits(plan: Plan) -> bool:
    """Return whether no slice of the plan is made, as each waits for its input."""
    left = [step for step in plan.steps if not step.skipped]
    return all(not step.blocked and step.waits.keys() >= set(step.slices) for step in left)


def idle_run(plan: Plan, sink: EventSink, run_id: str | None = None) -> RunResult:
    """Send the events of a run that has nothing to do.

    Args:
        plan: The plan.
        sink: Receives the events.
        run_id: The id of the run; None for a new one.

    Returns:
        The result of the run.
    """
    began = time.monotonic()
    run_id, names = run_id or new_uuid7(), tuple(step.name for step in plan.steps)
    sink(RunStarted(run_id, names, plan.partition, (0,) * len(names)))
    for notice in plan.notices:
        sink(Notice(notice))
    steps: list[StepResult] = []
    for step in plan.steps:
        steps += (results := list(skipped(step)))
        sink(finished_as(step, results))
    seconds = time.monotonic() - began
    result = RunResult(run_id, "done", plan.partition, tuple(steps), seconds, stale=plan.stale)
    sink(RunFinished(run_id, "done", seconds, result=result))
    return result


def finished_as(step: PlannedStep, results: Sequence[StepResult]) -> StepFinished:
    """The event of a step whose slices all ended without being built."""
    assert step.skipped is not None, "only such steps end without being built"
    rows, snapshot_id = rows_and_snapshot(results)
    return StepFinished(
        step.name,
        step.skipped.ends_as,
        0.0,
        rows=rows,
        snapshot_id=snapshot_id,
        reason=str(step.skipped),
        slice=step.slice,
    )


def rows_and_snapshot(results: Sequence[StepResult]) -> tuple[int | None, int | None]:
    """Return the rows of all results and their latest snapshot.

    Args:
        results: The results of the slices of a step.

    Returns:
        The number of rows, None unless each result has its own, and the snapshot.
    """
    rows = [result.rows for result in results if result.rows is not None]
    snapshots = (result.snapshot_id for result in results if result.snapshot_id is not None)
    total = sum(rows) if rows and len(rows) == len(results) else None
    return total, max(snapshots, default=None)


def skipped(step: PlannedStep) -> Iterator[StepResult]:
    """The results of a step that is skipped: one for each slice, and one where it has none."""
    if not step.slices:
        yield nothing_to_do(step)
    yield from _skipped_slices(step)


def _skipped_slices(step: PlannedStep) -> tuple[StepResult, ...]:
    assert step.skipped is not None, "asked of steps that are skipped"
    return ended(step, step.skipped.ends_as, str(step.skipped))
