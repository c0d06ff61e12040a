"""Plan what a change of definitions touches: slices of another definition, and what reads them.

A slice is stale where another definition made it. Stale slices are made again, and below them what
is there and shares a moment with them, as a restatement does (`restatement_scope`); everything in
the order of the graph, each model in one commit as far as its kind allows. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from penstock.engine.planning.changed_scope import changed_scope
from penstock.engine.planning.make_plan import finished, of_slices
from penstock.engine.planning.plan import Asked, Plan, PlannedStep, count_of
from penstock.engine.planning.restate import again_of
from penstock.engine.planning.restatement_scope import (
    Cascade,
    RestatementScope,
    rebuilds,
    why_not,
)
from penstock.engine.planning.slice_reason import DefinitionChange
from penstock.engine.planning.slices import RunRequest
from penstock.errors import ArgumentError
from penstock.model.definition.model import Model
from penstock.model.time.slice import WHOLE, Slice

WHY = "its definition has changed"
UNTOUCHED = "no definition above it has changed"
NOTHING = "no definition has changed since the slices were made"
_MOST = 20  # changes of which the readers are looked for


def require_no_slices(request: RunRequest) -> None:
    """Raise ArgumentError for what does not go with a run of what has changed."""
    if request.partition is not None or request.full_refresh:
        raise ArgumentError(
            "--changed says which slices are made: those of changed definitions, and their readers",
            hint="leave out --partition and --full-refresh, or --changed",
        )


def of_changed(asked: Asked) -> list[PlannedStep]:
    """Plan the stale slices of the models that were asked for, and what reads them."""
    require_no_slices(asked.request)
    scope = changed_scope(asked)
    if not scope.first:
        return [_untouched(model, scope.refused, asked) for model in asked.steps]
    return [_step(model, scope.first, scope.reached, scope.refused, asked) for model in asked.steps]


def _step(
    model: Model,
    first: Mapping[str, RestatementScope],
    reached: Cascade,
    refused: Mapping[str, str],
    asked: Asked,
) -> PlannedStep:
    name, after = model.name, asked.after(model)
    again = reached.again.get(name)
    if again is not None:
        return finished(again_of(model, again, asked, after), asked)
    if name in reached.left_out:
        return PlannedStep(model, (), after, skipped=f"not rebuilt: {reached.left_out[name]}")
    is_whole = model.by_time is None and model.partition is None and not rebuilds(model)
    if is_whole and reached.passed.get(name):
        why = first[name].why if name in first else reached.passed[name][0].why
        return finished(replace(of_slices(model, (WHOLE,), asked), again=why), asked)
    return _untouched(model, refused, asked)


def _untouched(model: Model, refused: Mapping[str, str], asked: Asked) -> PlannedStep:
    why = refused.get(model.name)
    skipped = UNTOUCHED if why is None else f"{WHY}, and it is not rebuilt: {why}"
    return PlannedStep(model, (), asked.after(model), skipped=skipped)


def only_touched(plan: Plan) -> Plan:
    """Return the plan without the steps that no change touches."""
    steps = [step for step in plan.steps if step.skipped != UNTOUCHED]
    names = {step.name for step in steps}
    kept = tuple(
        replace(step, after=tuple(name for name in step.after if name in names)) for step in steps
    )
    notices = plan.notices if kept else (*plan.notices, NOTHING)
    return replace(plan, steps=kept, notices=notices)


def changes_of(
    models: Sequence[Model],
    stale: Mapping[str, Sequence[Slice]],
    planned: Callable[[str], Plan],
) -> Iterator[DefinitionChange]:
    """Yield what the changes of definitions touch: those of ``stale`` slices, by the names of
    models. ``planned`` plans the change of one model; of very many their readers are left out.
    """
    by_name = {model.name: model for model in models}
    for at, (name, slices) in enumerate(stale.items()):
        model = by_name[name]
        number, why = _count(model, slices), why_not(model)
        if why is not None or at >= _MOST:
            yield DefinitionChange(name, number, refused=None if why is None else why[0])
            continue
        steps = [step for step in planned(name).steps if step.name != name]
        yield DefinitionChange(
            name,
            number,
            tuple((s.name, _count(s.model, s.slices)) for s in steps if not s.skipped),
            tuple((step.name, step.skipped) for step in steps if step.skipped),
        )


def _count(model: Model, slices: Sequence[Slice]) -> int | None:
    if WHOLE in slices or rebuilds(model):
        return None
    return count_of(model, slices)
