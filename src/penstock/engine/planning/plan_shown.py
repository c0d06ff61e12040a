"""How plans and their steps look in a console and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock.notebook import count, line, listed, table

if TYPE_CHECKING:
    from penstock.engine.planning.plan import Plan, PlannedStep


class StepShown:
    """One line for a `PlannedStep`."""

    __slots__ = ()

    def __repr__(self) -> str:
        step = cast("PlannedStep", self)
        named = f"{step.name} {step.slice}" if step.slice else step.name
        return line(self, named, f"{step.model.strategy} {step.model.target}", _note(step))


class PlanShown:
    """One line for a `Plan`, and its steps as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        plan = cast("Plan", self)
        names = [step.name for step in plan.steps]
        return line(self, f"{count(len(names), 'step')}: {listed(names)}" if names else "no steps")

    def _repr_html_(self) -> str:
        plan = cast("Plan", self)
        rows = [
            (step.name, step.slice, step.model.strategy.name, step.model.target, _note(step))
            for step in plan.steps
        ]
        headings = ("step", "slice", "strategy", "table", "note")
        return table(headings, rows, note="; ".join(plan.notices))


def _note(step: PlannedStep) -> str | None:
    return step.blocked or step.skipped or step.again
