"""One attempt at a step: query, stage, test, publish. What fails leaves the table as it was.

`World` is what the attempts of a run share: the session, the lakes and their state.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.config import Settings
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
    types_of,
)
from penstock.engine.plan import Plan, PlannedStep
from penstock.engine.redefinition import (
    difference,
    fit_columns,
    listed,
    refuse_lost_rows,
    refuse_managed,
    refuse_other_slices,
    without,
)
from penstock.engine.resolve import Resolved, Views, resolve
from penstock.engine.results import CheckResult
from penstock.engine.spark import lakes_for, session_for
from penstock.engine.state.records import WHOLE, Publication, SliceRecord, column_infos
from penstock.engine.state.store import State, now, publish
from penstock.engine.strategies import upsert
from penstock.engine.strategies.registry import STRATEGIES
from penstock.engine.strategies.slice import Slice
from penstock.engine.view import candidate as rows_of_view
from penstock.engine.view import clear_name
from penstock.engine.view import stage as stage_view
from penstock.errors import (
    ArgumentError,
    ColumnNotFound,
    DataFileCorrupt,
    DataFileMissing,
    DataTestFailed,
    MergeKeyError,
    QueryFailed,
    SchemaMismatch,
    StepError,
    UnsupportedFeature,
)
from penstock.events import CheckFinished, EventSink, Notice, StepProgress
from penstock.lake.candidate.state import Staged
from penstock.lake.format.naming import fold
from penstock.lake.spark.failures import file_missing
from penstock.model.graph import table_key
from penstock.model.kinds import VIEW
from penstock.model.model import Model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.format.schema import TableSchema
    from penstock.lake.lake import Lake
    from penstock.lake.staging import TransactionTable
    from penstock.lake.transaction import Transaction


class Cancelled(Exception):
    """The run was asked to stop. Never leaves the engine."""


@dataclass(frozen=True, slots=True)
class World:
    """``lakes`` and ``states`` are by the names of penstock.toml."""

    run_id: str
    plan: Plan
    settings: Settings
    session: SparkSession
    lakes: Mapping[str, Lake]
    states: Mapping[str, State]
    sink: EventSink
    later: Executor | None = None  # for work that no step waits for; ends with the run
    cancelled: threading.Event = field(default_factory=threading.Event)

    # Sessions of steps that set configuration of their own: `interrupt` stops their jobs too.
    own_sessions: list[SparkSession] = field(default_factory=list)

    def for_step(self, model: Model) -> World:
        """This world as the step sees it: with a session of its own when its script sets any."""
        session = session_for(model.query, self.session)
        if session is self.session:
            return self
        self.own_sessions.append(session)
        return replace(self, session=session, lakes=lakes_for(session, self.lakes))

    def interrupt(self) -> None:
        """Stop what Spark does for this run, and let nothing more begin.

        All jobs of the sessions: interrupting by tag would be nicer, but without Spark Connect only
        the thread that set a tag can interrupt by it (Spark 4.3).
        """
        self.cancelled.set()
        for session in (self.session, *self.own_sessions):
            with contextlib.suppress(Exception):  # Spark may have ended already
                session.interruptAll()

    def lake_of(self, model: Model) -> Lake:
        return self.lakes[model.target.lake]

    def check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise Cancelled


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
        known = self.state.slice(self.model.target.qualified, slice_value(self.planned))
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
        self._check_tests(cast_to(resolved.df, self.model.columns), table)
        tx.create_schema(self.model.target.schema)
        self.say("writing")
        staged = self._stage(tx, table, resolved, into)
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
    def _partition_column(self) -> str:
        return self.world.settings.lakes[self.model.target.lake].partition_column

    @property
    def _place(self) -> tuple[str, str] | None:
        value = self.planned.slice
        return None if value is None else (self._partition_column, value)

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

    def _stage(
        self, tx: Transaction, table: TransactionTable, resolved: Resolved, into: Slice
    ) -> Staged:
        managed = self._partition_column
        refuse_managed(resolved.df.columns, managed, resolved.start)
        df = self._fit(table, cast_to(resolved.df, self.model.columns), into)
        layout = self.model.layout
        try:
            if layout.is_said:
                table.lay_out(layout.partitioned_by, layout.clustered_by)
            if self.model.upsert:
                return upsert.stage(tx, table, df, self.model)
            return STRATEGIES[self.model.strategy](table, df, into)
        except (QueryFailed, DataFileCorrupt, DataFileMissing) as error:
            raise resolved.placed(error) from error.__cause__
        except SchemaMismatch as error:
            error.location = error.location or resolved.start
            raise
        except (ArgumentError, ColumnNotFound, UnsupportedFeature) as error:  # of its keys
            if layout.is_said:
                error.location = error.location or self.model.place("partitioned_by")
            raise
        except MergeKeyError as error:
            error.location = self.model.place("target")
            raise
        except StepError as error:  # of a strategy of the project
            error.location = error.location or self.model.place("kind")
            raise

    def _fit(self, table: TransactionTable, df: DataFrame, into: Slice) -> DataFrame:
        """The columns that the table takes, by ``on_schema_change``."""
        made_anew = self.model.strategy == "replace" and into.place is None
        if made_anew or not table.exists:
            return df
        managed = into.place[0] if into.place else None
        changes = difference(df.columns, table.schema.names, managed)
        merges = self.model.strategy == "merge"
        name = self.model.target.qualified
        fit = fit_columns(changes, self.model.schema_change, name, merges=merges)
        for notice in fit.notices:
            self.world.sink(Notice(notice, self.model.name))
        df = without(df, fit.leave_out)
        if fit.evolves:
            table.evolve(df, drop=fit.drop)
        return df

    def _check_tests(self, df: DataFrame, table: TransactionTable) -> None:
        """Refuse data tests of columns that the table will not have, before rows are written."""
        kept = table.exists and self.model.keeps_columns
        types = {**(types_of(table.schema) if kept else {}), **dict(df.dtypes)}
        if self.model.partition is not None:
            types.setdefault(self._partition_column, "string")
        columns.require(self.model, types, self.world.session)

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
            counts = ", ".join(f"{result.name} ({result.failures:,})" for result in failed)
            raise DataTestFailed(
                f"{len(failed)} of {len(results)} data tests failed: {counts}",
                hint=f"{self.model.target} is as it was; mend the SELECT or its inputs",
                data={"results": results, "columns": column_infos(schema)},
            )
        return results


def slice_value(planned: PlannedStep) -> str:
    """The slice as the state tables have it."""
    return WHOLE if planned.slice is None else planned.slice


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
        slice=slice_value(planned),
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
    )
