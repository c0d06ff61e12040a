"""Opening a catalog: it is created or read, and its version and data path are checked.

A new catalog has the tables and rows of DuckDB 1.5.5. None is created over a data path with the
files of a lake whose catalog is missing: the new lake would be empty and the old files orphans. A
lake that was moved is noticed by the old data path in its catalog.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, select
from sqlalchemy.schema import CreateSchema

from penstock.distribution import VERSION
from penstock.errors import (
    CatalogMissing,
    CatalogVanished,
    CatalogVersionUnsupported,
    ConfigError,
    DataPathError,
    UnsupportedFeature,
)
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database import engine as engines
from penstock.lakes.catalog.database import metadata, sqlite_indexes
from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.catalog.database.engine import metadata_schema
from penstock.lakes.catalog.database.faults import corrupt
from penstock.lakes.catalog.database.location import CatalogLocation, absolute_directory, resolve
from penstock.lakes.format.naming import DEFAULT_SCHEMA, quote_identifier, uuid7_time
from penstock.lakes.storage import bucket_of, is_remote, open_system, refuse_unknown


@dataclass(frozen=True, slots=True)
class Opened:
    """``data_path`` is absolute and ends in ``/``; ``engine`` knows the version."""

    engine: Engine
    version: str
    data_path: str


@dataclass(frozen=True, slots=True)
class Opening:
    """The catalog to open, and how to open it; see `Catalog.open`."""

    location: CatalogLocation
    data_path: str | None
    read_only: bool
    create: bool
    metadata_schema: str | None
    override_data_path: bool
    lock_timeout: float
    new_catalog: bool

    def open(self) -> Opened:
        """Raises what `Catalog.open` does."""
        if engines.is_absent(self.location) and not self.new_catalog:
            # Before an empty file is made by looking into it.
            refuse_abandoned(self.location, self.data_path)
        try:
            engine = engines.make_engine(
                self.location,
                read_only=self.read_only,
                create=self.create,
                lock_timeout=self.lock_timeout,
                metadata_schema=self.metadata_schema,
            )
            try:
                return self._opened(engine)
            except BaseException:
                engine.dispose()
                raise
        except CatalogMissing:
            refuse_abandoned(self.location, self.data_path)
            raise

    def _opened(self, engine: Engine) -> Opened:
        location = self.location
        wanted = None if self.data_path is None else absolute_directory(self.data_path)
        may_create = self.create and not self.read_only
        stored = _ensure(engine, location, wanted, may_create, self.new_catalog)
        version = check_version(location, stored.get("version"))
        engine = engine.execution_options(**{metadata.FORMAT: version})
        known = stored.get("data_path")
        if known is None:
            raise corrupt(location, "it has no data_path")
        known = absolute_directory(known)
        if wanted is None or wanted == known:
            return Opened(engine, version, known)
        if self.override_data_path or _was_moved(engine, location, known, wanted):
            return Opened(engine, version, wanted)
        raise _elsewhere(location, known, wanted)


def _ensure(
    engine: Engine,
    location: CatalogLocation,
    data_path: str | None,
    may_create: bool,
    new_catalog: bool,
) -> Mapping[str, str]:
    """The global options of the catalog, which is created if it is missing and may be."""
    if not engines.is_void(location):
        with engines.reading(engine, location) as connection:
            if exists(connection):
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
        if not exists(connection):  # another process may have been quicker
            create(connection, path)
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
    """Return whether the directory ``stored`` is missing and the lake's files are in ``wanted``.

    It looks for one file of each table; for a lake without files the answer is no.
    """
    if is_remote(stored) or is_remote(wanted) or Path(stored).exists():
        return False
    latest = reads.latest(connection)
    if latest is None:
        return False
    file, any_file = metadata.of(connection).data_file, False
    for table in reads.load_tables(connection, wanted, latest.id):
        some = select(file.c.path, file.c.path_is_relative).where(
            file.c.table_id == table.id, reads.visible(file, latest.id)
        )
        row = connection.execute(some.limit(1)).first()
        if row and not Path(resolve(table.path, row.path, row.path_is_relative)).is_file():
            return False
        any_file = any_file or row is not None
    return any_file


LAKE_FILES = (".parquet", ".puffin")
_DIRECTORIES = 2000  # listed at most; a lake's files lie a few directories below its data path


def refuse_abandoned(location: CatalogLocation, data_path: str | None) -> None:
    """Raise CatalogVanished where there is no catalog and its data path holds a lake's files.

    ``None``: where a catalog of this kind keeps its files by default. Raises DataPathError where
    the data path cannot be listed.
    """
    path = data_path or default_data_path(location)
    if path is None:
        return
    path = absolute_directory(path)
    file = _lake_file(path)
    if file is None:
        return
    raise CatalogVanished(
        f"there is no catalog at {location}, and its data path {path} holds the files of a lake "
        f"({file.removeprefix(path)})",
        hint="check the catalog's path; if it is right, bring the catalog back with `penstock "
        "restore BACKUP`; to begin a new lake, give another data path, or pass --new-catalog to "
        "`penstock run` (new_catalog=True to Lake.attach): then no table has these files",
        data={"catalog": str(location), "data_path": path, "file": file},
    )


def default_data_path(location: CatalogLocation) -> str | None:
    """The default data path of a new catalog; ``None`` on a server."""
    if location.kind == "postgres":
        return None
    return absolute_directory(f"{location.target}.files")


def _lake_file(data_path: str) -> str | None:
    """A data or delete file below ``data_path``: DuckDB and Penstock name theirs by a UUID."""
    if is_remote(data_path) and bucket_of(data_path) is None:
        return None  # no store that Penstock writes to
    try:
        return next(_lake_files(data_path.rstrip("/")), None)
    except OSError as error:
        raise DataPathError(
            f"the data path {data_path} cannot be listed: {str(error).splitlines()[0]}",
            hint="check that it can be reached and read; a new catalog is only made over a data "
            "path without files of another",
            data={"path": data_path},
        ) from error


def _lake_files(directory: str) -> Iterator[str]:
    """List depth first, which finds the first file after a few listings, also in a bucket."""
    from pyarrow import fs  # late: existing catalogs do not need it

    system, root = open_system(directory)
    waiting = [root]
    for _ in range(_DIRECTORIES):
        if not waiting:
            return
        selector = fs.FileSelector(waiting.pop(), allow_not_found=True)
        for info in sorted(system.get_file_info(selector), key=lambda entry: str(entry.path)):
            below = str(info.path)[len(root) :]
            if info.type == fs.FileType.Directory:
                waiting.append(str(info.path))
            elif below.endswith(LAKE_FILES) and uuid7_time(below) is not None:
                yield directory + below


def exists(connection: Connection) -> bool:
    """Return whether the database holds a DuckLake."""
    return inspect(connection).has_table(t.metadata.name, schema=metadata_schema(connection))


def create(connection: Connection, data_path: str) -> None:
    """Make an empty lake with the schema ``main``. ``data_path`` is absolute, ends in ``/``.

    Raises UnsupportedFeature for one in a store that nothing can be written to.
    """
    if is_remote(data_path):
        refuse_unknown(data_path)
    schema = metadata_schema(connection)
    if schema is not None:
        connection.execute(CreateSchema(schema, if_not_exists=True))
    t.METADATA.create_all(connection, checkfirst=False)
    create_indexes(connection)
    _insert_rows(connection, data_path)


def _insert_rows(connection: Connection, data_path: str) -> None:
    now = dt.datetime.now(dt.UTC)
    values = {
        "version": WRITTEN,
        "created_by": f"Penstock {VERSION}",
        "data_path": data_path,
        "encrypted": "false",
    }
    connection.execute(
        t.metadata.insert(), [{"key": key, "value": value} for key, value in values.items()]
    )
    connection.execute(
        t.snapshot.insert().values(
            snapshot_id=0, snapshot_time=now, schema_version=0, next_catalog_id=1, next_file_id=0
        )
    )
    connection.execute(
        t.snapshot_changes.insert().values(
            snapshot_id=0, changes_made=f'created_schema:"{DEFAULT_SCHEMA}"'
        )
    )
    connection.execute(
        t.schema.insert().values(
            schema_id=0,
            schema_uuid=str(uuid.uuid4()),
            begin_snapshot=0,
            schema_name=DEFAULT_SCHEMA,
            path=f"{DEFAULT_SCHEMA}/",
            path_is_relative=True,
        )
    )


def create_indexes(connection: Connection) -> None:
    """Create those of Penstock's own indexes that are missing.

    DuckDB neither minds, drops nor copies them (there is a test).
    """
    if connection.dialect.name == "duckdb":
        return  # it skips what it need not read on its own, and indexes slow its writes
    if connection.dialect.name == "sqlite":
        wanted: dict[str, list[tuple[str, ...]]] = {}
        for _, table, columns in (*_INDEXES, _STATS["sqlite"]):
            wanted.setdefault(table, []).append(columns)
        sqlite_indexes.add_indexes(connection, wanted)
        return
    schema = metadata_schema(connection)
    prefix = "" if schema is None else f"{quote_identifier(schema)}."
    for name, table, columns in (*_INDEXES, _STATS[connection.dialect.name]):
        listed = ", ".join(quote_identifier(column) for column in columns)
        connection.exec_driver_sql(
            f"CREATE INDEX IF NOT EXISTS {quote_identifier(f'penstock_{name}')} "
            f"ON {prefix}{quote_identifier(table)} ({listed})"
        )


_INDEXES = (
    ("data_file_table", "ducklake_data_file", ("table_id", "begin_snapshot")),
    ("delete_file_table", "ducklake_delete_file", ("table_id", "begin_snapshot")),
    ("delete_file_data", "ducklake_delete_file", ("data_file_id",)),
    ("file_partition", "ducklake_file_partition_value", ("data_file_id",)),
    ("column_table", "ducklake_column", ("table_id",)),
)
_OF_STATS = ("table_id", "column_id", "data_file_id")
# Files are chosen by the statistics of a column. On SQLite the index holds all that is asked for
# (1M files: 0.7 s instead of 1.1); PostgreSQL takes no entries as long as bounds may be.
_STATS = {
    "sqlite": (
        "file_stats",
        "ducklake_file_column_stats",
        (*_OF_STATS, "min_value", "max_value", "value_count", "null_count", "contains_nan"),
    ),
    "postgresql": ("file_stats", "ducklake_file_column_stats", _OF_STATS),
}
WRITTEN = "1.0"
READ = ("0.3", "0.4", "1.0", "1.1")
_READS = ", ".join(READ[:-1]) + f" and {READ[-1]}"
_MIGRATE = "attach it once with DuckDB 1.5 and AUTOMATIC_MIGRATION TRUE, which makes it a 1.0"
_ADVICE = {"0.1": _MIGRATE, "0.2": _MIGRATE}
_TO_WRITE = {
    "0.3": _MIGRATE + " (that loses time travel inside merged files)",
    "0.4": _MIGRATE,
    "1.1": "write to it with DuckDB 2.0, or look for a newer version of Penstock; DuckDB 2.0 makes "
    "a lake of version 1.0 with ATTACH ... (DUCKLAKE_VERSION '1.0')",
}


def check_version(where: CatalogLocation, version: str | None) -> str:
    """``version`` if Penstock reads it; raises CatalogVersionUnsupported with advice."""
    if version in READ:
        return version
    said = "no version" if version is None else f"version {version}"
    raise CatalogVersionUnsupported(
        f"the catalog {where} has {said} of the format; versions {_READS} are read",
        hint=_ADVICE.get(version or "", "look for a version of Penstock that knows it"),
        data={"version": version, "supported": READ},
    )


def only_readable(where: CatalogLocation, version: str) -> UnsupportedFeature:
    """Return the error for writing to a catalog of another version than WRITTEN."""
    return UnsupportedFeature(
        f"the catalog {where} has version {version} of the format, which is read but not "
        f"written: only {WRITTEN} is",
        hint=f"to write to it, {_TO_WRITE[version]}",
        data={"version": version, "written": WRITTEN},
    )
