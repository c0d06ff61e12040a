"""delete_orphaned_files: what is below the data path and that the catalog does not know goes."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator

from penstock.lake.catalog import needed_files
from penstock.lake.maintenance.files_on_disk import Found, found_below, is_write, remove
from penstock.lake.maintenance.results import Removed
from penstock.lake.maintenance.scope import HasCatalog
from penstock.lake.maintenance.times import age_limit

_KINDS = (".parquet", ".puffin")
_RUNNING = "_temporary"  # where Spark keeps the files of a write in progress
_GRACE = dt.timedelta(hours=1)


def delete_orphaned_files(
    lake: HasCatalog,
    *,
    older_than: dt.datetime | None = None,
    cleanup_all: bool = False,
    dry_run: bool = False,
) -> list[Removed]:
    """Remove data and delete files below the data path that the catalog names nowhere.

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
        known = needed_files.needed(connection, catalog.data_path)
        waiting = needed_files.scheduled(connection, catalog.data_path)
    known |= {one.path for one in waiting}
    gone = sorted(
        file.path
        for file in _old_enough(there, before)
        if file.path.endswith(_KINDS) and file.path not in known
    )
    if not dry_run:
        remove(gone)
    return [Removed(path) for path in gone]


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
