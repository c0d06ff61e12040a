"""Build the JSON of a plan, as docs/json.md describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.engine.planning.plan import TOGETHER
from penstock.engine.planning.ranges import said
from penstock.engine.planning.stages import as_dict
from penstock.rendering.text import state_text

if TYPE_CHECKING:
    from penstock.engine.planning.estimates import Estimate
    from penstock.engine.planning.plan import Plan, PlannedStep
    from penstock.engine.planning.ranges import Tally


def plan_document(plan: Plan, estimates: Mapping[str, Estimate] | None) -> dict[str, Any]:
    """Return a plan as JSON.

    Args:
        plan: The plan.
        estimates: The estimate of each step by its name, which ``--explain`` asks for, or None.

    Returns:
        The document. With estimates it also has the needs of each step.
    """
    steps = [step_document(step) for step in plan.steps]
    changes = [change.to_dict() for change in plan.changes]
    if estimates is None:
        return {"steps": steps, "notices": plan.notices, "changes": changes}
    for step, shown in zip(plan.steps, steps, strict=True):
        estimate = estimates.get(step.name)
        shown["jobs"] = jobs_of(step) or None
        shown["estimate"] = None if estimate is None else estimate.to_dict()
    needs = list(needs_of(plan))
    return {"steps": steps, "notices": plan.notices, "changes": changes, "needs": needs}


def needs_of(plan: Plan) -> Iterator[dict[str, str]]:
    """Yield which slices of each input the steps need.

    Args:
        plan: The plan.

    Yields:
        dict[str, str]: The step, its input and the rule that selects slices of the input.
    """
    for step in plan.steps:
        for edge in plan.edges.get(step.name, ()):
            through = f", through {', '.join(edge.through)}" if edge.through else ""
            needs = f"{edge.need}{through}"
            yield {"step": step.name, "input": edge.upstream.name, "needs": needs}


def step_document(step: PlannedStep) -> dict[str, Any]:
    """Return a step of a plan as JSON.

    Args:
        step: The step.

    Returns:
        The document.
    """
    waiting = len(step.waits) == len(step.slices) > 0
    state = "skipped" if step.skipped else "failed" if step.fails else "planned"
    state = "waiting" if waiting and not step.skipped else state
    jobs = f"; {jobs_of(step)}" if len(step.slices) > 1 else ""
    tally = [] if step.tally is None else [f"{said(step.tally)}{jobs}"]
    causes = dict.fromkeys(step.waits.values())
    waits = [] if waiting else [f"waiting: {cause}" for cause in causes]
    planned = "; ".join([*tally, *waits, *map(str, step.stages)])
    planned = next(iter(causes)) if waiting else planned
    shown: dict[str, Any] = {
        "step": step.name,
        "table": str(step.model.target),
        "strategy": step.model.strategy.name,
        "slice": step.slice,
        "state": state_text(state, str(step.skipped or step.fails or planned)),
        "after": step.after,
        "restated": step.again,
        "ranges": [range_.to_dict() for range_ in step.ranges],
    }
    if step.tally is not None:
        shown |= _of_range(step, step.tally)
    if step.waits:
        shown["waits"] = {str(slice_): cause for slice_, cause in step.waits.items()}
    return shown | ({"stages": [*map(as_dict, step.stages)]} if step.stages else {})


def jobs_of(step: PlannedStep) -> str:
    """Return which slices of a step share a job.

    Args:
        step: The step.

    Returns:
        The text, with the reason if slices run one by one. It is empty for one slice.
    """
    if len(step.slices) < 2:
        number = sum(range_.count for range_ in step.ranges)
        return "in one job" if number > 1 else ""
    if step.apart is not None:
        return f"one by one, as {step.apart}"
    return "in one job" if len(step.slices) <= TOGETHER else f"{TOGETHER} slices a job"


def _of_range(step: PlannedStep, tally: Tally) -> dict[str, Any]:
    earliest, latest = (step.slices[0], step.slices[-1]) if step.slices else (None, None)
    return {
        "slices": tally.to_make,
        "first": earliest and str(earliest),
        "last": latest and str(latest),
        "states": tally.states,
        "together": step.apart is None and tally.to_make > 1,
        "apart": step.apart,
        "early": tally.early,
        "later": tally.later,
    }
