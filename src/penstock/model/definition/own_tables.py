"""Models whose tables are in schemas with a suffix, beside tables of the same models elsewhere.

An environment makes tables of its own for some models, and reads those of the others where another
environment made them. Names of models stay; the states of slices separate by table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from penstock.errors import ArgumentError, Diagnostic, ModelError
from penstock.model.definition.graph import made_by
from penstock.model.definition.model import Model
from penstock.model.script.declaration import Declaration
from penstock.model.script.sources import FunctionSource
from penstock.model.values.asset import Asset, Names, TableName, table_of
from penstock.model.values.data_test import DataTest, RelationshipsTest
from penstock.model.values.schedule import Schedule
from penstock.sql.identifiers import fold


def moved_tables(models: Sequence[Model], suffix: str) -> dict[str, TableName]:
    """Return where the tables of models are with a suffix, by their names, folded."""
    return {
        fold(table.full): replace(table, schema=f"{table.schema}{suffix}")
        for model in models
        for table in made_by(model)
        if table.is_table
    }


def require_free(models: Sequence[Model], suffix: str) -> None:
    """Raise ModelError where a schema with the suffix is that of another model without it."""
    schemas = {(model.target.lake, fold(model.target.schema)) for model in models}
    for model in models:
        own = f"{model.target.schema}{suffix}"
        if model.target.is_table and (model.target.lake, fold(own)) in schemas:
            message = f"the environment would make {model.name} in {own}, which has other models"
            hint = "give the environment another schema_suffix"
            where = model.place("target")
            raise ModelError([Diagnostic("error", message, where, hint, "schema-suffix")])


def why_shared(model: Model) -> str | None:
    """Return why a model cannot have a table of its own in an environment; None where it can."""
    if not model.target.is_table:
        return "it writes files, which have no schema"
    if model.strategy.by_statements or model.query.after:
        return "its statements write what they name"
    if any(isinstance(source, FunctionSource) for source in model.query.sources):
        return "it calls a table function of the lake, which reads what it names"
    return None


def require_own(table: TableName, suffix: str, environment: str | None) -> None:
    """Raise ArgumentError for a table that is not the environment's own: in no schema of it."""
    if not (table.is_table and fold(table.schema).endswith(fold(suffix))):
        raise ArgumentError(
            f"environment {environment} does not change {table}, which it only reads",
            hint=f"its own tables are in schemas that end in {suffix}; a run makes them",
        )


def mixed(base: Sequence[Model], moved: Sequence[Model], own: Collection[str]) -> tuple[Model, ...]:
    """Return the models: those named ``own`` as they were loaded with their tables moved, and
    EMBEDDED ones, which have none; the others as they are, and not the environment's own.
    """
    by_name = {model.name: model for model in moved}
    return tuple(
        by_name[model.name]
        if model.name in own or not model.strategy.runs
        else replace(model, own=False)
        for model in base
    )


def placed(declaration: Declaration, names: Names) -> Declaration:
    """Return a declaration whose tables are where they are in this environment."""
    return replace(
        declaration,
        target=names.place(declaration.target),
        depends_on=tuple(map(names.place, declaration.depends_on)),
        input_needs=tuple((names.place(table), need) for table, need in declaration.input_needs),
        data_tests=tuple(_test(each, names) for each in declaration.data_tests),
        schedule=_schedule(declaration.schedule, names),
    )


def _test(test: DataTest, names: Names) -> DataTest:
    return replace(test, to=_asset(test.to, names)) if isinstance(test, RelationshipsTest) else test


def _schedule(schedule: Schedule, names: Names) -> Schedule:
    triggers = (
        each if each.asset is None else replace(each, asset=_asset(each.asset, names))
        for each in schedule.triggers
    )
    return replace(schedule, triggers=tuple(triggers))


def _asset(asset: Asset, names: Names) -> Asset:
    table = table_of(asset)
    if table is None or names.place(table) == table:
        return asset
    own = names.place(table)
    return Asset(asset.kind, f"{own.lake}/{own.qualified}")
