"""Estimate the rows and the time of a plan from past runs. Starts no Spark, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.planning.plan import Plan, PlannedStep
from penstock.engine.state.run_history import MadeOnce, Pace, last_made, pace_of
from penstock.engine.state.store import State
from penstock.model.definition.model import Model
from penstock.model.time.interval import interval_of
from penstock.states import SliceState

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Estimate:
    """``rows`` and ``seconds`` of ``slices`` of a step, from ``runs`` past runs of its table; None
    where no run has made it, or its rows were not counted.
    """

    slices: int
    rows: int | None = None
    seconds: float | None = None
    runs: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {name: getattr(self, name) for name in self.__slots__}


def estimates(plan: Plan, catalogs: Callable[[str], Catalog | None]) -> Mapping[str, Estimate]:
    """Return what the steps of a plan will take, by their names; of those that make slices."""
    found: dict[str, Estimate] = {}
    for step in plan.steps:
        if step.slices and not step.skipped and not step.blocked:
            catalog = catalogs(step.model.target.lake)
            pace = None if catalog is None else _pace(catalog, step.model)
            found[step.name] = _estimate(step, pace)
    return found


def _pace(catalog: Catalog, model: Model) -> Pace | None:
    target = model.target.qualified
    made = State(catalog).read(lambda each: last_made(each, target), list[MadeOnce]())
    return pace_of(made, lambda text: _units(model, text))


def _units(model: Model, text: str) -> int:
    interval = interval_of(text)
    if interval is None or model.by_time is None:
        return 1
    return sum(1 for _ in model.by_time.units((interval,)))


def _estimate(step: PlannedStep, pace: Pace | None) -> Estimate:
    number = sum(each.count for each in step.ranges if each.state != SliceState.WAITING)
    if pace is None or not number:
        return Estimate(number)
    rows = None if pace.rows is None else round(pace.rows * number)
    return Estimate(number, rows, round(pace.seconds * number, 3), pace.runs)
