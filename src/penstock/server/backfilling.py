"""Queue the slices of a backfill for `penstock serve`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.scheduler.values import EventKind, TriggerEvent
from penstock.server.firing_runner import FORCE
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from penstock.engine.planning.run_arguments import RunOptions
    from penstock.model.definition.model import Model
    from penstock.project.context import ProjectContext
    from penstock.server.agenda_store import AgendaStore


def queue_backfill(
    context: ProjectContext,
    store: AgendaStore,
    model: Model,
    bounds: Mapping[str, str | None],
    *,
    all_: bool,
) -> tuple[str, int]:
    """Record a backfill, and an event for each slice that a run of the range would build.

    Args:
        context: The project.
        store: The agenda.
        model: A partitioned model.
        bounds: The first slice (``from_``) and the last slice (``to``), as for `Project.run`.
        all_: Also rebuild slices that exist.

    Returns:
        The id of the backfill, and the number of slices. Without slices, nothing is recorded.
    """
    from penstock.engine.state.claims import user_name
    from penstock.server.backfill_store import Backfill

    moment, backfill_id = datetime.now(UTC), new_uuid7()
    slices = find_slices(context, model, bounds, all_=all_)
    if not slices:
        return backfill_id, 0
    events = [
        TriggerEvent(
            id=f"backfill:{backfill_id}/{key}",
            kind=EventKind.BACKFILL,
            source=model.name,
            time=moment,
            partition=key,
            payload={FORCE: True} if all_ else None,
            backfill=backfill_id,
        )
        for key in slices
    ]
    backfill = Backfill(backfill_id, model.name, slices[0], slices[-1], moment, user=user_name())
    store.add_backfill(backfill, events)
    return backfill_id, len(slices)


def find_slices(
    context: ProjectContext, model: Model, bounds: Mapping[str, str | None], *, all_: bool
) -> list[str]:
    """Return the slices that a run of a range would build.

    Args:
        context: The project.
        model: A partitioned model.
        bounds: The first slice (``from_``) and the last slice (``to``), as for `Project.run`.
        all_: Also return slices that exist.

    Returns:
        The slices in their order.
    """
    from penstock.project.planning import build_request, plan_with_reasons

    options: RunOptions = {"from_": bounds.get("from_"), "to": bounds.get("to"), "all_": all_}
    context, request = build_request(context, (model.name,), options)
    plan = plan_with_reasons(context, request)
    return [
        str(slice_)
        for step in plan.steps
        if step.name == model.name and not step.skipped
        for slice_ in step.slices
    ]
