"""cleanup_old_files: files that are scheduled for deletion are removed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from sqlalchemy import Connection

from penstock.lake.catalog.files import known_files
from penstock.lake.catalog.files.known_files import Scheduled
from penstock.lake.maintenance.removable import DataPath, age_limit, remove
from penstock.lake.maintenance.scope import HasCatalog, Removed


def cleanup_old_files(
    lake: HasCatalog,
    *,
    older_than: dt.datetime | None = None,
    cleanup_all: bool = False,
    outside_data_path: bool = False,
    dry_run: bool = False,
) -> list[Removed]:
    """Remove files that were merged, rewritten or expired before a moment, or all of them.

    Without either, those older than the option ``delete_older_than``, or than two days: a query
    that began before they were scheduled may still read them. A file that a snapshot still names
    (one that was added to two tables, say) stays. Files outside the data path, which were added to
    a table, are only removed with ``outside_data_path``, and if they are Parquet files; else they
    are in the answer as left. What was removed when this is killed is taken off the schedule by
    the next call.
    """
    catalog = lake.catalog
    before = age_limit(catalog, older_than, cleanup_all=cleanup_all)
    data_path = DataPath(catalog.data_path)

    def unneeded(connection: Connection, files: Iterable[Scheduled]) -> list[Scheduled]:
        paths = known_files.needed(connection, catalog.data_path)
        needed = set(map(data_path.canonical, paths))
        return [file for file in files if data_path.canonical(file.path) not in needed]

    with catalog.reading() as connection:
        waiting = known_files.files_to_remove(connection, catalog.data_path)
        old = [file for file in waiting if before is None or (file.since or before) < before]
        old = unneeded(connection, old) if old else []
    left = {file.path: data_path.why_left(file.path, outside_data_path) for file in old}

    def clean(connection: Connection) -> None:
        # Once more, with nobody else writing: a path that was taken up again since stays.
        gone = unneeded(connection, (file for file in old if left[file.path] is None))
        remove([file.path for file in gone])
        known_files.forget(connection, gone)

    if not dry_run and None in left.values():
        catalog.write_alone(clean)
    return [Removed(path, why) for path, why in left.items()]
