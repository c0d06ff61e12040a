"""The state of one lake, over its catalog's own connections.

The functions write it over one connection, inside whatever transaction that has begun.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, delete, func, insert, select, update

from penstock.engine.state import reading
from penstock.engine.state.claims import NOBODY, Claim, Holders, holders, release
from penstock.engine.state.other_writers import marked, undone_of
from penstock.engine.state.records import (
    WHOLE,
    ProcessId,
    Publication,
    ReadRecord,
    RunRecord,
    SliceRecord,
    StepRecord,
    is_gone,
    plain_sample,
)
from penstock.engine.state.tables import (
    BUILT,
    CHECK,
    DEFINITION,
    DROPPED,
    NONE_NEEDED,
    READ,
    RUN,
    SCHEMA_VERSION,
    SLICE,
    STAMP_BITS,
    STEP,
    UNCOUNTED,
    migrate,
    settings_text,
    to_moment,
    to_text,
    version_of,
)

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog
    from penstock.model.definition.model import Model


T = TypeVar("T")


class State:
    """Runs, slices, checks and schema versions of the tables of one lake."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._is_migrated = False  # by this object: then reading need not ask for the version

    def begin_run(self, run: RunRecord, models: Sequence[Model] = ()) -> list[str]:
        """Record that a run starts, and the definitions of its models; returns the ids of earlier
        runs found dead.
        """
        with self._catalog.writing() as connection:
            migrate(connection)
            dead = abandon_dead_runs(connection, is_gone, run.started_at)
            insert_run(connection, run)
            insert_definitions(connection, models, run.started_at)
        self._is_migrated = True
        return dead

    def end_run(self, run_id: str, state: str, exit_code: int | None = None) -> None:
        with self._catalog.writing() as connection:
            finish_run(connection, run_id, state, now(), exit_code)
            release(connection, run_id)

    def abandon_run(self, run_id: str) -> None:
        """Record that a run goes on nowhere. Its claims end: it publishes nothing more.

        Args:
            run_id: The run.
        """
        with self._catalog.writing() as connection:
            abandon_run(connection, run_id, now())
            release(connection, run_id)

    def begin_step(self, *steps: StepRecord) -> None:
        with self._catalog.writing() as connection:
            for step in steps:
                start_step(connection, step)

    def end_step(self, key: tuple[str, str, str], state: str, reason: str | None) -> None:
        """A step ends without a publication. ``key``: run id, step, slice."""
        with self._catalog.writing() as connection:
            end_step(connection, key, state, now(), reason=reason)

    def fail_tests(self, *failed: Publication) -> None:
        """Steps end because their tests failed: the results are recorded, the slices are not."""
        with self._catalog.writing() as connection:
            for what in failed:
                fail(connection, what)

    def write(self, act: Callable[[Connection], None]) -> None:
        """Write several records in one transaction."""
        with self._catalog.writing() as connection:
            act(connection)

    def confirm(
        self, what: Publication, snapshot_id: int | None, *, as_of: int | None = None
    ) -> None:
        """Record a slice whose data needs no new snapshot; see `publish`."""
        with self._catalog.writing() as connection:
            publish(connection, snapshot_id, what, as_of=as_of)

    def prepare(self) -> None:
        """Make the tables what this code expects, before anything but a run writes to them."""
        with self._catalog.writing() as connection:
            migrate(connection)
        self._is_migrated = True

    def forget(self, target: str, value: str | None) -> None:
        """Forget a slice, or all of a target, of which the catalog has nothing."""
        with self._catalog.writing() as connection:
            forget(connection, target, value, now())

    def slices(self, target: str, *, unless: str | None = None) -> list[SliceRecord]:
        """All slices of a target, or those that are not known to be of this ``slicing``."""

        def ask(connection: Connection) -> list[SliceRecord]:
            found = reading.slices(connection, target, unless=unless)
            return marked(connection, found)

        return self.read(ask, [])

    def slices_there(self, target: str) -> list[SliceRecord]:
        """The slices of a target by the runs whose rows are there: after a rollback those of
        earlier runs.
        """

        def ask(connection: Connection) -> list[SliceRecord]:
            records = reading.slices(connection, target)
            lost = undone_of(connection, target, records)
            return list(lost.as_is(records).values())

        return self.read(ask, [])

    def is_recorded(self, target: str, since: int) -> bool:
        """Return whether any slice of a target is recorded at a snapshot or later."""
        return self.read(lambda each: reading.is_recorded(each, target, since), False)

    def slice(self, target: str, value: str) -> SliceRecord | None:

        def ask(connection: Connection) -> SliceRecord | None:
            found = reading.slice_(connection, target, value)
            return None if found is None else marked(connection, [found])[0]

        return self.read(ask, None)

    def run(self, run_id: str) -> RunRecord | None:
        return self.read(lambda connection: reading.run(connection, run_id), None)

    def read(self, ask: Callable[[Connection], T], otherwise: T) -> T:
        """Ask over one connection; ``otherwise`` when no run has made the tables yet."""
        with self.reading() as connection:
            return otherwise if connection is None else ask(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection | None]:
        """One consistent connection; None when no run has made the tables yet."""
        with self._catalog.reading() as connection:
            yield connection if self._is_migrated or find_tables(connection) else None


def find_tables(connection: Connection) -> bool:
    """Whether a run has made the tables of the state; what `reading` has reads them by version."""
    version = version_of(connection)
    connection.execution_options(**{reading.VERSION: version})
    return bool(version)


def holders_of(catalog: Catalog) -> Holders:
    """Return which slices of a lake's tables runs are making now."""
    return State(catalog).read(holders, NOBODY)


def now() -> datetime:
    return datetime.now(UTC)


def insert_run(connection: Connection, run: RunRecord) -> None:
    connection.execute(
        insert(RUN).values(
            run_id=run.run_id,
            state=run.state,
            partition_value=run.partition,
            args=json.dumps(dict(run.args), sort_keys=True),
            trigger_kind=run.trigger,
            started_at=to_text(run.started_at),
            host=run.process.host,
            pid=run.process.pid,
            process_started=run.process.started,
            user_name=run.user,
            plan=run.plan,
            retry_of=run.retry_of,
            environment=None if run.environment is None else run.environment.name,
            schema_suffix=None if run.environment is None else run.environment.suffix,
        )
    )


def insert_definitions(connection: Connection, models: Sequence[Model], at: datetime) -> None:
    """Record the definitions that are not recorded yet, and data tests under the hash of all terms
    of which they are.
    """
    targets = [model.target.qualified for model in models]
    known = select(DEFINITION.c.target, DEFINITION.c.definition_hash)
    found = connection.execute(known.where(DEFINITION.c.target.in_(targets))) if targets else ()
    there = {(target, text) for target, text in found}
    kinds = {"definition_parts": attrgetter("definition_hash"), "test_parts": attrgetter("terms")}
    new = {(m.target.qualified, of(m)): (m, parts) for m in models for parts, of in kinds.items()}
    rows = [
        {
            "target": target,
            "definition_hash": text,
            "parts": json.dumps(getattr(model, parts), sort_keys=True),
            "recorded_at": to_text(at),
        }
        for (target, text), (model, parts) in new.items()
        if (target, text) not in there
    ]
    if rows:
        connection.execute(insert(DEFINITION), rows)


def finish_run(
    connection: Connection, run_id: str, state: str, at: datetime, exit_code: int | None = None
) -> None:
    ended = {"state": state, "finished_at": to_text(at), "exit_code": exit_code}
    connection.execute(update(RUN).where(RUN.c.run_id == run_id).values(**ended))


def abandon_dead_runs(
    connection: Connection, is_gone: Callable[[ProcessId], bool], at: datetime
) -> list[str]:
    """Mark runs whose process ended without saying so; returns their ids."""
    rows = connection.execute(select(RUN).where(RUN.c.state == "running")).all()
    dead = [
        row.run_id for row in rows if is_gone(ProcessId(row.host, row.pid, row.process_started))
    ]
    for run_id in dead:
        abandon_run(connection, run_id, at)
    return dead


def abandon_run(connection: Connection, run_id: str, moment: datetime) -> None:
    """Mark a run, and its steps that have not ended, as abandoned.

    Args:
        connection: The catalog, in a transaction that writes.
        run_id: The run.
        moment: When that was found.
    """
    finish_run(connection, run_id, "abandoned", moment)
    connection.execute(
        update(STEP)
        .where(STEP.c.run_id == run_id, STEP.c.state == "running")
        .values(state="abandoned", finished_at=to_text(moment))
    )


def start_step(connection: Connection, step: StepRecord) -> None:
    """A step begins; a retry within the same run begins it again."""
    connection.execute(
        delete(STEP).where(
            STEP.c.run_id == step.run_id, STEP.c.step == step.step, STEP.c.slice == step.slice
        )
    )
    connection.execute(
        insert(STEP).values(
            run_id=step.run_id,
            step=step.step,
            slice=step.slice,
            target=step.target,
            state=step.state,
            started_at=to_text(step.started_at),
            finished_at=to_text(step.finished_at) if step.finished_at else None,
            reason=step.reason,
        )
    )


def divide_step(connection: Connection, parts: Sequence[StepRecord], slice_: str) -> None:
    """Record parts of a step's slice in place of it: they began when it did."""
    first = parts[0]
    same = (STEP.c.run_id == first.run_id, STEP.c.step == first.step, STEP.c.slice == slice_)
    began = connection.execute(select(STEP.c.started_at).where(*same)).scalar()
    connection.execute(delete(STEP).where(*same))
    for part in parts:
        at = part.started_at if began is None else to_moment(began)
        start_step(connection, replace(part, started_at=at))


def end_step(
    connection: Connection,
    key: tuple[str, str, str],
    state: str,
    at: datetime,
    *,
    rows: int | None = None,
    snapshot_id: int | None = None,
    reason: str | None = None,
) -> None:
    """``key``: run id, step, slice."""
    run_id, step, slice_ = key
    connection.execute(
        update(STEP)
        .where(STEP.c.run_id == run_id, STEP.c.step == step, STEP.c.slice == slice_)
        .values(
            state=state,
            finished_at=to_text(at),
            row_count=rows,
            snapshot_id=snapshot_id,
            reason=reason,
        )
    )


def publish(
    connection: Connection, snapshot_id: int | None, what: Publication, *, as_of: int | None = None
) -> None:
    """Record the slice, its checks, its columns and the end of its step.

    Called with the data's own connection and the id of its new snapshot. When nothing changed,
    ``snapshot_id`` is the one that made the slice, None where it needed none, and ``as_of`` a later
    one at which it was still as recorded. Raises CommitConflict unless what it ``requires`` holds.
    """
    as_of = snapshot_id if as_of is None else as_of
    assert as_of is not None, "a slice is as recorded at some snapshot"
    if what.requires is not None:
        what.requires.check(connection)
    if what.anew:
        forget(connection, what.target, None, what.at)
    if what.built is not None:
        connection.execute(delete(BUILT).where(BUILT.c.target == what.target))
        connection.execute(insert(BUILT).values(target=what.target, built_at=to_text(what.built)))
    void = [] if what.first else [SLICE.c.slice.in_((what.slice, *what.gone))]
    connection.execute(delete(SLICE).where(SLICE.c.target == what.target, *void))
    for record in (*what.records(as_of, snapshot_id), *what.left):
        insert_slice(connection, record)
    insert_checks(connection, what)
    if what.columns:  # none are given for a slice that was only confirmed
        _capture_schema(connection, as_of, what)
    end_step(
        connection,
        (what.run_id, what.step, what.slice),
        what.state,
        what.at,
        rows=what.rows if what.written is None else what.written,
        snapshot_id=snapshot_id,
        reason=what.reason,
    )


def fail(connection: Connection, what: Publication) -> None:
    """The tests of a slice failed: their results are recorded, the slice is as it was."""
    insert_checks(connection, what)
    key = (what.run_id, what.step, what.slice)
    end_step(connection, key, "failed", what.at, reason=what.reason)


@dataclass(frozen=True, slots=True)
class StepRecords:
    """The outcomes of the slices of one step: ``published`` with the data, ``failed`` by their
    tests. ``base`` is the snapshot that the step read its own lake at; ``divided`` is the slice
    that these are parts of, where it was recorded as one. ``reads`` are what they were made from,
    ``claim`` has to be held still. ``forgets_reads``: each record of what was read names all that
    was before, so that only the last is kept.
    """

    published: tuple[Publication, ...]
    base: int
    failed: tuple[Publication, ...] = ()
    divided: str | None = None
    reads: tuple[ReadRecord, ...] = ()
    claim: Claim | None = None
    forgets_reads: bool = False

    def write(self, connection: Connection, snapshot_id: int | None = None) -> None:
        """``snapshot_id`` is None where the data needed no snapshot. Raises CommitConflict and
        ClaimLost.
        """
        if self.claim is not None:
            self.claim.check(connection)
        if self.divided is not None:
            begun = [
                StepRecord(what.run_id, what.step, what.target, what.slice, "running", what.at)
                for what in (*self.published, *self.failed)
            ]
            divide_step(connection, begun, self.divided)
        as_of = self.base if snapshot_id is None else snapshot_id
        for read in self.reads if self.published else ():
            insert_read(connection, read)
        for what in self.published:
            made, made_in = what.made_by(snapshot_id)
            publish(connection, made_in, made, as_of=as_of)
        for what in self.failed:
            fail(connection, what)
        if self.forgets_reads and self.published:
            own = self.published[0].target
            kept = [what.read_id for what in self.published if what.read_id]
            gone = (READ.c.target == own, READ.c.read_id.not_in(kept))
            connection.execute(delete(READ).where(*gone))


def insert_slice(connection: Connection, record: SliceRecord) -> None:
    connection.execute(
        insert(SLICE).values(
            target=record.target,
            slice=record.slice,
            run_id=record.run_id,
            step=record.step,
            strategy=record.strategy,
            snapshot_id=record.snapshot_id,
            row_count=UNCOUNTED if record.rows is None else record.rows,
            fingerprint=record.fingerprint,
            definition_hash=record.definition_hash,
            published_at=to_text(record.published_at),
            slicing=record.slicing,
            keys=None if record.keys is None else json.dumps(record.keys),
            inputs=None if record.inputs is None else json.dumps(dict(record.inputs)),
            made_in=NONE_NEEDED if record.made_in is None else record.made_in,
            read_id=record.read_id,
            stamp=secrets.randbits(STAMP_BITS),
        )
    )


def insert_read(connection: Connection, read: ReadRecord) -> None:
    connection.execute(
        insert(READ).values(
            read_id=read.read_id,
            target=read.target,
            run_id=read.run_id,
            lakes=json.dumps(dict(read.lakes), sort_keys=True),
            inputs=json.dumps([each.to_dict() for each in read.inputs]),
            arguments=json.dumps(dict(read.arguments), sort_keys=True),
            tests=read.tests,
            version=read.version,
            missing=read.missing,
            settings=None if read.settings is None else settings_text(read.settings),
        )
    )


def forget(
    connection: Connection, target: str, value: str | None, at: datetime, by: int | None = None
) -> None:
    """A slice was dropped, or (without ``value``) the whole target: its records go, and attempts
    that began before ``at`` say nothing of it any more. What ran remains in the history. Slices
    made from one are behind the snapshot ``by`` that dropped it.
    """
    for table in (SLICE, CHECK, DROPPED):
        mine = [table.c.target == target]
        if value is not None:
            mine.append(table.c.slice == value)
        connection.execute(delete(table).where(*mine))
    connection.execute(
        insert(DROPPED).values(
            target=target,
            slice=WHOLE if value is None else value,
            dropped_at=to_text(at),
            snapshot_id=by,
        )
    )


def insert_checks(connection: Connection, what: Publication) -> None:
    """The results of a step's tests, whether or not its slice was published."""
    connection.execute(
        delete(CHECK).where(
            CHECK.c.run_id == what.run_id,
            CHECK.c.target == what.target,
            CHECK.c.slice == what.slice,
        )
    )
    rows = [
        {
            "run_id": what.run_id,
            "target": what.target,
            "slice": what.slice,
            "position": position,
            "name": check.name,
            "passed": int(check.passed),
            "failures": check.failures,
            "samples": json.dumps([plain_sample(row) for row in check.samples]),
            "severity": check.severity,
            "query": check.query,
            "checked_at": to_text(what.at),
        }
        for position, check in enumerate(what.checks)
    ]
    if rows:
        connection.execute(insert(CHECK), rows)


def _capture_schema(connection: Connection, snapshot_id: int, what: Publication) -> None:
    """A new version only when columns were added, dropped, retyped, moved or described again."""
    columns = json.dumps(
        [
            [column.name, column.type, *([column.comment] if column.comment else [])]
            for column in what.columns
        ]
    )
    ofs = SCHEMA_VERSION.c.target == what.target
    lineage = None if what.lineage is None else json.dumps(what.lineage)
    latest = connection.execute(select(func.max(SCHEMA_VERSION.c.version)).where(ofs)).scalar()
    if latest is not None:
        this = (ofs, SCHEMA_VERSION.c.version == latest)
        known = connection.execute(select(SCHEMA_VERSION.c.columns).where(*this)).scalar_one()
        if known == columns:
            if lineage is not None:
                connection.execute(update(SCHEMA_VERSION).where(*this).values(lineage=lineage))
            return
    connection.execute(
        insert(SCHEMA_VERSION).values(
            target=what.target,
            version=(latest or 0) + 1,
            run_id=what.run_id,
            snapshot_id=snapshot_id,
            columns=columns,
            created_at=to_text(what.at),
            lineage=lineage,
        )
    )
