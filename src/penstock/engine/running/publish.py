"""Make a batch, slices of one step that one query makes and one commit publishes, and record them.

It begins with what is recorded, stages a candidate, tests it slice by slice, and publishes what
passes. What fails leaves the table as it was. What passed its tests is recorded in the transaction
of its data, with what failed beside it. Where the data needs no snapshot, the records have a
transaction of their own.

Appends of a run that was interrupted after it had published them: the next run confirms them.

By the documents a re-run of an append adds its rows again, and it does. But when the run that
published them was killed or interrupted later on, the next run of the same request is its retry,
and a retry gives the same tables as an undisturbed run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.destinations.values import Staged
from penstock.engine.planning.intervals import parts_made, replaced
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.python import serve
from penstock.engine.python.serve import WrittenFile
from penstock.engine.results import CheckResult, ColumnInfo
from penstock.engine.running import quarantine
from penstock.engine.running.attempt import Attempt, known_of
from penstock.engine.running.bisect import Verdict
from penstock.engine.running.sources import run_python
from penstock.engine.running.writers import Candidate, write
from penstock.engine.session.run_context import RunContext
from penstock.engine.state.carried import noted
from penstock.engine.state.records import (
    KeptPart,
    Publication,
    ReadRecord,
    Requirement,
    SliceRecord,
    column_infos,
    lies_among_others,
)
from penstock.engine.state.store import State, StepRecords
from penstock.errors import DataFileMissing, DataTestFailed
from penstock.events import Notice
from penstock.model.definition.graph import table_key
from penstock.model.time.interval import Interval
from penstock.model.values.asset import TableName
from penstock.model.values.strategy import Output
from penstock.sql.identifiers import fold
from penstock.states import INTERRUPTED

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.destinations.destination import Transaction


@dataclass(frozen=True, slots=True)
class MadeSlice:
    """The state of one slice: ``made_in`` is the snapshot that made it, None for a slice that
    never had rows. Where tests failed, nothing of it was published.
    """

    publication: Publication
    made_in: int | None

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        return tuple(check for check in self.publication.checks if check.outcome == "failed")


def execute(context: RunContext, planned: PlannedStep) -> list[MadeSlice]:
    """Make the slices of a step, once, and return what became of each; of a range of time that
    does not pass its tests as a whole, of its parts.

    Raises NotJoint for slices that are to be made one by one, Cancelled, or what the tree of errors
    has; then nothing was published.
    """
    known, required = known_of(context, planned)
    try:
        with Attempt.begin(context, planned) as attempt:
            if planned.model.strategy.output is Output.FILES:
                return _execute_files(attempt, known.get(planned.only.text))
            candidate = write(attempt, known)
            found = candidate.verdicts()
            if attempt.rejected:
                found = [quarantine.counted(attempt, verdict) for verdict in found]
            attempt.say_tests([each.checks for each in found])
            passed = [each.slice for each in found if not each.failed]
            if 0 < len(passed) < len(found):
                candidate = candidate.keep(passed)
            return _publish(candidate, found, required)
    except DataFileMissing as error:
        raise _with_maker(error, context, planned) from error.__cause__


def _with_maker(
    error: DataFileMissing, context: RunContext, planned: PlannedStep
) -> DataFileMissing:
    """The error, with the model in its hint that makes the table of the missing file."""
    path, name = str(error.data.get("path")), error.data.get("table")
    for table in (planned.model.target, *planned.model.inputs):
        catalog = context.lakes[table.lake].catalog
        known = catalog.known_table(table.schema, table.table, catalog.latest())
        maker = context.plan.makers.get(table_key(table))
        if known is None or maker is None:
            continue
        if path.startswith(known.path) or name == table.qualified:
            error.hint = (
                f"restore the file, or rebuild {table}: penstock run {maker} --full-refresh"
            )
            break
    return error


def _publish(
    candidate: Candidate, found: Sequence[Verdict], required: Requirement | None
) -> list[MadeSlice]:
    """Commit the slices that passed their tests, of all that were ``found``, and record them all.

    Raises CommitConflict, DataFileMissing and others; then nothing was published.
    """
    attempt, passed = candidate.attempt, [each for each in found if not each.failed]
    if passed:
        attempt.say("publishing")
        if candidate.new_files is not None:
            candidate.new_files.require_unchanged(attempt.context.settings.root)
    divided = len(found) > len(attempt.planned.slices)
    records = StepRecords(
        published=tuple(_published(candidate, passed, required)),
        failed=tuple(_failed(candidate, each) for each in found if each.failed),
        base=attempt.tx.base.id,
        divided=attempt.planned.only.text if divided else None,
        reads=_reads(candidate, passed),
        claim=attempt.context.claim,
        forgets_reads=candidate.new_files is not None,
    )
    if passed:
        if candidate.files:
            _publish_files(attempt, candidate.files)
        if not attempt.tx.has_changes:
            candidate.require_files()
    if attempt.carries and passed:
        attempt.tx.describe(extra=noted(attempt.note, records))
    snapshot_id = commit(attempt.tx, attempt.state, records)
    made = {what.slice: MadeSlice(*what.made_by(snapshot_id)) for what in records.published}
    made |= {what.slice: MadeSlice(what, None) for what in records.failed}
    _warn_of_no_rows(candidate, records.published)
    return [made[each.slice.text] for each in found]


def commit(tx: Transaction, state: State, records: StepRecords) -> int | None:
    """The id of the snapshot that ``records`` were written with; None where none was needed."""
    if records.published:
        tx.on_commit(records.write)
        snapshot = tx.commit()
        if snapshot is not None:
            return snapshot.id
    else:
        tx.rollback()
    state.write(records.write)
    return None


def _execute_files(attempt: Attempt, known: SliceRecord | None) -> list[MadeSlice]:
    """A step that writes files and no table: nothing of the lake changes but its records."""
    written = run_python(attempt).files
    attempt.say("publishing")
    unchanged = serve.is_unchanged(known, written)
    run_id, planned, claim = attempt.context.run_id, attempt.planned, attempt.context.claim
    if not unchanged:
        _move(attempt, written)
    state = "unchanged" if unchanged else "done"
    made = serve.record(run_id, planned, attempt.target, written, state)
    others = serve.records(run_id, planned, written)
    reads = tuple(attempt.reads.values())
    records = StepRecords((*others, made), attempt.tx.base.id, reads=reads, claim=claim)
    commit(attempt.tx, attempt.state, records)
    return [MadeSlice(made, None)]


def _publish_files(attempt: Attempt, written: tuple[WrittenFile, ...]) -> None:
    """Files of a step that makes a table too: in their places before it is published."""
    _move(attempt, written)
    made = serve.records(attempt.context.run_id, attempt.planned, written)
    records = StepRecords(made, attempt.tx.base.id, claim=attempt.context.claim)
    attempt.state.write(records.write)


def _move(attempt: Attempt, written: tuple[WrittenFile, ...]) -> None:
    """Move files to their places while nobody can take over the claim: no other writer runs."""

    def act(connection: Connection) -> None:
        if attempt.context.claim is not None:
            attempt.context.claim.check(connection)
        serve.move(written)

    attempt.state.write(act)


def _published(
    candidate: Candidate, passed: Sequence[Verdict], required: Requirement | None
) -> Iterator[Publication]:
    """The first says what became of the table, and what the commit requires."""
    attempt, start, planned = candidate.attempt, candidate.start, candidate.attempt.planned
    by_interval = isinstance(planned.slices[0], Interval)
    before = attempt.state.slices(attempt.target) if by_interval and not start.first else []
    left = before
    for number, verdict in enumerate(passed):
        known = start.known.get((planned.only if by_interval else verdict.slice).text)
        staged = candidate.of(verdict.slice)
        what = _publication(candidate, verdict, staged)
        if number == 0:
            what = replace(
                what,
                first=start.first,
                anew=start.anew,
                built=attempt.context.plan.request.fire_time if candidate.builds else None,
                lineage=attempt.lineage(known),
                requires=required,
            )
        made_before = None if known is None else known.last_made_in
        if isinstance(verdict.slice, Interval):
            parts = parts_made(before, verdict.slice)
            made_before = max((at for _, at in parts if at is not None), default=None)
            what = replace(what, parts=_kept(candidate, what, parts))
            what, left = _replacing(candidate, what, left, verdict.slice)
            if len(passed) > 1:
                what = replace(what, fingerprint=None)  # which is of all their rows
        same = len(planned.slices) > 1 and staged.unchanged
        if same and what.fingerprint is None and known is not None:
            what = replace(what, fingerprint=known.fingerprint)
        is_part = by_interval and verdict.slice != planned.only
        is_known = known is not None or what.rows != 0 or (is_part and staged.unchanged)
        yield replace(
            what,
            inputs=candidate.inputs,
            same=same,
            kept_as="unchanged" if is_known else "done",
            made_before=made_before,
            read_id=attempt.read_of(verdict.slice).read_id,
        )


def _kept(
    candidate: Candidate, what: Publication, parts: Sequence[tuple[Interval, int | None]]
) -> tuple[KeptPart, ...]:
    """Return the parts of an interval that several snapshots made, where no row of it changes."""
    attempt = candidate.attempt
    if len(parts) < 2 or attempt.tx.has_changes or not attempt.model.strategy.time_column:
        return ()
    of = what.record(0, None)  # only its slice and its rows matter
    return tuple(
        KeptPart(part.text, at, candidate.rows_left(replace(of, slice=part.text)))
        for part, at in parts
    )


def _reads(candidate: Candidate, passed: Sequence[Verdict]) -> tuple[ReadRecord, ...]:
    """Each record of what the published slices were made from, once."""
    reads = [candidate.attempt.read_of(each.slice) for each in passed]
    if candidate.new_files is not None:
        reads = [candidate.new_files.recorded(read) for read in reads]
    return tuple({read.read_id: read for read in reads}.values())


def _replacing(
    candidate: Candidate, what: Publication, records: Sequence[SliceRecord], interval: Interval
) -> tuple[Publication, list[SliceRecord]]:
    """With what becomes of the records of other intervals that it overlaps, and those left."""
    found = replaced(records, interval)
    left = tuple(replace(each, rows=candidate.rows_left(each)) for each in found.left)
    others = [each for each in records if each.slice not in found.gone]
    return replace(what, gone=found.gone, left=left), [*others, *left]


def _failed(candidate: Candidate, verdict: Verdict) -> Publication:
    what = _publication(candidate, verdict, Staged())
    error = tests_failed(what.checks, what.columns, candidate.attempt.model.target)
    return replace(what, state="failed", rows=0, reason=error.message)


def tests_failed(
    results: tuple[CheckResult, ...], columns: tuple[ColumnInfo, ...], target: TableName
) -> DataTestFailed:
    """The error of a slice whose data tests did not all pass."""
    failed = [result for result in results if result.outcome == "failed"]
    counts = ", ".join(f"{result.name} ({result.failures:,})" for result in failed)
    return DataTestFailed(
        f"{len(failed)} of {len(results)} data tests failed: {counts}",
        hint=f"nothing was published to {target}; correct the SELECT or its inputs",
        data={"results": results, "columns": columns},
    )


def _publication(candidate: Candidate, verdict: Verdict, staged: Staged) -> Publication:
    attempt, model, text = candidate.attempt, candidate.attempt.model, verdict.slice.text
    is_among_others = lies_among_others(model.strategy.name, text)
    counted = candidate.counts_rows and not is_among_others
    comments = {fold(name): text for name, text in model.about.column_descriptions}
    return replace(
        Publication.of(model, attempt.context.run_id, text),
        rows=staged.slice_rows if counted else None,
        written=staged.rows_inserted + staged.rows_updated if is_among_others else None,
        fingerprint=staged.fingerprint,
        columns=column_infos(candidate.schema, comments),
        checks=verdict.checks,
    )


def _warn_of_no_rows(candidate: Candidate, published: Sequence[Publication]) -> None:
    """Warn of a new value of a dynamic partition that selects no rows: it may be mistyped."""
    spec, known = candidate.attempt.model.partition, candidate.start.known
    for what in published if spec is not None and spec.kind == "dynamic" else ():
        if what.rows == 0 and what.slice not in known:
            candidate.attempt.notice(
                f"slice {what.slice!r} is new and has 0 rows: is the value the one you mean?"
            )


def take_up(context: RunContext, planned: PlannedStep) -> list[MadeSlice] | None:
    """The publication of an interrupted append to confirm; None when the step has to run."""
    model = planned.model
    if planned.anew:
        return None
    state = context.states[model.target.lake]
    known = state.slice(model.target.qualified, planned.only.text)
    if known is None or known.definition_hash != model.definition_hash or known.rolled_back:
        return None
    run = state.run(known.run_id)
    if (
        run is None
        or run.state not in INTERRUPTED
        or run.partition != context.plan.partition
        or dict(run.args) != dict(context.plan.args)
    ):
        return None
    context.sink(Notice(f"appended already by the interrupted run {run.run_id}", model.name))
    made = replace(
        Publication.of(model, context.run_id, known.slice),
        state="unchanged",
        rows=known.rows,
        fingerprint=known.fingerprint,
        inputs=known.inputs,
        read_id=known.read_id,
        made_before=known.made_in,
    )
    state.write(StepRecords((made,), known.snapshot_id).write)
    return [MadeSlice(made, known.made_in)]
