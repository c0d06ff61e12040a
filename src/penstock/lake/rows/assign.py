"""Assignments of an UPDATE or MERGE: new values in the types that the table has for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import ColumnNotFound, SchemaMismatch
from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.reading.conversions.casts import stored
from penstock.lake.reading.conversions.spark_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.table import CandidateTable

Path = tuple[str, ...]  # names of fields inside a struct; none for the whole
_SHOWN = 8  # columns of a sample


def assigned(rows: DataFrame, values: Mapping[str, object], table: CandidateTable) -> DataFrame:
    """``rows`` with new values, all of which see the old ones.

    Raises ColumnNotFound, and SchemaMismatch for a column that is assigned twice.
    """
    found = expressions(values, table.schema, table.candidate.qualified_name)
    return rows.withColumns(stored(rows, found, table.schema))


def expressions(
    values: Mapping[str, object], schema: TableSchema, table: str, alias: str | None = None
) -> dict[str, SparkColumn]:
    """The new value of each column that ``values`` names, ``struct.field`` included.

    ``alias`` is what the table's rows are called where struct fields keep their other values.
    """
    from pyspark.sql import functions as fn

    found: dict[str, dict[Path, SparkColumn]] = {}
    for name, value in values.items():
        column, path = _column(name, schema, table)
        news = found.setdefault(column.name, {})
        if overlaps(path, news):
            raise SchemaMismatch(
                f"column {column.name!r} of {table} is given two values",
                hint="assign each column once",
                data={"table": table, "column": column.name},
            )
        news[path] = _value(value)
    columns: dict[str, SparkColumn] = {}
    for name, news in found.items():
        old = fn.col(f"{quoted(alias)}.{quoted(name)}" if alias else quoted(name))
        known = schema.find(name)
        assert known is not None, "found above"
        columns[name] = news[()] if () in news else with_fields(old, known, news)
    return columns


def overlaps(path: Path, others: Iterable[Path]) -> bool:
    """Whether one of the other paths is this one, inside it or around it."""
    return any(path[: len(other)] == other[: len(path)] for other in others)


def with_fields(old: SparkColumn, column: Column, news: Mapping[Path, SparkColumn]) -> SparkColumn:
    """The struct ``old`` with new values of the fields at these paths, others as they were.

    Where it is NULL it becomes a struct: a value that is assigned is never lost.
    """
    from pyspark.sql import functions as fn

    fields: list[SparkColumn] = []
    for child in column.children:
        value = old.getField(child.name)
        inside = {path[1:]: one for path, one in news.items() if path[0] == child.name}
        if inside:
            value = inside[()] if () in inside else with_fields(value, child, inside)
        fields.append(value.alias(child.name))
    return fn.struct(*fields)


def fields_at(column: Column, names: Sequence[str]) -> Path | None:
    """The names of the fields inside of a struct, as the table has them; ``None``: no such one."""
    path: list[str] = []
    for name in names:
        inside = column.children if column.type == "struct" else ()
        found = next((one for one in inside if fold(one.name) == fold(name)), None)
        if found is None:
            return None
        path.append(found.name)
        column = found
    return tuple(path)


def _column(name: str, schema: TableSchema, table: str) -> tuple[Column, Path]:
    whole = schema.find(name)
    if whole is not None:
        return whole, ()
    first, *rest = name.split(".")
    column = schema.find(first)
    path = None if column is None else fields_at(column, rest)
    if column is None or not path:
        raise ColumnNotFound(
            f"{table} has no column {name!r}",
            hint=f"its columns are {', '.join(schema.names)}",
            data={"table": table, "column": name},
        )
    return column, path


def _value(value: object) -> SparkColumn:
    from pyspark.sql import Column as Expression
    from pyspark.sql import functions as fn

    if isinstance(value, str):
        return fn.expr(value)
    return value if isinstance(value, Expression) else fn.lit(value)


def not_null(rows: DataFrame, schema: TableSchema, table: str) -> DataFrame:
    """``rows`` that fail, when they are written, at a NULL in a column that takes none.

    The message names the column and shows the row.
    """
    from pyspark.sql import functions as fn

    names = {fold(name): name for name in rows.columns}
    shown = [quoted(names[fold(c.name)]) for c in schema.columns if fold(c.name) in names]
    sample = fn.to_json(fn.struct(*shown[:_SHOWN]), {"ignoreNullFields": "false"})
    checked: dict[str, SparkColumn] = {}
    for column in schema.columns:
        if column.nullable or fold(column.name) not in names:
            continue
        said = fn.lit(f"column {column.name} of {table} is NOT NULL, and it is NULL in ")
        old = fn.col(quoted(names[fold(column.name)]))
        checked[names[fold(column.name)]] = fn.coalesce(
            old, fn.raise_error(fn.concat(said, sample))
        )
    return rows.withColumns(checked) if checked else rows
