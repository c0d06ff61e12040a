"""Past runs of one lake's catalog: lists of them, all that one recorded, and removing old ones.

Lists read an index and the rows that they show: a catalog with ten thousand runs of a hundred
steps answers as one with ten.

Remove old records of runs from a catalog: runs, their steps, results of tests, what was read.

What says how things are stays whatever its age: of each slice its record, its latest attempt, its
latest publication, the latest results of its tests, and what it was made from. A run goes when
nothing of it is left. Batches of runs go in transactions of their own: one that fails is named, and
the others go.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    delete,
    exists,
    func,
    or_,
    select,
    true,
    update,
)

from penstock.engine.results import StepRun
from penstock.engine.state.reading import LISTED_RUN, PUBLISHED, as_check, as_read, as_run, as_step
from penstock.engine.state.records import CheckRecord, ReadRecord, RunRecord, StepRecord
from penstock.engine.state.tables import (
    CHECK,
    DEFINITION,
    READ,
    RUN,
    SLICE,
    STEP,
    to_moment,
    to_text,
)
from penstock.model.time.slice import shown
from penstock.settings.retention import Keep

_PACE_SLICES = 400  # of one table, the last ones
_PACE_RUNS = 10
_PAGE = 200  # runs of a table that are looked up at once
_NOT_DONE = ("failed", "abandoned", "running")  # running: if its process is gone


@dataclass(frozen=True, slots=True)
class AskedRuns:
    """Runs to list: at most ``limit`` of them, the newest. ``target`` is a table that they made, or
    tried to; ``failed`` leaves out those that are known to have ended well; ``suffix`` those of
    environments that put another behind the schemas of their tables.
    """

    limit: int
    since: datetime | None = None
    failed: bool = False
    target: str | None = None
    suffix: str | None = None


def runs(connection: Connection, asked: AskedRuns) -> list[RunRecord]:
    """The runs that are asked for, newest first, without their plans."""
    query = select(*LISTED_RUN).order_by(RUN.c.started_at.desc())
    query = query.where(_of_suffix(asked.suffix))
    if asked.since is not None:
        query = query.where(RUN.c.started_at >= to_text(asked.since))
    if asked.failed:
        query = query.where(RUN.c.state.in_(_NOT_DONE))
    if asked.target is None:
        return [as_run(row) for row in connection.execute(query.limit(asked.limit))]
    return _of_target(connection, query, asked, asked.target)


def _of_suffix(suffix: str | None) -> ColumnElement[bool]:
    """The condition of runs whose tables have a suffix, and of those where that is not known."""
    if suffix is None:
        return true()
    return or_(RUN.c.schema_suffix.is_(None), RUN.c.schema_suffix == suffix)


def _of_target(
    connection: Connection, query: Select[tuple[object, ...]], asked: AskedRuns, target: str
) -> list[RunRecord]:
    """The runs of one table, looked for among its latest steps, some more each time."""
    found: dict[str, RunRecord] = {}
    steps = select(STEP.c.run_id, func.max(STEP.c.started_at).label("at"))
    steps = steps.where(STEP.c.target == target).group_by(STEP.c.run_id)
    if asked.since is not None:
        steps = steps.where(STEP.c.started_at >= to_text(asked.since))
    steps = steps.order_by(func.max(STEP.c.started_at).desc())
    for first in range(0, 1 << 30, _PAGE):
        ids = [id_ for id_, _ in connection.execute(steps.limit(_PAGE).offset(first))]
        for row in connection.execute(query.where(RUN.c.run_id.in_(ids))):
            found[row.run_id] = as_run(row)
        if len(ids) < _PAGE or len(found) >= asked.limit:
            break
    newest = sorted(found.values(), key=lambda run: run.started_at, reverse=True)
    return newest[: asked.limit]


def counts(connection: Connection, run_ids: Sequence[str]) -> dict[str, dict[str, int]]:
    """The number of slices of runs by the states of their steps."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    query = select(STEP.c.run_id, STEP.c.state, func.count()).where(STEP.c.run_id.in_(run_ids))
    for run_id, state, number in connection.execute(query.group_by(STEP.c.run_id, STEP.c.state)):
        found[run_id][state] = int(number)
    return found


def list_targets(connection: Connection) -> list[str]:
    """Return the tables that have recorded slices.

    Args:
        connection: A connection to the catalog.

    Returns:
        The names of the tables, each once.
    """
    return list(connection.execute(select(SLICE.c.target).distinct()).scalars())


def ids_like(connection: Connection, text: str, limit: int = 5) -> list[str]:
    """The ids of runs that begin or end with a text: the first are of the time, the last of none
    other.
    """
    exact = select(RUN.c.run_id).where(RUN.c.run_id == text)
    if connection.execute(exact).first() is not None:
        return [text]
    plain = text.replace("%", "").replace("_", "")
    query = select(RUN.c.run_id).where(
        RUN.c.run_id.like(f"{plain}%") | RUN.c.run_id.like(f"%{plain}")
    )
    return [id_ for (id_,) in connection.execute(query.limit(limit))]


def last_id(connection: Connection, suffix: str | None = None) -> tuple[str, str] | None:
    """The id of the last run that began, after when; ``suffix`` as in `AskedRuns`."""
    query = select(RUN.c.started_at, RUN.c.run_id).order_by(RUN.c.started_at.desc()).limit(1)
    row = connection.execute(query.where(_of_suffix(suffix))).first()
    return None if row is None else (row[0], row[1])


@dataclass(frozen=True, slots=True)
class Recorded:
    """All that one lake has of a run."""

    run: RunRecord
    steps: tuple[StepRecord, ...] = ()
    checks: tuple[CheckRecord, ...] = ()
    reads: Mapping[str, ReadRecord] | None = None


def recorded(connection: Connection, run_id: str) -> Recorded | None:
    """Return what is recorded of a run; its steps in the order in which they began."""
    row = connection.execute(select(RUN).where(RUN.c.run_id == run_id)).one_or_none()
    if row is None:
        return None
    steps = select(STEP).where(STEP.c.run_id == run_id)
    checks = select(CHECK).where(CHECK.c.run_id == run_id)
    return Recorded(
        as_run(row),
        tuple(as_step(row) for row in connection.execute(steps.order_by(STEP.c.started_at))),
        tuple(as_check(row) for row in connection.execute(checks.order_by(CHECK.c.position))),
        reads_of_run(connection, run_id),
    )


def find_last_attempt(connection: Connection, run_id: str) -> str | None:
    """Return the last retry of a run.

    Args:
        connection: The catalog.
        run_id: The run that was retried, perhaps several times one after the other.

    Returns:
        The id of the last retry, or of the run itself; None if the run is not recorded.
    """
    row = connection.execute(select(RUN.c.run_id).where(RUN.c.run_id == run_id)).scalar()
    attempt: str | None = row
    while row is not None:
        attempt = row
        retries = select(RUN.c.run_id).where(RUN.c.retry_of == row)
        row = connection.execute(retries.order_by(RUN.c.started_at.desc()).limit(1)).scalar()
    return attempt


def find_original_run(connection: Connection, run_id: str) -> str | None:
    """Return the run that a run retried, at the end of the chain.

    Args:
        connection: The catalog.
        run_id: A run.

    Returns:
        The id of the run that retried no other; None if the run is not recorded.
    """
    original: str | None = None
    row = connection.execute(select(RUN.c.run_id, RUN.c.retry_of).where(RUN.c.run_id == run_id))
    while (run := row.one_or_none()) is not None:
        original = run.run_id
        row = connection.execute(
            select(RUN.c.run_id, RUN.c.retry_of).where(RUN.c.run_id == run.retry_of)
        )
    return original


def reads_of_run(connection: Connection, run_id: str) -> dict[str, ReadRecord]:
    """Return what the slices of a run were made from, the last of each table, by the table."""
    query = select(READ).where(READ.c.run_id == run_id)
    return {row.target: as_read(row) for row in connection.execute(query)}


def reads_of_step(connection: Connection, run_id: str, target: str) -> list[ReadRecord]:
    """Return all that slices of a table were made from in a run, in the order of time."""
    query = select(READ).where(READ.c.run_id == run_id, READ.c.target == target)
    return [as_read(row) for row in connection.execute(query.order_by(READ.c.read_id))]


def step_runs(connection: Connection, target: str, limit: int) -> tuple[StepRun, ...]:
    """The latest attempts at a target, newest first."""
    query = (
        select(STEP).where(STEP.c.target == target).order_by(STEP.c.started_at.desc()).limit(limit)
    )
    return tuple(_step_run(as_step(row)) for row in connection.execute(query))


def _step_run(step: StepRecord) -> StepRun:
    ended = step.finished_at
    return StepRun(
        run_id=step.run_id,
        step=step.step,
        slice=shown(step.slice),
        state=step.state,
        started_at=step.started_at,
        seconds=(ended - step.started_at).total_seconds() if ended else None,
        rows=step.rows,
        snapshot_id=step.snapshot_id,
        reason=step.reason,
    )


def last_attempt(
    connection: Connection, target: str, slice_: str | None = None
) -> StepRecord | None:
    """The latest attempt at a slice of a table, or at any."""
    query = select(STEP).where(STEP.c.target == target).order_by(STEP.c.started_at.desc())
    if slice_ is not None:
        query = query.where(STEP.c.slice == slice_)
    row = connection.execute(query.limit(1)).first()
    return None if row is None else as_step(row)


def made_before(
    connection: Connection, target: str, snapshot_id: int, slice_: str
) -> StepRecord | None:
    """The step that had last made a table as it was at a snapshot: its slice of that text, where
    it has one, else any.
    """
    query = select(STEP).where(
        STEP.c.target == target, STEP.c.state == "done", STEP.c.snapshot_id <= snapshot_id
    )
    query = query.order_by(STEP.c.started_at.desc()).limit(1)
    row = connection.execute(query.where(STEP.c.slice == slice_)).first()
    row = row or connection.execute(query).first()
    return None if row is None else as_step(row)


def makers(connection: Connection, target: str) -> dict[int, tuple[str, str]]:
    """The runs and steps that made snapshots of a target, by the snapshots."""
    query = select(STEP.c.snapshot_id, STEP.c.run_id, STEP.c.step).where(
        STEP.c.target == target, STEP.c.state == "done", STEP.c.snapshot_id.is_not(None)
    )
    return {id_: (run_id, step) for id_, run_id, step in connection.execute(query)}


class MadeOnce(NamedTuple):
    """One time that a run made a slice. ``rows`` is None where they were not counted."""

    run_id: str
    slice: str
    began: str
    ended: str
    rows: int | None


@dataclass(frozen=True, slots=True)
class Pace:
    """Medians of what one slice, or one unit of time, took in ``runs`` past runs."""

    seconds: float
    rows: float | None
    runs: int


def last_made(connection: Connection, target: str) -> list[MadeOnce]:
    """Return the last times that slices of a target were made.

    Args:
        connection: The catalog.
        target: The table.

    Returns:
        The publications of runs, the newest first.
    """
    conditions = (
        STEP.c.target == target,
        STEP.c.state.in_(PUBLISHED),
        STEP.c.finished_at.is_not(None),
    )
    query = select(
        STEP.c.run_id, STEP.c.slice, STEP.c.started_at, STEP.c.finished_at, STEP.c.row_count
    )
    query = query.where(*conditions).order_by(STEP.c.started_at.desc()).limit(_PACE_SLICES)
    return [MadeOnce(*row) for row in connection.execute(query)]


def pace_of(publications: Iterable[MadeOnce], units: Callable[[str], int]) -> Pace | None:
    """Return what a slice takes.

    Slices of one job share its time, so a run is looked at as a whole.

    Args:
        publications: The times that slices were made.
        units: Counts what the text of a slice stands for.

    Returns:
        The medians; None where no slice was made.
    """
    by_run: dict[str, list[MadeOnce]] = defaultdict(list)
    for part in publications:
        by_run[part.run_id].append(part)
    runs = list(by_run.values())[:_PACE_RUNS]
    if not runs:
        return None
    seconds, rows = [], []
    for slices in runs:
        number = sum(units(part.slice) for part in slices) or 1
        end = to_moment(max(part.ended for part in slices))
        duration = end - to_moment(min(part.began for part in slices))
        seconds.append(duration.total_seconds() / number)
        counts = [part.rows for part in slices if part.rows is not None]
        if len(counts) == len(slices):
            rows.append(sum(counts) / number)
    return Pace(median(seconds), median(rows) if rows else None, len(runs))


def last_other(connection: Connection, target: str, than: str) -> Mapping[str, str] | None:
    """Return the parts of the definition that last made slices of a target, of those that are not
    ``than``; None where it is not recorded.
    """
    last = func.max(SLICE.c.snapshot_id)
    hashes = select(SLICE.c.definition_hash).where(
        SLICE.c.target == target, SLICE.c.definition_hash != than
    )
    hashes = hashes.group_by(SLICE.c.definition_hash).order_by(last.desc()).limit(1)
    other = connection.execute(hashes).scalar()
    own = (DEFINITION.c.target == target, DEFINITION.c.definition_hash == other)
    parts = connection.execute(select(DEFINITION.c.parts).where(*own)).scalar()
    if parts is None:
        return None
    found: dict[str, str] = json.loads(parts)
    return found


def parts_of(connection: Connection, target: str, definition: str) -> dict[str, str]:
    """Return the parts of a definition, by its hash; none where it is not recorded."""
    own = (DEFINITION.c.target == target, DEFINITION.c.definition_hash == definition)
    parts = connection.execute(select(DEFINITION.c.parts).where(*own)).scalar()
    found: dict[str, str] = {} if parts is None else json.loads(parts)
    return found


def other_terms(connection: Connection, now: Mapping[str, str]) -> dict[str, tuple[str, list[str]]]:
    """Return targets of which slices were published on other terms than those of ``now``, by hash:
    the last of these, and the slices. Of records without terms nothing is known.
    """
    kinds = select(READ.c.target, READ.c.tests).where(READ.c.target.in_(now), READ.c.tests != "")
    found = connection.execute(kinds.distinct())
    others = {target for target, terms in found if terms != now[target]}
    if not others:
        return {}
    made = select(SLICE.c.target, READ.c.tests, SLICE.c.slice).join(
        READ, READ.c.read_id == SLICE.c.read_id
    )
    made = made.where(SLICE.c.target.in_(others), READ.c.tests != "")
    known: dict[str, tuple[str, list[str]]] = {}
    for target, terms, slice_ in connection.execute(made.order_by(SLICE.c.snapshot_id)):
        if terms != now[target]:
            _, slices = known.get(target, ("", list[str]()))
            slices.append(slice_)
            known[target] = terms, slices
    return known


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
