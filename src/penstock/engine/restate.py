"""Restatement: the slices of a range made again, whatever they are, with what becomes of them.

The slices of one model go in one commit where it is by time. A table whose rows are only ever added
cannot be restated, nor one that says ``disable_restatement``; below the model that is asked for
those are left out, which is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.pins import table_name
from penstock.engine.plan import Plan, PlannedStep
from penstock.engine.state.store import State
from penstock.engine.strategies.time_range import rows_in_ranges
from penstock.errors import ArgumentError, TableNotFound
from penstock.model.interval import Interval, union
from penstock.model.kinds import TIME_RANGE, VIEW
from penstock.model.model import Model
from penstock.model.slice import WHOLE

if TYPE_CHECKING:
    from penstock.lake.lake import Lake


@dataclass(frozen=True, slots=True)
class Restated:
    """What a restatement would do to one model: ``rows`` are there now, None where that is not
    known; ``skipped`` says why it is left out.
    """

    model: str
    table: str
    slice: str | None
    slices: int
    rows: int | None = None
    skipped: str | None = None


def require_restatable(model: Model) -> None:
    """Raises ArgumentError for a model of which no range can be made again."""
    why = _why_not(model)
    if why is not None:
        raise ArgumentError(
            f"{model.name} cannot be restated: {why[0]}", hint=why[1], location=model.place(why[2])
        )
    if model.by_time is None and model.partition is None:
        raise ArgumentError(
            f"{model.name} has no ranges: it is made as a whole",
            hint=f"penstock run {model.name} makes it again, with --full-refresh from nothing",
            location=model.place("target"),
        )


def _why_not(model: Model) -> tuple[str, str, str] | None:
    """The reason, what to do instead, and where the model says so."""
    if model.disable_restatement:
        hint = "write disable_restatement false in its kind"
        return "disable_restatement is true", hint, "disable_restatement"
    if model.strategy == "append":
        hint = f"make it anew: penstock run {model.name} --full-refresh"
        return "its rows are only ever added, and would be added again", hint, "target"
    return None


def restating(plan: Plan, name: str) -> Plan:
    """The plan of a restatement, from that of a run with all slices of the range."""
    return replace(plan, steps=tuple(_step(plan, step, of=name) for step in plan.steps))


def _step(plan: Plan, step: PlannedStep, *, of: str) -> PlannedStep:
    why = _why_not(step.model)
    if why is not None and step.name != of:
        return replace(step, skipped=f"not restated: {why[0]}")
    intervals = [slice_ for slice_ in step.slices if isinstance(slice_, Interval)]
    return plan.narrowed(step, union(intervals)) if intervals else step


def restated(plan: Plan, lakes: Mapping[str, Lake]) -> tuple[Restated, ...]:
    """What the plan does, with the rows that are there now. Starts Spark to count them."""
    return tuple(_restated(step, lakes[step.model.target.lake]) for step in plan.steps)


def _restated(step: PlannedStep, lake: Lake) -> Restated:
    model = step.model
    shown = Restated(model.name, str(model.target), step.slice, len(step.slices))
    if step.skipped is not None:
        return replace(shown, slices=0, skipped=step.skipped)
    if model.strategy == VIEW:
        return shown
    count = _COUNTS.get(model.strategy, _recorded)
    return replace(shown, rows=count(step, lake))


def _in_ranges(step: PlannedStep, lake: Lake) -> int:
    model, by_time = step.model, step.model.by_time
    assert by_time is not None, "a model of this strategy has one"
    try:
        rows = lake.table(table_name(model.target)).to_df()
    except TableNotFound:
        return 0
    intervals = union(slice_ for slice_ in step.slices if isinstance(slice_, Interval))
    return rows_in_ranges(rows, by_time, intervals, model.query.dialect).count()


def _recorded(step: PlannedStep, lake: Lake) -> int:
    records = State(lake.catalog).slices(step.model.target.qualified)
    texts = {slice_.text for slice_ in step.slices}
    whole = WHOLE in step.slices or step.model.by_time is not None
    return sum(record.rows for record in records if whole or record.slice in texts)


_COUNTS: Mapping[str, Callable[[PlannedStep, Lake], int]] = {TIME_RANGE: _in_ranges}
