"""Remove old records of runs from a catalog: runs, their steps, results of tests, what was read.

What says how things are stays whatever its age: of each slice its record, its latest attempt, its
latest publication, the latest results of its tests, and what it was made from. A run goes when
nothing of it is left. Batches of runs go in transactions of their own: one that fails is named, and
the others go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, exists, func, or_, select, update

from penstock.engine.state.reading import PUBLISHED
from penstock.engine.state.tables import CHECK, READ, RUN, SLICE, STEP, to_text
from penstock.settings.retention import Keep

BATCH = 100  # runs of one transaction
OWN = 20  # runs that one run removes at its end: a little more than it adds


@dataclass(frozen=True, slots=True)
class Removed:
    """The number of records that are gone, or would be."""

    runs: int = 0
    steps: int = 0
    tests: int = 0
    reads: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(
            self.runs + other.runs,
            self.steps + other.steps,
            self.tests + other.tests,
            self.reads + other.reads,
        )


def old_runs(connection: Connection, keep: Keep, now: datetime, limit: int | None) -> list[str]:
    """The ids of runs that are too old, or more than so many, oldest first; none that goes on."""
    ended = select(RUN.c.run_id).where(RUN.c.state != "running")
    found: dict[str, None] = {}
    if keep.runs is not None:
        number = connection.execute(select(func.count()).select_from(RUN)).scalar_one()
        surplus = min(number - keep.runs, limit or number)
        if surplus > 0:
            query = ended.order_by(RUN.c.started_at).limit(surplus)
            found |= dict.fromkeys(id_ for (id_,) in connection.execute(query))
    if keep.age is not None:
        first = to_text(now - timedelta(seconds=keep.age))
        query = ended.where(RUN.c.started_at < first).order_by(RUN.c.started_at).limit(limit)
        found |= dict.fromkeys(id_ for (id_,) in connection.execute(query))
    return list(found)[:limit]


def batches(run_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(run_ids), BATCH):
        yield run_ids[first : first + BATCH]


def count(connection: Connection, run_ids: Sequence[str]) -> Removed:
    """Return what `remove` would remove."""
    steps, tests, reads = _steps(run_ids), _tests(run_ids), _reads(run_ids)
    return Removed(
        len(run_ids),
        _count(connection, STEP, steps),
        _count(connection, CHECK, tests),
        _count(connection, READ, reads),
    )


def remove(connection: Connection, run_ids: Sequence[str]) -> Removed:
    """Remove what is not needed any more of runs. Of one that something is left of, the plan goes
    only.
    """
    reads = _reads(run_ids)
    steps = connection.execute(delete(STEP).where(*_steps(run_ids))).rowcount
    tests = connection.execute(delete(CHECK).where(*_tests(run_ids))).rowcount
    read = connection.execute(delete(READ).where(*reads)).rowcount
    used = exists().where(STEP.c.run_id == RUN.c.run_id)
    gone = connection.execute(delete(RUN).where(RUN.c.run_id.in_(run_ids), ~used)).rowcount
    connection.execute(update(RUN).where(RUN.c.run_id.in_(run_ids)).values(plan=None))
    return Removed(gone, steps, tests, read)


def _count(connection: Connection, table: Table, where: Sequence[ColumnElement[bool]]) -> int:
    query = select(func.count()).select_from(table).where(*where)
    return int(connection.execute(query).scalar_one())


def _steps(run_ids: Sequence[str]) -> list[ColumnElement[bool]]:
    """Steps that are neither the latest attempt at their slice nor its latest publication."""
    other = STEP.alias()
    later = (
        other.c.target == STEP.c.target,
        other.c.slice == STEP.c.slice,
        other.c.started_at > STEP.c.started_at,
    )
    published = exists().where(*later, other.c.state.in_(PUBLISHED))
    return [
        STEP.c.run_id.in_(run_ids),
        exists().where(*later),
        or_(STEP.c.state.not_in(PUBLISHED), published),
    ]


def _tests(run_ids: Sequence[str]) -> list[ColumnElement[bool]]:
    """Results of tests of which there are later ones."""
    other = CHECK.alias()
    later: list[Any] = [
        other.c.target == CHECK.c.target,
        other.c.slice == CHECK.c.slice,
        other.c.checked_at > CHECK.c.checked_at,
    ]
    return [CHECK.c.run_id.in_(run_ids), exists().where(*later)]


def _reads(run_ids: Sequence[str]) -> list[ColumnElement[bool]]:
    """Records of what was read that no slice has any more."""
    used = exists().where(SLICE.c.read_id == READ.c.read_id)
    return [READ.c.run_id.in_(run_ids), ~used]
