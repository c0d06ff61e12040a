"""Record decisions. An event that is detected twice has one row, and keeps its outcomes.

The functions write over one connection, in the transaction of the caller.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from penstock.engine.state.agenda_tables import (
    EVENT,
    FIRING,
    FRESHNESS,
    OUTCOME,
    POSITION,
    SCHEDULE,
)
from penstock.engine.state.claims import database_time
from penstock.engine.state.run_history import batches
from penstock.engine.state.tables import to_text
from penstock.scheduler.values import (
    Decision,
    Firing,
    FiringState,
    FreshnessMark,
    Outcome,
    OutcomeKind,
    ScheduleMark,
    TriggerEvent,
)
from penstock.server.agenda_rows import (
    NO_SNAPSHOT,
    LakePositions,
    event_values,
    firing_values,
    outcome_values,
)
from penstock.server.backfill_store import end_backfills
from penstock.server.leases import LEADER, check_fence
from penstock.server.state_access import rows_in

NO_MODEL = ""
"""The model in the outcome of an event that concerns no model."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A decision with its events and the new positions.

    Attributes:
        events: The events. Some may already be recorded.
        decision: The decision.
        positions: The new positions of readers, by lake.
        fence: The fencing number of the leader; None if no other process decides.
    """

    events: Sequence[TriggerEvent]
    decision: Decision
    positions: Sequence[LakePositions] = ()
    fence: int | None = None


def record(connection: Connection, recording: Recording) -> bool:
    """Record a decision, its events and positions. Raises `ClaimLost` if another process leads.

    Args:
        connection: The catalog, in a transaction that writes.
        recording: The decision.

    Returns:
        False if nothing was recorded, because a firing of the decision has started or ended since
        the agenda was loaded.
    """
    if recording.fence is not None:
        check_fence(connection, LEADER, recording.fence)
    decision = recording.decision
    states = _read_states(connection, decision.firings)
    if any(_is_stale(firing, states) for firing in decision.firings):
        return False
    moment = database_time(connection)
    events = {event.id: event for event in (*recording.events, *decision.events)}
    insert_events(connection, list(events.values()), moment)
    repeated = _write_outcomes(connection, events, decision.outcomes, moment)
    changed = [firing for firing in decision.firings if firing.id not in repeated - states.keys()]
    _write_firings(connection, changed, states, moment)
    ended = (firing.backfill for firing in changed if not firing.state.is_open)
    decided = (event.backfill for event in events.values())
    end_backfills(connection, (*ended, *decided), moment)
    _write_marks(connection, decision.marks)
    _write_freshness(connection, decision.freshness)
    for target in recording.positions:
        move_positions(connection, target, moment)
    return True


def insert_events(
    connection: Connection,
    events: Sequence[TriggerEvent],
    moment: datetime,
    user: str | None = None,
) -> list[bool]:
    """Record the events that are not recorded yet.

    Args:
        connection: The catalog, in a transaction that writes.
        events: The events, in the order in which they arrived.
        moment: The time of the database.
        user: The user who sent them.

    Returns:
        For each event, whether it is new.
    """
    ids = [event.id for event in events]
    recorded = {
        row.event_id for row in rows_in(connection, EVENT.c.event_id, ids, EVENT.c.event_id)
    }
    flags: list[bool] = []
    rows = []
    for position, event in enumerate(events):
        flags.append(event.id not in recorded)
        if event.id in recorded:
            continue
        recorded.add(event.id)
        # Events of one transaction have different times, which keep their order.
        recorded_at = to_text(moment + timedelta(microseconds=position))
        rows.append({**event_values(event), "recorded_at": recorded_at, "user_name": user})
    if rows:
        connection.execute(insert(EVENT), rows)
    return flags


def move_positions(connection: Connection, target: LakePositions, moment: datetime) -> None:
    """Move the positions of all readers of a lake to one snapshot.

    A new reader starts at this snapshot. Positions of removed readers are deleted, so that a
    reader that returns is new. If the lake was restored to an older state, positions move back.

    Args:
        connection: The catalog, in a transaction that writes.
        target: The readers and the snapshot.
        moment: The time of the database.
    """
    of_lake = POSITION.c.lake == target.lake
    rows = connection.execute(select(POSITION.c.reader, POSITION.c.source).where(of_lake))
    recorded = {(row.reader, row.source) for row in rows}
    old = recorded - target.readers
    removed = [{"gone_reader": reader, "gone_source": source} for reader, source in old]
    if removed:
        is_gone = (
            POSITION.c.reader == bindparam("gone_reader"),
            POSITION.c.source == bindparam("gone_source"),
        )
        connection.execute(delete(POSITION).where(*is_gone), removed)
    values = {"snapshot_id": target.snapshot_id, "moved_at": to_text(moment)}
    new_readers = sorted(target.readers - recorded)
    if new_readers:
        new = {"lake": target.lake, **values}
        keys = [{"reader": reader, "source": source} for reader, source in new_readers]
        connection.execute(insert(POSITION), [{**key, **new} for key in keys])
    if target.snapshot_id != NO_SNAPSHOT:
        has_moved = POSITION.c.snapshot_id != target.snapshot_id
        connection.execute(update(POSITION).where(of_lake, has_moved).values(**values))


def _read_states(connection: Connection, firings: Iterable[Firing]) -> dict[str, FiringState]:
    """Return the recorded states of firings, by id."""
    columns = (FIRING.c.firing_id, FIRING.c.state)
    rows = rows_in(connection, FIRING.c.firing_id, [firing.id for firing in firings], *columns)
    return {row.firing_id: FiringState(row.state) for row in rows}


def _is_stale(firing: Firing, states: Mapping[str, FiringState]) -> bool:
    """Return whether a firing has started or ended since it was loaded.

    A started firing covers no more events. The scheduler can only cancel it.
    """
    recorded = states.get(firing.id)
    if recorded is None or recorded is firing.state:
        return False
    if recorded is FiringState.RUNNING:
        return firing.state.is_open
    return not recorded.is_open


def _write_outcomes(
    connection: Connection,
    events: Mapping[str, TriggerEvent],
    outcomes: Sequence[Outcome],
    moment: datetime,
) -> set[str]:
    """Record outcomes, and mark their events as decided.

    An event that is detected again keeps its outcomes. Outcomes of other recorded events are
    updated, for example when a later event supersedes them.

    Returns:
        The ids of firings whose events were all decided before.
    """
    ids = list({*events, *(outcome.event for outcome in outcomes)})
    keys = (OUTCOME.c.event_id, OUTCOME.c.model)
    recorded = {(row.event_id, row.model) for row in rows_in(connection, keys[0], ids, *keys)}
    decided = {event for event, _ in recorded} | {outcome.event for outcome in outcomes}
    by_key = {(outcome.event, outcome.model): outcome for outcome in outcomes}
    for event in events.values():
        if event.id not in decided:
            by_key[event.id, NO_MODEL] = _ignore(event)
    is_new: dict[str, bool] = defaultdict(bool)  # whether a firing covers a new event, by id
    rows, changes = [], []
    for key, outcome in by_key.items():
        is_repeated = key in recorded and outcome.event in events
        if outcome.firing is not None:
            is_new[outcome.firing] |= not is_repeated
        if key not in recorded:
            rows.append(outcome_values(outcome))
        elif not is_repeated:
            changes.append(outcome)
    if rows:
        connection.execute(insert(OUTCOME), rows)
    for outcome in changes:
        condition = (OUTCOME.c.event_id == outcome.event, OUTCOME.c.model == outcome.model)
        connection.execute(update(OUTCOME).where(*condition).values(outcome_values(outcome)))
    _mark_decided(connection, ids, moment)
    return {firing for firing, covers_more in is_new.items() if not covers_more}


def _ignore(event: TriggerEvent) -> Outcome:
    reason = f"no model is triggered by {event.source}"
    return Outcome(event.id, NO_MODEL, OutcomeKind.IGNORED, reason=reason)


def _mark_decided(connection: Connection, ids: Sequence[str], moment: datetime) -> None:
    for batch in batches(ids):
        pending = (EVENT.c.event_id.in_(batch), EVENT.c.decided_at.is_(None))
        connection.execute(update(EVENT).where(*pending).values(decided_at=to_text(moment)))


def _write_firings(
    connection: Connection,
    firings: Iterable[Firing],
    states: Mapping[str, FiringState],
    moment: datetime,
) -> None:
    rows = []
    for firing in firings:
        values = firing_values(firing)
        if not firing.state.is_open:
            values["finished_at"] = to_text(moment)
        if firing.id not in states:
            rows.append({"finished_at": None, **values})
        elif states[firing.id].is_open:
            condition = FIRING.c.firing_id == firing.id
            connection.execute(update(FIRING).where(condition).values(**values))
    if rows:
        connection.execute(insert(FIRING), rows)


def _write_marks(connection: Connection, marks: Iterable[ScheduleMark]) -> None:
    """Replace the marks of schedules."""
    for mark in marks:
        connection.execute(delete(SCHEDULE).where(SCHEDULE.c.model == mark.model))
        row = {"model": mark.model, "expression": mark.expression, "zone": mark.zone}
        connection.execute(insert(SCHEDULE).values(**row, since=to_text(mark.since)))


def _write_freshness(connection: Connection, marks: Iterable[FreshnessMark]) -> None:
    """Replace the marks of late tables, and remove those without attempts."""
    for mark in marks:
        condition = (FRESHNESS.c.model == mark.model, FRESHNESS.c.slice_key == mark.key)
        connection.execute(delete(FRESHNESS).where(*condition))
        if mark.attempts:
            row = {"model": mark.model, "slice_key": mark.key, "attempts": mark.attempts}
            connection.execute(insert(FRESHNESS).values(**row, fired_at=to_text(mark.fired_at)))
