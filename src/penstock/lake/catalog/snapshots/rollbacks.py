"""Find the snapshots of a table that rollbacks have undone: their rows are gone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from penstock.lake.catalog.database import metadata
from penstock.lake.format.conflicts import parse_changes
from penstock.sql.identifiers import fold

NOTE = "penstock_rollback"  # the key of what a rollback notes in its commit


@dataclass(frozen=True, slots=True)
class Rollbacks:
    """The rollbacks of one table, newest first: their snapshots, and those they went back to.

    ``since`` is the snapshot that made the table; ``name`` its schema and name now, folded, None of
    a dropped table.
    """

    made: tuple[tuple[int, int], ...] = ()
    since: int = 0
    name: tuple[str, str] | None = None

    def undid(self, snapshot_id: int) -> bool:
        """Return whether what was written in a snapshot is not part of the table as it is now."""
        newest: int | None = None  # which the table is as of, on the way back
        for rollback, to in self.made:
            if newest is not None and rollback > newest:
                continue  # it was undone itself
            if snapshot_id >= rollback:
                return False
            if snapshot_id > to:
                return True
            newest = to
        return False

    @property
    def last(self) -> int:
        """The last of them."""
        return self.made[0][0]

    @property
    def snapshots(self) -> frozenset[int]:
        return frozenset(rollback for rollback, _ in self.made)


def rollbacks(connection: Connection, after: int = -1) -> Mapping[int, Rollbacks]:
    """Return those of all tables that were rolled back after a snapshot, by their ids, as far as
    snapshots are kept. What was written in that snapshot or later is not concerned by others.
    """
    t = metadata.of(connection)
    c = t.snapshot_changes.c
    noted = (c.snapshot_id > after, c.commit_extra_info.like(f'{{"{NOTE}": %'))
    query = select(c.snapshot_id, c.changes_made, c.commit_extra_info).where(*noted)
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for id_, changes, extra in connection.execute(query.order_by(c.snapshot_id.desc())):
        parsed, to = parse_changes(id_, changes or ""), _went_back_to(extra)
        for table_id in parsed.inserted | parsed.deleted | parsed.altered:
            if to is not None:
                found[table_id].append((id_, to))
    if not found:
        return {}
    return _named(connection, found)


def _named(
    connection: Connection, found: Mapping[int, Sequence[tuple[int, int]]]
) -> Mapping[int, Rollbacks]:
    t = metadata.of(connection)
    table, schema = t.table.c, t.schema.c
    known = select(schema.schema_id, schema.schema_name).where(schema.end_snapshot.is_(None))
    schemas = {row.schema_id: row.schema_name for row in connection.execute(known)}
    known = select(table.table_id, table.schema_id, table.table_name, table.begin_snapshot)
    known = known.add_columns(table.end_snapshot).where(table.table_id.in_(found))
    since: dict[int, int] = {}
    names: dict[int, tuple[str, str]] = {}
    for row in connection.execute(known):
        since[row.table_id] = min(row.begin_snapshot, since.get(row.table_id, row.begin_snapshot))
        if row.end_snapshot is None and row.schema_id in schemas:
            names[row.table_id] = (fold(schemas[row.schema_id]), fold(row.table_name))
    return {
        id_: Rollbacks(tuple(made), since.get(id_, 0), names.get(id_))
        for id_, made in found.items()
    }


def _went_back_to(extra: str) -> int | None:
    try:
        note: Any = json.loads(extra)[NOTE]
        return int(note["to"])
    except (ValueError, KeyError, TypeError):  # of somebody else
        return None
