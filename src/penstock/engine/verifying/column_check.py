"""Columns that a model names or reads, and that its query or an upstream model does not make.

``check`` looks at the models whose columns are certain from their queries and from what the lakes
and EXTERNAL models have; ``check --spark`` at all that Spark could analyse.

Columns that a model reads and that the query of the upstream model does not return.

What counts is the query, not the table: a table may still have a column that its model returned
before, and readers would get NULLs from it. Only what lineage knows for certain is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.inputs.declared_columns import apart
from penstock.engine.inputs.seed_file import seeds_of
from penstock.engine.planning.stages import Refuse
from penstock.errors import Diagnostic, Location, ModelError, PenstockError
from penstock.lakes.format.partitioning import parse_partition_field
from penstock.model.definition.graph import made_by, table_key
from penstock.model.definition.model import Model
from penstock.model.script.file_uris import asset_key
from penstock.model.script.sources import table_read
from penstock.model.values.asset import table_of
from penstock.model.values.data_test import RelationshipsTest, columns_of
from penstock.sql.identifiers import fold, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.engine.planning.plan import Plan
    from penstock.model.lineage.models import ProjectLineage
    from penstock.model.lineage.values import Lack


Wanted = tuple[Location, str, str]  # where a model names a column, as what, and its name


def names_columns(model: Model) -> bool:
    """Return whether there is something to look for in what a model's query makes."""
    if model.python is not None or model.query.manual:
        return False
    return bool(model.columns or model.column_lineage or any(_wanted(model)) or any(_tested(model)))


def check_columns(
    models: Sequence[Model],
    lineage: ProjectLineage,
    tables: Mapping[str, Collection[str]],
    root: Path,
) -> Iterator[Diagnostic]:
    """Findings about the models whose columns ``lineage`` knows for certain.

    ``tables`` are the columns that tables have now, by `table_key`.
    """
    for model in filter(names_columns, models):
        made = _made(model, lineage, root)
        if made is None:
            continue
        wrong = apart(made, model.columns)
        if wrong is not None:
            place = wrong.location or model.place("columns")
            yield Diagnostic("error", wrong.message, place, wrong.hint, "column")
            continue
        kept = tables.get(table_key(model.target), ()) if model.keeps_columns else ()
        found = lineage.of(model.target)
        yield from missing_columns(model, made, [*kept, *(found.names if found else ())])


def _made(model: Model, lineage: ProjectLineage, root: Path) -> list[str] | None:
    """The columns that its query makes; None where they are not certain."""
    # Late: it loads the parser.
    from penstock.model.lineage.values import DECLARED, INFERRED

    if model.generated:
        try:
            return list(next(iter(seeds_of(model.query, root))).texts()[0])
        except PenstockError:
            return None  # which is said of the file
    found = lineage.of(model.target)
    if found is None or not found.complete:
        return None
    return [
        column.name
        for column in found.columns
        if column.origin == INFERRED or (column.origin == DECLARED and not column.unknown)
    ]


def missing_columns(
    model: Model, columns: Sequence[str], tested: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield what a model names besides the ``columns`` of its query; tests may be of those
    ``tested``.
    """
    if model.history is not None:
        reserved = set(map(fold, model.history.managed))
        for name in (each for each in columns if fold(each) in reserved):
            message = f"the query makes a column {name}, which the history writes itself"
            hint = "leave it out, or give it another name"
            yield Diagnostic("error", message, model.place("unique_key"), hint, "history-names")
    made = set(map(fold, columns))
    yield from _lacking(_wanted(model), made, columns)
    yield from _lacking(_tested(model), made | set(map(fold, tested)), columns)
    for line in model.column_lineage:
        if fold(line.column) not in made:
            message = f"the query does not make the column {line.column}, whose lineage is declared"
            place = model.place(f"column:{line.column}")
            yield Diagnostic("warning", message, place, _hint(line.column, columns), "column")


def _lacking(
    wanted: Iterator[Wanted], made: Collection[str], columns: Sequence[str]
) -> Iterator[Diagnostic]:
    for place, what, name in wanted:
        if fold(name) not in made:
            message = f"the query does not make the {what} {name}"
            yield Diagnostic("error", message, place, _hint(name, columns), "column")


def _hint(name: str, columns: Sequence[str]) -> str:
    near = nearest(name, columns)
    return f"did you mean {near}?" if near else f"it makes {', '.join(columns)}"


def _wanted(model: Model) -> Iterator[Wanted]:
    for key in model.key_columns:
        yield model.place("unique_key"), "key", key
    if model.upsert.sequence is not None:
        yield model.place("sequence"), "sequence", model.upsert.sequence
    if model.history is not None:
        for name in model.history.track:
            yield model.place("columns"), "tracked column", name
        if model.history.updated_at:
            yield model.place("updated_at_name"), "column", model.history.updated_at
    time = None if model.time_range is None else model.time_range.column
    if time is not None and not time.by_expression:
        yield model.place("time_column"), "time column", time.name
    for key in model.layout.partitioned_by:
        column = parse_partition_field(key).column
        yield model.place("partitioned_by"), "column to partition by", column
    for name in model.layout.clustered_by:
        yield model.place("clustered_by"), "column to sort by", name


def _tested(model: Model) -> Iterator[Wanted]:
    for test, place in model.placed_tests:
        for name in columns_of(test):
            yield place, "tested column", name


RULE = "column-reference"
Tables = Mapping[str, Sequence[str]]  # the columns that tables have now, by `table_key`


@dataclass(frozen=True, slots=True)
class MissingColumn:
    """A column that ``reader`` names at ``place``, and that ``asset`` does not return.

    ``maker`` is the model of the asset, None where any of several may be meant. ``was_there``: its
    table still has the column; ``only_warns``: a data test with ``severity=warn`` names it.
    """

    reader: Model
    column: str
    place: Location
    asset: str
    maker: Model | None = None
    returned: tuple[str, ...] = ()
    was_there: bool = False
    only_warns: bool = False

    @property
    def is_allowed(self) -> bool:
        """Return whether the maker's header says to keep the column in its table, or the column
        keeps no row from being published.
        """
        maker = self.maker
        return self.only_warns or (
            self.was_there and maker is not None and maker.keeps_removed_columns
        )

    @property
    def message(self) -> str:
        if self.maker is None:
            name = self.asset or "nothing that the query reads"
            return f"{name} has no column {self.column}"
        verb = "no longer returns" if self.was_there else "does not return"
        return f"{self.maker.name} {verb} the column {self.column}"

    @property
    def hint(self) -> str:
        near = nearest(self.column, self.returned)
        if near is not None:
            return f"did you mean {near}?"
        if self.maker is None:
            return f"it has {', '.join(self.returned)}" if self.returned else "is the name right?"
        does = f"it returns {', '.join(self.returned)}"
        return f"return it in {self.maker.name} again, or leave it out here; {does}"

    def finding(self) -> Diagnostic:
        message = self.message
        if self.is_allowed and self.was_there:
            message += ": it is NULL in the rows of later runs"
        severity = "warning" if self.is_allowed else "error"
        return Diagnostic(severity, message, self.place, self.hint, RULE)


def missing_references(
    models: Iterable[Model], every: Sequence[Model], lineage: ProjectLineage, tables: Tables
) -> Iterator[MissingColumn]:
    """Yield the missing columns that ``models`` read; ``every`` are the models of the project."""
    makers = {table_key(table): model for model in every for table in made_by(model)}
    references = _References(makers, lineage, tables)
    for model in models:
        yield from references.of_query(model)
        yield from references.of_tests(model)


def refuse_readers(plan: Plan, missing: Sequence[MissingColumn]) -> Plan:
    """Return the plan in which the steps of readers fail, with a notice for each removed column."""
    failing = refusals(missing)
    steps = tuple(
        replace(step, stages=(*step.stages, *failing.get(step.name, ()))) for step in plan.steps
    )
    return replace(plan, steps=steps, notices=(*plan.notices, *removed_columns(missing)))


def require_columns(missing: Iterable[MissingColumn]) -> None:
    """Raise ModelError if a missing column is an error for its reader."""
    findings = [column.finding() for column in missing]
    if errors := [finding for finding in findings if finding.severity == "error"]:
        raise ModelError(errors)


def refusals(missing: Iterable[MissingColumn]) -> dict[str, tuple[Refuse, ...]]:
    """Return the refusals of readers, by their names."""
    by_reader: dict[str, tuple[Refuse, ...]] = {}
    for column in missing:
        if not column.is_allowed:
            stage = Refuse(f"{column.place}: {column.message}", column.hint, "target")
            by_reader[column.reader.name] = (*by_reader.get(column.reader.name, ()), stage)
    return by_reader


def removed_columns(missing: Iterable[MissingColumn]) -> Iterator[str]:
    """Yield ``orders: customer is no longer returned; read by revenue``."""
    readers: dict[tuple[str, str], dict[str, None]] = {}
    for lack in missing:
        if lack.maker is not None and lack.was_there:
            of = readers.setdefault((lack.maker.name, lack.column), {})
            of[lack.reader.name] = None
    for (maker, column), names in readers.items():
        yield f"{maker}: {column} is no longer returned; read by {', '.join(names)}"


@dataclass(frozen=True, slots=True)
class _References:
    makers: Mapping[str, Model]
    lineage: ProjectLineage
    tables: Tables

    def of_query(self, model: Model) -> Iterator[MissingColumn]:
        lineage = None if model.python is not None else self.lineage.of(model.target)
        for lack in () if lineage is None else lineage.lacks:
            place = Location(model.path, lack.line, lack.position)
            maker = self.makers.get(asset_key(lack.asset)) or self._former(model, lack)
            if maker is None:
                yield MissingColumn(model, lack.column, place, lack.asset)
            else:
                yield self._missing(model, lack.column, place, maker)

    def of_tests(self, model: Model) -> Iterator[MissingColumn]:
        for test, place in model.placed_tests:
            parent = table_of(test.to) if isinstance(test, RelationshipsTest) else None
            maker = None if parent is None else self.makers.get(table_key(parent))
            if maker is None or maker is model or not isinstance(test, RelationshipsTest):
                continue
            lineage = self.lineage.of(maker.target)
            if lineage is not None and lineage.complete and lineage.lacks_name(test.to_column):
                missing = self._missing(model, test.to_column, place, maker)
                yield replace(missing, only_warns=test.severity == "warn")

    def _missing(self, reader: Model, column: str, place: Location, maker: Model) -> MissingColumn:
        lineage = self.lineage.of(maker.target)
        returned = () if lineage is None else lineage.names
        was_there = self._has(maker, column)
        return MissingColumn(reader, column, place, str(maker.target), maker, returned, was_there)

    def _has(self, maker: Model, column: str) -> bool:
        return fold(column) in map(fold, self.tables.get(table_key(maker.target), ()))

    def _former(self, model: Model, lack: Lack) -> Model | None:
        """The model whose table has a column that its query no longer returns, for a name that
        may be of any. A query of one table alone can mean no other.
        """
        if lack.asset:
            return None
        tables = filter(None, map(table_read, model.query.mentioned))
        keys = dict.fromkeys(map(table_key, tables))
        models = [self.makers[key] for key in keys if key in self.makers]
        for maker in (each for each in models if self._has(each, lack.column)):
            lineage = self.lineage.of(maker.target)
            if lineage is not None and lineage.lacks_name(lack.column):
                return maker
        return models[0] if len(models) == len(model.query.mentioned) == 1 else None
