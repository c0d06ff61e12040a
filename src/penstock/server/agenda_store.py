"""The agenda in the catalog: what is open, what was decided, and what became of it.

Each method is one transaction. A process that dies between two of them has lost nothing: events
that are not decided are there, and so are firings that did not end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, delete, insert, select

from penstock.engine.state.agenda_tables import (
    EVENT,
    FIRING,
    OUTCOME,
    PAUSE,
)
from penstock.engine.state.claims import database_time
from penstock.engine.state.records import ProcessId, this_process
from penstock.engine.state.tables import to_text
from penstock.scheduler.values import (
    Agenda,
    Decision,
    Firing,
    FiringState,
    Outcome,
    Pause,
    TriggerEvent,
)
from penstock.server import backfill_store, firing_runs, pruning
from penstock.server.agenda_queries import (
    AgendaCounts,
    count_agenda,
    load_agenda,
    read_files,
    read_pauses,
    read_positions,
    replace_files,
)
from penstock.server.agenda_rows import (
    FiringRecord,
    LakeLook,
    Position,
    as_event,
    as_firing_record,
    as_outcome,
    storable,
    text_or_null,
)
from penstock.server.backfill_store import Backfill, BackfillProgress, BackfillState
from penstock.server.decision_records import Recording, insert_events, record
from penstock.server.leases import LEADER, check_fence
from penstock.server.pruning import Pruned, PruneLimits
from penstock.server.state_access import StateAccess, rows_in

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog

T = TypeVar("T")


class AgendaStore:
    """The agenda of one project. Threads may share it.

    Attributes:
        catalog: The catalog of the project's first lake.
    """

    def __init__(self, catalog: Catalog) -> None:
        """Use a catalog, without asking it anything.

        Args:
            catalog: The catalog of the project's first lake.
        """
        self.catalog = catalog
        self._access = StateAccess(catalog)

    def ask(self, question: Callable[[Connection], T], otherwise: T) -> T:
        """Ask the catalog over one connection.

        Args:
            question: The question.
            otherwise: The answer where the tables do not exist yet.

        Returns:
            The answer.
        """
        return self._access.read(question, otherwise)

    def load(self) -> Agenda:
        """Return the agenda, without the ages of slices.

        Returns:
            The open firings, marks and pauses.
        """
        return self._access.read(load_agenda, Agenda())

    def record(
        self,
        events: Sequence[TriggerEvent],
        decision: Decision,
        looks: Sequence[LakeLook] = (),
        *,
        fence: int | None,
    ) -> bool:
        """Record a decision with its events and the positions behind them.

        An event that was decided before keeps its outcomes. A new firing for nothing but such
        events is not recorded. Where another process leads now, it fails with `ClaimLost`.

        Args:
            events: The events that it was made for.
            decision: The decision.
            looks: Up to where readers have seen their sources with these events.
            fence: The fence of the leader; None if no other process decides.

        Returns:
            False where nothing was recorded: a firing of the decision has started or ended
            meanwhile. Load the agenda, and decide again.
        """
        recording = Recording(events, decision, looks, fence)
        return self._access.write(partial(record, recording=recording))

    def accept(
        self, event: TriggerEvent, *, user: str | None = None, fence: int | None = None
    ) -> bool:
        """Record an event before anything is decided. Any process may.

        Args:
            event: The event.
            user: Who sent it.
            fence: The fence of the leader, if only the leader is to record it.

        Returns:
            False where an event of this id was recorded before, which stays as it is.
        """
        return self.accept_all([event], user=user, fence=fence)[0]

    def accept_all(
        self, events: Sequence[TriggerEvent], *, user: str | None = None, fence: int | None = None
    ) -> list[bool]:
        """Record events in one transaction before anything is decided.

        Args:
            events: The events, in their order.
            user: Who sent them.
            fence: The fence of the leader, if only the leader is to record them.

        Returns:
            Of each event, whether it is new.
        """

        def act(connection: Connection) -> list[bool]:
            if fence is not None:
                check_fence(connection, LEADER, fence)
            return insert_events(connection, events, database_time(connection), user)

        return self._access.write(act)

    def undecided(self, limit: int) -> list[TriggerEvent]:
        """Return events that have no outcome, in the order in which they were recorded.

        Args:
            limit: The number of events at most.

        Returns:
            The events.
        """
        query = select(EVENT).where(EVENT.c.decided_at.is_(None))
        query = query.order_by(EVENT.c.recorded_at, EVENT.c.event_id).limit(limit)
        return self._access.read(
            lambda connection: [as_event(row) for row in connection.execute(query)], []
        )

    def decided(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Return which events were decided before.

        Args:
            event_ids: The ids of events.

        Returns:
            The ids of those that have outcomes.
        """

        def ask(connection: Connection) -> frozenset[str]:
            columns = (EVENT.c.event_id, EVENT.c.decided_at)
            rows = rows_in(connection, EVENT.c.event_id, event_ids, *columns)
            return frozenset(row.event_id for row in rows if row.decided_at is not None)

        return self._access.read(ask, frozenset())

    def event(self, event_id: str) -> TriggerEvent | None:
        """Return an event.

        Args:
            event_id: Its id.

        Returns:
            The event; None where none is recorded.
        """

        def ask(connection: Connection) -> TriggerEvent | None:
            query = select(EVENT).where(EVENT.c.event_id == event_id)
            row = connection.execute(query).one_or_none()
            return None if row is None else as_event(row)

        return self._access.read(ask, None)

    def outcomes(self, event_id: str) -> list[Outcome]:
        """Return what became of an event, by the names of the models.

        Args:
            event_id: The id of the event.

        Returns:
            An outcome for each model that it concerns.
        """
        query = select(OUTCOME).where(OUTCOME.c.event_id == event_id).order_by(OUTCOME.c.model)
        return self._access.read(
            lambda connection: [as_outcome(row) for row in connection.execute(query)], []
        )

    def start(
        self,
        firing_ids: Sequence[str],
        process: ProcessId | None = None,
        *,
        fence: int | None = None,
    ) -> list[str]:
        """Claim queued firings for a process that runs them.

        Args:
            firing_ids: The firings.
            process: The process; this one without it.
            fence: The fence of the leader; None if no other process decides.

        Returns:
            The ids of those that were queued, which run now. No other process has got them.
        """
        owner = process or this_process()
        return self._access.write(
            lambda connection: firing_runs.start(connection, firing_ids, owner, fence)
        )

    def beat(self, firing_ids: Sequence[str], process: ProcessId | None = None) -> list[str]:
        """Record a sign of life of the process that runs firings.

        Args:
            firing_ids: The firings.
            process: The process; this one without it.

        Returns:
            The ids of those that the process still runs. Others were cancelled or taken away.
        """
        owner = process or this_process()
        return self._access.write(
            lambda connection: firing_runs.beat(connection, firing_ids, owner)
        )

    def finish(
        self,
        firing_id: str,
        state: FiringState,
        reason: str | None = None,
        *,
        process: ProcessId | None = None,
    ) -> bool:
        """Record the end of a firing.

        Args:
            firing_id: The firing.
            state: How it ended.
            reason: Why, if it failed or was cancelled.
            process: Only if this process runs it.

        Returns:
            False where it had ended before, or another process runs it.
        """
        return self._access.write(
            lambda connection: firing_runs.finish(connection, firing_id, state, reason, process)
        )

    def orphans(self, moment: datetime | None = None, lease_seconds: float = 30.0) -> list[Firing]:
        """Return firings that run no more, though nobody has recorded their end.

        Args:
            moment: The time; that of the database without it.
            lease_seconds: How long after its last sign of life a process counts as gone.

        Returns:
            The firings whose process is gone for certain, or was silent for so long.
        """
        return self._access.read(
            lambda connection: firing_runs.find_orphans(connection, moment, lease_seconds), []
        )

    def take_over(
        self, firing_id: str, moment: datetime | None = None, lease_seconds: float = 30.0
    ) -> bool:
        """Run a firing in this process whose process is gone, though its run had begun.

        The firing stays a running one: it covers no events that come later.

        Args:
            firing_id: The firing.
            moment: The time; that of the database without it.
            lease_seconds: How long after its last sign of life a process counts as gone.

        Returns:
            False where the firing does not run, or a process that lives runs it.
        """
        return self._access.write(
            lambda connection: firing_runs.take_over(connection, firing_id, moment, lease_seconds)
        )

    def requeue(
        self, firing_id: str, moment: datetime | None = None, lease_seconds: float = 30.0
    ) -> bool:
        """Queue a firing again whose run had not begun, of this process or of one that is gone.

        From then on it covers events that come later: `take_over` is for a run that had begun.

        Args:
            firing_id: The firing.
            moment: The time; that of the database without it.
            lease_seconds: How long after its last sign of life a process counts as gone.

        Returns:
            False where the firing does not run, or a process that lives runs it.
        """
        return self._access.write(
            lambda connection: firing_runs.requeue(connection, firing_id, moment, lease_seconds)
        )

    def position(self, reader: str, source: str) -> int | None:
        """Return up to which snapshot a reader has seen a source.

        Args:
            reader: The reader.
            source: The full name of the source, folded.

        Returns:
            The snapshot; None for a new reader of the source.
        """
        position = self.positions().get((reader, source))
        return None if position is None else position.snapshot_id

    def positions(self) -> dict[tuple[str, str], Position]:
        """Return all positions.

        Returns:
            The positions, by reader and source.
        """
        return self._access.read(read_positions, {})

    def files(self) -> dict[str, str]:
        """Return the files that models wait for as they were listed last.

        Returns:
            Their fingerprints.
        """
        return self._access.read(read_files, {})

    def remember_files(self, files: Mapping[str, str]) -> None:
        """Remember files as they were listed.

        Args:
            files: Their fingerprints; all others are forgotten.
        """
        self._access.write(lambda connection: replace_files(connection, files))

    def pause(self, pause: Pause) -> None:
        """Pause models, or change a pause.

        Args:
            pause: The pause.
        """
        row = {
            "selector": pause.selector,
            "since": to_text(pause.since),
            "until": text_or_null(pause.until),
            "reason": storable(pause.reason),
            "user_name": pause.user,
        }

        def act(connection: Connection) -> None:
            connection.execute(delete(PAUSE).where(PAUSE.c.selector == pause.selector))
            connection.execute(insert(PAUSE).values(**row))

        self._access.write(act)

    def resume(self, selector: str) -> bool:
        """End a pause.

        Args:
            selector: What was paused.

        Returns:
            False where it was not.
        """
        query = delete(PAUSE).where(PAUSE.c.selector == selector)
        return self._access.write(lambda connection: connection.execute(query).rowcount == 1)

    def pauses(self) -> list[Pause]:
        """Return the pauses that were not lifted, by what they pause.

        Returns:
            The pauses, also those whose end has passed.
        """
        return self._access.read(read_pauses, [])

    def firing(self, firing_id: str) -> FiringRecord | None:
        """Return a firing with its times and its process.

        Args:
            firing_id: The firing.

        Returns:
            The record; None where there is none.
        """

        def ask(connection: Connection) -> FiringRecord | None:
            query = select(FIRING).where(FIRING.c.firing_id == firing_id)
            row = connection.execute(query).one_or_none()
            return None if row is None else as_firing_record(row)

        return self._access.read(ask, None)

    def recent(self, limit: int, model: str | None = None) -> list[FiringRecord]:
        """Return firings, the newest first.

        Args:
            limit: The number of firings at most.
            model: The model; firings of all without it.

        Returns:
            The records.
        """
        query = select(FIRING).order_by(FIRING.c.firing_id.desc()).limit(limit)
        if model is not None:
            query = query.where(FIRING.c.model == model)
        return self._access.read(
            lambda connection: [as_firing_record(row) for row in connection.execute(query)], []
        )

    def counts(self) -> AgendaCounts:
        """Return the numbers of the agenda.

        Returns:
            The counts.
        """
        return self._access.read(count_agenda, AgendaCounts({}))

    def add_backfill(self, backfill: Backfill, events: Sequence[TriggerEvent] = ()) -> None:
        """Record a backfill that a person asked for, with the events of its slices.

        Args:
            backfill: The backfill.
            events: The events, which are not decided yet.
        """

        def act(connection: Connection) -> None:
            backfill_store.insert_backfill(connection, backfill)
            insert_events(connection, events, database_time(connection), backfill.user)

        self._access.write(act)

    def set_backfill_state(self, backfill_id: str, state: BackfillState) -> bool:
        """Pause, continue, cancel or end a backfill.

        To cancel it cancels its firings that have not started, too.

        Args:
            backfill_id: The backfill.
            state: Its new state.

        Returns:
            False where no open backfill has this id.
        """
        return self._access.write(
            lambda connection: backfill_store.set_state(connection, backfill_id, state)
        )

    def backfills(self) -> list[BackfillProgress]:
        """Return all backfills, the newest first, with the numbers of their firings.

        Returns:
            The backfills.
        """
        return self._access.read(backfill_store.list_backfills, [])

    def cancelled_backfills(self, backfill_ids: Collection[str]) -> frozenset[str]:
        """Return which backfills were cancelled.

        Args:
            backfill_ids: A few backfills.

        Returns:
            The ids of those that were.
        """
        return self._access.read(
            partial(backfill_store.find_cancelled, backfill_ids=backfill_ids), frozenset()
        )

    def find_end(self, number: int) -> datetime | None:
        """Find when the last of so many firings ended, the newest ends first.

        Args:
            number: The number of firings.

        Returns:
            The time; None where fewer have ended.
        """
        return self._access.read(partial(pruning.find_end, number=number), None)

    def prune(self, limits: PruneLimits, *, dry_run: bool = False) -> Pruned:
        """Remove firings that ended before a time, with their events and outcomes.

        Open firings, undecided events, and what belongs to them stay. Batches are removed in
        transactions of their own.

        Args:
            limits: The times.
            dry_run: Remove nothing.

        Returns:
            What was removed, or would be.
        """
        if dry_run:
            return self._access.read(partial(pruning.count_old, limits=limits), Pruned())
        return pruning.prune(self._access, limits)
