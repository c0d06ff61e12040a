"""One attempt at a step: query, stage, test, publish. What fails leaves the table as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine import lineage
from penstock.engine.beginning import Beginning
from penstock.engine.checks import columns
from penstock.engine.checks.run import Tester
from penstock.engine.columns import cast_to
from penstock.engine.descriptions import describe
from penstock.engine.manual import recorded, run_statements
from penstock.engine.pins import (
    Pins,
    Readable,
    candidate_of,
    pin,
    slice_as_table,
    table_name,
)
from penstock.engine.plan import PlannedStep
from penstock.engine.redefinition import (
    listed,
    refuse_lost_rows,
    refuse_other_slices,
)
from penstock.engine.resolve import Resolved, Views, resolve
from penstock.engine.results import CheckResult, ColumnInfo
from penstock.engine.state.records import Publication, SliceRecord, column_infos
from penstock.engine.state.store import State, now, publish
from penstock.engine.strategies.slice import Slice
from penstock.engine.view import candidate as rows_of_view
from penstock.engine.view import clear_name
from penstock.engine.view import stage as stage_view
from penstock.engine.world import World
from penstock.engine.writing import Writer
from penstock.errors import (
    DataFileMissing,
    DataTestFailed,
)
from penstock.events import CheckFinished, Notice, StepProgress
from penstock.lake.candidate.state import Staged
from penstock.lake.format.naming import fold
from penstock.lake.spark.failures import file_missing
from penstock.model.asset import TableName
from penstock.model.graph import table_key
from penstock.model.interval import Interval
from penstock.model.kinds import VIEW
from penstock.model.model import Model
from penstock.model.slice import Part

if TYPE_CHECKING:
    from penstock.lake.format.schema import TableSchema
    from penstock.lake.staging import TransactionTable
    from penstock.lake.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one planned step of a run."""

    world: World
    planned: PlannedStep

    @property
    def model(self) -> Model:
        return self.planned.model

    @property
    def state(self) -> State:
        return self.world.states[self.model.target.lake]

    def say(self, phase: str) -> None:
        """A phase begins: also the moment to stop when the run was cancelled."""
        self.world.check_cancelled()
        self.world.sink(StepProgress(self.model.name, phase))

    def execute(self) -> tuple[Publication, int | None]:
        """What was published, and the snapshot that made it; None for a slice that never had rows.

        Raises Cancelled, or what the tree of errors has; then nothing was published.
        """
        known = self.state.slice(self.model.target.qualified, self.planned.only.text)
        lake = self.world.lake_of(self.model)
        note = {"run": self.world.run_id, "step": self.model.name, "slice": self.planned.slice}
        message = " ".join(part for part in (self.model.name, self.planned.slice) if part)
        try:
            with (
                Views(self.world.session, self.world.later) as views,
                lake.transaction(author="penstock", message=message, extra=json.dumps(note)) as tx,
            ):
                return self._execute_in(tx, views, known)
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
                    f"restore the file, or make {table} anew: penstock run {maker} --full-refresh"
                )
                break
        return error

    def _execute_in(
        self, tx: Transaction, views: Views, known: SliceRecord | None
    ) -> tuple[Publication, int | None]:
        if clear_name(tx, self.model, known, anew=self.world.plan.request.full_refresh):
            known = None
        table = tx.table(table_name(self.model.target))
        if self.model.strategy == VIEW:
            return self._execute_view(tx, table, views, known)
        into = self._slice(tx, known)
        first = not table.exists
        anew = not first and self._drops(table, into, known)
        known = None if first or anew else known
        pins = pin(self.world.lakes, self.model, tx.base, self.world.plan.makers)
        if self.model.strategy == "manual":
            staged, checks = self._by_statements(tx, table, pins)
        else:
            staged, checks = self._by_query(tx, table, into, pins, views, begins=first or anew)
        self.say("publishing")
        made = publication(self.world.run_id, self.planned, staged, checks, table.schema)
        made = replace(made, first=first, anew=anew, lineage=self._lineage(known, pins))
        tx.also(lambda connection, snapshot_id: publish(connection, snapshot_id, made))
        snapshot = tx.commit()
        self._warn_of_no_rows(made, known)
        if snapshot is not None:
            return made, snapshot.id
        return self._confirm(made, tx, table, known)

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
        made = replace(made, first=known is None, lineage=self._lineage(known, pins))
        tx.also(lambda connection, snapshot_id: publish(connection, snapshot_id, made))
        snapshot = tx.commit()
        if snapshot is not None:
            return made, snapshot.id
        return self._confirm(made, tx, table, known)

    def _lineage(self, known: SliceRecord | None, pins: Pins) -> Mapping[str, list[str]] | None:
        """What its columns derive from, where that may be new."""
        if known is not None and known.definition_hash == self.model.definition_hash:
            return None
        return lineage.recorded(
            self.model, lambda table: pins.readable(table).types, self._partition_column
        )

    def _resolve(self, pins: Pins, views: Views, beginning: Beginning | None = None) -> Resolved:
        return resolve(
            self.model.query,
            self.planned.bindings,
            pins,
            session=self.world.session,
            views=views,
            root=self.world.settings.root,
            beginning=beginning,
        )

    def _by_query(
        self,
        tx: Transaction,
        table: TransactionTable,
        into: Slice,
        pins: Pins,
        views: Views,
        *,
        begins: bool,
    ) -> tuple[Staged, tuple[CheckResult, ...]]:
        self.say("querying")
        beginning = Beginning.of(self.model, self._partition_column) if begins else None
        resolved = self._resolve(pins, views, beginning)
        writer = self._writer
        writer.check_tests(cast_to(resolved.df, self.model.columns), table)
        tx.create_schema(self.model.target.schema)
        self.say("writing")
        staged = writer.stage(tx, table, resolved, into)
        describe(table, self.model)
        self.say("testing")
        if not self.model.data_tests:
            return staged, ()
        whole, slice_ = candidate_of(table), candidate_of(table, into.place)
        return staged, self._test(whole, slice_, pins, views, table.schema)

    def _by_statements(
        self, tx: Transaction, table: TransactionTable, pins: Pins
    ) -> tuple[Staged, tuple[CheckResult, ...]]:
        self.say("writing")
        tx.create_schema(self.model.target.schema)
        run_statements(
            self.model,
            self.planned.bindings,
            tx,
            pins,
            session=self.world.session,
            root=self.world.settings.root,
        )
        return recorded(self.model, table, self._place), ()

    def notice(self, message: str) -> None:
        self.world.sink(Notice(message, self.model.name))

    def _drops(self, table: TransactionTable, into: Slice, known: SliceRecord | None) -> bool:
        """Drop the table where it is to be made anew; whether it was.

        Raises DefinitionChanged where that would be needed and was not asked for.
        """
        target = self.model.target.qualified
        if self.world.plan.request.full_refresh:
            records = self.state.slices(target)
            if records:
                self.notice(f"full refresh drops {listed(records)}, which earlier snapshots keep")
            table.drop()
            return True
        if self.model.strategy == "manual":  # what becomes of the rows is up to the script
            return False
        others = self.state.slices(target, unless=self.model.slicing)
        if refuse_other_slices(self.model, others, table, self._partition_column):
            table.drop()
            return True
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
        place = None if self.model.strategy == "manual" else self._place
        if (
            self.model.strategy != "replace" and table.exists
        ):  # replace has looked, and would write it anew
            missing = table.missing_files(place)
            if missing:
                raise file_missing(missing[0], self.model.target.qualified, tx.base.id)
        state = "unchanged" if known is not None or made.rows else "done"
        made = replace(made, state=state)
        made_in = None if known is None else known.made_in
        self.state.confirm(made, made_in, as_of=tx.base.id)
        return made, made_in

    def _warn_of_no_rows(self, made: Publication, known: SliceRecord | None) -> None:
        """Warn of a new value of a dynamic partition that selects no rows: it may be mistyped."""
        spec = self.model.partition
        if known is None and not made.rows and spec is not None and spec.kind == "dynamic":
            self.notice(
                f"slice {made.slice!r} is new and has 0 rows: is the value the one you mean?"
            )

    @property
    def _writer(self) -> Writer:
        world = self.world
        return Writer(self.model, self._partition_column, world.session, world.sink)

    @property
    def _partition_column(self) -> str:
        return self.world.settings.lakes[self.model.target.lake].partition_column

    @property
    def _place(self) -> tuple[str, str] | None:
        only = self.planned.only
        return (self._partition_column, only.value) if isinstance(only, Part) else None

    def _slice(self, tx: Transaction, known: SliceRecord | None) -> Slice:
        place = self._place
        return Slice(
            place=place,
            keys=self.model.keys,
            partition_keys=self.model.layout.partitioned_by,
            custom=self.model.custom,
            known_fingerprint=self._known_fingerprint(tx, known, place),
        )

    def _known_fingerprint(
        self, tx: Transaction, known: SliceRecord | None, place: tuple[str, str] | None
    ) -> str | None:
        """The fingerprint of the slice as it is now; None when that is not certain."""
        if known is None or known.fingerprint is None:
            return None
        target = self.model.target
        catalog = self.world.lakes[target.lake].catalog
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
        tester = Tester(
            model=self.model,
            bindings=self.planned.bindings,
            session=self.world.session,
            pins=pins.showing(self.model.target, whole),
            views=views,
            root=self.world.settings.root,
            called=slice_as_table(self.model.target, self._place),
            samples=self.world.settings.test_samples,
        )
        results = tester.run(slice_)
        for result in results:
            self.world.sink(
                CheckFinished(
                    self.model.name, result.name, result.passed, result.failures, result.severity
                )
            )
        failed = [result for result in results if result.outcome == "failed"]
        if failed:
            raise tests_failed(results, column_infos(schema), self.model.target)
        return results


def tests_failed(
    results: tuple[CheckResult, ...], columns: tuple[ColumnInfo, ...], target: TableName
) -> DataTestFailed:
    """The error of a slice whose data tests did not all pass."""
    failed = [result for result in results if result.outcome == "failed"]
    counts = ", ".join(f"{result.name} ({result.failures:,})" for result in failed)
    return DataTestFailed(
        f"{len(failed)} of {len(results)} data tests failed: {counts}",
        hint=f"{target} is as it was; mend the SELECT or its inputs",
        data={"results": results, "columns": columns},
    )


def publication(
    run_id: str,
    planned: PlannedStep,
    staged: Staged,
    checks: tuple[CheckResult, ...],
    schema: TableSchema,
) -> Publication:
    model = planned.model
    return Publication(
        run_id=run_id,
        step=model.name,
        state="done",
        target=model.target.qualified,
        slice=planned.only.text,
        strategy=model.strategy,
        rows=staged.slice_rows,
        fingerprint=staged.fingerprint,
        definition_hash=model.definition_hash,
        columns=column_infos(
            schema, {fold(name): text for name, text in model.about.column_descriptions}
        ),
        checks=checks,
        at=now(),
        slicing=model.slicing,
        keys=model.keys,
        interval=planned.only if isinstance(planned.only, Interval) else None,
    )
