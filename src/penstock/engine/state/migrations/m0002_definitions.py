"""What a slice was defined by, and which slices were dropped. Never changed.

Slices that are recorded before it have NULL in the new columns: their definition is not known.
"""

from __future__ import annotations

from sqlalchemy import Column, Connection, MetaData, Table, Text, text

from penstock.lake.catalog.database.engine import metadata_schema
from penstock.lake.format.naming import quote_identifier

_METADATA = MetaData()
_SLICE = "penstock_slice"
_COLUMNS = {"slicing": "TEXT", "keys": "TEXT", "made_in": "BIGINT"}

Table(
    "penstock_dropped",
    _METADATA,
    Column("target", Text, primary_key=True),
    Column("slice", Text, primary_key=True),
    Column("dropped_at", Text, nullable=False),
)


def apply(connection: Connection) -> None:
    schema = metadata_schema(connection)
    parts = [part for part in (schema, _SLICE) if part is not None]
    table = ".".join(map(quote_identifier, parts))
    for name, kind in _COLUMNS.items():
        connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {name} {kind}"))
    _METADATA.create_all(connection, checkfirst=False)
