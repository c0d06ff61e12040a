"""Repeat steps of past runs, and compare the rows with what the runs wrote. Changes nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError
from penstock.project.past_runs import find_run_id
from penstock.project.table_history import SAMPLES

if TYPE_CHECKING:
    from penstock.engine.verifying.reproduce import Reproduction
    from penstock.project.context import ProjectContext


def reproduce_run(
    context: ProjectContext,
    run: str,
    step: str | None = None,
    *,
    partition: str | None = None,
    samples: int = SAMPLES,
) -> Reproduction:
    """Repeat the steps of a run from their inputs as they were, and compare the rows.

    Args:
        context: The project.
        run: An id, a part with which exactly one id begins or ends, or ``last``.
        step: The only step to repeat.
        partition: The only slice of the step to repeat.
        samples: The largest number of rows of each kind of difference.

    Returns:
        The differences. A step that cannot be repeated as it was is refused, with the reason.

    Raises:
        ArgumentError: The run has no such step.
    """
    from penstock.engine.state import run_history
    from penstock.engine.state.store import State
    from penstock.engine.verifying.reproduce import Reproducer, Reproduction, chosen

    catalogs = context.existing_catalogs()
    run_id = find_run_id(context, run)
    name = _step_name(context, step) if step is not None else None
    ask = partial(run_history.recorded, run_id=run_id)
    known = {lake: State(catalog).read(ask, None) for lake, catalog in catalogs.items()}
    found = {lake: (of, chosen(of.steps, name, partition)) for lake, of in known.items() if of}
    if not any(steps for _, steps in found.values()):
        what = "step" if name is None else " ".join(filter(None, (name, partition)))
        raise ArgumentError(
            f"run {run_id} has no {what}", hint=f"penstock runs show {run_id} says what it made"
        )
    lakes = {lake: context.lake(lake) for lake in catalogs}
    reproducer = Reproducer(
        context.settings, context.loaded, lakes, context.session, context.sink, samples
    )
    return Reproduction(
        run_id,
        tuple(
            reproducer.reproduced(each, lake, of)
            for lake, (of, steps) in found.items()
            for each in steps
        ),
    )


def _step_name(context: ProjectContext, step: str) -> str:
    """The name of a model, as users may call it; that of a model that is gone as it is."""
    try:
        return context.model(step).name
    except ArgumentError:
        return step
