"""Appends of a run that was interrupted after it had published them: the next run confirms them.

By the documents a re-run of an append adds its rows again, and it does. But when the run that
published them was killed or interrupted later on, the next run of the same request is its retry,
and a retry gives the same tables as an undisturbed run.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.engine.planning.plan import PlannedStep
from penstock.engine.running.publish import MadeSlice
from penstock.engine.session.run_context import RunContext
from penstock.engine.state.records import Publication
from penstock.engine.state.store import StepRecords
from penstock.events import Notice
from penstock.states import INTERRUPTED


def take_up(context: RunContext, planned: PlannedStep) -> list[MadeSlice] | None:
    """The publication of an interrupted append to confirm; None when the step has to run."""
    model = planned.model
    if planned.anew:
        return None
    state = context.states[model.target.lake]
    known = state.slice(model.target.qualified, planned.only.text)
    if known is None or known.definition_hash != model.definition_hash or known.rolled_back:
        return None
    run = state.run(known.run_id)
    if (
        run is None
        or run.state not in INTERRUPTED
        or run.partition != context.plan.partition
        or dict(run.args) != dict(context.plan.args)
    ):
        return None
    context.sink(Notice(f"appended already by the interrupted run {run.run_id}", model.name))
    made = replace(
        Publication.of(model, context.run_id, known.slice),
        state="unchanged",
        rows=known.rows,
        fingerprint=known.fingerprint,
        inputs=known.inputs,
        read_id=known.read_id,
        made_before=known.made_in,
    )
    state.write(StepRecords((made,), known.snapshot_id).write)
    return [MadeSlice(made, known.made_in)]
