"""delete_orphaned_files: what is below the data path and that the catalog does not know goes."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator

from penstock.lake.catalog.abandoned import LAKE_FILES
from penstock.lake.catalog.files import known_files
from penstock.lake.maintenance.removable import (
    OUTSIDE,
    DataPath,
    Found,
    Ownership,
    age_limit,
    found_below,
    is_write,
    remove,
)
from penstock.lake.maintenance.scope import HasCatalog, Removed

_RUNNING = "_temporary"  # where Spark keeps the files of a write in progress
_GRACE = dt.timedelta(hours=1)


def delete_orphaned_files(
    lake: HasCatalog,
    *,
    older_than: dt.datetime | None = None,
    cleanup_all: bool = False,
    dry_run: bool = False,
) -> list[Removed]:
    """Remove data and delete files of this catalog's tables that the catalog names nowhere.

    Files below the data path that cannot be shown to be of this catalog stay, and are in the answer
    as left, with the reason: those outside the directories of its tables, those whose names do not
    tell when they were written or tell that it was before this catalog began (`removable`).

    Such files are left by writes that were killed or rolled back, and are made by writes that are
    in progress: nobody can tell the one from the other but by age. So only files last changed
    before ``older_than`` go; without it those older than the option ``delete_older_than``, or than
    two days. Files of one write count as old as the youngest of them. ``cleanup_all`` takes those
    of any age, for when nobody writes; a Spark job that wrote within the last hour is left even
    then. Other kinds of files stay.
    """
    catalog = lake.catalog
    before = age_limit(catalog, older_than, cleanup_all=cleanup_all)
    # The disk first: a file that is committed while this looks is known when the catalog is asked.
    there = list(found_below(catalog.data_path))
    with catalog.reading() as connection:
        known = known_files.needed(connection, catalog.data_path)
        waiting = known_files.files_to_remove(connection, catalog.data_path)
        owned = Ownership.read(connection, catalog.data_path)
    data_path = DataPath(catalog.data_path)
    named = {data_path.canonical(path) for path in known} | {
        data_path.canonical(file.path) for file in waiting
    }
    orphans = sorted(
        file.path
        for file in _old_enough(there, before)
        if file.path.endswith(LAKE_FILES) and data_path.canonical(file.path) not in named
    )
    listed = [
        Removed(path, owned.why_left(path) if data_path.holds(path) else OUTSIDE)
        for path in orphans
    ]
    if not dry_run:
        remove([file.path for file in listed if file.left is None])
    return listed


def _old_enough(files: Iterable[Found], before: dt.datetime | None) -> Iterator[Found]:
    """Those last changed before a moment, as all of their write are; all of any age for ``None``,
    but those of a job that is running."""
    by_write: dict[str, list[Found]] = defaultdict(list)
    for file in files:
        by_write[_write_of(file.path)].append(file)
    recently = dt.datetime.now(dt.UTC) - _GRACE
    for together in by_write.values():
        youngest = max(file.changed for file in together)
        running = any(f"/{_RUNNING}/" in file.path for file in together)
        if (before is None or youngest < before) and not (running and youngest > recently):
            yield from together


def _write_of(path: str) -> str:
    """The directory of the write, which is named by a UUID; else the file is by itself."""
    parts = path.split("/")
    for at, part in enumerate(parts[:-1]):
        if is_write(part):
            return "/".join(parts[: at + 1])
    return path
