"""Plan what a run would build, by the models and by what the catalogs know of their slices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from penstock.errors import LakeError
from penstock.model.definition.graph import table_key
from penstock.model.definition.model import Model

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.engine.planning.estimates import Estimate
    from penstock.engine.planning.freshness import OldTable
    from penstock.engine.planning.goals import Goal
    from penstock.engine.planning.plan import Known, Plan
    from penstock.engine.planning.reasons import Held
    from penstock.engine.planning.run_arguments import Positional, RunOptions
    from penstock.engine.planning.slice_reason import DefinitionChange
    from penstock.engine.planning.slices import RunRequest
    from penstock.engine.state.records import InputRead
    from penstock.engine.verifying.column_check import MissingColumn
    from penstock.model.lineage.models import ProjectLineage
    from penstock.model.script.constants import Bindings
    from penstock.model.values.asset import TableName
    from penstock.project.context import ProjectContext


T = TypeVar("T")


def build_request(
    context: ProjectContext, models: Sequence[Positional], options: RunOptions
) -> tuple[ProjectContext, RunRequest]:
    """Build the request of a run.

    Args:
        context: The project.
        models: What the user gave by position: models, and perhaps the slice.
        options: The options of `Project.run`.

    Returns:
        The request, and the context in which the environment has tables of its own for the models
        that the request selects.

    Raises:
        ArgumentError: An argument is wrong.
        PartitionError: A slice is wrong.
    """
    from penstock.engine.planning.run_arguments import build_run_request

    request = build_run_request(models, context.models, options)
    if context.own_models is None:
        return context, request
    from penstock.project.states import models_in_state

    context = context.with_own()
    assert context.own_models is not None, "the same environment"
    names, request = context.own_models.selected(request, partial(models_in_state, context))
    return context.with_own(names), request


def plan_model(
    context: ProjectContext, model: Model, **options: Unpack[RunOptions]
) -> tuple[ProjectContext, Plan]:
    """Plan one model, whether or not its slices are up to date.

    Args:
        context: The project.
        model: The model.
        **options: The options of `Project.run`.

    Returns:
        The plan, and the context that it is of.
    """
    options["force"] = True
    context, request = build_request(context, [model.name], options)
    return context, plan_steps(context, request)


def estimate_plan(context: ProjectContext, plan: Plan) -> Mapping[str, Estimate]:
    """Return what the steps of a plan will take, by past runs."""
    from penstock.engine.planning.estimates import estimates

    return estimates(plan, context.catalog)


def plan_request(context: ProjectContext, request: RunRequest) -> Plan:
    """Plan a request, with what it does to tables and why it builds each slice.

    Args:
        context: The project, as `build_request` returns it.
        request: The request.

    Returns:
        The plan for people and for files; a run records less of it.
    """
    from penstock.engine.planning.plan_notices import doubts_of
    from penstock.engine.planning.reasons import with_reasons

    known, snapshots = (
        catalog_knowledge(context, request, restates=request.changed),
        _moments(context),
    )
    plan = plan_steps(context, request, known=known)
    plan = replace(plan, notices=(*plan.notices, *doubts_of(plan)))
    with suppress(LakeError):  # which the stages of its steps say
        plan = replace(plan, notices=(*plan.notices, *_unmade_tables(context, request)))
        plan = with_reasons(plan, known, _held(context, plan), snapshots)
        plan = replace(plan, changes=tuple(_changes(context, plan, known)))
    staged = _with_references(context, _staged(context, _with_files(context, plan)))
    context.save_facts()
    return staged


def _unmade_tables(context: ProjectContext, request: RunRequest) -> Iterator[str]:
    """Yield the tables that no model makes any more, in a plan of the whole project."""
    if request.selection:
        return
    from penstock.engine.answers.status import unmade_statuses

    statuses = unmade_statuses(context.settings, context.catalog, context.models)
    tables = [status.target for status in statuses]
    if tables:
        command = f"drop {tables[0]} removes it" if len(tables) == 1 else "drop TABLE removes one"
        yield f"no model makes {', '.join(tables)} any more: penstock {command}"


def _with_references(context: ProjectContext, plan: Plan) -> Plan:
    """Return the plan in which steps fail that name columns no model above returns."""
    missing = find_missing_columns(context, plan)
    if not missing:
        return plan
    from penstock.engine.verifying.column_check import refuse_readers

    return refuse_readers(plan, missing)


def find_missing_columns(context: ProjectContext, plan: Plan) -> list[MissingColumn]:
    """Return the columns that no upstream model returns; none if a catalog cannot be read."""
    models = [step.model for step in plan.steps if step.slices and not step.skipped]
    if not any(model.names_tables for model in models):
        return []
    from penstock.engine.verifying.column_check import missing_references

    try:
        names = _names_above(context, models) if context.has_many_models else None
        lineage, schemas = context.lineage(names)
        if schemas.views.keys() - context.makers.keys():  # which may read any table
            lineage, schemas = context.lineage()
    except LakeError:
        return []
    return list(missing_references(models, context.models, lineage, schemas.tables))


def _names_above(context: ProjectContext, models: Sequence[Model]) -> frozenset[str]:
    """Return the names of models, of those whose tables their tests read, and of all above."""
    tested = (context.makers.get(table_key(t)) for model in models for t in model.test_reads)
    names = {model.name for model in (*models, *tested) if model is not None}
    return frozenset(names.union(*map(context.graph.upstream, names)))


def _with_files(context: ProjectContext, plan: Plan) -> Plan:
    """Return the plan with the files that its slices read, as they are now."""
    steps = [each for each in plan.steps if each.model.query.files and not each.skipped]
    if not steps:
        return plan
    from penstock.engine.planning.files_read import files_of_slices
    from penstock.engine.planning.slices import bindings_of

    files: dict[str, Sequence[InputRead]] = {}
    for step in steps:
        given = (bindings_of(step.model, s, plan.args, plan.request) for s in step.slices)
        files[step.name] = files_of_slices(step.model, given, context.settings.root)
    return replace(plan, seen=replace(plan.seen, files=files))


def _changes(context: ProjectContext, plan: Plan, known: Known) -> Iterator[DefinitionChange]:
    """Return what changes of definitions touch, of the models of a plan and below them."""
    from penstock.engine.planning.definition_diff import changes_of_tests
    from penstock.engine.planning.reasons import stale_slices

    models = [step.model for step in plan.steps]
    yield from changes_of_tests(models, context.state_of)
    stale = stale_slices(models, known)
    if not stale:
        return
    from penstock.engine.planning.changed import changes_of

    request = replace(plan.request, range=None, partition=None, full_refresh=False)
    request = replace(request, changed=True, upstream=False)
    for change in changes_of(
        models,
        stale,
        lambda name: plan_steps(context, replace(request, select=(name,)), known=known),
    ):
        yield _compared(context, change, known)


def _compared(context: ProjectContext, change: DefinitionChange, known: Known) -> DefinitionChange:
    """Return a change with what differs between the definitions, where that is recorded."""
    from penstock.engine.planning.definition_diff import definition_diff
    from penstock.engine.planning.reasons import settings_changed
    from penstock.engine.state.run_history import last_other

    model = context.model(change.model)
    settings = settings_changed(model, known)
    if settings is not None:
        said = "; ".join(settings).split("; ")
        names = dict.fromkeys(each.partition(":")[0] for each in said)
        return replace(change, parts=tuple(names), diff=settings)
    state = context.state_of(model)
    old: Mapping[str, str] | None = None
    if state is not None:
        ask = partial(last_other, target=model.target.qualified, than=model.definition_hash)
        old = state.read(ask, None)
    if old is None:
        return change
    diff = definition_diff(old, model.definition_parts)
    return replace(change, parts=diff.parts, diff=diff.lines)


def save_plan(context: ProjectContext, plan: Plan, path: str | Path) -> None:
    """Write a plan to a file, for a run.

    Args:
        context: The project.
        plan: The plan.
        path: The file.

    Raises:
        ArgumentError: The file cannot be written.
    """
    from penstock.engine.planning.saved_plan import SavedPlan, write

    write(Path(path), SavedPlan.of(plan, context.settings.name).to_json(plan))


def require_same_plan(context: ProjectContext, plan: Plan | str | Path) -> Plan:
    """Plan the request of a saved plan once more, and require the same plan.

    Args:
        context: The project.
        plan: A plan, or the file of one.

    Returns:
        The plan as it is now.

    Raises:
        ArgumentError: The file is not a plan of this project.
        PlanMoved: The plan differs.
    """
    from penstock.engine.planning.plan import Plan as Planned
    from penstock.engine.planning.saved_plan import Now, SavedPlan, moved, read, require_unmoved

    name = context.settings.name
    saved = SavedPlan.of(plan, name) if isinstance(plan, Planned) else read(Path(plan), name)
    told = plan_request(context, saved.request)
    what = "the plan" if isinstance(plan, Planned) else str(plan)
    models = {model.name: model for model in context.models}
    now = Now(models, partial(_runs_now, context), partial(_rows_changed, context))
    require_unmoved(moved(saved, SavedPlan.of(told, name), now), what)
    return told


def _runs_now(context: ProjectContext, model: Model) -> Mapping[str, str]:
    known = context.slices()
    of = known.states if model.by_time is None else known.intervals
    return of([model])[model.name].runs


def _rows_changed(context: ProjectContext, table: TableName, since: int) -> bool:
    """Return whether rows of a table changed after a snapshot."""
    from penstock.engine.planning.table_changes import rows_changed

    catalog = context.catalog(table.lake)
    return catalog is not None and rows_changed(catalog, table, since)


def _moments(context: ProjectContext) -> dict[str, tuple[int, str]]:
    """Return the latest snapshots of the lakes that can be read, with their times."""
    found = {}
    for lake in dict.fromkeys(model.target.lake for model in context.models):
        with suppress(LakeError):  # a run says that it cannot be read
            catalog = context.catalog(lake)
            if catalog is not None:
                latest = catalog.latest()
                found[lake] = (latest.id, latest.time.isoformat())
    return found


def _held(context: ProjectContext, plan: Plan) -> Held:
    """Return who holds slices of a model, of the runs that go on now."""
    from penstock.engine.state.store import holders_of

    lakes = dict.fromkeys(step.model.target.lake for step in plan.steps if step.slices)
    catalogs = ((lake, context.catalog(lake)) for lake in lakes)
    known = {lake: holders_of(catalog) for lake, catalog in catalogs if catalog is not None}

    def held(model: Model, texts: Sequence[str]) -> Mapping[str, str]:
        ask = known.get(model.target.lake)
        of = {} if ask is None else ask(model.target.qualified, texts)
        return {text: str(holding) for text, holding in of.items()}

    return held


def plan_steps(
    context: ProjectContext,
    request: RunRequest,
    goal: Goal | None = None,
    known: Known | None = None,
) -> Plan:
    """Plan the steps of a request, without reasons.

    Args:
        context: The project.
        request: The request.
        goal: Maps the states of slices to steps; None for the goal of the request.
        known: What the catalogs know; None to ask them.

    Returns:
        The plan.
    """
    context.connections.check_open()
    from penstock.engine.planning.make_plan import make_plan

    by_name = {model.name: model for model in context.models}
    restates = goal is not None or request.changed
    known = known or catalog_knowledge(context, request, restates=restates)
    if request.changed and request.range is None:
        from penstock.engine.planning.changed import of_changed, only_touched

        plan = only_touched(make_plan(by_name, context.graph, request, known, of_changed))
    else:
        plan = make_plan(by_name, context.graph, request, known, goal)
    if context.own_models is not None:
        notices = (*plan.notices, *context.own_models.read_elsewhere(plan, by_name))
        plan = replace(plan, notices=notices)
    return plan


def catalog_knowledge(
    context: ProjectContext, request: RunRequest, *, restates: bool = False
) -> Known:
    """Return what a plan asks of the catalogs. All its answers are of one moment.

    Args:
        context: The project.
        request: The request.
        restates: The plan rebuilds slices that exist.

    Returns:
        The knowledge.
    """
    context.connections.check_open()
    from penstock.destinations.capabilities import KINDS
    from penstock.engine.planning.made_from import made_from
    from penstock.engine.planning.plan import Known

    restates = restates or any(model.auto_restatement for model in context.models)
    is_of_all = not request.select
    slices = context.slices(behind=request.behind, late=request.late, is_of_all=is_of_all)
    return Known(
        _remembering(slices.states),
        _remembering(slices.intervals),
        _remembering(slices.pasts),
        context.latest_snapshots() if restates or request.full_refresh else {},
        {name: KINDS[lake.kind] for name, lake in context.settings.lakes.items()},
        context.edges,
        context.views_read if request.behind else {},
        partial(made_from, slices) if request.behind else None,
        partial(_same_files, context.settings.root),
        context.facts.why_apart,
        partial(_old_tables, context),
    )


def _old_tables(context: ProjectContext, now: datetime) -> Mapping[str, Sequence[OldTable]]:
    """Return the tables of others that are too old at a moment, by the models that read them;
    none of a catalog that cannot be read: a run says so."""
    if not any(external.fresh for external in context.externals):
        return {}
    from penstock.engine.planning.freshness import old_tables
    from penstock.engine.planning.table_changes import last_change
    from penstock.model.slicing.table_reads import unmade_reads

    with suppress(LakeError):
        return old_tables(
            context.externals,
            unmade_reads(context.models),
            lambda table: last_change(context.catalog(table.lake), table),
            now,
        )
    return {}


def _staged(context: ProjectContext, plan: Plan) -> Plan:
    """Return the plan with what its steps do to tables, or with a notice that it is not known."""
    from penstock.engine.planning.known_tables import Columns, KnownTables

    # Tables that this run does not make have the columns that they have now.
    names = {step.name for step in plan.steps if not step.skipped}
    names |= {model.name for model in context.models if not model.strategy.runs}
    selected = partial(_selected, cache(lambda: context.lineage(names)[0]))
    try:
        columns = Columns(selected, context.facts.selects_all)
        tables = KnownTables.read(context.settings, context.catalog, plan, columns)
        return tables.staged(plan)
    except LakeError as error:
        said = f"what the run drops or alters is not known: {error.message}"
        return replace(plan, notices=(*plan.notices, said))


def plan_with_reasons(
    context: ProjectContext, request: RunRequest, goal: Goal | None = None
) -> Plan:
    """Plan a request with why each slice is built, which the run records.

    Args:
        context: The project.
        request: The request.
        goal: Maps the states of slices to steps; None for the goal of the request.

    Returns:
        The plan.
    """
    from penstock.engine.planning.no_op import is_idle

    known = catalog_knowledge(context, request, restates=goal is not None or request.changed)
    plan = plan_steps(context, request, goal, known)
    if not is_idle(plan):
        from penstock.engine.planning.reasons import with_reasons

        plan = with_reasons(plan, known)
    context.save_facts()
    return plan


def _same_files(
    root: Path, model: Model, bindings: Bindings, recorded: Sequence[InputRead]
) -> bool:
    # Late: only models that read files need it.
    from penstock.engine.planning.files_read import are_same

    return are_same(model, bindings, root, recorded)


def _selected(lineage: Callable[[], ProjectLineage], model: Model) -> list[str] | None:
    """Return the columns of a model's query, where they are known without Spark."""
    from penstock.model.lineage.values import SLICE, VALIDITY

    known = lineage().of(model.target)
    if known is None or not known.complete:
        return None
    return [each.name for each in known.columns if each.origin not in (SLICE, VALIDITY)]


def _remembering(
    ask: Callable[[Sequence[Model]], Mapping[str, T]],
) -> Callable[[Sequence[Model]], Mapping[str, T]]:
    """Ask of each model once: all answers of one plan are of one moment."""
    known: dict[str, T] = {}

    def answer(models: Sequence[Model]) -> Mapping[str, T]:
        new = [model for model in models if model.name not in known]
        if new:
            known.update(ask(new))
        return {model.name: known[model.name] for model in models if model.name in known}

    return answer
