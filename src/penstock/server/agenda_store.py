"""Store the agenda in the catalog: events, outcomes, firings, positions and pauses.

Each method is one transaction. A process that dies between two transactions loses nothing:
undecided events and open firings are in the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, delete, insert, select

from penstock.engine.state.agenda_tables import EVENT, FIRING, OUTCOME, PAUSE
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
from penstock.server import backfill_store, pruning
from penstock.server import firing_runs as runs
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
    LakePositions,
    Position,
    as_event,
    as_firing_record,
    as_outcome,
    format_time,
    storable,
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
        """Create a store. It does not read the catalog yet.

        Args:
            catalog: The catalog of the project's first lake.
        """
        self.catalog = catalog
        self._access = StateAccess(catalog)

    def read(self, query: Callable[[Connection], T], default: T) -> T:
        """Run a query over one connection.

        Args:
            query: Reads over a connection, and returns a result.
            default: The result if the tables do not exist yet.

        Returns:
            The result.
        """
        return self._access.read(query, default)

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
        positions: Sequence[LakePositions] = (),
        *,
        fence: int | None,
    ) -> bool:
        """Record a decision with its events and the new positions.

        An event that was decided before keeps its outcomes. A new firing is not recorded if all of
        its events were decided before. If another process leads, the method raises `ClaimLost`.

        Args:
            events: The events of the decision.
            decision: The decision.
            positions: The new positions of readers, by lake.
            fence: The fencing number of the leader; None if no other process decides.

        Returns:
            False if nothing was recorded, because a firing of the decision has started or ended
            since. Load the agenda, and decide again.
        """
        recording = Recording(events, decision, positions, fence)
        return self._access.write(partial(record, recording=recording))

    def accept(
        self, event: TriggerEvent, *, user: str | None = None, fence: int | None = None
    ) -> bool:
        """Record an event without a decision. Each process may call it.

        Args:
            event: The event.
            user: The user who sent it.
            fence: The fencing number of the leader, if only the leader may record it.

        Returns:
            False if an event with this id is already recorded. It is not changed.
        """
        return self.accept_all([event], user=user, fence=fence)[0]

    def accept_all(
        self, events: Sequence[TriggerEvent], *, user: str | None = None, fence: int | None = None
    ) -> list[bool]:
        """Record events in one transaction without a decision.

        Args:
            events: The events, in their order.
            user: The user who sent them.
            fence: The fencing number of the leader, if only the leader may record them.

        Returns:
            For each event, whether it is new.
        """

        def act(connection: Connection) -> list[bool]:
            if fence is not None:
                check_fence(connection, LEADER, fence)
            return insert_events(connection, events, database_time(connection), user)

        return self._access.write(act)

    def list_undecided(self, limit: int) -> list[TriggerEvent]:
        """Return undecided events, in the order in which they were recorded.

        Args:
            limit: The maximum number of events.

        Returns:
            The events.
        """
        query = select(EVENT).where(EVENT.c.decided_at.is_(None))
        query = query.order_by(EVENT.c.recorded_at, EVENT.c.event_id).limit(limit)
        return self._access.read(
            lambda connection: [as_event(row) for row in connection.execute(query)], []
        )

    def find_decided(self, event_ids: Sequence[str]) -> frozenset[str]:
        """Find the events that are decided.

        Args:
            event_ids: The ids of events.

        Returns:
            The ids of the decided events.
        """

        def read_rows(connection: Connection) -> frozenset[str]:
            columns = (EVENT.c.event_id, EVENT.c.decided_at)
            rows = rows_in(connection, EVENT.c.event_id, event_ids, *columns)
            return frozenset(row.event_id for row in rows if row.decided_at is not None)

        return self._access.read(read_rows, frozenset())

    def read_event(self, event_id: str) -> TriggerEvent | None:
        """Return an event.

        Args:
            event_id: Its id.

        Returns:
            The event; None if it is not recorded.
        """

        def read_rows(connection: Connection) -> TriggerEvent | None:
            query = select(EVENT).where(EVENT.c.event_id == event_id)
            row = connection.execute(query).one_or_none()
            return None if row is None else as_event(row)

        return self._access.read(read_rows, None)

    def read_outcomes(self, event_id: str) -> list[Outcome]:
        """Return the outcomes of an event, ordered by model.

        Args:
            event_id: The id of the event.

        Returns:
            One outcome for each model that the event concerns.
        """
        query = select(OUTCOME).where(OUTCOME.c.event_id == event_id).order_by(OUTCOME.c.model)
        return self._access.read(
            lambda connection: [as_outcome(row) for row in connection.execute(query)], []
        )

    def claim_firings(
        self,
        firing_ids: Sequence[str],
        process: ProcessId | None = None,
        *,
        fence: int | None = None,
    ) -> list[str]:
        """Claim queued firings for a process that runs them.

        Args:
            firing_ids: The firings.
            process: The process; None for this process.
            fence: The fencing number of the leader; None if no other process decides.

        Returns:
            The ids of the firings that were queued. They are now running.
        """
        owner = process or this_process()
        return self._access.write(
            lambda connection: runs.claim_firings(connection, firing_ids, owner, fence)
        )

    def record_heartbeat(
        self, firing_ids: Sequence[str], process: ProcessId | None = None
    ) -> list[str]:
        """Record a heartbeat of the process that runs firings.

        Args:
            firing_ids: The firings.
            process: The process; None for this process.

        Returns:
            The ids of the firings that the process still runs.
        """
        owner = process or this_process()
        return self._access.write(
            lambda connection: runs.record_heartbeat(connection, firing_ids, owner)
        )

    def finish_firing(
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
            state: The final state.
            reason: Why the firing failed or was cancelled.
            process: Do nothing if this process does not run the firing; None for no check.

        Returns:
            False if the firing has already ended, or another process runs it.
        """
        return self._access.write(
            lambda connection: runs.finish_firing(connection, firing_id, state, reason, process)
        )

    def list_orphans(
        self, moment: datetime | None = None, lease_seconds: float = 30.0
    ) -> list[Firing]:
        """Return running firings whose process has died.

        Args:
            moment: The time; None for the time of the database.
            lease_seconds: The maximum age of the last heartbeat of a live process.

        Returns:
            The firings without a process, or with a heartbeat that is too old.
        """
        return self._access.read(
            lambda connection: runs.find_orphans(connection, moment, lease_seconds), []
        )

    def take_over_firing(
        self, firing_id: str, moment: datetime | None = None, lease_seconds: float = 30.0
    ) -> bool:
        """Make this process the owner of a running firing whose process has died.

        The firing keeps its state, so it does not cover later events.

        Args:
            firing_id: The firing.
            moment: The time; None for the time of the database.
            lease_seconds: The maximum age of the last heartbeat of a live process.

        Returns:
            False if the firing is not running, or another live process runs it.
        """
        return self._access.write(
            lambda connection: runs.take_over_firing(connection, firing_id, moment, lease_seconds)
        )

    def requeue_firing(
        self, firing_id: str, moment: datetime | None = None, lease_seconds: float = 30.0
    ) -> bool:
        """Queue a running firing again, if its process has died or is this process.

        A queued firing covers later events. If its run was recorded, use `take_over_firing`.

        Args:
            firing_id: The firing.
            moment: The time; None for the time of the database.
            lease_seconds: The maximum age of the last heartbeat of a live process.

        Returns:
            False if the firing is not running, or another live process runs it.
        """
        return self._access.write(
            lambda connection: runs.requeue_firing(connection, firing_id, moment, lease_seconds)
        )

    def position(self, reader: str, source: str) -> int | None:
        """Return the position of a reader in a source.

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
        """Return the files of the last listing.

        Returns:
            Their fingerprints.
        """
        return self._access.read(read_files, {})

    def replace_files(self, files: Mapping[str, str]) -> None:
        """Replace the files of the last listing.

        Args:
            files: The fingerprints of all files.
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
            "until": format_time(pause.until),
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
            selector: The selector of the pause.

        Returns:
            False if there is no such pause.
        """
        query = delete(PAUSE).where(PAUSE.c.selector == selector)
        return self._access.write(lambda connection: connection.execute(query).rowcount == 1)

    def pauses(self) -> list[Pause]:
        """Return the pauses that were not removed, ordered by selector.

        Returns:
            The pauses, including those whose end has passed.
        """
        return self._access.read(read_pauses, [])

    def read_firing(self, firing_id: str) -> FiringRecord | None:
        """Return a firing with its times and its process.

        Args:
            firing_id: The firing.

        Returns:
            The record; None if there is no firing with this id.
        """

        def read_rows(connection: Connection) -> FiringRecord | None:
            query = select(FIRING).where(FIRING.c.firing_id == firing_id)
            row = connection.execute(query).one_or_none()
            return None if row is None else as_firing_record(row)

        return self._access.read(read_rows, None)

    def list_firings(self, limit: int, model: str | None = None) -> list[FiringRecord]:
        """Return firings, the newest first.

        Args:
            limit: The maximum number of firings.
            model: The model; None for the firings of all models.

        Returns:
            The records.
        """
        query = select(FIRING).order_by(FIRING.c.firing_id.desc()).limit(limit)
        if model is not None:
            query = query.where(FIRING.c.model == model)
        return self._access.read(
            lambda connection: [as_firing_record(row) for row in connection.execute(query)], []
        )

    def count(self) -> AgendaCounts:
        """Count firings by state, and undecided events.

        Returns:
            The counts.
        """
        return self._access.read(count_agenda, AgendaCounts({}))

    def add_backfill(self, backfill: Backfill, events: Sequence[TriggerEvent] = ()) -> None:
        """Record a backfill with the events of its slices.

        Args:
            backfill: The backfill.
            events: The events. They are undecided.
        """

        def act(connection: Connection) -> None:
            backfill_store.insert_backfill(connection, backfill)
            insert_events(connection, events, database_time(connection), backfill.user)

        self._access.write(act)

    def set_backfill_state(self, backfill_id: str, state: BackfillState) -> bool:
        """Pause, resume, cancel or end a backfill.

        The new state `CANCELLED` also cancels its firings that have not started.

        Args:
            backfill_id: The backfill.
            state: The new state.

        Returns:
            False if there is no open backfill with this id.
        """
        return self._access.write(
            lambda connection: backfill_store.set_state(connection, backfill_id, state)
        )

    def backfills(self) -> list[BackfillProgress]:
        """Return all backfills, the newest first, with the counts of their firings.

        Returns:
            The backfills.
        """
        return self._access.read(backfill_store.list_backfills, [])

    def cancelled_backfills(self, backfill_ids: Collection[str]) -> frozenset[str]:
        """Find the backfills that are cancelled.

        Args:
            backfill_ids: The ids of a few backfills.

        Returns:
            The ids of the cancelled backfills.
        """
        return self._access.read(
            partial(backfill_store.find_cancelled, backfill_ids=backfill_ids), frozenset()
        )

    def find_end(self, number: int) -> datetime | None:
        """Find the end time of the oldest of the newest ended firings.

        Args:
            number: The number of newest firings.

        Returns:
            The time; None if fewer firings have ended.
        """
        return self._access.read(partial(pruning.find_end, number=number), None)

    def prune(self, limits: PruneLimits, *, dry_run: bool = False) -> Pruned:
        """Remove firings that ended before a time, with their events and outcomes.

        Open firings, undecided events and their rows are kept. Each batch is one transaction.

        Args:
            limits: The times.
            dry_run: Count the rows, but remove nothing.

        Returns:
            The numbers of removed rows; with ``dry_run``, of the rows to remove.
        """
        if dry_run:
            return self._access.read(partial(pruning.count_old, limits=limits), Pruned())
        return pruning.prune(self._access, limits)
