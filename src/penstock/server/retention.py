"""Remove old entries of the agenda: by the service from time to time, and when a person asks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from penstock.server.opening import find_agenda, open_agenda
from penstock.server.pruning import Pruned

if TYPE_CHECKING:
    from penstock.project.context import ProjectContext
    from penstock.server.agenda_store import AgendaStore
    from penstock.settings.retention import Keep

LOG = logging.getLogger("penstock.serve")
EVERY = timedelta(hours=1)


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
        before = find_limit(self._read_keep(), moment)
        pruned = Pruned() if before is None else self._store.prune(before)
        if pruned != Pruned():
            LOG.info("removed %d old firings and %d events", pruned.firings, pruned.events)


def find_limit(keep: Keep, moment: datetime) -> datetime | None:
    """Return the time before which entries are old.

    Args:
        keep: How long records stay.
        moment: The time.

    Returns:
        The time; None if all stay.
    """
    if keep.age is None:
        return None
    try:
        return moment - timedelta(seconds=keep.age)
    except OverflowError:  # older than the calendar
        return None


def prune_agenda(context: ProjectContext, moment: datetime, *, dry_run: bool = False) -> Pruned:
    """Remove old entries of the agenda of a project, as its settings say.

    Args:
        context: The project.
        moment: The time.
        dry_run: Remove nothing.

    Returns:
        What was removed, or would be.
    """
    before = find_limit(context.settings.retention.records, moment)
    store = find_agenda(context)
    if before is None or store is None:
        return Pruned()
    # Without tables of an agenda there is nothing to remove, and none are to be created.
    pruned = store.prune(before, dry_run=True)
    return pruned if dry_run or pruned == Pruned() else open_agenda(context).prune(before)
