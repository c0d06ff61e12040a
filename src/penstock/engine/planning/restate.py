"""A restatement that a user asked for: a model, or slices of it, made again whatever they hold,
and with ``downstream`` what reads it.

Of a model by time or partitions it is the slices of a range, by time in one commit; else the whole
table, which merges, appends and histories begin from nothing. Of what reads it, it is what is there
already and shares a moment with that (`cascade`); what is left out says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.planning.goals import Goal, again_of, finished, of_range, of_slices, rebuilt
from penstock.engine.planning.intervals import asked_moments
from penstock.engine.planning.plan import Plan, PlannedStep, PlanningContext
from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.restatement_scope import (
    Cascade,
    RestatementScope,
    cascade,
    rebuilds,
    why_not,
)
from penstock.engine.planning.slice_reason import Skip, SkipKind
from penstock.engine.strategies.time_range import rows_in_ranges
from penstock.errors import ArgumentError, TableNotFound
from penstock.model.definition.external import External
from penstock.model.definition.graph import Graph, table_key
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, union
from penstock.model.time.slice import WHOLE, Slice
from penstock.model.time.time_range import TimeRange
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from penstock.destinations.destination import Destination

ASKED = "it was asked for"
_ALWAYS = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Restated:
    """The effect of a restatement on one model: ``rows`` are there now, None where that is not
    known; ``anew``: its table is made from nothing; ``skipped`` says why it is left out.
    """

    model: str
    table: str
    slice: str | None
    slices: int
    rows: int | None = None
    anew: bool = False
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Root:
    """The root of a restatement: at a model, or at a table that others write and ``readers``."""

    name: str
    model: Model | None = None
    readers: tuple[str, ...] = ()

    @classmethod
    def at(cls, model: Model) -> Root:
        return cls(model.name, model)

    @classmethod
    def of(cls, external: External, models: Iterable[Model]) -> Root:
        key = table_key(external.table)
        readers = (each.name for each in models if key in map(table_key, each.inputs))
        return cls(str(external.table), readers=tuple(readers))

    def select(self, graph: Graph, *, downstream: bool) -> tuple[str, ...]:
        """Return the models that are restated. Raises ArgumentError where none is."""
        if self.model is not None and self.model.strategy.runs:
            return (self.name, *graph.downstream(self.name)) if downstream else (self.name,)
        kind = "external" if self.model is None else "EMBEDDED"
        if not downstream:
            raise ArgumentError(
                f"{self.name} is {kind}: only what reads it can be restated",
                hint=f"penstock restate {self.name} --downstream",
                location=None if self.model is None else self.model.place("kind"),
            )
        if self.model is None and not self.readers:
            raise ArgumentError(
                f"no model reads {self.name}, so nothing is to be restated",
                hint="penstock lineage shows who reads what",
            )
        roots = (self.name,) if self.model else self.readers
        found = ((name, *graph.downstream(name)) for name in roots)
        return tuple(dict.fromkeys(chain.from_iterable(found)))

    def require(self, range_: SliceRange | None, *, downstream: bool) -> None:
        """Raises ArgumentError for a model that cannot be restated, or not like that."""
        model = self.model
        why = None if model is None else why_not(model)
        if model is not None and why is not None:
            raise ArgumentError(
                f"{self.name} cannot be restated: {why[0]}",
                hint=why[1],
                location=model.place(why[2]),
            )
        has_ranges = model is not None and not rebuilds(model) and _has_ranges(model)
        if has_ranges and range_ is None:
            raise ArgumentError(
                f"a restatement of {self.name} needs a range",
                hint="for example: --from 2026-01-01 --to 2026-01-31",
            )
        for_readers = downstream and (model is None or not rebuilds(model))
        if range_ is not None and model is not None and not has_ranges and not for_readers:
            raise ArgumentError(
                f"{self.name} has no ranges: it is made as a whole",
                hint="leave out --from and --to: then all of it is made again",
                location=model.place("target"),
            )


def _has_ranges(model: Model) -> bool:
    return model.by_time is not None or model.partition is not None


def goal_of(root: Root) -> Goal:
    """Return what a restatement that begins there makes of the models of a plan."""

    def plan(context: PlanningContext) -> list[PlannedStep]:
        steps: dict[str, PlannedStep] = {}
        if root.model is not None and root.model.strategy.runs:
            steps[root.name] = _first(root.model, context)
        reached = _reached(root, context, steps.get(root.name))
        for model in context.steps:
            if model.name not in steps:
                steps[model.name] = finished(_reader(model, reached, context), context)
        return [steps[model.name] for model in context.steps]

    return plan


def _first(model: Model, context: PlanningContext) -> PlannedStep:
    """The model that was asked for."""
    if rebuilds(model):
        return finished(rebuilt(model, context, ASKED), context)
    if not _has_ranges(model):
        return finished(replace(of_slices(model, (WHOLE,), context), again=ASKED), context)
    (step,) = of_range(replace(context, steps=(model,)))
    intervals = [slice_ for slice_ in step.slices if isinstance(slice_, Interval)]
    slices = union(intervals) if intervals else step.slices
    return finished(replace(step, slices=slices, again=ASKED), context)


def _reached(root: Root, context: PlanningContext, root_step: PlannedStep | None) -> Cascade:
    """Return what is made again of the readers of what was asked for."""
    scope: tuple[Slice, ...] = (WHOLE,)
    if (
        root_step is not None
        and root_step.slices
        and not root_step.anew
        and root_step.slices != (WHOLE,)
    ):
        scope = root_step.slices
    elif context.request.range is not None:
        scope = (asked_moments(context.request.range, context.request.fire_time),)
    spec = None if root.model is None else root.model.partition
    wave = RestatementScope(f"{root.name} is restated", _ALWAYS, scope, spec, now=True)
    parents = {**context.graph.parents}
    parents |= {name: (*parents[name], root.name) for name in root.readers}
    names = {model.name for model in context.steps}
    below = [model for model in context.order if model.name != root.name]
    pasts = context.known.pasts([model for model in context.steps if model.name != root.name])
    return cascade(below, parents, names, pasts, begun={root.name: (wave,)})


def _reader(model: Model, reached: Cascade, context: PlanningContext) -> PlannedStep:
    name, after = model.name, context.after(model)
    restatement = reached.again.get(name)
    if name in reached.left_out:
        return PlannedStep(model, (), after, skipped=_left_out(reached.left_out[name]))
    if restatement is None:
        if name in reached.passed and not _has_ranges(model) and not rebuilds(model):
            return of_slices(model, (WHOLE,), context)
        return PlannedStep(model, (), after, skipped=_left_out("nothing of it is there yet"))
    return again_of(model, restatement, context)


def _left_out(why: str) -> Skip:
    return Skip(SkipKind.LEFT_OUT, "not restated", why)


def restated(
    plan: Plan, lakes: Mapping[str, Destination], columns: Mapping[str, str]
) -> tuple[Restated, ...]:
    """Return what the plan does, with the rows that are there now. Starts Spark to count them.
    ``columns`` carry the values of slices, by the names of lakes.
    """
    names = [(step, step.model.target.lake) for step in plan.steps]
    return tuple(_restated(step, lakes[name], columns[name]) for step, name in names)


def _restated(step: PlannedStep, lake: Destination, column: str) -> Restated:
    model = step.model
    shown = Restated(model.name, str(model.target), step.slice, len(step.slices), anew=step.anew)
    if step.skipped is not None:
        return replace(shown, slices=0, skipped=str(step.skipped))
    if not model.strategy.counts_rows:
        return shown
    if model.ranges is not None:
        return replace(shown, rows=_in_ranges(step, lake, model.ranges))
    return replace(shown, rows=_of_slices(step, lake, column))


def _in_ranges(step: PlannedStep, lake: Destination, by_time: TimeRange) -> int:
    model = step.model
    try:
        rows = lake.table(table_name(model.target)).to_df()
    except TableNotFound:
        return 0
    intervals = union(slice_ for slice_ in step.slices if isinstance(slice_, Interval))
    return rows_in_ranges(rows, by_time, intervals, model.query.dialect).count()


def _of_slices(step: PlannedStep, lake: Destination, column: str) -> int | None:
    """The rows of a table, or of its partitions; None where these cannot be told apart."""
    from pyspark.sql import functions as fn

    try:
        rows = lake.table(table_name(step.model.target)).to_df()
    except TableNotFound:
        return 0
    if step.anew or WHOLE in step.slices:
        return rows.count()
    values = [slice_.text for slice_ in step.slices]
    if step.model.by_time is not None or column not in rows.columns:
        return None
    return rows.where(fn.col(quoted(column)).isin(values)).count()
