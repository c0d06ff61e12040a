"""Create the state tables, and migrate those of an earlier version.

`migrate` takes a catalog to the version of this code. Reading does not migrate, so `reading`
understands the tables of the oldest version that is migrated, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, delete, insert, inspect, select, text

from penstock.engine.state.tables import META, METADATA, SLICE, SLICE_STAMPS, STEP_STATES
from penstock.errors import CatalogVersionUnsupported
from penstock.lake.catalog.database.engine import metadata_schema
from penstock.lake.catalog.database.sqlite_indexes import hide_indexes
from penstock.sql.identifiers import quote_identifier

VERSION_KEY = "state_version"
VERSION = 15
OLDEST = 14  # of the versions that are migrated


def version_of(connection: Connection) -> int:
    """Return the version of the state tables; 0 where there are none.

    Args:
        connection: The catalog.

    Raises:
        CatalogVersionUnsupported: A newer Penstock made them, or one before the first release.
    """
    # The inspector is the one place that does not put the metadata schema in on its own.
    places = connection.get_execution_options().get("schema_translate_map", {})
    if not inspect(connection).has_table(META.name, schema=places.get(None)):
        return 0
    recorded = connection.execute(select(META.c.value).where(META.c.key == VERSION_KEY)).scalar()
    version = int(recorded or 0)
    if version > VERSION:
        raise CatalogVersionUnsupported(
            f"the run state in this catalog has version {version}; this Penstock knows versions up "
            f"to {VERSION}",
            hint="a newer Penstock has written it: upgrade this one",
        )
    if 0 < version < OLDEST:
        raise CatalogVersionUnsupported(
            f"the run state in this catalog has version {version}, of a Penstock before its first "
            f"release; this one migrates version {OLDEST}",
            hint="start a new catalog, or drop its tables penstock_*: the rows stay, and "
            "`penstock adopt` records them again",
        )
    return version


def migrate(connection: Connection) -> None:
    """Create the state tables, or bring them to this version.

    The caller's transaction makes it all or nothing.

    Args:
        connection: The catalog, in a transaction that writes.
    """
    version = version_of(connection)
    if version == VERSION:
        return
    if version == 0:
        METADATA.create_all(connection, checkfirst=True)
    else:
        for step in range(version, VERSION):
            _MIGRATIONS[step](connection)
    if connection.dialect.name == "sqlite":
        hide_indexes(connection)  # DuckDB fails at copying them
    connection.execute(delete(META).where(META.c.key == VERSION_KEY))
    connection.execute(insert(META).values(key=VERSION_KEY, value=str(VERSION)))


def _add_stamps(connection: Connection) -> None:
    """Add what tells whether slices were recorded again: NULL in records of before."""
    parts = [part for part in (metadata_schema(connection), SLICE.name) if part is not None]
    table, column = ".".join(map(quote_identifier, parts)), quote_identifier(SLICE.c.stamp.name)
    connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {column} BIGINT"))
    SLICE_STAMPS.create(connection)
    STEP_STATES.create(connection)


# By the version that a migration begins with.
_MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {14: _add_stamps}
