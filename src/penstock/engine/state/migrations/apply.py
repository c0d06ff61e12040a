"""Bring the state tables of a catalog to the version of this code."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, delete, insert, inspect, select

from penstock.engine.state.migrations import m0001_first, m0002_definitions
from penstock.engine.state.tables import META
from penstock.errors import CatalogVersionUnsupported

VERSION_KEY = "state_version"
# Number n is the n-th. A released one is never changed: add another.
MIGRATIONS: Sequence[Callable[[Connection], None]] = (
    m0001_first.apply,
    m0002_definitions.apply,
)


def version_of(connection: Connection) -> int:
    """The version of the state tables; 0 when there are none.

    Raises CatalogVersionUnsupported when a newer Penstock made them.
    """
    # The inspector is the one place that does not put the metadata schema in by itself.
    places = connection.get_execution_options().get("schema_translate_map", {})
    if not inspect(connection).has_table(META.name, schema=places.get(None)):
        return 0
    found = connection.execute(select(META.c.value).where(META.c.key == VERSION_KEY)).scalar()
    version = int(found or 0)
    if version > len(MIGRATIONS):
        raise CatalogVersionUnsupported(
            f"the run state in this catalog has version {version}; this Penstock knows versions up "
            f"to {len(MIGRATIONS)}",
            hint="a newer Penstock has written it: upgrade this one",
        )
    return version


def migrate(connection: Connection) -> None:
    """Apply what is missing, in order. The caller's transaction makes it all or nothing."""
    version = version_of(connection)
    if version == len(MIGRATIONS):
        return
    if version == 0:
        META.create(connection, checkfirst=True)
    for apply in MIGRATIONS[version:]:
        apply(connection)
    connection.execute(delete(META).where(META.c.key == VERSION_KEY))
    connection.execute(insert(META).values(key=VERSION_KEY, value=str(len(MIGRATIONS))))
