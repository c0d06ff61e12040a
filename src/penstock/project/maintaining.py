"""Change what is recorded of tables, and drop them: everything that writes beside runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError, TableNotFound
from penstock.model.definition.graph import table_key
from penstock.project.querying import preview_model

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog
    from penstock.engine.results import Adopted, Dropped
    from penstock.engine.running.prune import Pruned
    from penstock.model.definition.model import Model
    from penstock.project.context import ProjectContext


def adopt_rows(
    context: ProjectContext, model: str, until: str | None = None, *, dry_run: bool = False
) -> Adopted:
    """Record the rows that others have put into a model's table as built by its runs.

    Nothing of the table changes.

    Args:
        context: The project.
        model: The model.
        until: The last slice to adopt; None for that of the last row.
        dry_run: Record nothing.

    Returns:
        The slices.

    Raises:
        ArgumentError: The model has no such slices.
        DefinitionChanged: The columns are not those of the query.
        SchemaMismatch: The types are not those of the query.
        TableNotFound: The table does not exist.
    """
    from penstock.engine.running.adopt import adopt

    made = context.model(model)
    context.require_own(made.target)
    lake = made.target.lake
    if context.catalog(lake) is None:
        raise TableNotFound(f"lake {lake} does not exist yet", hint="nothing has run")

    def columns(value: str | None) -> Sequence[str] | None:
        if made.python is not None:  # only a run shows what Python makes
            return None
        return preview_model(context, made.name, value).columns

    column = context.settings.lakes[lake].partition_column
    return adopt(
        context.lake(lake),
        made,
        columns,
        column=column,
        until=until,
        dry_run=dry_run,
        environment=context.settings.runs_in,
    )


def drop_table(context: ProjectContext, model: str, slice: str | None = None) -> Dropped:  # noqa: A002 - what it is
    """Drop the table of a model, or a slice, as a new snapshot.

    Args:
        context: The project.
        model: A model, or a model or table that the project no longer has.
        slice: A slice as a status shows it; None for the whole table.

    Returns:
        What was dropped.

    Raises:
        ArgumentError: The slice does not exist.
        TableNotFound: The table does not exist.
    """
    from penstock.engine.running.drop import drop, forget_files, unmade_target

    made: Model | None = None
    try:
        made = context.model(model)
        target = made.target
    except ArgumentError:
        gone = unmade_target(model, context.settings.lakes, context.catalog)
        if gone is None or any(table_key(gone) == table_key(m.target) for m in context.models):
            raise
        target = gone
    context.require_own(target)
    if context.catalog(target.lake) is None:
        raise TableNotFound(f"lake {target.lake} does not exist yet", hint="nothing has run")
    if made is not None and made.python is not None and not target.is_table:
        return forget_files(context.lake(target.lake), target, made.python.writes, slice)
    column = context.settings.lakes[target.lake].partition_column
    return drop(context.lake(target.lake), target, slice, column, made)


def prune_records(context: ProjectContext, *, dry_run: bool = False) -> Pruned:
    """Remove old records and logs of runs, as the settings say. The latest of each slice stays.

    Args:
        context: The project.
        dry_run: Remove nothing.

    Returns:
        What was removed, and what could not be.
    """
    from penstock.engine.running.prune import prune

    known: Mapping[str, Catalog] = context.existing_catalogs()
    if not dry_run:
        known = {name: context.lake(name).catalog for name in known}
    return prune(known, context.settings.retention, dry_run=dry_run)
