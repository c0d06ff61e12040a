"""The versions of Delta tables that an index has seen, in tables of its own beside the catalog's.

A snapshot of the index is one version of one table. The newest metadata and protocol of a table are
kept as its log has them, so that what others set there stays.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    delete,
    insert,
    inspect,
    select,
    update,
)

from penstock.delta.actions import Metadata, Protocol
from penstock.lake.catalog.database.metadata import snapshot
from penstock.sql.identifiers import fold
from penstock.uuid7 import new_uuid7

_METADATA = MetaData()
_ROOT = Table("penstock_delta_root", _METADATA, Column("root_id", Text, primary_key=True))
_VERSION = Table(
    "penstock_delta_version",
    _METADATA,
    Column("schema_name", Text, primary_key=True),  # folded
    Column("table_name", Text, primary_key=True),  # folded
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("snapshot_id", BigInteger),  # NULL of a version that changed nothing here
    Column("metadata", Text),  # JSON; both as of this version
    Column("protocol", Text),
)

Name = tuple[str, str]  # of a table, folded, with its schema's


@dataclass(frozen=True, slots=True)
class Known:
    """The newest version of a table's log, its snapshot in the index, metadata and protocol."""

    version: int = -1
    snapshot_id: int | None = None
    metadata: Metadata | None = None
    protocol: Protocol | None = None


def root_id(connection: Connection) -> str | None:
    """The id by which commits are known as the index's own; None where it has no tables yet."""
    places = connection.get_execution_options().get("schema_translate_map", {})
    if not inspect(connection).has_table(_ROOT.name, schema=places.get(None)):
        return None
    return str(connection.execute(select(_ROOT.c.root_id)).scalar_one())


def prepare(connection: Connection) -> str:
    """Make the tables unless they are there; returns `root_id`."""
    known = root_id(connection)
    if known is None:
        known = new_uuid7()
        _METADATA.create_all(connection)
        connection.execute(insert(_ROOT).values(root_id=known))
        # Versions that are there already are of a time before the index.
        beginning = datetime(1970, 1, 1, tzinfo=UTC)
        connection.execute(update(snapshot).values(snapshot_time=beginning))
    return known


def known_of(connection: Connection, schema: str, table: str) -> Known:
    """Return what is known of one table."""
    c = _VERSION.c
    own = select(c.version, c.snapshot_id, c.metadata, c.protocol).where(
        c.schema_name == fold(schema), c.table_name == fold(table)
    )
    row = connection.execute(own.order_by(c.version.desc()).limit(1)).first()
    if row is None:
        return Known()
    metadata, protocol = (None if text is None else json.loads(text) for text in row[2:])
    return Known(
        row[0],
        row[1],
        None if metadata is None else Metadata.of(metadata),
        None if protocol is None else Protocol.of(protocol),
    )


def first_ids(connection: Connection, names: Name | None = None) -> dict[Name, str]:
    """Return the ids of tables in their versions 0.

    Args:
        connection: A transaction of the index.
        names: The schema and the name of a table; None for all tables.

    Returns:
        The ids of the tables of which that version was read.
    """
    c = _VERSION.c
    query = select(c.schema_name, c.table_name, c.metadata).where(c.version == 0)
    if names is not None:
        query = query.where(c.schema_name == fold(names[0]), c.table_name == fold(names[1]))
    rows = connection.execute(query.where(c.metadata.is_not(None)))
    return {(schema, table): str(json.loads(text)["id"]) for schema, table, text in rows}


def all_known(connection: Connection) -> dict[Name, int]:
    """The newest version of each table, by its folded names."""
    c = _VERSION.c
    found: dict[Name, int] = {}
    for schema, table, version in connection.execute(
        select(c.schema_name, c.table_name, c.version)
    ):
        found[schema, table] = max(version, found.get((schema, table), -1))
    return found


def note(connection: Connection, schema: str, table: str, known: Known) -> None:
    """Note a version that is seen, or about to be made."""
    connection.execute(
        insert(_VERSION).values(
            schema_name=fold(schema),
            table_name=fold(table),
            version=known.version,
            snapshot_id=known.snapshot_id,
            metadata=_text(known.metadata, "metaData"),
            protocol=_text(known.protocol, "protocol"),
        )
    )


def forget(connection: Connection, schema: str, table: str) -> None:
    """Forget the versions of a table that is gone: the next one of this name begins anew."""
    c = _VERSION.c
    own = (c.schema_name == fold(schema), c.table_name == fold(table))
    connection.execute(delete(_VERSION).where(*own))


def _text(value: Metadata | Protocol | None, kind: str) -> str | None:
    return None if value is None else json.dumps(value.json()[kind])
