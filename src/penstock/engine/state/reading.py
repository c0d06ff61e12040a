"""Read the state: functions over one connection. Before the first run all return nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Exists,
    Row,
    Select,
    and_,
    exists,
    func,
    null,
    or_,
    select,
)

from penstock import states
from penstock.engine.results import CheckResult, ColumnInfo, SchemaVersion
from penstock.engine.state.records import (
    WHOLE,
    CheckRecord,
    InputRead,
    ProcessId,
    ReadRecord,
    RunRecord,
    SliceRecord,
    StepRecord,
    lies_among_others,
)
from penstock.engine.state.tables import (
    BUILT,
    CHECK,
    DROPPED,
    NONE_NEEDED,
    READ,
    RUN,
    SCHEMA_VERSION,
    SLICE,
    SLICE_COLUMNS,
    STEP,
    UNCOUNTED,
    settings_text,
    to_moment,
)
from penstock.settings.environment_tables import Environment

# The execution option with the version of the state tables: reading does not migrate them.
VERSION = "penstock_state_version"
_WITH_STAMPS = 15  # the first version whose slices have stamps


# The columns of a run without its plan, which is long.
LISTED_RUN = tuple(null().label(c.name) if c is RUN.c.plan else c for c in RUN.c)


def has_stamps(connection: Connection) -> bool:
    """Return whether slices have stamps; unless an option says otherwise, the tables are new."""
    version = connection.get_execution_options().get(VERSION)
    return version is None or version >= _WITH_STAMPS


def run(connection: Connection, run_id: str) -> RunRecord | None:
    row = connection.execute(select(RUN).where(RUN.c.run_id == run_id)).one_or_none()
    return as_run(row) if row else None


def running(connection: Connection) -> list[RunRecord]:
    query = select(*LISTED_RUN).where(RUN.c.state == "running")
    return [as_run(row) for row in connection.execute(query)]


def slice_(connection: Connection, target: str, value: str) -> SliceRecord | None:
    query = select(*SLICE_COLUMNS).where(SLICE.c.target == target, SLICE.c.slice == value)
    return next(_slices(connection, query), None)


def slices(
    connection: Connection, target: str | None = None, *, unless: str | None = None
) -> list[SliceRecord]:
    """All slices, or those of one target, in the order of their values.

    ``unless`` leaves out those that are known to be of this ``slicing``.
    """
    query = select(*SLICE_COLUMNS).order_by(SLICE.c.target, SLICE.c.slice)
    if target is not None:
        query = query.where(SLICE.c.target == target)
    if unless is not None:
        query = query.where(or_(SLICE.c.slicing.is_(None), SLICE.c.slicing != unless))
    return list(_slices(connection, query))


def slices_in(
    connection: Connection, targets: Sequence[str] | None = None
) -> Iterator[SliceRecord]:
    """Yield the slices of several targets.

    Args:
        connection: The catalog.
        targets: The tables; None for all.

    Yields:
        The records, in the order of targets and values.
    """
    query = select(*SLICE_COLUMNS).order_by(SLICE.c.target, SLICE.c.slice)
    if targets is not None:
        query = query.where(SLICE.c.target.in_(targets))
    yield from _slices(connection, query)


def is_recorded(connection: Connection, target: str, since: int) -> bool:
    """Return whether any slice of a target is recorded at a snapshot or later."""
    known = (SLICE.c.target == target, SLICE.c.snapshot_id >= since)
    return connection.execute(select(SLICE.c.slice).where(*known).limit(1)).first() is not None


def unpublished_attempts(
    connection: Connection, targets: Sequence[str] | None = None, by_time: Collection[str] = ()
) -> list[StepRecord]:
    """Return the latest attempt at each slice, where that has published nothing.

    Attempts that began before the slice or its table was dropped do not count. A later batch of a
    model by time may have published a part of a slice. So of these models the latest attempt that
    published nothing counts, whatever was published since: the records say what is newer.

    Args:
        connection: The catalog.
        targets: The tables; None for all.
        by_time: The tables of models by time.

    Returns:
        The attempts, in no order.
    """
    later = STEP.alias()
    is_later = [
        later.c.target == STEP.c.target,
        later.c.slice == STEP.c.slice,
        later.c.started_at > STEP.c.started_at,
    ]
    if by_time:
        is_not_by_time = STEP.c.target.not_in(list(by_time))
        is_later.append(or_(later.c.state.in_(UNPUBLISHED), is_not_by_time))
    query = select(STEP).where(STEP.c.state.in_(UNPUBLISHED), ~_dropped_since())
    if targets is not None:
        query = query.where(STEP.c.target.in_(targets))
    return [as_step(row) for row in connection.execute(query.where(~exists().where(*is_later)))]


_AT_ONCE = 500  # ids of one query: each is bound
# For SQL.
PUBLISHED = tuple(state.value for state in states.PUBLISHED)
UNPUBLISHED = tuple(state.value for state in states.StepState if state not in states.PUBLISHED)


def slices_of(connection: Connection, targets: Sequence[str]) -> dict[str, list[SliceRecord]]:
    """The slices of targets, in the order of their values."""
    found: dict[str, list[SliceRecord]] = defaultdict(list)
    for record in slices_in(connection, targets):
        found[record.target].append(record)
    return found


_ROWS_AT_ONCE = 10_000


def _slices(connection: Connection, query: Select[Any]) -> Iterator[SliceRecord]:
    """Yield very many records. Slices of one batch share most of their values, which are kept once.

    A row has all columns, in their order.
    """
    batches: dict[tuple[Any, ...], _Batch] = {}
    texts: dict[str, str] = {}
    for rows in connection.execute(query).partitions(_ROWS_AT_ONCE):
        for row in rows:
            target, text, run_id, step, strategy, snapshot_id, count, fingerprint, *columns = row
            definition, published_at, slicing, keys, inputs, made_in, read_id = columns
            key = (target, run_id, step, strategy, definition, published_at, slicing, keys, read_id)
            batch = batches.get(key)
            if batch is None:
                batch = batches[key] = _Batch.of(*key)
            slice_values = (snapshot_id, count, fingerprint, inputs, made_in)
            yield batch.record(texts.setdefault(text, text), slice_values)


def slices_named(
    connection: Connection, targets: Sequence[str], values: Collection[str]
) -> list[SliceRecord]:
    """The slices of targets that have one of these texts."""
    query = select(*SLICE_COLUMNS).where(SLICE.c.target.in_(targets))
    return list(_slices(connection, query.where(SLICE.c.slice.in_(values))))


class SlicesAlike(NamedTuple):
    """Slices of a target that were made by one definition. ``slicing`` is None where it is not
    known, ``last`` the last snapshot that one of them is recorded at.
    """

    slicing: str | None
    definition_hash: str
    last: int


def slices_alike(connection: Connection, targets: Sequence[str]) -> dict[str, list[SlicesAlike]]:
    """Return what kinds of slices are recorded, by target."""
    kinds = (SLICE.c.target, SLICE.c.slicing, SLICE.c.definition_hash)
    query = select(*kinds, func.max(SLICE.c.snapshot_id)).where(SLICE.c.target.in_(targets))
    found: dict[str, list[SlicesAlike]] = defaultdict(list)
    for target, *kind in connection.execute(query.group_by(*kinds)):
        found[target].append(SlicesAlike(*kind))
    return found


def lakes_read(connection: Connection, targets: Sequence[str]) -> dict[str, Mapping[str, int]]:
    """The snapshots at which lakes were read for slices of targets, by the ids of reads."""
    query = select(READ.c.read_id, READ.c.lakes).where(READ.c.target.in_(targets))
    return {read_id: _snapshots(lakes) for read_id, lakes in connection.execute(query)}


def lacked(connection: Connection, targets: Sequence[str]) -> dict[str, str]:
    """Return what slices of targets were made without, by the ids of reads that lacked anything."""
    query = select(READ.c.read_id, READ.c.missing).where(READ.c.target.in_(targets))
    rows = connection.execute(query.where(READ.c.missing.is_not(None)))
    return {row.read_id: row.missing for row in rows}


def other_settings(
    connection: Connection, targets: Sequence[str], now: Mapping[str, str]
) -> dict[str, str]:
    """Return which settings of Spark slices of targets were made under that are others ``now``, by
    the ids of reads: ``spark.sql.ansi.enabled: false, now true``. Of old records nothing is known.
    """
    query = select(READ.c.read_id, READ.c.settings).where(READ.c.target.in_(targets))
    rows = connection.execute(query.where(READ.c.settings != settings_text(now)))
    said = cache(lambda text: "; ".join(_differences(json.loads(text), now)))
    return {row.read_id: said(row.settings) for row in rows}


def _differences(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*then, *now}):
        if then.get(name) != now.get(name):
            yield f"{name}: {then.get(name, 'as without it')}, now {now.get(name, 'as without it')}"


@lru_cache(maxsize=4096)
def _snapshots(text: str) -> Mapping[str, int]:
    found: dict[str, int] = json.loads(text)
    return found


def read(connection: Connection, read_id: str) -> ReadRecord | None:
    return reads(connection, [read_id]).get(read_id)


def reads(connection: Connection, read_ids: Sequence[str]) -> dict[str, ReadRecord]:
    """Return what slices were made from, by the ids of reads."""
    found: dict[str, ReadRecord] = {}
    ids = list(dict.fromkeys(read_ids))
    for first in range(0, len(ids), _AT_ONCE):
        of = READ.c.read_id.in_(ids[first : first + _AT_ONCE])
        query = select(READ).where(of)
        found |= {row.read_id: as_read(row) for row in connection.execute(query)}
    return found


def reads_of(connection: Connection, targets: Sequence[str]) -> dict[str, ReadRecord]:
    """Return what the slices of targets that are there were made from, by the ids of reads."""
    there = select(SLICE.c.read_id).where(SLICE.c.target.in_(targets), SLICE.c.read_id.is_not(None))
    of = (READ.c.target.in_(targets), READ.c.read_id.in_(there))
    query = select(READ).where(*of)
    return {row.read_id: as_read(row) for row in connection.execute(query)}


def as_read(row: Row[Any]) -> ReadRecord:
    return ReadRecord(
        read_id=row.read_id,
        target=row.target,
        run_id=row.run_id,
        lakes=json.loads(row.lakes),
        inputs=tuple(InputRead(**each) for each in json.loads(row.inputs)),
        arguments=json.loads(row.arguments),
        tests=row.tests,
        version=row.version,
        missing=row.missing,
        settings=None if row.settings is None else json.loads(row.settings),
    )


class Published(NamedTuple):
    """A slice that a run published: when its step began and ended, the snapshot that has its rows,
    and how many these are.
    """

    slice: str
    began: str
    at: str
    snapshot_id: int
    run_id: str
    step: str
    rows: int | None


def publications(connection: Connection, target: str, *, empty: bool = False) -> list[Published]:
    """The slices that runs have published in snapshots: each time, not only the last. Those of
    before the table was dropped are left out; `slice_drops` are those of slices. ``empty``: those
    that needed no snapshot.
    """
    c = STEP.c
    query = select(
        c.slice, c.started_at, c.finished_at, c.snapshot_id, c.run_id, c.step, c.row_count
    ).where(c.target == target, c.state.in_(PUBLISHED), c.snapshot_id.is_(None) == empty)
    query = query.where(~_dropped_since(DROPPED.c.slice == WHOLE))
    return [Published(*row) for row in connection.execute(query)]


def slices_published(
    connection: Connection, run_ids: Collection[str], since: int
) -> dict[tuple[str, int, str], list[str]]:
    """Return the slices that runs published in snapshots.

    Args:
        connection: The catalog.
        run_ids: The runs.
        since: The snapshot that those of interest come after.

    Returns:
        The texts of slices, by run, snapshot and target.
    """
    c = STEP.c
    query = select(c.run_id, c.snapshot_id, c.target, c.slice)
    query = query.where(c.state.in_(PUBLISHED), c.snapshot_id > since).order_by(c.slice)
    slices: dict[tuple[str, int, str], list[str]] = defaultdict(list)
    ids = sorted(run_ids)
    for start in range(0, len(ids), _AT_ONCE):
        of_runs = query.where(c.run_id.in_(ids[start : start + _AT_ONCE]))
        for run_id, snapshot_id, target, text in connection.execute(of_runs):
            slices[run_id, snapshot_id, target].append(text)
    return slices


class SliceDrop(NamedTuple):
    """A slice that was dropped: the moment, where that is recorded, and the snapshot that did it,
    None where it had no rows.
    """

    slice: str
    at: str | None
    snapshot_id: int | None


def slice_drops(connection: Connection, target: str) -> list[SliceDrop]:
    """Return the latest drop of each slice of a target."""
    query = select(DROPPED.c.slice, DROPPED.c.dropped_at, DROPPED.c.snapshot_id)
    query = query.where(DROPPED.c.target == target, DROPPED.c.slice != WHOLE)
    return [SliceDrop(*row) for row in connection.execute(query)]


def built(connection: Connection, target: str) -> str | None:
    """When a table was last made from nothing; of one made before that was recorded, when a slice
    of it was last published.
    """
    recorded = select(BUILT.c.built_at).where(BUILT.c.target == target)
    moment = connection.execute(recorded).scalar()
    if moment is not None:
        return str(moment)
    last = select(func.max(SLICE.c.published_at)).where(SLICE.c.target == target)
    return connection.execute(last).scalar()


def dropped(
    connection: Connection, targets: Sequence[str] | None = None
) -> dict[str, dict[str, int]]:
    """Return the slices of targets, or of all, that were dropped, each with its snapshot."""
    query = select(DROPPED.c.target, DROPPED.c.slice, DROPPED.c.snapshot_id)
    query = query.where(DROPPED.c.snapshot_id.is_not(None))
    if targets is not None:
        query = query.where(DROPPED.c.target.in_(targets))
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for target, value, snapshot_id in connection.execute(query):
        found[target][value] = snapshot_id
    return found


def _dropped_since(of: ColumnElement[bool] | None = None) -> Exists:
    """Return whether the slice of a step, or its table, was dropped after the step began."""
    if of is None:
        of = or_(DROPPED.c.slice == STEP.c.slice, DROPPED.c.slice == WHOLE)
    return exists().where(
        DROPPED.c.target == STEP.c.target,
        of,
        DROPPED.c.dropped_at > STEP.c.started_at,
    )


def last_checks(connection: Connection, targets: Sequence[str] | None = None) -> list[CheckRecord]:
    """Return the results of the latest run that tested each slice.

    Args:
        connection: The catalog.
        targets: The tables; None for all.

    Returns:
        The results, in the order of the script.
    """
    latest = select(
        CHECK.c.target, CHECK.c.slice, func.max(CHECK.c.checked_at).label("checked_at")
    ).group_by(CHECK.c.target, CHECK.c.slice)
    if targets is not None:
        latest = latest.where(CHECK.c.target.in_(targets))
    newest = latest.subquery()
    query = (
        select(CHECK)
        .join(
            newest,
            and_(
                CHECK.c.target == newest.c.target,
                CHECK.c.slice == newest.c.slice,
                CHECK.c.checked_at == newest.c.checked_at,
            ),
        )
        .order_by(CHECK.c.target, CHECK.c.slice, CHECK.c.position)
    )
    return [as_check(row) for row in connection.execute(query)]


def schema_versions(connection: Connection, target: str) -> tuple[SchemaVersion, ...]:
    """Oldest first."""
    query = (
        select(SCHEMA_VERSION)
        .where(SCHEMA_VERSION.c.target == target)
        .order_by(SCHEMA_VERSION.c.version)
    )
    return tuple(
        SchemaVersion(
            version=row.version,
            snapshot_id=row.snapshot_id,
            time=to_moment(row.created_at),
            columns=tuple(_column(*column) for column in json.loads(row.columns)),
            lineage={name: tuple(of) for name, of in json.loads(row.lineage or "{}").items()},
        )
        for row in connection.execute(query)
    )


def _column(name: str, kind: str, comment: str | None = None) -> ColumnInfo:
    return ColumnInfo(name, kind, comment=comment)


def as_run(row: Row[Any]) -> RunRecord:
    return RunRecord(
        run_id=row.run_id,
        state=row.state,
        partition=row.partition_value,
        args=json.loads(row.args),
        started_at=to_moment(row.started_at),
        process=ProcessId(row.host, row.pid, row.process_started),
        trigger=row.trigger_kind,
        finished_at=to_moment(row.finished_at) if row.finished_at else None,
        user=row.user_name,
        exit_code=row.exit_code,
        plan=row.plan,
        retry_of=row.retry_of,
        environment=_environment(row.environment, row.schema_suffix),
    )


def _environment(name: str | None, suffix: str | None) -> Environment | None:
    return None if name is None or suffix is None else Environment(name, suffix)


def as_step(row: Row[Any]) -> StepRecord:
    return StepRecord(
        run_id=row.run_id,
        step=row.step,
        target=row.target,
        slice=row.slice,
        state=row.state,
        started_at=to_moment(row.started_at),
        finished_at=to_moment(row.finished_at) if row.finished_at else None,
        rows=row.row_count,
        snapshot_id=row.snapshot_id,
        reason=row.reason,
    )


class _Batch(NamedTuple):
    """The values that all records of one publication share."""

    target: str
    run_id: str
    step: str
    strategy: str
    definition: str
    published_at: datetime
    slicing: str | None
    keys: tuple[str, ...] | None
    read_id: str | None

    @classmethod
    def of(cls, *values: Any) -> _Batch:
        target, run_id, step, strategy, definition, published_at, slicing, keys, read_id = values
        moment, names = _moment(published_at), None if keys is None else _keys(keys)
        return cls(target, run_id, step, strategy, definition, moment, slicing, names, read_id)

    def record(self, text: str, slice_values: Sequence[Any]) -> SliceRecord:
        """Return the record of a slice.

        Args:
            text: The slice.
            slice_values: The values of this slice alone, as stored: snapshot, row count,
                fingerprint, inputs, and the snapshot that has its rows.

        Returns:
            The record.
        """
        snapshot_id, count, fingerprint, inputs, content_snapshot = slice_values
        # Intervals in older records had the rows of the whole table.
        is_counted = count != UNCOUNTED and not lies_among_others(self.strategy, text)
        return SliceRecord(
            self.target,
            text,
            self.run_id,
            self.step,
            self.strategy,
            snapshot_id,
            count if is_counted else None,
            fingerprint,
            self.definition,
            self.published_at,
            self.slicing,
            self.keys,
            _content_snapshot(content_snapshot, snapshot_id),
            None if inputs is None else json.loads(inputs),
            self.read_id,
        )


def _content_snapshot(stored: int | None, snapshot_id: int) -> int | None:
    if stored is None:  # old records have no other
        return snapshot_id
    return None if stored == NONE_NEEDED else stored


_moment = lru_cache(maxsize=4096)(to_moment)


@lru_cache(maxsize=1024)
def _keys(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


def as_check(row: Row[Any]) -> CheckRecord:
    result = CheckResult(
        name=row.name,
        passed=bool(row.passed),
        failures=row.failures,
        samples=tuple(json.loads(row.samples)),
        severity=row.severity or "error",
        query=row.query or "",
    )
    return CheckRecord(row.run_id, row.target, row.slice, result, to_moment(row.checked_at))
