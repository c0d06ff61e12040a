"""Make steps of a past run once more beside their tables, and compare the rows. Nothing is written.

Tables are read at the snapshots that are recorded, by the definition of then and for the time of
the run (`past_step`); what the strategy would have written is compared with what it wrote
(`past_step`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, cast

from penstock.destinations.values import At
from penstock.distribution import VERSION
from penstock.engine.answers.comparing import (
    Compared,
    added_and_dropped,
    compare_sides,
    key_of,
    key_of_model,
)
from penstock.engine.inputs.declared_columns import cast_to
from penstock.engine.inputs.pinned_tables import Beginning, Pins, table_name
from penstock.engine.inputs.resolve import Reader, Views, resolve
from penstock.engine.planning.files_read import files_of
from penstock.engine.planning.plan import Plan, PlannedStep
from penstock.engine.planning.slices import RunRequest
from penstock.engine.python.serve import scratch
from penstock.engine.python.step import made_rows, runner_of
from penstock.engine.session.run_context import RunContext
from penstock.engine.session.spark import lakes_for, session_for
from penstock.engine.state.records import ReadRecord, StepRecord
from penstock.engine.state.run_history import Recorded, parts_of, reads_of_step
from penstock.engine.state.store import State
from penstock.engine.verifying.past_step import (
    DONE,
    CannotReproduce,
    PastStep,
    files_in,
    model_then,
    of_these_files,
    planned_of,
    read_of,
    require_made,
    require_repeatable,
    require_same_files,
    sides_of,
    slice_then,
    together_with,
)
from penstock.errors import PenstockError, SnapshotNotFound
from penstock.events import EventSink
from penstock.model.definition.graph import makers_of
from penstock.model.project.loader import Loaded
from penstock.model.script.sources import FunctionSource, TableSource
from penstock.model.time.slice import shown
from penstock.model.values.asset import TableName
from penstock.rendering.columns import html, read_columns
from penstock.rendering.text import count, line
from penstock.settings.config import Settings
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.destinations.destination import Destination, StagedTable
    from penstock.destinations.values import TableSchema

SAME, DIFFERS, REFUSED, NOT_MADE = "same", "differs", "refused", "not made"


@dataclass(frozen=True, slots=True)
class ReproducedStep:
    """A slice of a past run, made once more.

    ``state`` is ``same``, ``differs``, ``refused`` (it cannot be made as it was) or ``not made``
    (the run published nothing of it); ``reason`` says why. The run left the slice as it was at
    ``snapshot``; ``inputs`` are the snapshots of lakes that were read. In ``changes`` what is
    inserted is only in the rows made now, what is deleted only in the table. ``notices`` are worth
    knowing.
    """

    step: str
    table: str
    slice: str | None
    state: str
    reason: str | None = None
    snapshot: int | None = None
    inputs: Mapping[str, int] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    changes: Compared | None = None
    columns_added: tuple[str, ...] = ()
    columns_dropped: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The result of `Project.reproduce`: the slices of a run in the order in which it came to
    them.
    """

    run_id: str
    steps: tuple[ReproducedStep, ...]

    @property
    def exit_code(self) -> int:
        """1 where a row differs, 3 where nothing differs and something cannot be made again."""
        states = {each.state for each in self.steps}
        return 1 if DIFFERS in states else 3 if REFUSED in states else 0

    def __repr__(self) -> str:
        states = (each.state for each in self.steps)
        return line(self, self.run_id, count(len(self.steps), "step"), ", ".join(sorted(states)))

    def _repr_html_(self) -> str:
        return html(read_columns("step slice state reason"), self.steps, self.run_id)


@dataclass(frozen=True, slots=True)
class Reproducer:
    """Makes steps of a run once more, in the project as it is ``loaded``.

    ``lakes`` are those that exist, ``start`` gives the session, ``samples`` are rows of each kind
    of difference.
    """

    settings: Settings
    loaded: Loaded
    lakes: Mapping[str, Destination]
    start: Callable[[], SparkSession]
    sink: EventSink
    samples: int

    def reproduced(self, step: StepRecord, lake: str, recorded: Recorded) -> ReproducedStep:
        """Make a recorded step of a lake once more. What Spark or a lake cannot do is a reason."""
        name = TableName(lake, *step.target.split(".", 1))
        found = ReproducedStep(step.step, str(name), shown(step.slice) or None, NOT_MADE)
        state = State(self.lakes[lake].catalog)
        try:
            require_made(step)
        except CannotReproduce as error:
            return replace(found, reason=str(error))
        ask = partial(reads_of_step, run_id=step.run_id, target=step.target)
        reads = state.read(ask, list[ReadRecord]())
        if step.state != DONE and not reads:
            return replace(found, reason=f"the run left it as it was: {step.reason or step.state}")
        try:
            past = self._past(step, state, recorded, reads)
            notices = self._require_inputs(past)
            found = replace(found, snapshot=past.at, inputs=dict(past.read.lakes), notices=notices)
            return self._compared(past, found)
        except CannotReproduce as error:
            return replace(found, state=REFUSED, reason=str(error))
        except PenstockError as error:
            return replace(found, state=REFUSED, reason=error.message)

    def _past(
        self, step: StepRecord, state: State, recorded: Recorded, reads: Sequence[ReadRecord]
    ) -> PastStep:
        """Return a step with what it was made from. Raises CannotReproduce."""
        plan, planned = planned_of(recorded.run.plan, step)
        ask = partial(parts_of, target=step.target, definition=planned.definition)
        parts = state.read(ask, dict[str, str]())
        model = model_then(self.loaded, step.step, planned.definition, parts)
        require_repeatable(model, self.loaded)
        read = read_of(step, reads)
        at = step.snapshot_id if step.state == DONE else None
        made = [each.snapshot_id for each in recorded.steps if each.step == step.step]
        first = min((each for each in made if each is not None), default=None)
        past = PastStep(
            model=model,
            slice=slice_then(step, model),
            read=read,
            now=plan.request.fire_time,
            at=read.lakes.get(model.target.lake, 0) if at is None else at,
            wrote=at is not None,
            begins=planned.anew and at is not None and at == first,
        )
        if not model.query.files:
            return past
        files = list(files_of(model, past.bindings, self.settings.root))
        return replace(past, read=of_these_files(together_with(read, reads), files))

    def _require_inputs(self, past: PastStep) -> tuple[str, ...]:
        """Return what is worth knowing of the inputs. Raises CannotReproduce where one is gone."""
        model, notices = past.model, []
        target = self.lakes[model.target.lake].catalog
        self._require(target.snapshot, past.at, f"as which the run left {model.target}")
        for lake in self._lakes_read(past):
            at = past.read.lakes.get(lake)
            if at is None or lake not in self.lakes:
                raise CannotReproduce(f"at which snapshot it read lake {lake} is not recorded")
            self._require(self.lakes[lake].catalog.snapshot, at, f"at which it read lake {lake}")
        if model.query.files or files_in(past.read):
            files = list(files_of(model, past.bindings, self.settings.root))
            others = require_same_files(past.read, files)
            notices += [f"{name} may have changed since: nobody can tell" for name in others]
        if past.read.version != VERSION:
            notices.append(f"made by Penstock {past.read.version}, and now by {VERSION}")
        return tuple(notices)

    def _require(self, ask: Callable[[At], object], at: int, what: str) -> None:
        try:
            ask(At(at))
        except SnapshotNotFound:
            raise CannotReproduce(f"snapshot {at}, {what}, has expired") from None

    def _lakes_read(self, past: PastStep) -> list[str]:
        """The lakes whose tables it reads."""
        query = past.model.query
        found = [each.table.lake for each in query.sources if isinstance(each, TableSource)]
        found += [each.lake for each in query.sources if isinstance(each, FunctionSource)]
        if past.model.python is not None:
            found += past.model.lakes
        return list(dict.fromkeys(found))

    def _pins(self, past: PastStep, lakes: Mapping[str, Destination]) -> Pins:
        """The tables as they were read; lakes of which none is, as they are."""
        read = {*self._lakes_read(past)}
        versions = {
            name: past.read.lakes[name] if name in read else lake.catalog.latest().id
            for name, lake in lakes.items()
        }
        return Pins(lakes, versions, makers=makers_of(self.loaded.models))

    def _compared(self, past: PastStep, found: ReproducedStep) -> ReproducedStep:
        model = past.model
        session = session_for(model.query, self.start())
        lakes = lakes_for(session, self.lakes)
        pins = self._pins(past, lakes)
        column = self.settings.lakes[model.target.lake].partition_column
        with ExitStack() as held:
            views = held.enter_context(Views(session))
            made = self._made(past, pins, session, views, held)
            sides = sides_of(past, made, lakes[model.target.lake], column)
            common = set(map(fold, sides.common))
            by = [
                name for name in key_of_model(model, column) if name and fold(name) != fold(column)
            ]
            usable = by if all(fold(name) in common for name in by) else ()
            key = key_of(usable, sides.common)
            changes, by_key = compare_sides(sides, key, self.samples, sure=False)
        added, dropped = added_and_dropped(*sides.columns)
        if model.strategy.keeps_columns:  # the table has others, and leaves some out
            added = dropped = ()
        differs = changes.differs or added or dropped
        return replace(
            found,
            state=DIFFERS if differs else SAME,
            key=by_key,
            changes=changes,
            columns_added=added,
            columns_dropped=dropped,
        )

    def _made(
        self, past: PastStep, pins: Pins, session: SparkSession, views: Views, held: ExitStack
    ) -> DataFrame:
        """The rows that the step makes of its inputs as they were."""
        model = past.model
        column = self.settings.lakes[model.target.lake].partition_column
        if model.python is not None:
            return self._made_by_python(past, pins, session, views, held)
        there = pins.lakes[model.target.lake].catalog.find_table(
            model.target.schema, model.target.table, pins.versions[model.target.lake]
        )
        beginning = Beginning.of(model, column) if there is None or past.begins else None
        reader = Reader(pins, session, views, self.settings.root)
        resolved = resolve(model.query, past.bindings, reader, beginning=beginning)
        return cast_to(resolved.df, model.columns)

    def _made_by_python(
        self, past: PastStep, pins: Pins, session: SparkSession, views: Views, held: ExitStack
    ) -> DataFrame:
        model = past.model
        request = RunRequest(fire_time=past.now, args=dict(past.read.arguments))
        step = PlannedStep(model, (past.slice,), bindings=past.bindings)
        plan = Plan((step,), request, dict(past.read.arguments), makers=pins.makers)
        context = RunContext(
            past.read.run_id, plan, self.settings, session, pins.lakes, {}, self.sink
        )
        outcome = runner_of(context, step, pins, views, held.enter_context(scratch())).run()
        target = pins.lakes[model.target.lake].table(table_name(model.target))
        as_left = _AsLeft(target.info(past.at).schema, target.to_df(version=past.at))
        column = self.settings.lakes[model.target.lake].partition_column
        rows = made_rows(outcome, model, cast("StagedTable", as_left), column)
        frames = [cast_to(each.df, model.columns) for each in rows]
        if len(frames) > 1 and not model.strategy.only_adds:
            raise CannotReproduce("its code writes several times, and each depends on the others")
        return reduce(lambda one, other: one.unionByName(other), frames)


@dataclass(frozen=True, slots=True)
class _AsLeft:
    """A table as a step left it: all that the rows of a step in Python are fitted to."""

    schema: TableSchema
    rows: DataFrame
    exists: bool = True

    def to_df(self) -> DataFrame:
        return self.rows


def chosen(
    steps: Iterable[StepRecord], step: str | None, partition: str | None
) -> Sequence[StepRecord]:
    """The steps of a run that are asked for."""
    return [
        each
        for each in steps
        if (step is None or each.step == step)
        and (partition is None or partition in {each.slice, shown(each.slice)})
    ]
