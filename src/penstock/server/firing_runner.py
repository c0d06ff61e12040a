"""Plan and run firings. Retry the run of a firing after a crash.

The id of a firing is the id of its run. If a process dies during the run, the run is retried:
published slices are kept, and the other slices are built. If it dies before the run is recorded,
the firing runs like a new firing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.errors import SparkLost
from penstock.events import EventSink, ignore
from penstock.scheduler.values import EventKind, Firing, FiringState

if TYPE_CHECKING:
    from penstock.engine.planning.plan import Plan
    from penstock.engine.planning.run_arguments import RunOptions
    from penstock.engine.results import RunResult
    from penstock.project.context import ProjectContext

TRIGGERS: Mapping[EventKind, str] = {
    EventKind.ASSET: "cascade",
    EventKind.SCHEDULE: "schedule",
    EventKind.MESSAGE: "event",
    EventKind.FRESHNESS: "freshness",
    EventKind.BACKFILL: "backfill",
}
"""The trigger in lists of runs, by the kind of the event."""
FORCE = "force"  # a key in the payload of a backfill: also rebuild slices that are up to date


@dataclass(frozen=True, slots=True)
class FiringEnd:
    """The end of a firing.

    Attributes:
        firing: The firing with its final state and reason.
        result: The result of the run; None if the run raised an error.
        error: The error that the run raised.
    """

    firing: Firing
    result: RunResult | None = None
    error: Exception | None = None

    @property
    def has_lost_spark(self) -> bool:
        """Return whether Spark ended during the run, for example by a signal to all processes."""
        steps = () if self.result is None else self.result.steps
        errors = (self.error, *(step.error for step in steps))
        return any(isinstance(error, SparkLost) for error in errors)


Runs = Callable[[Firing, threading.Event], FiringEnd]
"""Runs a firing until the event is set, and returns its end."""


def read_options(firing: Firing) -> RunOptions:
    """Return the options of a run for a firing.

    After a change of an input, the run rebuilds all slices that are behind: several slices of a
    reader may depend on one slice of an input.

    Args:
        firing: The firing.

    Returns:
        The options, without the model.
    """
    options: RunOptions = {
        "fire_time": firing.fire_time,
        "payload": firing.payload,
        "trigger": TRIGGERS[firing.kind],
    }
    if firing.partition is not None:
        options["partition"] = firing.partition
    if firing.kind in {EventKind.ASSET, EventKind.FRESHNESS}:
        options["behind"] = True
    if firing.kind is EventKind.BACKFILL:
        options |= {"payload": None, "force": bool((firing.payload or {}).get(FORCE))}
    return options


def plan_firing(context: ProjectContext, firing: Firing) -> tuple[ProjectContext, Plan, str | None]:
    """Plan a firing, or the rest of its run after a crash.

    Args:
        context: The project.
        firing: The firing.

    Returns:
        The context of the plan, the plan, and the id of its run; None for a new id.
    """
    from penstock.project.planning import build_request, plan_with_reasons
    from penstock.project.repeating import plan_retry

    attempt = find_attempt(context, firing.id)
    if attempt is not None:
        abandon_attempt(context, attempt)
        return (*plan_retry(context, attempt), None)
    context, request = build_request(context, (firing.model,), read_options(firing))
    return context, plan_with_reasons(context, request), firing.id


def find_attempt(context: ProjectContext, run_id: str) -> str | None:
    """Return the id of the last run of a firing.

    Args:
        context: The project.
        run_id: The id of the firing.

    Returns:
        The id of its last retry, or of its run without a retry; None if no run was recorded.
    """
    from penstock.engine.state.run_history import find_last_attempt
    from penstock.engine.state.store import State

    for catalog in context.existing_catalogs().values():
        attempt = State(catalog).read(partial(find_last_attempt, run_id=run_id), None)
        if attempt is not None:
            return attempt
    return None


def abandon_attempt(context: ProjectContext, run_id: str) -> None:
    """Record that a run of a firing was abandoned, if its end was not recorded.

    This process owns the firing. The process of the run has died, or its heartbeat was too old. It
    may still be alive on another machine. But it has lost its claim, so it cannot publish.

    Args:
        context: The project.
        run_id: The id of the run.
    """
    from penstock.engine.state.store import State

    for catalog in context.existing_catalogs().values():
        state = State(catalog)
        run = state.run(run_id)
        if run is not None and run.state == "running":
            state.abandon_run(run_id)


def find_original(context: ProjectContext, run_id: str) -> str:
    """Return the first run of a chain of retries.

    Args:
        context: The project.
        run_id: The id of a run of the chain.

    Returns:
        The id of the first run; ``run_id`` if it is not recorded.
    """
    from penstock.engine.state.run_history import find_original_run
    from penstock.engine.state.store import State

    for catalog in context.existing_catalogs().values():
        original = State(catalog).read(partial(find_original_run, run_id=run_id), None)
        if original is not None:
            return original
    return run_id


def run_firing(
    context: ProjectContext,
    firing: Firing,
    cancelled: threading.Event,
    sink: EventSink = ignore,
) -> FiringEnd:
    """Run a firing.

    Args:
        context: The project.
        firing: The firing.
        cancelled: Stops the run when another thread sets it.
        sink: Receives the events of the run.

    Returns:
        The end of the firing. It contains an error of the run.
    """
    from penstock.project.running import RunSettings, execute_plan

    try:
        context, plan, run_id = plan_firing(context, firing)
        settings = RunSettings(on_event=sink, run_id=run_id, cancelled=cancelled, firing=firing)
        result = execute_plan(context, plan, settings)
    except Exception as error:  # after each error the firing needs a final state
        reason = " ".join(str(error).split())
        return FiringEnd(replace(firing, state=FiringState.FAILED, reason=reason), None, error)
    return FiringEnd(replace(firing, **_end_of(result, is_cancelled=cancelled.is_set())), result)


def _end_of(result: RunResult, *, is_cancelled: bool) -> dict[str, Any]:
    """Return the final state and the reason of a firing from the result of its run."""
    failed = [step for step in result.steps if step.state == "failed"]
    if failed:
        step, more = failed[0], f"; {len(failed) - 1} more failed" if len(failed) > 1 else ""
        message = str(step.error or step.reason or f"{step.name} failed").splitlines()[0]
        return {"state": FiringState.FAILED, "reason": f"{message}{more}"}
    if is_cancelled:
        return {"state": FiringState.CANCELLED, "reason": "the server was stopped"}
    if result.exit_code == 0:
        return {"state": FiringState.DONE, "reason": None}
    waiting = next((step.reason for step in result.steps if step.state == "waiting"), None)
    return {"state": FiringState.DONE, "reason": waiting or result.state}
