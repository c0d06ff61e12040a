"""The lineage of all models of a project, each after those that it reads.

What a lake has is handed in as values (`Schemas`); a cache is a mapping, which knows no file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from penstock.model.definition.graph import table_key
from penstock.model.definition.model import Model
from penstock.model.lineage.relation import Relation, table
from penstock.model.lineage.values import (
    DECLARED,
    SLICE,
    VALIDITY,
    VALUE,
    Input,
    ModelLineage,
    OutputColumn,
    Unknown,
    from_dict,
    to_dict,
)
from penstock.model.query.query import Query
from penstock.model.script.file_uris import asset_key
from penstock.model.script.sources import TableSource, table_read
from penstock.model.values.asset import Asset, ColumnLineage, TableName, table_of
from penstock.model.values.history import current_view
from penstock.sql.identifiers import fold

#: with every change of what lineage says of a query
VERSION = 4
Cache = MutableMapping[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """A view of a lake: its query, or why that cannot be read; ``aliases`` name its columns."""

    name: TableName
    query: Query | None
    why: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schemas:
    """Content of the lakes, by `table_key`: tables (and EXTERNAL models) with their columns, views.

    ``partition_columns`` are those of partitioned tables, by lake.
    """

    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    partition_columns: Mapping[str, str] = field(default_factory=dict)


PYTHON = "Python makes them: declare them by `# column NAME <- ducklake://LAKE/TABLE.COLUMN`"


@dataclass(frozen=True, slots=True)
class Step:
    """A model as lineage needs it. ``stays``: columns that the query lacks stay in its table."""

    name: str
    target: TableName
    query: Query | None
    declared: tuple[ColumnLineage, ...] = ()
    partition_column: str | None = None
    managed: tuple[str, ...] = ()  # columns that the engine writes beside it
    view: TableName | None = None  # of the same columns
    stays: bool = False
    why: str = ""  # there is no query
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectLineage:
    """``models`` by the `table_key` of the table that each makes; views of lakes among them."""

    models: Mapping[str, ModelLineage]

    def of(self, target: TableName | str) -> ModelLineage | None:
        return self.models.get(asset_key(str(target)))

    def knows_all(self, models: Iterable[Model]) -> bool:
        """Return whether queries say all columns of all tables that ``models`` read."""
        sources = (source for model in models for source in model.query.mentioned)
        tables = (table for table in map(table_read, sources) if table is not None)
        return all(made is not None and made.complete for made in map(self.of, tables))


def step_of(model: Model, schemas: Schemas) -> Step:
    """The only place of lineage that looks into a model."""
    managed = schemas.partition_columns.get(model.target.lake, "_wm_partition")
    return Step(
        name=model.name,
        target=model.target,
        query=model.query if model.python is None else None,
        why="" if model.python is None else PYTHON,
        declared=model.column_lineage,
        partition_column=None if model.partition is None else managed,
        managed=() if model.history is None else model.history.managed,
        view=current_view(model.target, model.history),
        stays=model.keeps_columns,
    )


def project_lineage(
    models: Iterable[Model], schemas: Schemas, cache: Cache | None = None
) -> ProjectLineage:
    """The lineage of ``models``, given in the order of their graph.

    ``cache`` is looked into by what a lineage depends on, and gets what was not in it.
    """
    lineages = _Lineages(schemas, {} if cache is None else cache)
    for model in models:
        lineages.add(step_of(model, schemas))
    return ProjectLineage(lineages.found)


def model_lineage(model: Model, schemas: Schemas) -> ModelLineage:
    """The lineage of one model, one hop: ``schemas`` has the tables that it reads."""
    lineages = _Lineages(schemas, {})
    for target, query in model.query.embeds.items():
        _add_embedded(lineages, target, query)
    return lineages.add(step_of(model, schemas))


def _add_embedded(lineages: _Lineages, target: TableName, query: Query) -> None:
    for inner, its in query.embeds.items():
        _add_embedded(lineages, inner, its)
    lineages.add(Step(name=str(target), target=target, query=query))


@dataclass(frozen=True, slots=True)
class _Known:
    """A table as a query sees it: ``names`` are its columns, ``why`` they are not known.

    ``leftover`` are further columns that its model's query no longer returns. ``unsure``: no model
    says which columns it has.
    """

    asset: str
    names: tuple[str, ...] | None
    why: str = ""
    leftover: tuple[str, ...] = ()
    unsure: bool = True


@dataclass(slots=True)
class _Lineages:
    schemas: Schemas
    cache: Cache
    found: dict[str, ModelLineage] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)  # views of a table's own columns

    def add(self, step: Step) -> ModelLineage:
        key = table_key(step.target)
        if step.view is not None:
            self.same[table_key(step.view)] = key
        self.steps[key] = step
        known = self._known_tables(step)
        hashed = _key(step, known)
        entry = self.cache.get(hashed)
        lineage = None if entry is None else _read(entry)
        if lineage is None:
            lineage = _lineage(step, known)
            self.cache[hashed] = to_dict(lineage)
        self.found[key] = lineage
        return lineage

    def _known_tables(self, step: Step) -> Mapping[str, _Known]:
        sources = () if step.query is None else step.query.mentioned
        tables = dict.fromkeys(table for table in map(table_read, sources) if table is not None)
        return {table_key(read): self._known(read, step) for read in tables}

    def _known(self, read: TableName, reader: Step) -> _Known:
        key = self.same.get(table_key(read), table_key(read))
        in_lake = self.schemas.tables.get(key)
        if key == table_key(reader.target):
            why = f"{read} is read by its own model, and there is no such table yet"
            return _Known(str(reader.target), in_lake, why)
        view = self.schemas.views.get(key)
        if view is not None and key not in self.found:
            # Held back while it is looked at: views cannot read each other in a circle.
            self.found[key] = ModelLineage("", str(read), (), complete=False)
            self.steps[key] = Step("", view.name, None)
            self.add(Step("", view.name, view.query, why=view.why, aliases=view.aliases))
        made = self.found.get(key)
        if made is None:
            why = f"no model makes {read}, and its lake does not have it"
            return _Known(str(read), in_lake, why)
        if not made.complete:
            reason = self.steps[key].why or "see its own lineage"
            return _Known(made.target, in_lake, f"the columns of {read} are not known: {reason}")
        leftover: tuple[str, ...] = ()
        if self.steps[key].stays:
            own = {fold(name) for name in made.names}
            leftover = tuple(name for name in in_lake or () if fold(name) not in own)
        return _Known(made.target, made.names, leftover=leftover, unsure=not made.model)


def _key(step: Step, known: Mapping[str, _Known]) -> str:
    """The text of a step, the columns of what it reads, and what else its lineage depends on."""
    query = step.query
    use = None if query is None else query.names.use
    meaning = [
        VERSION,
        step.name,
        str(step.target),
        [item.to_dict() for item in step.declared],
        step.partition_column,
        step.managed,
        step.why,
        step.aliases,
        None if query is None else [query.dialect, query.source.text, str(query.manual)],
        None if query is None else [sorted(query.names.aliases.items()), use, query.names.lakes],
        sorted((key, *astuple(each)) for key, each in known.items()),
    ]
    return hashlib.sha256(json.dumps(meaning, separators=(",", ":")).encode()).hexdigest()


def _read(entry: Any) -> ModelLineage | None:
    try:
        return from_dict(entry)
    except (KeyError, TypeError, ValueError):
        return None


def _lineage(step: Step, known: Mapping[str, _Known]) -> ModelLineage:
    def relation(source: TableSource) -> Relation:
        read = known[table_key(source.table)]
        unsure = read.unsure or source.at is not None  # an older snapshot may have others
        return table(read.asset, read.names, read.why, read.leftover, unsure=unsure)

    # Late: it loads the parser, which lineages of a cache need not.
    from penstock.model.lineage.script import QueryLineage, query_lineage

    if step.query is None:
        said = QueryLineage(unknown=(Unknown(step.why),))
    else:
        said = query_lineage(step.query, relation)
    columns = list(said.columns)
    for number, alias in enumerate(step.aliases[: len(columns)]):
        columns[number] = replace(columns[number], name=alias)
    assets = {key: read.asset for key, read in known.items()}
    columns = _with_declared(columns, step, said.complete, assets)
    names = {fold(column.name) for column in columns}
    if step.partition_column is not None and fold(step.partition_column) not in names:
        columns.append(OutputColumn(step.partition_column, origin=SLICE))
    managed = (name for name in step.managed if fold(name) not in names)
    columns += [OutputColumn(name, origin=VALIDITY) for name in managed]
    return ModelLineage(
        step.name,
        str(step.target),
        tuple(columns),
        said.rows,
        said.unknown,
        said.complete,
        said.lacks,
    )


def _with_declared(
    columns: list[OutputColumn], step: Step, complete: bool, assets: Mapping[str, str]
) -> list[OutputColumn]:
    """``column`` lines win over what the query says; several of one column are put together."""
    declared: dict[str, tuple[str, tuple[Input, ...]]] = {}
    for line in step.declared:
        name, before = declared.get(fold(line.column), (line.column, ()))
        inputs = (Input(_asset(item.asset, assets), item.column) for item in line.inputs)
        declared[fold(line.column)] = name, tuple(dict.fromkeys((*before, *inputs)))
    merged = [
        _declared(column, declared.pop(fold(column.name))[1])
        if fold(column.name) in declared
        else column
        for column in columns
    ]
    missing = (Unknown("the query does not make this column"),) if complete else ()
    merged += [OutputColumn(name, inputs, DECLARED, missing) for name, inputs in declared.values()]
    return merged


def _declared(column: OutputColumn, inputs: tuple[Input, ...]) -> OutputColumn:
    values = [each for each in column.inputs if each.kind == VALUE]
    same = _folded(values) == _folded(inputs)
    contradicts = () if same or column.unknown else tuple(values) or column.inputs
    return OutputColumn(column.name, inputs, DECLARED, contradicts=contradicts)


def _folded(inputs: Iterable[Input]) -> set[tuple[str, str]]:
    return {(each.asset.casefold(), fold(each.column)) for each in inputs}


def _asset(asset: Asset, assets: Mapping[str, str]) -> str:
    """A declared asset as inferred inputs call it."""
    named = table_of(asset)
    return str(asset) if named is None else assets.get(table_key(named), str(named))
