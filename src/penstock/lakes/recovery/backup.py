"""Backups of a catalog, and restoring it from one. Data files are not copied.

A backup is a catalog in a file, and can be attached like the lake: a DuckDB file of a DuckDB file,
a SQLite file otherwise. Each has a consistent state, whoever writes meanwhile, and includes
Penstock's own tables (runs, slices).

Restoring a catalog from a backup, on the same kind of database or on another.

Data files stay where the backup says, unless another data path is given.
"""

from __future__ import annotations

import datetime as dt
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pyarrow import fs
from sqlalchemy import Connection

from penstock.errors import ArgumentError, CatalogCorrupt, CatalogFull
from penstock.lakes.catalog import copying, opening, reads
from penstock.lakes.catalog.catalog import LOCK_TIMEOUT, Catalog
from penstock.lakes.catalog.copying import Progress, copy_duckdb
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.database.location import (
    CatalogLocation,
    absolute_directory,
    parse_location,
)
from penstock.lakes.catalog.snapshots.expiry import known_files
from penstock.lakes.storage import is_remote, list_files, open_system, writing_to


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


@dataclass(frozen=True, slots=True)
class Restored:
    """A catalog that was restored from a backup."""

    catalog: str
    kind: str
    snapshot: int
    snapshot_time: dt.datetime
    data_path: str
    files: FileCheck | None = None


def kind_of(source: Path) -> str:
    """The kind of database of a backup, by the file's first bytes. Raises CatalogCorrupt."""
    try:
        with source.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise ArgumentError(
            f"the backup {source} cannot be read ({error.strerror})", hint="check the path"
        ) from error
    for kind, at, mark in _MARKS:
        if head[at : at + len(mark)] == mark:
            return kind
    hint = "give a file that `penstock backup` made"
    if head.startswith(_ZIP):
        hint += "; a zip file of a PostgreSQL catalog is restored by the Penstock that made it"
    raise CatalogCorrupt(f"{source} is not a backup of a catalog", hint=hint)


_MARKS = (("sqlite", 0, b"SQLite format 3\x00"), ("duckdb", 8, b"DUCK"))
_ZIP = b"PK\x03\x04"  # backups of PostgreSQL were zip files once


def restore(
    source: str | Path,
    uri: str,
    *,
    metadata_schema: str | None = None,
    data_path: str | None = None,
    check: bool = False,
    progress: Progress | None = None,
) -> Restored:
    """Create the catalog at ``uri`` from a backup of any kind of database.

    Data files stay where the backup says, or are in ``data_path`` from then on (a copy of them
    elsewhere). Raises ArgumentError when a catalog exists, CatalogCorrupt, UnsupportedFeature for
    what another kind of database cannot hold.
    """
    path, where = Path(source).expanduser().absolute(), parse_location(uri)
    kind = kind_of(path)
    if kind != where.kind:
        _restore_across(path, kind, where, metadata_schema, progress)
    else:
        with _new_file(where) as partial, writing_to(str(partial)):
            shutil.copyfile(path, partial)
        if progress is not None:
            progress(1, 1)
    with Catalog.open(uri, create=False, metadata_schema=metadata_schema) as catalog:
        if data_path is not None:
            _move(catalog, absolute_directory(data_path))
        latest = catalog.latest()
        files = check_files(catalog) if check else None
        return Restored(str(where), where.kind, latest.id, latest.time, catalog.data_path, files)


def _move(catalog: Catalog, data_path: str) -> None:
    """Set another data path in the restored catalog."""
    with catalog.writing() as connection:
        c = metadata.metadata.c
        moved = metadata.metadata.update().where(c.key == "data_path", c.scope.is_(None))
        connection.execute(moved.values(value=data_path))
    catalog.data_path = data_path


def _restore_across(
    path: Path,
    kind: str,
    where: CatalogLocation,
    metadata_schema: str | None,
    progress: Progress | None,
) -> None:
    """Open a copy of the backup with its own kind of database: opening may write beside a file."""
    with TemporaryDirectory(prefix="penstock-restore-") as folder:
        copied = Path(folder) / "catalog"
        shutil.copyfile(path, copied)
        with Catalog.open(f"{kind}:{copied}", read_only=True, create=False) as catalog:
            copying.require_written(catalog, str(path))
            with catalog.reading() as source:
                if where.kind == "postgres":
                    with _on_server(where, metadata_schema) as target:
                        copying.copy(source, target, progress)
                    return
                with (
                    _new_file(where) as partial,
                    copying.new_catalog(replace(where, target=str(partial))) as target,
                ):
                    copying.copy(source, target, progress)


@contextmanager
def _new_file(where: CatalogLocation) -> Iterator[Path]:
    """A temporary path for a file that becomes the catalog's once it is complete."""
    target = Path(where.target)
    if target.exists():
        raise _taken(where, "move the file away first")
    for end in _LOGS[where.kind]:
        log = Path(f"{target}{end}")
        if log.exists():  # it would be applied to the new file
            raise _taken(where, f"move {log} away, too: it belongs to the file that was there")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        yield partial
        if target.exists():
            raise _taken(where, "move the file away first")
        partial.rename(target)
    finally:
        for end in ("", *_LOGS[where.kind]):
            Path(f"{partial}{end}").unlink(missing_ok=True)


_LOGS = {"sqlite": ("-wal", "-journal"), "duckdb": (".wal",)}


@contextmanager
def _on_server(where: CatalogLocation, metadata_schema: str | None) -> Iterator[Connection]:
    with copying.new_catalog(where, metadata_schema) as connection:
        if opening.exists(connection):
            raise _taken(where, "drop its tables, or name another schema or database")
        yield connection


def _taken(where: CatalogLocation, hint: str) -> ArgumentError:
    return ArgumentError(f"there is a catalog at {where} already", hint=hint)
