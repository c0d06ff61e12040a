"""Remove old entries of the agenda: periodically in the service, and on request of a user."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from penstock.server.opening import find_agenda, open_agenda
from penstock.server.pruning import Pruned, PruneLimits

if TYPE_CHECKING:
    from penstock.project.context import ProjectContext
    from penstock.server.agenda_store import AgendaStore
    from penstock.settings.retention import Keep

LOG = logging.getLogger("penstock.serve")
PRUNE_INTERVAL = timedelta(hours=1)
_RETRY_WINDOW = timedelta(days=1)  # the minimum time that keys of messages are kept


class AgendaPruner:
    """A periodic task that removes old entries of the agenda, once per `PRUNE_INTERVAL`."""

    def __init__(self, store: AgendaStore, read_keep: Callable[[], Keep]) -> None:
        """Create a pruner. The first call removes old entries.

        Args:
            store: The agenda.
            read_keep: Returns the retention of records.
        """
        self._store = store
        self._read_keep = read_keep
        self._pruned_at: datetime | None = None

    def __call__(self, moment: datetime) -> None:
        """Remove old entries, if the interval has passed since the last removal.

        Args:
            moment: The time.
        """
        if self._pruned_at is not None and moment - self._pruned_at < PRUNE_INTERVAL:
            return
        self._pruned_at = moment
        limits = find_limits(self._store, self._read_keep(), moment)
        pruned = Pruned() if limits is None else self._store.prune(limits)
        if pruned != Pruned():
            LOG.info("removed %d old firings and %d events", pruned.firings, pruned.events)


def find_limits(store: AgendaStore, keep: Keep, moment: datetime) -> PruneLimits | None:
    """Return the times before which entries are old, by age and by number of firings.

    Args:
        store: The agenda.
        keep: The retention: a maximum age, and a number of firings.
        moment: The time.

    Returns:
        The times; None if all entries are kept.
    """
    end = None if keep.runs is None else store.find_end(keep.runs)
    try:
        oldest = None if keep.age is None else moment - timedelta(seconds=keep.age)
    except OverflowError:  # before the year 1
        oldest = None
    if end is None:
        return None if oldest is None else PruneLimits(oldest, oldest)
    # A client may retry a message even if many firings have ended since.
    events = min(end, moment - _RETRY_WINDOW)
    if oldest is None:
        return PruneLimits(end, events)
    return PruneLimits(max(end, oldest), max(events, oldest))


def prune_agenda(context: ProjectContext, moment: datetime, *, dry_run: bool = False) -> Pruned:
    """Remove old entries of the agenda of a project, according to its settings.

    Args:
        context: The project.
        moment: The time.
        dry_run: Count the entries, but remove nothing.

    Returns:
        The numbers of removed entries; with ``dry_run``, of the entries to remove.
    """
    store = find_agenda(context)
    keep = context.settings.retention.records
    limits = None if store is None else find_limits(store, keep, moment)
    if limits is None or store is None:
        return Pruned()
    # The dry run first: without rows to remove, it creates no tables.
    pruned = store.prune(limits, dry_run=True)
    return pruned if dry_run or pruned == Pruned() else open_agenda(context).prune(limits)
