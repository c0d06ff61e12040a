"""Explain why a model of a served project has run, or why it waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.rendering.text import count
from penstock.scheduler.readiness import describe_pause, find_pauses, find_wait
from penstock.scheduler.values import WHOLE, Agenda, Firing, FiringState
from penstock.server.agenda_queries import ModelTraces, load_agenda, read_traces
from penstock.server.backfill_store import BackfillState
from penstock.server.leases import LEADER, find_lease

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.project.context import ProjectContext
    from penstock.scheduler.subscription import Subscription
    from penstock.scheduler.values import Pause
    from penstock.server.agenda_rows import FiringRecord


@dataclass(frozen=True, slots=True)
class FiringCause:
    """The cause and the state of a firing.

    Attributes:
        firing: The id of the firing. It is also the id of its first run.
        kind: The kind of its first event: ``asset``, ``schedule``, ``message``, ``freshness`` or
            ``backfill``.
        state: The state.
        partition: The partition; None for the whole table.
        events: The ids of the events that the firing covers.
        chain: The models above it in the chain, from the top.
        backfill: The id of its backfill.
        fire_time: The logical time of the run.
        started_at: The time of its start.
        finished_at: The time of its end.
        reason: Why the firing waits, failed or was cancelled.
    """

    firing: str
    kind: str
    state: str
    partition: str | None
    events: tuple[str, ...]
    chain: tuple[str, ...]
    backfill: str | None
    fire_time: datetime
    started_at: datetime | None
    finished_at: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Triggering:
    """The firings of a model or a slice, and the reasons why it waits.

    Attributes:
        is_served: Whether a process serves the project.
        latest: The newest firing that is running or has ended.
        pending: The newest firing that waits or is queued.
        waits: The reasons why no other firing has started.
        due: The next time of the schedule.
    """

    is_served: bool
    latest: FiringCause | None
    pending: FiringCause | None
    waits: tuple[str, ...]
    due: datetime | None


def explain_triggers(
    context: ProjectContext, model: str, partition: str | None, moment: datetime
) -> Triggering | None:
    """Explain the firings of a model. Creates neither a lake nor tables.

    Args:
        context: The project.
        model: The name of the model.
        partition: A slice; None for the model as a whole.
        moment: The time.

    Returns:
        The explanation; None if the project has no agenda, or if the model has neither triggers nor
        firings nor events.
    """
    from penstock.scheduler.subscription import subscriptions_of
    from penstock.server.opening import find_agenda

    store = find_agenda(context)
    if store is None:
        return None
    reader = subscriptions_of(context.models, context.settings.serve)[model]
    keys = None if partition is None else (partition, WHOLE)
    query = partial(_read, model=model, keys=keys, messages=reader.messages)
    traces, agenda, is_served = store.read(query, (ModelTraces(), Agenda(), False))
    pending = traces.pending
    if traces == ModelTraces() and not _has_triggers(reader):
        return None
    pauses = find_pauses(
        [pause for pause in agenda.pauses if pause.is_active_at(moment)], reader.model, reader
    )
    waits = list(_explain_events(traces))
    if pending is not None:
        held = {
            item.backfill.id
            for item in (store.backfills() if pending.firing.backfill else ())
            if item.backfill.state is BackfillState.PAUSED
        }
        waits += _explain_firing(pending.firing, reader, pauses, agenda, moment)
        if pending.firing.backfill in held:
            waits.append(f"backfill {pending.firing.backfill} is paused")
    elif pauses:
        waits.append(f"{describe_pause(pauses[0])}; its events are kept")
    if not is_served:
        waits.append("no process serves the project: start `penstock serve`")
    latest, due = _cause_of(traces.latest), _find_due(reader, moment)
    return Triggering(is_served, latest, _cause_of(pending), tuple(waits), due)


def _read(
    connection: Connection, *, model: str, keys: tuple[str, ...] | None, messages: tuple[str, ...]
) -> tuple[ModelTraces, Agenda, bool]:
    traces = read_traces(connection, model, keys, messages)
    return traces, load_agenda(connection), find_lease(connection, LEADER) is not None


def _has_triggers(reader: Subscription) -> bool:
    return bool(reader.sources or reader.messages or reader.cron or reader.freshness)


def _explain_events(traces: ModelTraces) -> Iterator[str]:
    if traces.ignored is not None:
        yield f"event {traces.ignored} was ignored: {traces.ignored_reason}"
    if traces.undecided:
        number = len(traces.undecided)
        more = "" if number == 1 else f" and {number - 1} more"
        verb = "is" if number == 1 else "are"
        yield f"event {traces.undecided[0]}{more} {verb} not decided yet"


def _explain_firing(
    firing: Firing,
    reader: Subscription,
    pauses: list[Pause],
    agenda: Agenda,
    moment: datetime,
) -> Iterator[str]:
    """Yield why a firing has not started."""
    wait = find_wait(firing, pauses, moment)
    if wait is not None:
        yield f"{wait.reason} (trigger all)" if firing.missing and reader.joins else wait.reason
        return
    if firing.state is FiringState.WAITING:
        yield "its wait is over: the next round of `penstock serve` queues it"
        return
    before = [item for item in agenda.firings.values() if _is_before(item, firing)]
    behind = f"behind {count(len(before), 'firing')}" if before else "for the next free slot"
    backfill = f", by backfill {firing.backfill}" if firing.backfill else ""
    yield f"queued {behind}{backfill}"


def _is_before(item: Firing, firing: Firing) -> bool:
    """Return whether an item is running, or before the firing in the queue. Backfills are last."""
    if item.id == firing.id or item.state is FiringState.WAITING:
        return False
    if item.state is FiringState.RUNNING:
        return True
    return _rank(item) < _rank(firing)


def _rank(firing: Firing) -> tuple[bool, datetime, str]:
    return firing.backfill is not None, firing.queued_at or firing.fire_time, firing.id


def _cause_of(record: FiringRecord | None) -> FiringCause | None:
    if record is None:
        return None
    firing = record.firing
    return FiringCause(
        firing=firing.id,
        kind=firing.kind.value,
        state=firing.state.value,
        partition=firing.partition,
        events=firing.events,
        chain=firing.models,
        backfill=firing.backfill,
        fire_time=firing.fire_time,
        started_at=record.started_at,
        finished_at=record.finished_at,
        reason=firing.reason,
    )


def _find_due(reader: Subscription, moment: datetime) -> datetime | None:
    if reader.cron is None:
        return None
    try:
        due = reader.cron.next(max(moment, reader.starts_at) if reader.starts_at else moment)
    except (ValueError, OverflowError):
        return None
    return due if reader.is_due_at(due) else None
