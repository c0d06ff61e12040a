"""Plan what a change of definitions touches: slices of another definition, and what reads them.

A slice is stale where another definition made it. Stale slices are made again, and below them what
is there and shares a moment with them, as a restatement does (`restatement_scope`); everything in
the order of the graph, each model in one commit as far as its kind allows. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from penstock.engine.planning.goals import again_of, finished, of_slices
from penstock.engine.planning.plan import Plan, PlannedStep, PlanningContext, count_of
from penstock.engine.planning.reasons import stale_slices
from penstock.engine.planning.restatement_scope import (
    Cascade,
    RestatementScope,
    cascade,
    rebuilds,
    why_not,
)
from penstock.engine.planning.slice_reason import DefinitionChange, Skip, SkipKind
from penstock.engine.planning.slices import RunRequest
from penstock.errors import ArgumentError
from penstock.model.definition.model import Model
from penstock.model.time.slice import WHOLE, Slice

WHY = "its definition has changed"
_UNTOUCHED = Skip(SkipKind.UNTOUCHED, "no definition above it has changed")
NOTHING = "no definition has changed since the slices were made"
_MOST = 20  # changes of which the readers are looked for
_ALWAYS = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ChangedScope:
    """The changes of ``first`` models, what they reach, and why others are ``refused``."""

    first: Mapping[str, RestatementScope] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    reached: Cascade = field(default_factory=Cascade)


def changed_scope(context: PlanningContext) -> ChangedScope:
    """Find what the stale slices of the selected models reach.

    Args:
        context: The plan.

    Returns:
        The scope.
    """
    roots = [model for model in context.steps if model.name in context.roots]
    stale = stale_slices(roots, context.known)
    refused = {m.name: why[0] for m in roots if m.name in stale and (why := why_not(m))}
    changes = {
        model.name: RestatementScope(
            f"the definition of {model.name} has changed",
            _ALWAYS,
            stale[model.name],
            model.partition,
            now=True,
        )
        for model in roots
        if model.name in stale and model.name not in refused
    }
    if not changes:
        return ChangedScope(refused=refused)
    names = {model.name for model in context.steps}
    pasts = context.known.pasts(context.steps)
    reached = cascade(context.steps, context.graph.parents, names, pasts, first=changes)
    return ChangedScope(changes, refused, reached)


def require_no_slices(request: RunRequest) -> None:
    """Raise ArgumentError for what does not go with a run of what has changed."""
    if request.partition is not None or request.full_refresh:
        raise ArgumentError(
            "--changed says which slices are made: those of changed definitions, and their readers",
            hint="leave out --partition and --full-refresh, or --changed",
        )


def of_changed(context: PlanningContext) -> list[PlannedStep]:
    """Plan the stale slices of the models that were asked for, and what reads them."""
    require_no_slices(context.request)
    scope = changed_scope(context)
    return [_step(model, scope, context) for model in context.steps]


def _step(model: Model, scope: ChangedScope, context: PlanningContext) -> PlannedStep:
    name, reached = model.name, scope.reached
    restatement = reached.again.get(name)
    if restatement is not None:
        return finished(again_of(model, restatement, context), context)
    if name in reached.left_out:
        skipped = Skip(SkipKind.LEFT_OUT, "not rebuilt", reached.left_out[name])
        return PlannedStep(model, (), context.after(model), skipped=skipped)
    is_whole = model.by_time is None and model.partition is None and not rebuilds(model)
    if is_whole and reached.passed.get(name):
        own_change = scope.first.get(name)
        reason = reached.passed[name][0].why if own_change is None else own_change.why
        return finished(replace(of_slices(model, (WHOLE,), context), again=reason), context)
    refusal, skipped = scope.refused.get(name), _UNTOUCHED
    if refusal is not None:
        skipped = Skip(SkipKind.LEFT_OUT, f"{WHY}, and it is not rebuilt", refusal)
    return PlannedStep(model, (), context.after(model), skipped=skipped)


def only_touched(plan: Plan) -> Plan:
    """Return the plan without the steps that no change touches."""
    steps = [step for step in plan.steps if step.skipped != _UNTOUCHED]
    names = {step.name for step in steps}
    touched_steps = tuple(
        replace(step, after=tuple(name for name in step.after if name in names)) for step in steps
    )
    notices = plan.notices if touched_steps else (*plan.notices, NOTHING)
    return replace(plan, steps=touched_steps, notices=notices)


def changes_of(
    models: Sequence[Model],
    stale: Mapping[str, Sequence[Slice]],
    planned: Callable[[str], Plan],
) -> Iterator[DefinitionChange]:
    """Yield what the changes of definitions touch: those of ``stale`` slices, by the names of
    models. ``planned`` plans the change of one model; of very many their readers are left out.
    """
    by_name = {model.name: model for model in models}
    for position, (name, slices) in enumerate(stale.items()):
        model = by_name[name]
        number, refusal = _count(model, slices), why_not(model)
        if refusal is not None or position >= _MOST:
            yield DefinitionChange(name, number, refused=None if refusal is None else refusal[0])
            continue
        steps = [step for step in planned(name).steps if step.name != name]
        yield DefinitionChange(
            name,
            number,
            tuple((s.name, _count(s.model, s.slices)) for s in steps if not s.skipped),
            tuple((step.name, str(step.skipped)) for step in steps if step.skipped),
        )


def _count(model: Model, slices: Sequence[Slice]) -> int | None:
    if WHOLE in slices or rebuilds(model):
        return None
    return count_of(model, slices)
