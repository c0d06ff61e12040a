"""Apply rollbacks of a table to the records of its slices.

A slice that was made after the snapshot that the table went back to is not there any more, unless
an earlier run had made it as well: then that run's rows are there. Records are not touched, as a
rollback is the lake's, which knows no slices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.state import reading
from penstock.engine.state.records import SliceRecord, lies_among_others
from penstock.engine.state.tables import to_moment
from penstock.lake.catalog.snapshots.history import Rollbacks, rollbacks
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Undone:
    """``gone`` are slices whose records are of rows that are not there; ``there`` records of the
    rows of earlier runs that are. ``last`` is the snapshot of the last rollback.
    """

    gone: frozenset[str] = frozenset()
    there: tuple[SliceRecord, ...] = ()
    last: int | None = None


def undone(
    connection: Connection, records: Sequence[SliceRecord], known: Mapping[int, Rollbacks]
) -> Undone:
    """``records`` are those of one target, ``known`` the rollbacks of the lake's tables."""
    of_table = _of_table(records[0].target, known) if records and known else None
    if of_table is None:
        return Undone()
    gone = frozenset(each.slice for each in records if _is_undone(each, of_table))
    if not gone:
        return Undone()
    made = reading.publications(connection, records[0].target)
    there = tuple(
        replace(
            records[0],
            slice=value,
            definition_hash="",
            snapshot_id=id_,
            made_in=id_,
            published_at=to_moment(at),
            rolled_back=of_table.last,
        )
        for value, at, id_ in made
        if id_ >= of_table.since and not of_table.undid(id_)
    )
    return Undone(gone, there, of_table.last)


def marked(connection: Connection, records: Sequence[SliceRecord]) -> list[SliceRecord]:
    """Records of one target, those that a rollback has undone with its snapshot."""
    first = min((_earliest(each) for each in records), default=None)
    known = {} if first is None else rollbacks(connection, first)
    of_table = _of_table(records[0].target, known) if known else None
    if of_table is None:
        return list(records)
    return [
        replace(each, rolled_back=of_table.last) if _is_undone(each, of_table) else each
        for each in records
    ]


def _earliest(record: SliceRecord) -> int:
    made_in = record.made_in
    return record.snapshot_id if made_in is None else min(made_in, record.snapshot_id)


def _of_table(target: str, known: Mapping[int, Rollbacks]) -> Rollbacks | None:
    schema, _, table = target.partition(".")
    name = (fold(schema), fold(table))
    return next((each for each in known.values() if each.name == name), None)


def _is_undone(record: SliceRecord, of_table: Rollbacks) -> bool:
    """An interval whose rows lie among those of others (a merge, a history) may have found them
    there: then it is not as recorded where what was there when it was recorded is not.
    """
    if record.made_in is not None and of_table.undid(record.made_in):
        return True
    by_record = record.made_in is None or lies_among_others(record.strategy, record.slice)
    return by_record and of_table.undid(record.snapshot_id)
