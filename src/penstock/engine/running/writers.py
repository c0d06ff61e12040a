"""Stage what a batch would publish, and test it slice by slice: a table, a view, files beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.destinations.values import Rows, Staged
from penstock.engine.checks import run
from penstock.engine.history.current import candidate_of_current
from penstock.engine.history.load import may_repeat
from penstock.engine.inputs.declared_columns import cast_to
from penstock.engine.inputs.pinned_tables import Readable, candidate_of, slice_as_table, types_of
from penstock.engine.planning.stages import DropTable
from penstock.engine.python.serve import WrittenFile
from penstock.engine.results import CheckResult
from penstock.engine.running import quarantine
from penstock.engine.running.attempt import Attempt, Known
from penstock.engine.running.bisect import Checks, Verdict, tested, verdicts
from penstock.engine.running.manual import counts_slice, recorded
from penstock.engine.running.redefinition import Start, prepare, start_joint, start_table
from penstock.engine.running.sources import joint_rows, rows_of
from penstock.engine.running.view import candidate as rows_of_view
from penstock.engine.running.view import stage as stage_view
from penstock.engine.running.writing import StepRows, describe, undescribable
from penstock.engine.strategies.registry import strategy_of
from penstock.engine.strategies.target import AnyTarget, Step, WriteTarget
from penstock.engine.strategies.time_range import rows_of as rows_within
from penstock.errors import Location, PenstockError
from penstock.model.slicing.joint import are_monotone
from penstock.model.time.interval import Interval, Intervals, interval_of, union
from penstock.model.time.slice import Slice
from penstock.model.time.time_range import TimeRange
from penstock.model.values.strategy import Output
from penstock.spark.failures import file_missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import State, Written
    from penstock.destinations.values import TableSchema
    from penstock.engine.running.new_input import NewFiles
    from penstock.engine.state.records import SliceRecord

_CALLED = "\0slice\0"  # stands for the slice in the text of a test's query


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The staged result of a batch of one slice.

    ``inputs``: up to which snapshot the changes of each table are in it. ``files`` were written
    besides the table, ``new_files`` are in its rows.
    """

    attempt: Attempt
    start: Start
    schema: TableSchema
    staged: Staged = field(default_factory=Staged)
    inputs: Mapping[str, int] | None = None
    files: tuple[WrittenFile, ...] = ()
    new_files: NewFiles | None = None

    def verdicts(self) -> Sequence[Verdict]:
        """The results of the data tests, of slices that pass or fail on their own."""
        attempt, only = self.attempt, self.attempt.planned.only
        attempt.say("testing")
        if not attempt.model.data_tests:
            return (Verdict(only),)
        called = slice_as_table(attempt.model.target, attempt.place)
        tester = attempt.tester(attempt.planned.bindings, self.whole, called)
        return (Verdict(only, tester.run(self.rows)),)

    @property
    def whole(self) -> Readable:
        """The table as it would be."""
        return candidate_of(self.attempt.table)

    @property
    def rows(self) -> Readable:
        """The slice as it would be; of a history, its current rows."""
        if self.attempt.model.history is not None:
            return candidate_of_current(self.attempt.table, self.attempt.model.history)
        return candidate_of(self.attempt.table, self.attempt.place)

    def keep(self, passing: Sequence[Slice]) -> Candidate:
        """Of several slices, only these."""
        raise NotImplementedError("a single slice passes or fails")

    def of(self, slice_: Slice) -> Staged:  # noqa: ARG002 - there is but one
        """Return the counts of what is staged of a slice."""
        return self.staged

    def rows_left(self, record: SliceRecord) -> int | None:
        """Count the rows of what is left of an interval."""
        return record.rows

    @property
    def builds(self) -> bool:
        """Tell whether the table is made from nothing."""
        return self.start.first or self.start.anew or self.attempt.model.replaces_table

    @property
    def counts_rows(self) -> bool:
        """Tell whether the rows of the slice are known apart from those of others."""
        return True

    def require_files(self) -> None:
        """Look for the files of a slice that stays as it is. Raises DataFileMissing."""
        attempt = self.attempt
        if attempt.model.strategy.replaces or not attempt.table.exists:
            return  # it has looked for its files
        missing = attempt.table.missing_files(self.place)
        if missing:
            raise file_missing(missing[0], attempt.target, attempt.tx.base.id)

    @property
    def place(self) -> tuple[str, str] | None:
        return self.attempt.place


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementsCandidate(Candidate):
    """The table as the statements of a manual script left it, which nothing tests."""

    @property
    def counts_rows(self) -> bool:
        return counts_slice(self.attempt.table, self.attempt.place)

    def verdicts(self) -> Sequence[Verdict]:
        return (Verdict(self.attempt.planned.only),)

    @property
    def place(self) -> tuple[str, str] | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCandidate(Candidate):
    df: DataFrame

    @property
    def builds(self) -> bool:
        return False

    @property
    def rows(self) -> Readable:
        return rows_of_view(self.df)

    whole = rows


@dataclass(frozen=True, slots=True)
class _Kept:
    """The rows of a query that are staged once more, without those of intervals that failed."""

    df: DataFrame
    made: StepRows

    @property
    def start(self) -> Location:
        return self.made.start

    def placed(self, error: PenstockError) -> PenstockError:
        return self.made.placed(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeCandidate(Candidate):
    """A range of time, whose intervals can be told apart. ``before`` is the table without it."""

    target: AnyTarget
    ranges: TimeRange
    made: StepRows
    before: State

    def verdicts(self) -> Sequence[Verdict]:
        """By intervals, unless the table is made from nothing: what is left out would be lost."""
        attempt, model = self.attempt, self.attempt.model
        units = list(self.ranges.units(self.target.intervals))
        if len(units) < 2 or attempt.planned.rebuilds or model.query.after or not model.data_tests:
            return Candidate.verdicts(self)
        attempt.say("testing")
        whole, called = self.whole, slice_as_table(attempt.model.target, None)

        def test(interval: Interval) -> Checks:
            attempt.context.check_cancelled()
            step = attempt.context.plan.narrowed(attempt.planned, (interval,))
            return attempt.tester(step.bindings, whole, called).run(self._rows_of((interval,)))

        return verdicts(units, test, together=are_monotone(model))

    @property
    def rows(self) -> Readable:
        return self._rows_of(self.target.intervals)

    def _rows_of(self, intervals: Intervals) -> Readable:
        rows = Rows(self._within(intervals))
        return Readable(types_of(self.attempt.table.schema), lambda _: rows, lambda _: None)

    def _within(self, intervals: Intervals) -> DataFrame:
        dialect = self.attempt.model.query.dialect
        return rows_within(self.attempt.table, self.ranges, intervals, dialect)

    def keep(self, passing: Sequence[Slice]) -> Candidate:
        attempt, table = self.attempt, self.attempt.table
        kept = union(each for each in passing if isinstance(each, Interval))
        df = self._within(kept)
        table.stage(self.before)
        target = replace(self.target, intervals=kept, known_fingerprint=None)
        staged = attempt.writer.stage(attempt.tx, table, _Kept(df, self.made), target)
        describe(table, attempt.model)
        return replace(self, staged=staged)

    def of(self, slice_: Slice) -> Staged:
        if slice_ == self.attempt.planned.only:
            return self.staged
        assert isinstance(slice_, Interval), "a part of a range is one"
        return replace(self.staged, slice_rows=self._within((slice_,)).count())

    def rows_left(self, record: SliceRecord) -> int | None:
        interval = interval_of(record.slice)
        if interval is None:
            return record.rows
        return self._within((interval,)).count()


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicesCandidate(Candidate):
    """Many partitions that one job has written: which of them are staged is told afterwards."""

    written: Written
    each: Mapping[str, Staged]

    def verdicts(self) -> Sequence[Verdict]:
        attempt, slices = self.attempt, self.attempt.planned.slices
        attempt.say("testing")
        if not attempt.model.data_tests:
            return [Verdict(slice_) for slice_ in slices]
        found = tested(slices, self._test, together=are_monotone(attempt.model))
        return [
            Verdict(slice_, tuple(self._called(check, slice_) for check in checks))
            for group, checks in found
            for slice_ in group
        ]

    def _test(self, group: Sequence[Slice]) -> Checks:
        attempt, table = self.attempt, self.attempt.table
        attempt.context.check_cancelled()
        step = attempt.planned
        if len(group) == 1:
            step = attempt.context.plan.narrowed(step, group)
            rows = candidate_of(table, attempt.place_of(group[0]))
        else:
            values = [slice_.text for slice_ in group]
            rows = Readable(
                types_of(table.schema), lambda _: Rows(table.slices_df(values)), lambda _: None
            )
        return attempt.tester(step.bindings, self.whole, _CALLED).run(rows)

    def _called(self, result: CheckResult, slice_: Slice) -> CheckResult:
        called = slice_as_table(self.attempt.model.target, self.attempt.place_of(slice_))
        return replace(result, query=result.query.replace(_CALLED, called))

    def keep(self, passing: Sequence[Slice]) -> Candidate:
        each = _stage_slices(self.attempt, self.written, passing)
        return replace(self, each={**self.each, **each})

    def of(self, slice_: Slice) -> Staged:
        return self.each[slice_.text]

    @property
    def builds(self) -> bool:
        return False

    def require_files(self) -> None:
        """Skip it: files of slices that stay were looked for when they were staged."""


def write(attempt: Attempt, known: Known) -> Candidate:
    """Stage the slices of a batch. Raises NotJoint for those that are to be made one by one."""
    if len(attempt.planned.slices) > 1:
        return _write_slices(attempt, known)
    writer = _WRITERS[attempt.model.strategy.output]
    return writer(attempt, known.get(attempt.planned.only.text))


def _write_view(attempt: Attempt, known: SliceRecord | None) -> Candidate:
    model = attempt.model
    if any(isinstance(stage, DropTable) for stage in prepare(attempt, known)):
        known = None
    attempt.say("querying")
    df = cast_to(attempt.resolve().df, model.columns)
    run.require_tests(model, dict(df.dtypes), attempt.context.session)
    schema, said = stage_view(attempt.tx, model, df, known)
    attempt.notice(said)
    start = Start.of(known, first=known is None)
    return ViewCandidate(attempt=attempt, start=start, schema=schema, df=df)


def _write_statements(attempt: Attempt, known: SliceRecord | None) -> Candidate:
    start, model = start_table(attempt, known), attempt.model
    attempt.say("writing")
    attempt.tx.create_schema(model.target.schema)
    attempt.run_statements(model.query)
    staged, schema = recorded(model, attempt.table, attempt.place), attempt.table.schema
    return StatementsCandidate(attempt=attempt, start=start, schema=schema, staged=staged)


def _write_rows(attempt: Attempt, known: SliceRecord | None) -> Candidate:
    start, model, table = start_table(attempt, known), attempt.model, attempt.table
    known = start.known.get(attempt.planned.only.text)
    target, before = _target(attempt, known), table.candidate
    source = rows_of(attempt, known, begins=start.first or start.anew)
    writer, staged, made = attempt.writer, Staged(), None
    for made in source.rows:
        writer.check_tests(cast_to(made.df, model.columns), table)
        attempt.tx.create_schema(model.target.schema)
        attempt.say("writing")
        staged = writer.stage(attempt.tx, table, _passing(attempt, made), target)
    if model.query.after:
        attempt.run_statements(model.query.statements)
        staged = Staged(slice_rows=table.count_rows(target.place))
    describe(table, model)
    attempt.notice(undescribable(model, table.schema.names))
    form: Callable[..., Candidate] = Candidate
    if model.ranges is not None and made is not None:
        form = partial(RangeCandidate, target=target, ranges=model.ranges, made=made, before=before)
    return form(
        attempt=attempt,
        start=start,
        schema=table.schema,
        staged=staged,
        inputs=source.inputs,
        files=source.files,
        new_files=source.new_files,
    )


_WRITERS: Mapping[Output, Callable[[Attempt, SliceRecord | None], Candidate]] = {
    Output.TABLE: _write_rows,
    Output.VIEW: _write_view,
    Output.STATEMENTS: _write_statements,
}


def _target(attempt: Attempt, known: SliceRecord | None) -> AnyTarget:
    """Describe the slice to write, for the model's strategy."""
    model, only = attempt.model, attempt.planned.only
    now = attempt.context.plan.request.fire_time
    intervals: Intervals = ()
    if isinstance(only, Interval):  # when a run that waited for its end would be
        now, intervals = min(now, only.end), (only,)
    return WriteTarget(
        strategy_of(model).options(model, Step(attempt.tx, now, attempt.notice)),
        attempt.place,
        intervals,
        _known_fingerprint(attempt, known),
        again=attempt.planned.again is not None,
    )


def _known_fingerprint(attempt: Attempt, known: SliceRecord | None) -> str | None:
    """The fingerprint of the slice as it is, of a history that of its last load; None when that is
    not certain.
    """
    model, base = attempt.model, attempt.tx.base
    if known is None or known.fingerprint is None or model.query.after:
        return None
    catalog = attempt.context.lakes[model.target.lake].catalog
    if model.history and not may_repeat(model, known, catalog, base):
        return None
    table = catalog.known_table(model.target.schema, model.target.table, base)
    if table is None or catalog.changed_since(table, known.snapshot_id, attempt.place):
        return None
    return known.fingerprint


def _passing(attempt: Attempt, made: StepRows, *, joint: bool = False) -> StepRows:
    """Return the rows that no quarantine test sets aside."""
    if not attempt.model.quarantines:
        return made
    df = made.df if joint else cast_to(made.df, attempt.model.columns)
    return _Kept(quarantine.passing_rows(attempt, df, joint=joint), made)


def _write_slices(attempt: Attempt, known: Known) -> Candidate:
    start, table = start_joint(attempt, known), attempt.table
    rows, writer = joint_rows(attempt), attempt.writer
    writer.check_tests(rows.df.drop(attempt.column), table)
    attempt.tx.create_schema(attempt.model.target.schema)
    attempt.say("writing")
    slices = attempt.planned.slices
    written = writer.write_slices(table, _passing(attempt, rows, joint=True), len(slices))
    each = _stage_slices(attempt, written, slices)
    return SlicesCandidate(
        attempt=attempt, start=start, schema=table.schema, written=written, each=each
    )


def _stage_slices(attempt: Attempt, written: Written, slices: Sequence[Slice]) -> dict[str, Staged]:
    values, replaces = [slice_.text for slice_ in slices], attempt.model.strategy.replaces
    staged = attempt.table.stage_slices(written, values, replaces=replaces)
    describe(attempt.table, attempt.model)
    return staged
