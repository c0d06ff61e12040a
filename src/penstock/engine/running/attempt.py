"""One attempt at a step: query, stage, test, publish. What fails leaves the table as it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from penstock.engine.checks import columns
from penstock.engine.history.current import candidate_of_current
from penstock.engine.history.last_load import last_load, may_repeat
from penstock.engine.inputs.declared_columns import cast_to
from penstock.engine.inputs.pinned_tables import (
    Pins,
    Readable,
    Rows,
    candidate_of,
    pin,
    slice_as_table,
    table_name,
    types_of,
)
from penstock.engine.inputs.resolve import Resolved, Views, resolve
from penstock.engine.inputs.self_reference import Beginning
from penstock.engine.python import files
from penstock.engine.python.files import WrittenFile
from penstock.engine.python.scratch import scratch
from penstock.engine.python.step import Outcome, made_rows, runner_of
from penstock.engine.results import CheckResult
from penstock.engine.running.changes import reading_of, refuse_doubled
from penstock.engine.running.descriptions import describe, undescribable
from penstock.engine.running.history_guard import refuse_no_history
from penstock.engine.running.interval_parts import Kept, Parts, last_made_in, with_replaced
from penstock.engine.running.interval_tests import Verdict, passing, verdicts
from penstock.engine.running.manual import counts_slice, recorded, run_statements
from penstock.engine.running.publication import MadeSlice, publication, tests_failed
from penstock.engine.running.redefinition import (
    listed,
    refuse_foreign,
    refuse_lost_rows,
    refuse_other_slices,
)
from penstock.engine.running.step_attempt import StepAttempt
from penstock.engine.running.view import candidate as rows_of_view
from penstock.engine.running.view import clear_name
from penstock.engine.running.view import stage as stage_view
from penstock.engine.running.writing import Made
from penstock.engine.state.records import Publication, SliceRecord, column_infos
from penstock.engine.state.requirement import Requirement
from penstock.engine.state.store import publish
from penstock.engine.strategies.slice import ByTime, Slice
from penstock.engine.strategies.time_range import rows_of
from penstock.engine.strategies.upsert import keys_in_spark
from penstock.errors import (
    DataFileMissing,
    MergeKeyError,
    QueryFailed,
)
from penstock.lake.candidate.state import Staged
from penstock.lake.spark.failures import file_missing
from penstock.model.definition.graph import table_key
from penstock.model.joint.joint import are_monotone
from penstock.model.query.query import Query
from penstock.model.script.sources import QuerySource
from penstock.model.time.interval import Interval, Intervals
from penstock.model.time.slice import Part
from penstock.model.values.strategy import Output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.format.schema import TableSchema
    from penstock.lake.staging import TransactionTable
    from penstock.lake.transaction import Transaction


class Attempt(StepAttempt):
    """One attempt at the one slice of a planned step."""

    __slots__ = ()

    def execute(self) -> list[MadeSlice]:
        """What became of it; of a range of time not all of which passes its tests, of its parts.

        Raises Cancelled, or what the tree of errors has; then nothing was published.
        """
        known, required = self.known()
        try:
            with self.transaction() as (tx, views), ExitStack() as held:
                return self._execute_in(tx, views, known, required, held)
        except DataFileMissing as error:
            raise self._healed_by(error) from error.__cause__

    def _healed_by(self, error: DataFileMissing) -> DataFileMissing:
        """The error, with the model in its hint that makes the table of the missing file anew."""
        path, name = str(error.data.get("path")), error.data.get("table")
        for table in (self.model.target, *self.model.inputs):
            catalog = self.world.lakes[table.lake].catalog
            known = catalog.known_table(table.schema, table.table, catalog.latest())
            maker = self.world.plan.makers.get(table_key(table))
            if known is None or maker is None:
                continue
            if path.startswith(known.path) or name == table.qualified:
                error.hint = (
                    f"restore the file, or rebuild {table}: penstock run {maker} --full-refresh"
                )
                break
        return error

    def _execute_in(
        self,
        tx: Transaction,
        views: Views,
        known: SliceRecord | None,
        required: Requirement | None,
        held: ExitStack,
    ) -> list[MadeSlice]:
        """``held`` is let go when all is published."""
        if self.model.strategy.output is Output.FILES:
            return [MadeSlice(*self._execute_files(tx, views, known, held))]
        if clear_name(tx, self.model, known, anew=self._refreshes):
            known = None
        table = tx.table(table_name(self.model.target))
        if self.model.strategy.output is Output.VIEW:
            return [MadeSlice(*self._execute_view(tx, table, views, known))]
        into = self._slice(tx, known)
        first = not table.exists
        anew = not first and self._drops(table, into, known)
        known = None if first or anew else known
        pins = pin(self.world.lakes, self.model, tx.base, self.world.plan.makers)
        inputs: Mapping[str, int] | None = None
        written: tuple[WrittenFile, ...] = ()
        if self.model.strategy.by_statements:
            staged, found = self._by_statements(tx, table, pins)
        else:
            reading = reading_of(self.model, known, pins)
            if reading.said:
                self.notice(reading.said)
            inputs = reading.inputs
            rows, written = self._rows(
                table, pins, views, held, begins=first or anew, given=reading.given
            )
            staged, found = self._written(tx, table, rows, into=into, pins=pins, views=views)
        self.say("publishing")
        whole = first or anew or self.model.replaces_table
        built = self.world.plan.request.fire_time if whole else None
        made = publication(self.world.run_id, self.planned, staged, found[0].checks, table.schema)
        made = replace(made, first=first, anew=anew, built=built)
        if self.model.strategy.by_statements and not counts_slice(table, self._place):
            made = replace(made, rows=None)
        made = replace(made, lineage=self.lineage(known, pins), inputs=inputs)
        if into.by_time is not None and any(part.failed for part in found):
            return Parts(self, table, into.by_time, staged, found).publish(tx, made)
        if isinstance(self.planned.only, Interval):
            records = self.state.slices(made.target)
            made = with_replaced(made, records, table, self._by_time)
        self._publish_files(written, tx)
        made = replace(made, requires=required)
        tx.also(lambda connection, snapshot_id: publish(connection, snapshot_id, made))
        snapshot = tx.commit()
        self._warn_of_no_rows(made, known)
        if snapshot is not None:
            return [MadeSlice(made, snapshot.id)]
        return [MadeSlice(*self._confirm(made, tx, table, known))]

    def _execute_view(
        self, tx: Transaction, table: TransactionTable, views: Views, known: SliceRecord | None
    ) -> tuple[Publication, int | None]:
        pins = pin(self.world.lakes, self.model, tx.base, self.world.plan.makers)
        self.say("querying")
        resolved = self._resolve(pins, views)
        df = cast_to(resolved.df, self.model.columns)
        columns.require(self.model, dict(df.dtypes), self.world.session)
        schema, said = stage_view(tx, self.model, df, known)
        if said:
            self.notice(said)
        self.say("testing")
        rows = rows_of_view(df)
        checks = self._test(rows, rows, pins, views, schema)
        self.say("publishing")
        made = publication(self.world.run_id, self.planned, Staged(), checks, schema)
        made = replace(made, first=known is None, lineage=self.lineage(known, pins))
        tx.also(lambda connection, snapshot_id: publish(connection, snapshot_id, made))
        snapshot = tx.commit()
        if snapshot is not None:
            return made, snapshot.id
        return self._confirm(made, tx, table, known)

    def _resolve(
        self,
        pins: Pins,
        views: Views,
        beginning: Beginning | None = None,
        given: Mapping[QuerySource, DataFrame] = MappingProxyType({}),
    ) -> Resolved:
        resolved = resolve(
            self.model.query,
            self.planned.bindings,
            self.reader(pins, views),
            beginning=beginning,
            given=given,
        )
        for said in resolved.notices():
            self.notice(said)
        return resolved

    def _rows(
        self,
        table: TransactionTable,
        pins: Pins,
        views: Views,
        held: ExitStack,
        *,
        begins: bool,
        given: Mapping[QuerySource, DataFrame],
    ) -> tuple[Iterable[Made], tuple[WrittenFile, ...]]:
        """What the script makes, and files that it wrote besides."""
        if self.model.python is not None:
            self.say("running")
            outcome = self._run_python(pins, views, held)
            return made_rows(outcome, self.model, table, self.column), outcome.files
        self.say("querying")
        beginning = Beginning.of(self.model, self.column) if begins else None
        resolved = self._resolve(pins, views, beginning, given)
        if given and self.model.strategy.merges:
            self._refuse_doubled(resolved, self._resolve(pins, views).df, held)
        return (resolved,), ()

    def _refuse_doubled(self, changed: Resolved, whole: DataFrame, held: ExitStack) -> None:
        """Raises MergeKeyError."""
        held.callback(changed.df.persist().unpersist)
        some, every = (cast_to(df, self.model.columns) for df in (changed.df, whole))
        try:
            refuse_doubled(self.model, some, every, self.world.lake_of(self.model).limits)
        except QueryFailed as error:
            raise changed.placed(error) from error.__cause__
        except MergeKeyError as error:
            error.location = self.model.place("unique_key")
            raise

    def _execute_files(
        self, tx: Transaction, views: Views, known: SliceRecord | None, held: ExitStack
    ) -> tuple[Publication, int | None]:
        """A step that writes files and no table: nothing of the lake changes but its records."""
        pins = pin(self.world.lakes, self.model, tx.base, self.world.plan.makers)
        self.say("running")
        written = self._run_python(pins, views, held).files
        self.say("publishing")
        unchanged = files.is_unchanged(known, written)
        if not unchanged:
            files.move(written)
        for other in files.records(self.world.run_id, self.planned, written):
            self.state.confirm(other, None, as_of=tx.base.id)
        state = "unchanged" if unchanged else "done"
        target = self.model.target.qualified
        made = files.record(self.world.run_id, self.planned, target, written, state)
        self.state.confirm(made, None, as_of=tx.base.id)
        return made, None

    def _publish_files(self, written: tuple[WrittenFile, ...], tx: Transaction) -> None:
        """Files of a step that makes a table too: in their places before it is published."""
        files.move(written)
        for each in files.records(self.world.run_id, self.planned, written):
            self.state.confirm(each, None, as_of=tx.base.id)

    def _run_python(self, pins: Pins, views: Views, held: ExitStack) -> Outcome:
        folder = held.enter_context(scratch())
        return runner_of(self.world, self.planned, pins, views, folder).run()

    def _written(
        self,
        tx: Transaction,
        table: TransactionTable,
        rows: Iterable[Made],
        *,
        into: Slice,
        pins: Pins,
        views: Views,
    ) -> tuple[Staged, Sequence[Verdict]]:
        writer, staged, before = self.writer, Staged(), table.candidate
        made: Made | None = None
        for made in rows:
            writer.check_tests(cast_to(made.df, self.model.columns), table)
            tx.create_schema(self.model.target.schema)
            self.say("writing")
            staged = writer.stage(tx, table, made, into)
        if self.model.query.after:
            self._run_statements(self.model.query.statements, tx, pins)
            staged = Staged(slice_rows=table.count_rows(into.place))
        describe(table, self.model)
        if message := undescribable(self.model, table.schema.names):
            self.notice(message)
        self.say("testing")
        if not self.model.data_tests:
            return staged, (Verdict(self.planned.only),)
        whole, units = candidate_of(table), self._units(into)
        if len(units) < 2:
            checks = self._test(whole, self._candidate(table, into), pins, views, table.schema)
            return staged, (Verdict(self.planned.only, checks),)

        def test(interval: Interval) -> tuple[CheckResult, ...]:
            self.world.check_cancelled()
            bindings = self.world.plan.narrowed(self.planned, (interval,)).bindings
            called = slice_as_table(self.model.target, None)
            tester = self.tester(bindings, pins, whole, views, called)
            return tester.run(self._candidate(table, _within(into, (interval,))))

        found = verdicts(units, test, together=are_monotone(self.model))
        self.say_tests([part.checks for part in found])
        kept = passing(found)
        bad = any(part.failed for part in found)
        if into.by_time is not None and made is not None and kept and bad:
            df = rows_of(table, into.by_time, kept)
            table.stage(before)
            staged = writer.stage(tx, table, Kept(df, made), _within(into, kept))
            describe(table, self.model)
        return staged, found

    def _units(self, into: Slice) -> Sequence[Interval]:
        """The intervals of a range that are tested each: those that fail can be left out. Where the
        table is made anew, what is left out would be lost.
        """
        if into.by_time is None or self.model.query.after or self._refreshes:
            return ()
        return list(into.by_time.time_range.units(into.by_time.intervals))

    def _candidate(self, table: TransactionTable, into: Slice) -> Readable:
        """The slice as it will be; of a history, its current rows."""
        if self.model.history is not None:
            return candidate_of_current(table, self.model.history)
        if into.by_time is None:
            return candidate_of(table, into.place)
        by_time = into.by_time
        rows = Rows(rows_of(table, by_time, by_time.intervals))
        return Readable(types_of(table.schema), lambda _: rows, lambda _: None)

    def _by_statements(
        self, tx: Transaction, table: TransactionTable, pins: Pins
    ) -> tuple[Staged, Sequence[Verdict]]:
        self.say("writing")
        tx.create_schema(self.model.target.schema)
        self._run_statements(self.model.query, tx, pins)
        return recorded(self.model, table, self._place), (Verdict(self.planned.only),)

    def _run_statements(self, query: Query, tx: Transaction, pins: Pins) -> None:
        run_statements(
            query,
            self.model.target.lake,
            self.planned.bindings,
            tx,
            pins,
            session=self.world.session,
            root=self.world.settings.root,
        )

    @property
    def _refreshes(self) -> bool:
        """Whether the table is made anew, which the first batch of its slices does."""
        return self.planned.anew and not self.planned.goes_on

    def _drops(self, table: TransactionTable, into: Slice, known: SliceRecord | None) -> bool:
        """Drop the table where it is to be made anew; whether it was.

        Raises DefinitionChanged where that would be needed and was not asked for.
        """
        target = self.model.target.qualified
        if self._refreshes:
            records = self.state.slices(target)
            if records:
                what = "restatement" if self.planned.again else "full refresh"
                self.notice(f"{what} drops {listed(records)}, which earlier snapshots keep")
            table.drop()
            return True
        if self.model.strategy.by_statements:  # what becomes of the rows is up to the script
            return False
        others = self.state.slices(target, unless=self.model.slicing)
        if refuse_other_slices(self.model, others, table, self.column):
            table.drop()
            return True
        refuse_foreign(self.model, table, partial(self.state.is_recorded, target))
        if self.model.history is not None:
            refuse_no_history(self.model, last_load(self.state.slices(target)), table)
            return False
        said = refuse_lost_rows(self.model, known, table, into.place)
        if said:
            self.notice(said)
        return False

    def _confirm(
        self,
        made: Publication,
        tx: Transaction,
        table: TransactionTable,
        known: SliceRecord | None,
    ) -> tuple[Publication, int | None]:
        """Nothing had to be written: record the slice as it is. Raises DataFileMissing."""
        place = None if self.model.strategy.by_statements else self._place
        if table.exists and not self.model.strategy.replaces:  # which has looked for its files
            missing = table.missing_files(place)
            if missing:
                raise file_missing(missing[0], self.model.target.qualified, tx.base.id)
        state = "unchanged" if known is not None or made.rows != 0 else "done"
        made = replace(made, state=state)
        made_in = None if known is None else known.last_made_in
        if isinstance(self.planned.only, Interval):
            made_in = last_made_in(self.state.slices(made.target), made.slice)
        self.state.confirm(made, made_in, as_of=tx.base.id)
        return made, made_in

    def _warn_of_no_rows(self, made: Publication, known: SliceRecord | None) -> None:
        """Warn of a new value of a dynamic partition that selects no rows: it may be mistyped."""
        spec = self.model.partition
        if known is None and made.rows == 0 and spec is not None and spec.kind == "dynamic":
            self.notice(
                f"slice {made.slice!r} is new and has 0 rows: is the value the one you mean?"
            )

    @property
    def _place(self) -> tuple[str, str] | None:
        only = self.planned.only
        return (self.column, only.value) if isinstance(only, Part) else None

    def _slice(self, tx: Transaction, known: SliceRecord | None) -> Slice:
        place = self._place
        return Slice(
            place=place,
            keys=self.model.keys,
            partition_keys=self.model.layout.partitioned_by,
            custom=self.model.custom,
            known_fingerprint=self._known_fingerprint(tx, known, place),
            history=self.model.history,
            key_expressions=keys_in_spark(self.model),
            now=self._now,
            by_time=self._by_time,
            again=self.planned.again is not None,
        )

    @property
    def _now(self) -> datetime:
        """The execution time; of an interval its end, when a run that waited for it would be."""
        now, only = self.world.plan.request.fire_time, self.planned.only
        return min(now, only.end) if isinstance(only, Interval) else now

    @property
    def _by_time(self) -> ByTime | None:
        by_time, only = self.model.ranges, self.planned.only
        if by_time is None:
            return None
        assert isinstance(only, Interval), "a slice of a model by time is one"
        query, layout = self.model.query, self.model.layout
        return ByTime(by_time, (only,), query.dialect, layout, self.notice)

    def _known_fingerprint(
        self, tx: Transaction, known: SliceRecord | None, place: tuple[str, str] | None
    ) -> str | None:
        """The fingerprint of the slice as it is now, of a history that of its last load; None when
        that is not certain."""
        if known is None or known.fingerprint is None or self.model.query.after:
            return None
        target = self.model.target
        catalog = self.world.lakes[target.lake].catalog
        if self.model.history and not may_repeat(self.model, known, catalog, tx.base):
            return None
        table = catalog.known_table(target.schema, target.table, tx.base)
        if table is None or catalog.changed_since(table, known.snapshot_id, place):
            return None
        return known.fingerprint

    def _test(
        self, whole: Readable, slice_: Readable, pins: Pins, views: Views, schema: TableSchema
    ) -> tuple[CheckResult, ...]:
        """Test the slice that is to be published; ``whole`` is the table with it."""
        if not self.model.data_tests:
            return ()
        called = slice_as_table(self.model.target, self._place)
        tester = self.tester(self.planned.bindings, pins, whole, views, called)
        results = tester.run(slice_)
        self.say_tests([results])
        failed = [result for result in results if result.outcome == "failed"]
        if failed:
            raise tests_failed(results, column_infos(schema), self.model.target)
        return results


def _within(into: Slice, intervals: Intervals) -> Slice:
    """Some of the intervals of a slice by time."""
    assert into.by_time is not None, "asked of such"
    return replace(into, by_time=replace(into.by_time, intervals=intervals), known_fingerprint=None)
