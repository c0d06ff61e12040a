"""Backups of a catalog (`restore` reads them). Data files are not copied.

A backup is a catalog in a file, and can be attached like the lake: a DuckDB file of a DuckDB file,
a SQLite file otherwise. Each has a consistent state, whoever writes meanwhile, and includes
Penstock's own tables (runs, slices).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from penstock.errors import ArgumentError, CatalogFull
from penstock.lake.catalog import copying, reads
from penstock.lake.catalog.catalog import LOCK_TIMEOUT, Catalog
from penstock.lake.catalog.copying import Progress, copy_duckdb
from penstock.lake.catalog.database.location import CatalogLocation, parse_location
from penstock.lake.catalog.snapshots.expiry import known_files
from penstock.lake.storage import is_remote, list_files, open_system, writing_to


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made. ``kind`` is that of the database; ``path`` absolute.

    ``snapshot`` is the newest one in it.
    """

    path: str
    kind: str
    snapshot: int
    size_bytes: int
    data_path: str
    files: FileCheck | None = None


def backup(
    catalog: Catalog,
    target: str | Path,
    *,
    check: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
    progress: Progress | None = None,
) -> Backup:
    """Copy the catalog to the new file ``target``; with ``check``, check that its files exist.

    Writers continue on PostgreSQL; on SQLite and DuckDB files they wait during the copy. Raises
    ArgumentError when the file exists already, CatalogLocked.
    """
    path = Path(target).expanduser().absolute()
    if path.exists():
        raise ArgumentError(
            f"{path} is there already", hint="name a new file; a backup overwrites nothing"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    where = parse_location(catalog.uri)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with writing_to(str(path)):
            snapshot = _COPIES[where.kind](catalog, where, partial, lock_timeout, progress)
            partial.replace(path)
    except CatalogFull as full:  # of the backup's disk: the catalog is only read
        raise CatalogFull(
            f"the disk of the backup {path} is full", hint="free some space there, and run again"
        ) from full
    finally:
        partial.unlink(missing_ok=True)
    files = check_files(catalog) if check else None
    return Backup(str(path), where.kind, snapshot, path.stat().st_size, catalog.data_path, files)


def check_files(catalog: Catalog) -> FileCheck:
    """Check that every data and delete file that the catalog names exists."""
    with catalog.reading() as connection:
        paths: Iterable[str] = known_files(connection, catalog.data_path)
    return look_for(paths)


def _sqlite(
    catalog: Catalog, where: CatalogLocation, path: Path, timeout: float, tell: Progress | None
) -> int:
    del catalog  # SQLite's own connection copies
    return copying.copy_sqlite(where, path, timeout, tell)


def _duckdb(
    catalog: Catalog, where: CatalogLocation, path: Path, timeout: float, tell: Progress | None
) -> int:
    del where, timeout  # are the catalog's own
    snapshot = copy_duckdb(catalog.reading, path)
    if tell is not None:
        tell(1, 1)
    return snapshot


def _postgres(
    catalog: Catalog, where: CatalogLocation, path: Path, timeout: float, tell: Progress | None
) -> int:
    del where, timeout
    copying.require_written(catalog, "the catalog")
    with (
        catalog.reading() as source,
        copying.new_catalog(parse_location(f"ducklake:sqlite:{path}")) as target,
    ):
        copying.copy(source, target, tell)
        newest = reads.latest(source)
        return -1 if newest is None else newest.id


_Copy = Callable[[Catalog, CatalogLocation, Path, float, "Progress | None"], int]
_COPIES: Mapping[str, _Copy] = {"sqlite": _sqlite, "duckdb": _duckdb, "postgres": _postgres}
_THREADS = 16
_BATCH = 500
_REMOTE_BATCH = 8  # files a task: object stores need one request a file, so more threads help
_LISTED = 200  # files; to list a directory of more is cheaper, 1,000 names a request


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The number of files checked, and the sorted paths of missing ones."""

    files: int
    missing: tuple[str, ...] = ()


def look_for(paths: Iterable[str]) -> FileCheck:
    """Check whether these absolute paths or URIs exist."""
    listed = sorted(paths)
    if not listed:
        return FileCheck(0)
    with ThreadPoolExecutor(_THREADS, "penstock-files") as pool:
        missing = [path for batch in pool.map(_missing, _batches(listed)) for path in batch]
    return FileCheck(len(listed), tuple(missing))


def missing_below(
    directory: str, paths: Iterable[str], *, listed_above: int = _LISTED
) -> tuple[str, ...]:
    """Return those of these paths, most of which are below ``directory``, that do not exist.

    In an object store the directory is listed where there are more than ``listed_above``.
    """
    wanted = set(paths)
    if is_remote(directory) and len(wanted) > listed_above:
        wanted -= set(list_files(directory))
    return look_for(wanted).missing


def _missing(paths: list[str]) -> list[str]:
    system, _ = open_system(paths[0])
    places = [path.partition("://")[2] if "://" in path else path for path in paths]
    infos = system.get_file_info(places)
    return [path for path, info in zip(paths, infos, strict=True) if info.type != fs.FileType.File]


def _batches(paths: list[str]) -> Iterator[list[str]]:
    """Sorted paths of one file system follow each other."""
    size = _REMOTE_BATCH if is_remote(paths[-1]) else _BATCH
    for start in range(0, len(paths), size):
        part = paths[start : start + size]
        while part:
            root = _root(part[0])
            same = [path for path in part if _root(path) == root]
            yield same
            part = [path for path in part if _root(path) != root]


def _root(path: str) -> str:
    scheme, mark, rest = path.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}" if mark else ""
