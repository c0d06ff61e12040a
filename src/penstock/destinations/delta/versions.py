"""The versions of Delta tables: those in the logs below a root, and those that an index has seen.

A snapshot of the index is one version of one table. The newest metadata and protocol of a table are
kept as its log has them, so that what others set there stays.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

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

from penstock.delta.actions import DeletionVector, Json, Metadata, Protocol
from penstock.delta.log import checkpoint_rows, is_made_anew, load, read_commit
from penstock.delta.log_files import Checkpoint, Listing, commit_path, list_log, put_if_absent
from penstock.delta.scan import absolute, marked
from penstock.errors import UnsupportedFeature
from penstock.lakes.catalog.database.metadata import snapshot
from penstock.lakes.storage import is_remote, make_parent
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


Action = Mapping[str, Any]  # ``{"add": {...}}``


class MadeAnew(Exception):
    """The log is that of another table than before."""


def new_versions(
    table: str, version: int, id_: str | None = None
) -> Iterator[tuple[int, Sequence[Action]]]:
    """The versions of the table in a directory after one, -1 for all, with their actions. Where the
    first of them were cleaned up it begins with a checkpoint, which has all that was in force.

    Raises UnsupportedFeature where there is none, DataFileCorrupt, MadeAnew unless the id of the
    table in version 0 is ``id_``. In a store that is looked up only where there is another version.
    """
    listing = list_log(table.rstrip("/"))
    left = [at for at in listing.commits if at > version]
    is_looked_up = version >= 0 and (listing.latest != version or not is_remote(table))
    if is_looked_up and is_made_anew(table.rstrip("/"), listing, version, id_):
        raise MadeAnew
    if not left:
        return
    if left[0] > version + 1 and version < 0:
        start = _first(table, listing)
        version = start.version
        yield version, list(map(_action, checkpoint_rows(table.rstrip("/"), start)))
        left = [at for at in left if at > version]
    if left and left != list(range(version + 1, version + 1 + len(left))):
        raise UnsupportedFeature(
            f"the log of {table} has version {left[-1]}, and not {version + 1}, which was cleaned "
            "up before it was read",
            hint="restore the files of its log, or write the table again",
        )
    for at in left:
        yield at, read(table, at)


def _first(table: str, listing: Listing) -> Checkpoint:
    """The first checkpoint that versions follow without a gap."""
    for checkpoint in listing.checkpoints:
        if {checkpoint.version, checkpoint.version + 1} & set(listing.commits):
            return checkpoint
    raise UnsupportedFeature(
        f"the log of {table} has neither its first version nor a checkpoint",
        hint="restore the files of its log, or write the table again",
    )


def _action(row: Action) -> Action:
    """A row of a checkpoint as the action of a commit."""
    return {
        kind: {key: _plain(value) for key, value in content.items()}
        for kind, content in row.items()
        if content is not None
    }


def _plain(value: Any) -> Any:
    """A map of Parquet, which Arrow has as pairs, as a dict."""
    is_map = isinstance(value, list) and value and all(isinstance(each, tuple) for each in value)
    return dict(value) if is_map else value


def read(table: str, version: int) -> Sequence[Action]:
    """The actions of a version; none where it is not there. Raises DataFileCorrupt."""
    commit = read_commit(table.rstrip("/"), version)
    return () if commit is None else commit.actions


def only(actions: Iterable[Action], kind: str) -> list[Mapping[str, Any]]:
    """The contents of the actions of one kind."""
    return [action[kind] for action in actions if action.get(kind) is not None]


def replaced(
    table: str, version: int, gone: Collection[str], marks: Mapping[str, DeletionVector], now: int
) -> list[Json]:
    """The actions that remove files of a version, with the vectors that they have there, and that
    add those of ``marks`` again with others. ``now`` is in milliseconds since 1970.
    """
    state = load(table.rstrip("/"), version) if gone or marks else None
    files = () if state is None else state.by_key.values()
    found = {absolute(table, file.path): file for file in files}
    lines = [file.removal(now) for path, file in found.items() if path in gone or path in marks]
    for path, vector in marks.items():
        lines.append(marked(table, found[path], vector).json())
    return lines


def add_version(table: str, version: int, actions: Sequence[Action]) -> bool:
    """Make the next version, unless it is there: then nothing changes, and False is returned."""
    path = commit_path(table.rstrip("/"), version)
    make_parent(path)
    text = "".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in actions)
    return put_if_absent(path, text.encode())
