"""Runs of `input_models` without Spark: planned, ordered and recorded as all runs are, but the rows
are those of the reference, and DuckDB writes them in the name of the run.

What is planned, what waits and what is behind does not depend on who makes the rows, and this takes
a tenth of the time. The data and its record are not one commit here, so nothing dies in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import duckdb

from penstock.engine.planning.files_read import files_of
from penstock.engine.planning.intervals import parts_made, replaced
from penstock.engine.planning.no_op import ended, idle_run, is_idle
from penstock.engine.planning.plan import Plan, PlannedStep
from penstock.engine.planning.recorded_plan import RecordedPlan
from penstock.engine.planning.run_arguments import RunOptions
from penstock.engine.results import RunResult, StepResult
from penstock.engine.running.run import Results, Runner
from penstock.engine.session.run_context import RunContext
from penstock.engine.state.records import (
    KeptPart,
    Publication,
    ReadRecord,
    RunRecord,
    SliceRecord,
    StepRecord,
    this_process,
)
from penstock.engine.state.store import State, StepRecords, now
from penstock.events import EventSink, RunFinished, RunStarted, StepFinished, StepStarted
from penstock.model.time.interval import Interval
from penstock.model.time.slice import Slice
from penstock.project.planning import build_request, plan_steps
from penstock.project.project import Project
from penstock.uuid7 import new_uuid7
from tests.engine.strategies.input_models import (
    BOOM,
    MOST,
    WHOLE,
    Model,
    Row,
    Unit,
    World,
    sql_moment,
    sql_row,
)

_COLUMNS = "ts TIMESTAMPTZ, d VARCHAR, g VARCHAR, v BIGINT"


class Failed(Exception):
    """A slice cannot be made."""


@dataclass
class Duckling:
    """Executes plans. ``content`` has the rows of each table that there is, ``views`` those that
    were made, ``values`` what the files have, ``queries`` the models of which views were made that
    have another query now.
    """

    project: Project
    world: World
    duck: duckdb.DuckDBPyConnection
    content: dict[str, list[Row]]
    views: set[str]
    values: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    queries: dict[str, World] = field(default_factory=dict)

    def run(self, select: Sequence[str], sink: EventSink, asked: Mapping[str, Any]) -> RunResult:
        options = cast("RunOptions", asked)
        context, request = build_request(self.project.context, select, options)
        return self.execute(plan_steps(context, request), sink)

    def execute(self, plan: Plan, sink: EventSink) -> RunResult:
        if is_idle(plan):
            return idle_run(plan, sink)
        lake = self.project.lake("main")
        session = cast(Any, None)  # nothing that is called here asks it anything
        context = RunContext(
            run_id=new_uuid7(),
            plan=plan,
            settings=self.project.settings,
            session=session,
            lakes={"main": lake},
            states={"main": State(lake.catalog)},
            sink=sink,
        )
        return self._executed(plan, context)

    def _executed(self, plan: Plan, context: RunContext) -> RunResult:
        state, run_id = context.states["main"], context.run_id
        record = RunRecord(run_id, "running", plan.partition, plan.args, now(), this_process())
        asked = RecordedPlan.of(plan).to_json()
        state.begin_run(replace(record, plan=asked, retry_of=plan.retry_of))
        names = tuple(step.name for step in plan.steps)
        context.sink(RunStarted(run_id, names, plan.partition, tuple(1 for _ in names)))
        result = Runner(plan, context, self.make, 1).execute()
        state.end_run(run_id, result.state)
        context.sink(RunFinished(run_id, result.state, result.seconds))
        return result

    # --- one batch

    def make(self, context: RunContext, planned: PlannedStep) -> Results:
        """Make the slices of a batch, as `running.step.run_step` does."""
        model = self.world.models[planned.name]
        context.sink(StepStarted(planned.name, planned.slice))
        at, run_id, target = now(), context.run_id, planned.model.target.qualified
        context.states["main"].begin_step(
            *(
                StepRecord(run_id, planned.name, target, s.text, "running", at)
                for s in planned.slices
            )
        )
        batch = _Batch(self, context, planned, model)
        results = batch.view() if model.kind == "view" else batch.made()
        states = {result.state for result in results.values()}
        context.sink(StepFinished(planned.name, "/".join(sorted(states)), 0.0, slice=planned.slice))
        return results

    def rows(self, model: Model, unit: Unit) -> list[Row]:
        """The rows of a slice. Raises Failed."""
        if model.op == "file":
            if unit.name not in self.values:
                raise Failed(f"no file data/{unit.name}.csv")
            values = self.values[unit.name]
            return [(unit.start, g, v + model.add, unit.name) for g, v in values]
        for read in model.reads:
            table = self.world.models.get(read.table)
            if table is None or table.kind != "embedded":
                self._require(read.table)
        for read in model.reads[: None if model.op == "copy" else 1]:
            rows = model.read(read, unit, self._content(read.table))
            if model.fragile and any(v == BOOM for _, _, v, _ in rows):
                raise Failed("boom")
        rows = model.rows(unit, self._content)
        if model.tested and any(v > MOST for _, _, v, _ in rows):
            raise Failed("accepted_range")
        return rows

    def _require(self, name: str) -> None:
        if name not in self.content and name not in self.views:
            raise Failed(f"table {name} does not exist")

    def _content(self, name: str) -> Sequence[Row]:
        return self._content_of(name, self.world)

    def _content_of(self, name: str, world: World) -> Sequence[Row]:
        model = world.models.get(name)
        if model is None or model.is_stored:
            return self.content.get(name, ())
        if model.kind == "view":
            world = self.queries.get(name, self.world)
            model = world.models[name]
        return model.rows(WHOLE, lambda each: self._content_of(each, world))


@dataclass
class _Batch:
    of: Duckling
    context: RunContext
    planned: PlannedStep
    model: Model

    @property
    def base(self) -> int:
        return self.context.lakes["main"].catalog.latest().id

    def view(self) -> Results:
        """A view is made where it is not there, or has another query."""
        (slice_,), name = self.planned.slices, self.model.name
        base, snapshot = self.base, None
        known = self._known().get(slice_.text)
        same = known is not None and known.definition_hash == self.planned.model.definition_hash
        if name not in self.of.views or not same:
            try:
                for read in self.model.reads:
                    table = self.of.world.models.get(read.table)
                    if table is None or table.kind != "embedded":
                        self.of._require(read.table)
            except Failed as why:
                return self._end([], {slice_: str(why)}, base, None)
            snapshot = self._commit([f"CREATE OR REPLACE VIEW {name} AS SELECT 1 AS ts"])
            self.of.views.add(name)
            self.of.queries.pop(name, None)
        what = self._publication(slice_, None, known, same=snapshot is None)
        return self._end([(slice_, what)], {}, base, snapshot)

    def made(self) -> Results:
        passed: dict[Slice, dict[Unit, list[Row]]] = {}
        failed: dict[Slice, str] = {}
        for slice_ in self.planned.slices:
            found: dict[Slice, dict[Unit, list[Row]]] = {}
            for part, unit in self._units(slice_):
                try:
                    found[part] = {unit: self.of.rows(self.model, unit)}
                except Failed as why:
                    failed[part] = str(why)
            if isinstance(slice_, Interval) and not failed:  # all of it is one slice
                found = {slice_: {u: rows for each in found.values() for u, rows in each.items()}}
            passed |= found
        return self._published(passed, failed)

    def _units(self, slice_: Slice) -> Iterator[tuple[Slice, Unit]]:
        cadence = self.model.cadence
        if cadence is None:
            yield slice_, WHOLE
        elif isinstance(slice_, Interval):
            by_time = self.planned.model.by_time
            assert by_time is not None, "its slices are intervals"
            for each in by_time.units((slice_,)):
                yield each, next(cadence.units(each.start, each.end))
        else:
            yield slice_, self.of.world.unit(self.model, slice_.text)

    def _published(
        self, passed: Mapping[Slice, Mapping[Unit, list[Row]]], failed: Mapping[Slice, str]
    ) -> Results:
        base, first = self.base, self.model.name not in self.of.content
        known, statements = self._known(), list[str]()
        if first and passed:
            statements += _created(self.model)
        before, left = list(known.values()), list(known.values())
        records: list[tuple[Slice, Publication]] = []
        for slice_, units in passed.items():
            own = [text for unit, rows in units.items() for text in self._changed(unit, rows)]
            statements += own
            rows = sum(len(each) for each in units.values())
            what = self._publication(slice_, rows, known.get(slice_.text), same=not own)
            if isinstance(slice_, Interval):
                of = replaced(left, slice_)
                left = [each for each in left if each.slice not in of.gone] + list(of.left)
                parts = parts_made(before, slice_)
                what = replace(
                    what,
                    gone=of.gone,
                    left=of.left,
                    made_before=max((at for _, at in parts if at is not None), default=None),
                    parts=tuple(KeptPart(p.text, at) for p, at in parts if len(parts) > 1),
                )
            records.append((slice_, replace(what, first=first and not records)))
        snapshot = self._commit(statements) if statements else None
        return self._end(records, failed, base, snapshot)

    def _changed(self, unit: Unit, rows: list[Row]) -> list[str]:
        """The statements that replace the rows of a slice; none where they are there."""
        name = self.model.name
        there = self.of.content.get(name, [])
        own = [row for row in there if _is_of(self.model, unit, row)]
        if self.model.appends:
            return [f"INSERT INTO {name} VALUES {sql_row(row)}" for row in rows]
        if sorted(own) == sorted(rows):
            return []
        where = "true"
        if self.model.kind == "part":
            where = f"_wm_partition = '{unit.name}'"
        elif self.model.cadence is not None:
            where = f"ts >= {sql_moment(unit.start)} AND ts < {sql_moment(unit.end)}"
        gone = [f"DELETE FROM {name} WHERE {where}"]
        values = ", ".join(map(sql_row, rows))
        return gone + ([f"INSERT INTO {name} VALUES {values}"] if rows else [])

    def _keep(self, unit: Unit, rows: Sequence[Row]) -> None:
        there = self.of.content.get(self.model.name, [])
        others = [row for row in there if not _is_of(self.model, unit, row)]
        self.of.content[self.model.name] = others + list(rows)

    def _known(self) -> dict[str, SliceRecord]:
        state = self.context.states["main"]
        return {each.slice: each for each in state.slices(f"main.{self.model.name}")}

    def _publication(
        self, slice_: Slice, rows: int | None, known: SliceRecord | None, *, same: bool
    ) -> Publication:
        is_known = known is not None or rows != 0
        return replace(
            Publication.of(self.planned.model, self.context.run_id, slice_.text),
            rows=rows,
            same=same,
            kept_as="unchanged" if is_known else "done",
            made_before=None if known is None else known.last_made_in,
        )

    def _commit(self, statements: Sequence[str]) -> int:
        told = {"run": self.context.run_id, "step": self.model.name, "slice": self.planned.slice}
        extra = json.dumps(told).replace("'", "''")
        message = f"CALL lk.set_commit_message('penstock', 'run', extra_info => '{extra}')"
        for statement in ("BEGIN", *statements, message, "COMMIT"):
            self.of.duck.execute(statement)
        return self.base

    def _end(
        self,
        published: Sequence[tuple[Slice, Publication]],
        failed: Mapping[Slice, str],
        base: int,
        snapshot: int | None,
    ) -> Results:
        """Record what was made of the slices, and what failed."""
        state, run_id = self.context.states["main"], self.context.run_id
        reads = {slice_: self._read(slice_, base) for slice_, _ in published}
        parts = [*(slice_ for slice_, _ in published), *failed]
        divided = None if all(each in self.planned.slices for each in parts) else self.planned.only
        lost = [
            replace(Publication.of(self.planned.model, run_id, s.text), state="failed", reason=why)
            for s, why in failed.items()
        ]
        records = StepRecords(
            published=tuple(replace(what, read_id=reads[s].read_id) for s, what in published),
            failed=tuple(lost),
            base=base,
            divided=None if divided is None else divided.text,
            reads=tuple(reads.values()),
        )
        state.write(lambda connection: records.write(connection, snapshot))
        found: dict[Slice, StepResult] = {}
        for slice_, what in published:
            self._remember(slice_)
            made, _ = what.made_by(snapshot)
            (found[slice_],) = ended(replace(self.planned, slices=(slice_,)), made.state)
        for slice_, why in failed.items():
            (found[slice_],) = ended(replace(self.planned, slices=(slice_,)), "failed", why)
        return found

    def _read(self, slice_: Slice, base: int) -> ReadRecord:
        """Return the record of what a slice was made from."""
        model, context = self.planned.model, self.context
        bindings = context.plan.narrowed(self.planned, (slice_,)).bindings
        files = tuple(files_of(model, bindings, context.settings.root))
        of = (new_uuid7(), model.target.qualified, context.run_id)
        return ReadRecord(*of, {"main": base}, files)

    def _remember(self, slice_: Slice) -> None:
        """Let the steps below see what is there now."""
        if self.model.kind == "view":
            return
        for _, unit in self._units(slice_):
            rows = self.of.rows(self.model, unit)
            if self.model.appends:
                self.of.content.setdefault(self.model.name, []).extend(rows)
            else:
                self._keep(unit, rows)


def _is_of(model: Model, unit: Unit, row: Row) -> bool:
    if model.kind == "part":
        return row[3] == unit.name
    return model.cadence is None or unit.has(row[0])


def _created(model: Model) -> list[str]:
    if model.kind != "part":
        return [f"CREATE TABLE {model.name} ({_COLUMNS})"]
    create = f"CREATE TABLE {model.name} ({_COLUMNS}, _wm_partition VARCHAR)"
    return [create, f"ALTER TABLE {model.name} SET PARTITIONED BY (_wm_partition)"]
