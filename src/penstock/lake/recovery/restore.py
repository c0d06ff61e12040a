"""Restoring a catalog from a backup, on the same kind of database or on another.

Data files stay where the backup says, unless another data path is given.
"""

from __future__ import annotations

import datetime as dt
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Connection

from penstock.errors import ArgumentError, CatalogCorrupt
from penstock.lake.catalog import copying, opening
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.copying import Progress
from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.database.location import (
    CatalogLocation,
    absolute_directory,
    parse_location,
)
from penstock.lake.recovery.backup import FileCheck, check_files
from penstock.lake.storage import writing_to


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
