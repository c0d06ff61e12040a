"""Report the states of models and slices, their columns and their snapshots. Starts no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.answers.schema_history import VersionChanges
    from penstock.engine.answers.summaries import ModelSummary
    from penstock.engine.planning.run_arguments import Ends
    from penstock.engine.planning.selection import Selection
    from penstock.engine.planning.slices import Partition
    from penstock.engine.results import ModelDetail, RecordedChecks, Snapshots, Statuses
    from penstock.project.context import ProjectContext


def report_status(
    context: ProjectContext,
    models: Sequence[str],
    *,
    select: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    from_: Partition | None = None,
    to: Ends = None,
) -> Statuses:
    """Report the slices of models.

    Args:
        context: The project, with the environment's own tables that exist.
        models: Models in the selection language; none for all.
        select: More models.
        exclude: Models to leave out.
        from_: The first slice of a range.
        to: The last slice of a range, or models to end with.

    Returns:
        The statuses. Without models they include the tables that no model builds any more.

    Raises:
        ArgumentError: A name is unknown.
        PartitionError: A model cannot have the range.
    """
    from penstock.engine.answers.range_status import in_range, of_selection
    from penstock.engine.answers.status import statuses
    from penstock.engine.planning.ranges import SliceRange
    from penstock.engine.planning.run_arguments import selection_of

    selection, last = selection_of(models, select, exclude, to, context.models)
    only = selection.only(context.models)
    slice_range = None if from_ is None and last is None else SliceRange(from_, last)

    def read_statuses() -> Statuses:
        current = statuses(context.slices(), context.models, [only] if only else None)
        if slice_range is None:
            return current
        return in_range(
            current,
            [only] if only else context.models,
            slice_range,
            lambda timed: context.slices().intervals(timed),
            parents=lambda model: [context.by_name[n] for n in context.graph.parents[model.name]],
        )

    if only or not selection:
        answer = read_statuses()
    else:
        answer = of_selection(selection, context.by_name, context.graph, read_statuses)
    context.save_facts()
    return answer


def summarize_models(
    context: ProjectContext,
    models: Sequence[str],
    *,
    select: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
) -> tuple[ModelSummary, ...]:
    """Summarize the slices of models in numbers.

    Args:
        context: The project, with the environment's own tables that exist.
        models: Models in the selection language; none for all.
        select: More models.
        exclude: Models to leave out.

    Returns:
        The summaries. Without models they include the tables that no model builds any more.
    """
    from penstock.engine.answers.summaries import summarize
    from penstock.engine.planning.run_arguments import selection_of

    selection, _ = selection_of(models, select, exclude, None, context.models)
    only = None
    if selection:
        names = select_names(context, selection)
        only = [model for model in context.models if model.name in names]
    slices = context.slices(is_of_all=only is None)
    summaries = summarize(slices, context.models, only)
    context.save_facts()
    return summaries


def models_in_state(context: ProjectContext, word: str) -> set[str]:
    """Return the models of which a slice is in a state.

    Args:
        context: The project.
        word: A state of the selection language, as ``failed``.

    Returns:
        The names of the models.
    """
    statuses = report_status(context.with_own(), (), select=f"state:{word}")
    return {status.model for status in statuses if status.model}


def select_names(context: ProjectContext, selection: Selection) -> frozenset[str]:
    """Return the names of the models that a selection means."""
    states = partial(models_in_state, context)
    return selection.of(context.by_name, context.graph, states).names


def select_words(context: ProjectContext, words: Sequence[str]) -> frozenset[str]:
    """Return the names of the models that words of the selection language mean.

    Args:
        context: The project.
        words: The words.

    Returns:
        The names.
    """
    from penstock.engine.planning.run_arguments import selection_of

    return select_names(context, selection_of((), words, (), (), context.models)[0])


def describe_model(context: ProjectContext, model: str) -> ModelDetail:
    """Return everything that is known of a model."""
    from penstock.engine.answers.status import detail_of

    return detail_of(context.slices(), context.model(model))


def read_test_results(context: ProjectContext, model: str) -> RecordedChecks:
    """Return the latest results of a model's data tests, by slice, in the order of the script."""
    from penstock.engine.answers.status import recorded_checks

    shown = context.model(model)
    return recorded_checks(shown, context.catalog(shown.target.lake))


def read_schema_history(context: ProjectContext, model: str) -> tuple[VersionChanges, ...]:
    """Return the changes of the columns of a model's table, by version, from the oldest."""
    from penstock.engine.answers.schema_history import schema_changes

    return schema_changes(describe_model(context, model).schema_versions)


def list_snapshots(
    context: ProjectContext, lake: str | None = None, limit: int | None = None
) -> Snapshots:
    """Return the newest snapshots of a lake, or of all lakes."""
    from penstock.engine.answers.status import snapshot_infos
    from penstock.engine.results import Snapshots

    only = None if lake is None else context.connections.lake_settings(lake).name
    names = context.settings.lakes if only is None else [only]
    return Snapshots(snapshot_infos({name: context.catalog(name) for name in names})[:limit])
