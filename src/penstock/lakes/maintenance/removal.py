"""Removing files: those scheduled for deletion, and orphans below the data path.

A row of the catalog alone does not justify deleting a file. Paths below the data path are compared
after ``..`` and symbolic links are resolved: a row may say ``../../etc/passwd``, and a directory
below the data path may be a link that leads out of it.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from pyarrow import fs
from sqlalchemy import Connection, func, select

from penstock.errors import ArgumentError
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.opening import LAKE_FILES
from penstock.lakes.catalog.snapshots import expiry
from penstock.lakes.catalog.snapshots.expiry import Scheduled, table_paths
from penstock.lakes.format.naming import uuid7_time
from penstock.lakes.format.values.duck_text import parse_interval
from penstock.lakes.maintenance.scope import HasCatalog, Removed
from penstock.lakes.storage import is_remote, open_system, read_ends, remove_file

_RUNNING = "_temporary"  # where Spark keeps the files of a write in progress
_GRACE = dt.timedelta(hours=1)
_CHECKSUMS = re.compile(r"\.(.+)\.crc")


def delete_orphaned_files(
    lake: HasCatalog,
    *,
    older_than: dt.datetime | None = None,
    cleanup_all: bool = False,
    dry_run: bool = False,
) -> list[Removed]:
    """Remove files unknown to the catalog: ``lake.delete_orphaned_files(dry_run=True)``.

    Files below the data path that may belong to another catalog stay, and are reported as left with
    the reason: files outside the directories of its tables, and files whose names do not say when
    they were written or say that it was before this catalog began (`removable`).

    Orphans are left by writes that were killed or rolled back; files of writes in progress look
    the same and differ only by age. So only files last changed before ``older_than`` are removed;
    without it, those older than the option ``delete_older_than``, or than two days. All files of a
    write have the age of the youngest. ``cleanup_all`` removes files of any age, for when nobody
    writes, but not those of a Spark job that wrote within the last hour. Spark's checksums go with
    their data files, also where DuckDB has removed these. Other kinds of files stay.
    """
    catalog = lake.catalog
    catalog.check_own_files()
    before = age_limit(catalog, older_than, cleanup_all=cleanup_all)
    # List the disk first: files committed meanwhile are then known to the catalog.
    there = list(found_below(catalog.data_path))
    with catalog.reading() as connection:
        known = expiry.known_files(connection, catalog.data_path)
        waiting = expiry.files_to_remove(connection, catalog.data_path)
        owned = Ownership.read(connection, catalog.data_path)
    data_path = DataPath(catalog.data_path)
    named = {data_path.canonical(path) for path in known} | {
        data_path.canonical(file.path) for file in waiting
    }
    paths = {file.path for file in there}

    def is_orphan(path: str) -> bool:
        checked = _checked_by(path)
        if checked is not None:  # DuckDB removes data files alone, without their checksums
            return checked.endswith(LAKE_FILES) and checked not in paths
        return path.endswith(LAKE_FILES) and data_path.canonical(path) not in named

    orphans = sorted(file.path for file in _old_enough(there, before) if is_orphan(file.path))
    listed = [
        Removed(path, owned.why_left(path) if data_path.holds(path) else OUTSIDE)
        for path in orphans
    ]
    if not dry_run:
        remove([file.path for file in listed if file.left is None])
    return listed


def _checked_by(path: str) -> str | None:
    """The file whose checksums Spark has written to this one; ``None`` for any other."""
    folder, slash, name = path.rpartition("/")
    checks = _CHECKSUMS.fullmatch(name)
    return None if checks is None else f"{folder}{slash}{checks[1]}"


def _old_enough(files: Iterable[Found], before: dt.datetime | None) -> Iterator[Found]:
    """Files of writes that were last changed before a moment; for ``None`` files of any age, except
    those of a running job."""
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
    """The directory of the write, which is named by a UUID; else the file is on its own."""
    parts = path.split("/")
    for at, part in enumerate(parts[:-1]):
        if is_write(part):
            return "/".join(parts[: at + 1])
    return path


OUTSIDE = "outside the data path"
NOT_PARQUET = "outside the data path, and not a Parquet file"
NO_TABLE = "below no table of this catalog"
NO_TIME = "its name does not say when it was written"
OLDER = "older than this catalog"
_PARQUET = b"PAR1"
_STEPS = frozenset({"", ".", ".."})  # names of no file


class DataPath:
    """The directory that a lake owns; ``path`` ends in ``/``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._root = "" if is_remote(path) else os.path.realpath(path)
        self._parents: dict[str, str] = {}

    def canonical(self, path: str) -> str:
        """A local ``path`` with ``..`` and the links of its directories resolved."""
        if is_remote(path):
            return path
        parent, _, name = path.rpartition("/")
        if parent not in self._parents:
            self._parents[parent] = os.path.realpath(parent)
        return f"{self._parents[parent]}/{name}"

    def holds(self, path: str) -> bool:
        """Return whether a file of this path is below the data path, and is not itself a link."""
        if is_remote(path):
            below = path.removeprefix(self._path)
            return below != path and not _STEPS.intersection(below.split("/"))
        if is_remote(self._path) or path.rpartition("/")[2] in _STEPS:
            return False
        return self.canonical(path).startswith(f"{self._root}/") and not Path(path).is_symlink()

    def why_left(self, path: str, outside_data_path: bool) -> str | None:
        """Return why a file that is scheduled for deletion stays; ``None`` where it may be removed.

        Outside the data path only Parquet files are removed, and only when the caller agrees: they
        were added to a table (`add_data_files`).
        """
        if self.holds(path):
            return None
        if not outside_data_path:
            return OUTSIDE
        return None if _is_parquet(path) else NOT_PARQUET


def _is_parquet(path: str) -> bool:
    """Return whether its first and last bytes are Parquet's; also true for a missing file."""
    if not is_remote(path) and Path(path).is_symlink():
        return False
    try:
        return set(read_ends(path, len(_PARQUET))) == {_PARQUET}
    except FileNotFoundError:
        return True
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Ownership:
    """Evidence that a file which no row names was written for this catalog.

    Files have no mark of their catalog. The evidence is the directories of the tables that this
    catalog has or had, and the time in the version 7 UUID by which DuckDB and Penstock name a file
    or the directory of its write.
    """

    tables: Mapping[str, int]  # the directories of all tables; they end in "/"
    since: dt.datetime

    @classmethod
    def read(cls, connection: Connection, data_path: str) -> Ownership:
        paths = table_paths(connection, data_path)
        return cls({path: key for key, path in paths.items()}, _begun(connection))

    def why_left(self, path: str) -> str | None:
        """Return why a file that no row names stays; ``None`` where it may be removed."""
        directory = self._table_directory(path)
        if directory is None:
            return NO_TABLE
        written = uuid7_time(path.removeprefix(directory))
        if written is None:
            return NO_TIME
        return OLDER if written < self.since else None

    def _table_directory(self, path: str) -> str | None:
        """The directory of a table that the file is below."""
        end = path.rfind("/")
        while end > 0:
            if path[: end + 1] in self.tables:
                return path[: end + 1]
            end = path.rfind("/", 0, end)
        return None


def _begun(connection: Connection) -> dt.datetime:
    """Return when the catalog began, as far as it still says: the oldest of its snapshots and
    tables.

    The first snapshots expire; the UUID of a table has the time at which it was made.
    """
    oldest: dt.datetime | None
    oldest = connection.execute(select(func.min(t.snapshot.c.snapshot_time))).scalar()
    uuids = connection.execute(select(t.table.c.table_uuid)).scalars()
    times = [time for uuid in uuids if (time := _time_of(uuid)) is not None]
    return min(times) if oldest is None else min(oldest, *times, oldest)


def _time_of(uuid: UUID | str | None) -> dt.datetime | None:
    return None if uuid is None else uuid7_time(str(uuid))


def moment(name: str, value: dt.datetime | None) -> dt.datetime | None:
    """``value`` unchanged. Raises ArgumentError for what is not a time, and one without a zone."""
    if value is not None and not isinstance(value, dt.datetime):
        raise ArgumentError(
            f"{name} is {value!r}, which is not a datetime",
            hint="give an aware datetime, such as datetime.now(UTC) - timedelta(days=7)",
        )
    if value is not None and value.tzinfo is None:
        raise ArgumentError(
            f"{name} is {value}, of which nobody can tell the zone",
            hint="give an aware datetime, such as datetime.now(UTC) - timedelta(days=7)",
        )
    return value


def by_option(catalog: Catalog, key: str) -> dt.datetime | None:
    """Now less the age in the option; ``None`` where the option is not set."""
    option = catalog.option(key)
    age = parse_interval(option) if option else None
    return None if age is None else age.before(dt.datetime.now(dt.UTC))


_DEFAULT_AGE = dt.timedelta(days=2)


def age_limit(
    catalog: Catalog, older_than: dt.datetime | None, *, cleanup_all: bool
) -> dt.datetime | None:
    """The moment before which files may be removed; ``None``: at any age.

    Raises ArgumentError where both parameters are set.
    """
    if cleanup_all and older_than is not None:
        raise ArgumentError(
            "files are removed either all (cleanup_all) or by their age (older_than)",
            hint="give one of the two",
        )
    if cleanup_all:
        return None
    limit = moment("older_than", older_than) or by_option(catalog, "delete_older_than")
    return limit or dt.datetime.now(dt.UTC) - _DEFAULT_AGE


_THREADS = 16
_UUID_LENGTH = 36


@dataclass(frozen=True, slots=True)
class Found:
    """One file. ``path`` is written as the catalog's paths are; ``changed`` is aware, UTC."""

    path: str
    changed: dt.datetime


def found_below(directory: str) -> Iterator[Found]:
    """All files below ``directory``, which may be missing."""
    system, root = open_system(directory)
    root = root.rstrip("/")
    selector = fs.FileSelector(root, recursive=True, allow_not_found=True)
    for info in system.get_file_info(selector):
        if info.is_file:
            below = info.path[len(root) :].lstrip("/")
            changed = info.mtime or dt.datetime.now(dt.UTC)
            yield Found(f"{directory.rstrip('/')}/{below}", changed.astimezone(dt.UTC))


def remove(paths: Sequence[str]) -> None:
    """Remove these files, and on a local disk the directories of writes that become empty.

    A missing file is not an error: an earlier removal may have been interrupted.
    """
    with ThreadPoolExecutor(_THREADS, "penstock-cleanup") as pool:
        for _ in pool.map(remove_file, paths):
            pass
    for folder in sorted({Path(path).parent for path in paths if not is_remote(path)}):
        if is_write(folder.name):
            with suppress(OSError):  # not empty
                folder.rmdir()


def is_write(name: str) -> bool:
    """Return whether a directory is that of one write: those are named by a UUID."""
    try:
        UUID(name)
    except ValueError:
        return False
    return len(name) == _UUID_LENGTH


def cleanup_old_files(
    lake: HasCatalog,
    *,
    older_than: dt.datetime | None = None,
    cleanup_all: bool = False,
    outside_data_path: bool = False,
    dry_run: bool = False,
) -> list[Removed]:
    """Remove files that are scheduled for deletion: ``lake.cleanup_old_files(dry_run=True)``.

    Those are removed that were scheduled before ``older_than``, or all with ``cleanup_all``.
    Without either, files older than the option ``delete_older_than``, or than two days: a query
    that began before they were scheduled may still read them. A file that a snapshot still names
    (one that was added to two tables, say) stays. Files outside the data path, which were added to
    a table, are only removed with ``outside_data_path``, and only if they are Parquet files; else
    they are reported as left. If a call is killed, the next one removes from the schedule the files
    that are already deleted.
    """
    catalog = lake.catalog
    catalog.check_own_files()
    before = age_limit(catalog, older_than, cleanup_all=cleanup_all)
    data_path = DataPath(catalog.data_path)

    def unneeded(connection: Connection, files: Iterable[Scheduled]) -> list[Scheduled]:
        paths = expiry.known_files(connection, catalog.data_path)
        needed = set(map(data_path.canonical, paths))
        return [file for file in files if data_path.canonical(file.path) not in needed]

    with catalog.reading() as connection:
        waiting = expiry.files_to_remove(connection, catalog.data_path)
        old = [file for file in waiting if before is None or (file.since or before) < before]
        old = unneeded(connection, old) if old else []
    left = {file.path: data_path.why_left(file.path, outside_data_path) for file in old}

    def clean(connection: Connection) -> None:
        # Check again while nobody else writes: a path that was registered again stays.
        gone = unneeded(connection, (file for file in old if left[file.path] is None))
        remove([file.path for file in gone])
        expiry.forget(connection, gone)

    if not dry_run and None in left.values():
        catalog.write_alone(clean)
    return [Removed(path, why) for path, why in left.items()]
