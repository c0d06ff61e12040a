"""Tell whether what was derived from a catalog still follows from it.

A cache of derived states is valid as long as nothing that they depend on has changed. A `Basis`
names all that: the snapshot up to which changes of tables were seen, the tables, and the records of
their slices. In doubt a basis does not hold, and the states are derived again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from penstock.engine.state.reading import has_stamps, unpublished_attempts
from penstock.engine.state.store import find_tables
from penstock.engine.state.tables import DROPPED, SLICE, to_text
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.snapshots import history
from penstock.lakes.format.conflicts import ParsedChanges
from penstock.sql.identifiers import fold

MOST_SNAPSHOTS = 20_000  # since a basis was recorded; more are not looked through


class Position(NamedTuple):
    """A snapshot of a catalog. A restored catalog may have another one with the same id."""

    snapshot_id: int
    time: str


class Revision(NamedTuple):
    """The records of the slices of a table in numbers that differ when any of them does.

    Attributes:
        slices: The number of records.
        stamps: The sum of their stamps.
        drops: The number of slices that were dropped.
        last_drop: The moment of the last drop; empty for none.
        last_attempt: When the last attempt began that published nothing; empty for none.
    """

    slices: int = 0
    stamps: int = 0
    drops: int = 0
    last_drop: str = ""
    last_attempt: str = ""


class Basis(NamedTuple):
    """Name what states depend on in one lake.

    Attributes:
        position: The snapshot up to which changes are part of the states.
        first_snapshot: The first snapshot that is kept: what came before is not known.
        tables: The ids of tables, by ``schema.table`` folded; -1 for one that does not exist.
        revisions: The records of slices, by targets.
    """

    position: Position
    first_snapshot: int
    tables: tuple[tuple[str, int], ...]
    revisions: tuple[tuple[str, Revision], ...]


@dataclass(frozen=True, slots=True)
class LakeMoment:
    """Hold what tells whether bases hold, read in one transaction.

    Attributes:
        position: The newest snapshot.
        first_snapshot: The first snapshot that is kept.
        tables: The ids of the tables that exist, by ``schema.table`` folded.
        revisions: The records of slices, by targets.
        times: The times of the snapshots that bases name, by ids.
        last_changes: The last snapshot that changed a table, by the table's id.
        last_other_change: The last snapshot that changed what is no table, such as a view.
        rolled_back: The tables that were rolled back.
    """

    position: Position
    first_snapshot: int
    tables: Mapping[str, int]
    revisions: Mapping[str, Revision]
    times: Mapping[int, str]
    last_changes: Mapping[int, int]
    last_other_change: int
    rolled_back: frozenset[str]

    def make_basis(self, tables: Iterable[str], targets: Iterable[str]) -> Basis | None:
        """Return the basis of states that are derived now.

        Args:
            tables: The tables that the states depend on, ``schema.table``.
            targets: The targets whose records they depend on.

        Returns:
            The basis; None where a table was rolled back: its states depend on the history of runs,
            too.
        """
        names = sorted({fold(name) for name in tables})
        if not self.rolled_back.isdisjoint(names):
            return None
        return Basis(
            self.position,
            self.first_snapshot,
            tuple((name, self.tables.get(name, -1)) for name in names),
            tuple((target, self._revision(target)) for target in sorted(set(targets))),
        )

    def holds(self, basis: Basis) -> bool:
        """Tell whether nothing has changed that a basis names.

        Args:
            basis: The basis, as `make_basis` returned it.

        Returns:
            False also where that is not certain.
        """
        snapshot_id, time = basis.position
        if self.first_snapshot != basis.first_snapshot:
            return False
        if self.times.get(snapshot_id) != time or self.last_other_change > snapshot_id:
            return False
        return all(
            self.tables.get(name, -1) == table_id
            and self.last_changes.get(table_id, -1) <= snapshot_id
            for name, table_id in basis.tables
        ) and all(self._revision(target) == revision for target, revision in basis.revisions)

    def _revision(self, target: str) -> Revision:
        return self.revisions.get(target, Revision())


def read_moment(connection: Connection, positions: Iterable[Position]) -> LakeMoment | None:
    """Read what tells whether bases hold.

    Args:
        connection: The catalog, in one transaction.
        positions: The positions of the bases.

    Returns:
        The moment; None where records have no stamps yet.
    """
    has_records = find_tables(connection)
    if has_records and not has_stamps(connection):
        return None
    newest = reads.newest(connection)
    ids = {position.snapshot_id for position in positions}
    # A restored catalog may be older than all positions.
    since = min(newest.id, max(min(ids, default=newest.id), newest.id - MOST_SNAPSHOTS))
    tables = history.tables_by_name(connection, newest.id)
    changes = history.changes_of_others(connection, since, ())
    last_changes, last_other = _last_changes(changes, tables)
    snapshot = metadata.of(connection).snapshot.c
    query = select(snapshot.snapshot_id, snapshot.snapshot_time)
    rows = connection.execute(query.where(snapshot.snapshot_id >= since))
    times = {snapshot_id: str(time) for snapshot_id, time in rows}
    return LakeMoment(
        Position(newest.id, times[newest.id]),
        history.first_snapshot(connection),
        {f"{schema}.{name}": table_id for (schema, name), table_id in tables.items()},
        _read_revisions(connection) if has_records else {},
        times,
        last_changes,
        last_other,
        _read_rolled_back(connection),
    )


def _read_rolled_back(connection: Connection) -> frozenset[str]:
    names = (rollbacks.name for rollbacks in history.rollbacks(connection).values())
    return frozenset(".".join(name) for name in names if name is not None)


def _last_changes(
    changes: Iterable[ParsedChanges], ids: Mapping[tuple[str, str], int]
) -> tuple[dict[int, int], int]:
    """Return the last change of each table, and that of all else.

    A rename leaves the new name among those that are created. A name that is created and is none of
    the tables is that of a view, or of a table that went.
    """
    by_table: dict[int, int] = {}
    last_other = -1
    for change in changes:
        tables = change.inserted | change.deleted | change.altered | change.compacted
        tables |= change.dropped_tables
        tables |= {ids[name] for name in change.created_tables if name in ids}
        by_table |= dict.fromkeys(tables, change.snapshot_id)
        other_changes = (
            change.created_schemas,
            change.dropped_schemas,
            change.dropped_views,
            change.altered_views,
            change.created_scalar_macros,
            change.created_table_macros,
            change.dropped_macros,
        )
        has_other_names = not change.created_tables <= ids.keys()
        if change.unknown is not None or any(other_changes) or has_other_names:
            last_other = change.snapshot_id
    return by_table, last_other


def _read_revisions(connection: Connection) -> dict[str, Revision]:
    slices = select(SLICE.c.target, func.count(), func.sum(SLICE.c.stamp))
    counts = {
        target: (count, int(stamps or 0))
        for target, count, stamps in connection.execute(slices.group_by(SLICE.c.target))
    }
    query = select(DROPPED.c.target, func.count(), func.max(DROPPED.c.dropped_at))
    drops = {
        target: (count, moment)
        for target, count, moment in connection.execute(query.group_by(DROPPED.c.target))
    }
    attempts: dict[str, str] = {}
    for step in unpublished_attempts(connection):
        attempts[step.target] = max(to_text(step.started_at), attempts.get(step.target, ""))
    return {
        target: Revision(
            *counts.get(target, (0, 0)), *drops.get(target, (0, "")), attempts.get(target, "")
        )
        for target in {*counts, *drops, *attempts}
    }
