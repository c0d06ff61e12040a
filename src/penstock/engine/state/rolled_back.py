"""What a rollback of a table does to what is recorded of its slices.

A slice that was made after the snapshot that the table went back to is not there any more, unless
an earlier run had made it as well: then that run's rows are there. Records are not touched, as a
rollback is the lake's, which knows no slices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.state import reading
from penstock.engine.state.records import SliceRecord
from penstock.lake.catalog.snapshots.rollbacks import Rollbacks, rollbacks
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Undone:
    """``gone`` are slices whose records are of rows that are not there; ``there`` those of which
    other rows are, by the time at which they were made.
    """

    gone: frozenset[str] = frozenset()
    there: tuple[tuple[str, str], ...] = ()


def undone(connection: Connection, target: str, known: Mapping[int, Rollbacks]) -> Undone:
    """``known`` are the rollbacks of the lake's tables."""
    of_table = _of_table(target, known)
    if of_table is None:
        return Undone()
    records = reading.slices(connection, target)
    gone = frozenset(each.slice for each in records if _is_undone(each, of_table))
    if not gone:
        return Undone()
    made = reading.publications(connection, target)
    there = [
        (value, at) for value, at, id_ in made if id_ >= of_table.since and not of_table.undid(id_)
    ]
    return Undone(gone, tuple(there))


def marked(connection: Connection, records: Sequence[SliceRecord]) -> list[SliceRecord]:
    """Records of one target, those that a rollback has undone with its snapshot."""
    made = [each.made_in for each in records if each.made_in is not None]
    known = rollbacks(connection, min(made)) if made else {}
    of_table = _of_table(records[0].target, known) if known else None
    if of_table is None:
        return list(records)
    return [
        replace(each, rolled_back=of_table.last) if _is_undone(each, of_table) else each
        for each in records
    ]


def _of_table(target: str, known: Mapping[int, Rollbacks]) -> Rollbacks | None:
    schema, _, table = target.partition(".")
    name = (fold(schema), fold(table))
    return next((each for each in known.values() if each.name == name), None)


def _is_undone(record: SliceRecord, of_table: Rollbacks) -> bool:
    return record.made_in is not None and of_table.undid(record.made_in)
