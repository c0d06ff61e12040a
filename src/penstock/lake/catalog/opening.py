"""Opening a catalog: it is read or created, and its version and data path are checked.

A lake that was moved is noticed: its catalog still has the path where its files were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, select

from penstock.errors import CatalogMissing, ConfigError, DataPathError
from penstock.lake.catalog import create as creation
from penstock.lake.catalog import reads
from penstock.lake.catalog.abandoned import default_data_path, refuse_abandoned
from penstock.lake.catalog.create import check_version
from penstock.lake.catalog.database import engine as engines
from penstock.lake.catalog.database import metadata
from penstock.lake.catalog.database.faults import corrupt
from penstock.lake.catalog.database.location import (
    CatalogLocation,
    absolute_directory,
    is_remote,
    resolve,
)


@dataclass(frozen=True, slots=True)
class Opened:
    """``data_path`` is absolute and ends in ``/``; ``engine`` knows the version."""

    engine: Engine
    version: str
    data_path: str


def open_or_create(
    engine: Engine,
    location: CatalogLocation,
    *,
    data_path: str | None,
    may_create: bool,
    override_data_path: bool,
    new_catalog: bool,
) -> Opened:
    """See `Catalog.open`."""
    wanted = None if data_path is None else absolute_directory(data_path)
    stored = _ensure(engine, location, wanted, may_create, new_catalog)
    version = check_version(location, stored.get("version"))
    engine = engine.execution_options(**{metadata.FORMAT: version})
    known = stored.get("data_path")
    if known is None:
        raise corrupt(location, "it has no data_path")
    known = absolute_directory(known)
    if wanted is None or wanted == known:
        return Opened(engine, version, known)
    if override_data_path or _was_moved(engine, location, known, wanted):
        return Opened(engine, version, wanted)
    raise _elsewhere(location, known, wanted)


def _ensure(
    engine: Engine,
    location: CatalogLocation,
    data_path: str | None,
    may_create: bool,
    new_catalog: bool,
) -> Mapping[str, str]:
    """The global options of the catalog, after creating it where that is due."""
    if not engines.is_void(location):
        with engines.reading(engine, location) as connection:
            if creation.exists(connection):
                return _global_options(connection)
    if not may_create:
        raise CatalogMissing(
            f"{location} holds no DuckLake",
            hint="check the path, or attach it with creation on",
        )
    if not new_catalog:
        refuse_abandoned(location, data_path)
    path = data_path or _default_data_path(location)
    with engines.writing(engine, location) as connection:
        if not creation.exists(connection):  # another process may have been quicker
            creation.create(connection, path)
        return _global_options(connection)


def _global_options(connection: Connection) -> dict[str, str]:
    return {row.key: row.value for row in reads.metadata_rows(connection) if row.scope is None}


def _default_data_path(location: CatalogLocation) -> str:
    path = default_data_path(location)
    if path is not None:
        return path
    raise ConfigError(
        f"a new catalog at {location} needs a data_path",
        hint="give the directory or bucket that its files go to",
    )


def _was_moved(engine: Engine, location: CatalogLocation, known: str, wanted: str) -> bool:
    with engines.reading(engine, location) as connection:
        return was_moved(connection, known, wanted)


def _elsewhere(location: CatalogLocation, known: str, wanted: str) -> DataPathError:
    return DataPathError(
        f"the lake {location} keeps its files in {known}, not in {wanted}",
        hint="leave data_path out to use them; if the files are where you say (a copy of a lake, "
        "say), set override_data_path = true",
        data={"stored": known, "given": wanted},
    )


def was_moved(connection: Connection, stored: str, wanted: str) -> bool:
    """Whether the directory ``stored`` is gone and the lake's files are in ``wanted``.

    Of each table one file is looked for; a lake without files shows nothing.
    """
    if is_remote(stored) or is_remote(wanted) or Path(stored).exists():
        return False
    latest = reads.latest(connection)
    if latest is None:
        return False
    file, found = metadata.of(connection).data_file, False
    for table in reads.load_tables(connection, wanted, latest.id):
        some = select(file.c.path, file.c.path_is_relative).where(
            file.c.table_id == table.id, reads.visible(file, latest.id)
        )
        row = connection.execute(some.limit(1)).first()
        if row and not Path(resolve(table.path, row.path, row.path_is_relative)).is_file():
            return False
        found = found or row is not None
    return found
