"""Creating a catalog with the tables and rows of DuckDB 1.5.5, and the versions that are read."""

from __future__ import annotations

import datetime as dt
import uuid
from importlib.metadata import version

from sqlalchemy import Connection, inspect
from sqlalchemy.schema import CreateSchema

from penstock.errors import CatalogVersionUnsupported, UnsupportedFeature
from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.database.engine import metadata_schema
from penstock.lake.catalog.database.location import CatalogLocation
from penstock.lake.format.naming import DEFAULT_SCHEMA, quote_identifier


def exists(connection: Connection) -> bool:
    """Whether the database holds a DuckLake."""
    return inspect(connection).has_table(t.metadata.name, schema=metadata_schema(connection))


def create(connection: Connection, data_path: str) -> None:
    """Make an empty lake with the schema ``main``. ``data_path`` is absolute, ends in ``/``."""
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
        "created_by": f"Penstock {version('penstock')}",
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
    """Indexes of our own, those that are not there yet.

    DuckDB neither minds nor drops them (there is a test).
    """
    if connection.dialect.name == "duckdb":
        return  # it skips what it need not read by itself, and indexes slow its writes
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
    "1.1": "write to it with DuckDB 2.0, or look for a newer version of Penstock",
}


def check_version(where: CatalogLocation, version: str | None) -> str:
    """``version`` if it is one that is read; else CatalogVersionUnsupported with what to do."""
    if version in READ:
        return version
    said = "no version" if version is None else f"version {version}"
    raise CatalogVersionUnsupported(
        f"the catalog {where} has {said} of the format; versions {_READS} are read",
        hint=_ADVICE.get(version or "", "look for a version of Penstock that knows it"),
        data={"version": version, "supported": READ},
    )


def check_writable(where: CatalogLocation, version: str) -> None:
    """Raise UnsupportedFeature for a catalog that is read only, being of another version."""
    if version != WRITTEN:
        raise UnsupportedFeature(
            f"the catalog {where} has version {version} of the format, which is read but not "
            f"written: only {WRITTEN} is",
            hint=f"to write to it, {_TO_WRITE[version]}",
            data={"version": version, "written": WRITTEN},
        )
