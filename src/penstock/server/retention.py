"""Remove old entries of the agenda: by the service from time to time, and when a person asks."""

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
EVERY = timedelta(hours=1)
_RETRIES = timedelta(days=1)  # for which the keys of messages stay, however many have fired


class AgendaPruner:
    """Removes old entries of the agenda once in `EVERY`."""

    def __init__(self, store: AgendaStore, read_keep: Callable[[], Keep]) -> None:
        """Create a pruner that has removed nothing yet.

        Args:
            store: The agenda.
            read_keep: Returns how long records stay.
        """
        self._store = store
        self._read_keep = read_keep
        self._pruned_at: datetime | None = None

    def __call__(self, moment: datetime) -> None:
        """Remove what is old, unless that was done not long ago.

        Args:
            moment: The time.
        """
        if self._pruned_at is not None and moment - self._pruned_at < EVERY:
            return
        self._pruned_at = moment
        limits = find_limits(self._store, self._read_keep(), moment)
        pruned = Pruned() if limits is None else self._store.prune(limits)
        if pruned != Pruned():
            LOG.info("removed %d old firings and %d events", pruned.firings, pruned.events)


def find_limits(store: AgendaStore, keep: Keep, moment: datetime) -> PruneLimits | None:
    """Return the times before which entries are old, by their age and by the number of firings.

    Args:
        store: The agenda.
        keep: How long records stay, and how many.
        moment: The time.

    Returns:
        The times; None if all stay.
    """
    end = None if keep.runs is None else store.find_end(keep.runs)
    try:
        oldest = None if keep.age is None else moment - timedelta(seconds=keep.age)
    except OverflowError:  # older than the calendar
        oldest = None
    if end is None:
        return None if oldest is None else PruneLimits(oldest, oldest)
    # A message may be sent again, though many have fired since.
    events = min(end, moment - _RETRIES)
    if oldest is None:
        return PruneLimits(end, events)
    return PruneLimits(max(end, oldest), max(events, oldest))


def prune_agenda(context: ProjectContext, moment: datetime, *, dry_run: bool = False) -> Pruned:
    """Remove old entries of the agenda of a project, as its settings say.

    Args:
        context: The project.
        moment: The time.
        dry_run: Remove nothing.

    Returns:
        What was removed, or would be.
    """
    store = find_agenda(context)
    keep = context.settings.retention.records
    limits = None if store is None else find_limits(store, keep, moment)
    if limits is None or store is None:
        return Pruned()
    # Without tables of an agenda there is nothing to remove, and none are to be created.
    pruned = store.prune(limits, dry_run=True)
    return pruned if dry_run or pruned == Pruned() else open_agenda(context).prune(limits)
