"""Slices that somebody else changed since they were published: with DuckDB, SQL, a rollback."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.engine.state.records import WHOLE, SliceRecord
from penstock.lake.catalog import reads
from penstock.lake.catalog.snapshots import touched
from penstock.lake.format.conflicts import ParsedChanges
from penstock.lake.format.naming import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.format.files import Table

# The notes of steps (`Attempt.execute`) and of `drop`, as LIKE has them.
_OWN = ('{"run": %"step": %', '{"penstock_drop": %')
Key = tuple[str, str]  # target and slice


@dataclass(frozen=True, slots=True)
class Outside:
    """``changed``: the snapshot in which others last changed a slice, None where that expired.

    ``there`` are the targets that the lake has a table of.
    """

    changed: Mapping[Key, int | None] = field(default_factory=dict)
    there: frozenset[str] = frozenset()


def look(
    connection: Connection, data_path: str, records: Sequence[SliceRecord], column: str
) -> Outside:
    """Compare what is recorded with what the lake holds; ``column`` carries slices' values.

    A few queries for all of it: what a table's snapshots did is only looked at where they are
    somebody else's.
    """
    if not records:
        return Outside()
    snapshot = reads.newest(connection)
    since = min(record.snapshot_id for record in records)
    by_target: dict[str, list[SliceRecord]] = defaultdict(list)
    for record in records:
        by_target[record.target].append(record)
    changed: dict[Key, int | None] = {}
    there: set[str] = set()
    known = touched.tables_by_name(connection, snapshot.id)
    theirs = touched.changes_of_others(connection, since, _OWN)
    for target, mine in by_target.items():
        name = _name(target)
        if name not in known:
            gone = touched.gone_at(connection, name)
            changed |= {(target, record.slice): gone for record in mine}
            continue
        there.add(target)
        moments = _Moments.of(theirs, name, known[name])
        if moments.last > min(record.snapshot_id for record in mine):
            table = reads.find_table(connection, data_path, snapshot.id, *_parts(target))
            changed |= _changed(connection, table, mine, moments, column)
    return Outside(changed, frozenset(there))


def _parts(target: str) -> tuple[str, str]:
    schema, _, table = target.partition(".")
    return schema, table


def _name(target: str) -> tuple[str, str]:
    schema, table = _parts(target)
    return fold(schema), fold(table)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Snapshots of others that changed one table: as a whole, or some of its rows."""

    whole: tuple[int, ...]
    rows: tuple[int, ...]

    @property
    def last(self) -> int:
        return max((*self.whole, *self.rows), default=-1)

    @classmethod
    def of(cls, theirs: Sequence[ParsedChanges], name: tuple[str, str], table_id: int) -> _Moments:
        whole = [t for t in theirs if name in t.created_tables or table_id in t.altered]
        rows = [t for t in theirs if table_id in t.inserted | t.deleted]
        return cls(tuple(t.snapshot_id for t in whole), tuple(t.snapshot_id for t in rows))


def _changed(
    connection: Connection,
    table: Table | None,
    records: Sequence[SliceRecord],
    moments: _Moments,
    column: str,
) -> dict[Key, int | None]:
    """The slices of one table that were changed, with the last snapshot that did."""
    found = None if table is None else table.schema.find(column)
    values: Mapping[int, frozenset[str | None]] = {}
    if table is not None and found is not None and found.id is not None:
        since = min(record.snapshot_id for record in records)
        values = touched.values_touched(connection, table.id, (found.id, found.name), since)

    def touches(record: SliceRecord, moment: int) -> bool:
        """In doubt (compacted since, or not by slices) it does."""
        slices = values.get(moment, frozenset({None}))
        return record.slice == WHOLE or record.slice in slices or None in slices

    changed: dict[Key, int | None] = {}
    for record in records:
        late = [one for one in moments.whole if one > record.snapshot_id]
        late += [row for row in moments.rows if row > record.snapshot_id and touches(record, row)]
        if late:
            changed[record.target, record.slice] = max(late)
    return changed
