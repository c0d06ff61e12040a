"""cleanup_old_files: files that are scheduled for deletion are removed."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import Connection

from penstock.lake.catalog import needed_files
from penstock.lake.catalog.needed_files import Scheduled
from penstock.lake.maintenance.files_on_disk import remove
from penstock.lake.maintenance.results import Removed
from penstock.lake.maintenance.scope import HasCatalog
from penstock.lake.maintenance.times import age_limit


def cleanup_old_files(
    lake: HasCatalog,
    *,
    older_than: dt.datetime | None = None,
    cleanup_all: bool = False,
    dry_run: bool = False,
) -> list[Removed]:
    """Remove files that were merged, rewritten or expired before a moment, or all of them.

    Without either, those older than the option ``delete_older_than``, or than two days: a query
    that began before they were scheduled may still read them. A file that a snapshot still names
    (one that was added to two tables, say) stays. What was removed when this is killed is taken
    off the schedule by the next call.
    """
    catalog = lake.catalog
    before = age_limit(catalog, older_than, cleanup_all=cleanup_all)
    with catalog.reading() as connection:
        waiting = needed_files.scheduled(connection, catalog.data_path)
        kept = needed_files.needed(connection, catalog.data_path) if waiting else set()
    old = [
        one
        for one in waiting
        if one.path not in kept and (before is None or (one.since or before) < before)
    ]

    def clean(connection: Connection) -> list[Scheduled]:
        # Once more, with nobody else writing: a path that was taken up again since stays.
        kept = needed_files.needed(connection, catalog.data_path)
        gone = [one for one in old if one.path not in kept]
        remove([one.path for one in gone])
        needed_files.forget(connection, gone)
        return gone

    if old and not dry_run:
        old = catalog.write_alone(clean)
    return [Removed(one.path) for one in old]
