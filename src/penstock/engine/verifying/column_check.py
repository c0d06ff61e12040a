"""Columns that a model names and its query does not make, or that only one of both has.

``check`` looks at the models whose columns are certain from their queries and from what the lakes
and EXTERNAL models have; ``check --spark`` at all that Spark could analyse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.engine.inputs.declared_columns import apart
from penstock.engine.inputs.seed_file import seeds_of
from penstock.errors import Diagnostic, Location, PenstockError
from penstock.lake.format.partitioning import parse_partition_field
from penstock.model.definition.graph import table_key
from penstock.model.definition.model import Model
from penstock.model.values.data_test import columns_of
from penstock.sql.identifiers import fold, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.model.lineage.models import ProjectLineage

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
