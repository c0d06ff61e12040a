"""Backups of a catalog, and restoring them. Data files are not copied: they stay where they are.

A backup of SQLite or of a DuckDB file is such a file itself, and can be attached like the lake; one
of PostgreSQL is a zip file. Each is of one state, whoever writes meanwhile, and has Penstock's own
tables (runs, slices) as well.
"""

from __future__ import annotations

import datetime as dt
import shutil
import uuid
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ArgumentError, CatalogCorrupt, UnsupportedFeature
from penstock.lake.catalog import create as creation
from penstock.lake.catalog import engine as engines
from penstock.lake.catalog import reads, tables
from penstock.lake.catalog.backups import duckdb_file, postgres, sqlite
from penstock.lake.catalog.catalog import LOCK_TIMEOUT, Catalog
from penstock.lake.catalog.known_files import known_files
from penstock.lake.catalog.location import CatalogLocation, parse_location
from penstock.lake.catalog.paths import absolute_directory
from penstock.lake.missing_files import FileCheck, look_for

Progress = Callable[[int, int], None]  # what is done, of what in all


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


@dataclass(frozen=True, slots=True)
class Restored:
    """A catalog that was restored from a backup."""

    catalog: str
    kind: str
    snapshot: int
    snapshot_time: dt.datetime
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
    """Copy the catalog to the new file ``target``; with ``check``, look whether its files exist.

    Writers go on on PostgreSQL; on SQLite and DuckDB files they wait while it is copied. Raises
    ArgumentError when the file is there already, CatalogLocked.
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
        snapshot = _COPIES[where.kind](catalog, where, partial, lock_timeout, progress)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    files = check_files(catalog) if check else None
    return Backup(str(path), where.kind, snapshot, path.stat().st_size, catalog.data_path, files)


def check_files(catalog: Catalog) -> FileCheck:
    """Look whether every data and delete file that the catalog names is there."""
    with catalog.reading() as connection:
        paths: Iterable[str] = set(known_files(connection, catalog.data_path))
    return look_for(paths)


def _sqlite(
    catalog: Catalog, where: CatalogLocation, path: Path, timeout: float, tell: Progress | None
) -> int:
    del catalog  # SQLite's own connection copies
    return sqlite.copy_to(where, path, timeout, tell)


def _duckdb(
    catalog: Catalog, where: CatalogLocation, path: Path, timeout: float, tell: Progress | None
) -> int:
    del where, timeout  # are the catalog's own
    snapshot = duckdb_file.copy_to(catalog.reading, path)
    if tell is not None:
        tell(1, 1)
    return snapshot


def _postgres(
    catalog: Catalog, where: CatalogLocation, path: Path, timeout: float, tell: Progress | None
) -> int:
    del where, timeout
    with catalog.reading() as connection:
        postgres.copy_to(connection, path, tell)
        newest = reads.latest(connection)
        return -1 if newest is None else newest.id


_Copy = Callable[[Catalog, CatalogLocation, Path, float, "Progress | None"], int]
_COPIES: Mapping[str, _Copy] = {"sqlite": _sqlite, "duckdb": _duckdb, "postgres": _postgres}


def kind_of(source: Path) -> str:
    """What kind of database a backup is of, by the file's first bytes. Raises CatalogCorrupt."""
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
    raise CatalogCorrupt(
        f"{source} is no backup of a catalog", hint="give a file that `penstock backup` made"
    )


_MARKS = (("sqlite", 0, b"SQLite format 3\x00"), ("duckdb", 8, b"DUCK"), ("postgres", 0, b"PK"))


def restore(
    source: str | Path,
    uri: str,
    *,
    metadata_schema: str | None = None,
    data_path: str | None = None,
    check: bool = False,
    progress: Progress | None = None,
) -> Restored:
    """Make the catalog at ``uri``, where none is, from a backup of the same kind of database.

    Data files stay where the backup says, or are looked for in ``data_path`` from then on (a copy
    of them elsewhere). Raises ArgumentError when there is a catalog, CatalogCorrupt,
    UnsupportedFeature for another kind of database.
    """
    path, where = Path(source).expanduser().absolute(), parse_location(uri)
    kind = kind_of(path)
    if kind != where.kind:
        raise UnsupportedFeature(
            f"{path} is a backup of a catalog in {_CALLED[kind]}, and {where} is none",
            hint=f"restore it to {_CALLED[kind]}; a lake moves to another database by DuckDB's "
            "COPY FROM DATABASE",
            data={"backup": kind, "target": where.kind},
        )
    if kind == "postgres":
        _restore_server(path, where, metadata_schema, progress)
    else:
        _restore_file(path, where, progress)
    with Catalog.open(uri, create=False, metadata_schema=metadata_schema) as catalog:
        if data_path is not None:
            _move(catalog, absolute_directory(data_path))
        latest = catalog.latest()
        files = check_files(catalog) if check else None
        return Restored(str(where), kind, latest.id, latest.time, catalog.data_path, files)


def _move(catalog: Catalog, data_path: str) -> None:
    """Have the restored catalog look for its files elsewhere."""
    with catalog.writing() as connection:
        c = tables.metadata.c
        moved = tables.metadata.update().where(c.key == "data_path", c.scope.is_(None))
        connection.execute(moved.values(value=data_path))
    catalog.data_path = data_path


_CALLED = {"sqlite": "a SQLite file", "duckdb": "a DuckDB file", "postgres": "PostgreSQL"}


def _restore_file(path: Path, where: CatalogLocation, progress: Progress | None) -> None:
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
        shutil.copyfile(path, partial)
        if target.exists():
            raise _taken(where, "move the file away first")
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    if progress is not None:
        progress(1, 1)


_LOGS = {"sqlite": ("-wal", "-journal"), "duckdb": (".wal",)}


def _restore_server(
    path: Path, where: CatalogLocation, metadata_schema: str | None, progress: Progress | None
) -> None:
    engine = engines.make_engine(
        where,
        read_only=False,
        create=False,
        lock_timeout=LOCK_TIMEOUT,
        metadata_schema=metadata_schema,
    )
    try:
        with engines.writing(engine, where) as connection:
            if creation.exists(connection):
                raise _taken(where, "drop its tables, or name another schema or database")
            postgres.copy_from(connection, path, progress)
    except zipfile.BadZipFile as error:
        raise CatalogCorrupt(
            f"{path} is no backup of a catalog, or only a part of one ({error})",
            hint="take another backup",
        ) from error
    finally:
        engine.dispose()


def _taken(where: CatalogLocation, hint: str) -> ArgumentError:
    return ArgumentError(f"there is a catalog at {where} already", hint=hint)
