"""Assignments of an UPDATE or MERGE: new values in the types that the table has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.errors import ColumnNotFound, SchemaMismatch
from penstock.lake.naming import fold
from penstock.lake.schema import Column, TableSchema
from penstock.lake.spark_types import quoted, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.candidate_table import CandidateTable

_SHOWN = 8  # columns of a sample


def assigned(rows: DataFrame, values: Mapping[str, object], table: CandidateTable) -> DataFrame:
    """``rows`` with new values, all of which see the old ones.

    Raises ColumnNotFound, and SchemaMismatch for a column that is assigned twice.
    """
    found = expressions(values, table.schema, table.candidate.qualified_name)
    return rows.withColumns(found)


def expressions(
    values: Mapping[str, object], schema: TableSchema, table: str, alias: str | None = None
) -> dict[str, SparkColumn]:
    """The new value of each column that ``values`` names, ``struct.field`` included.

    ``alias`` is what the table's rows are called where struct fields keep their other values.
    """
    from pyspark.sql import functions as fn

    found: dict[str, SparkColumn] = {}
    inner: dict[str, list[tuple[str, SparkColumn]]] = {}
    for name, value in values.items():
        column, field = _column(name, schema, table)
        if column.name in found or (field is None and column.name in inner):
            raise SchemaMismatch(
                f"column {column.name!r} of {table} is given two values",
                hint="assign each column once",
                data={"table": table, "column": column.name},
            )
        if field is None:
            found[column.name] = as_stored(_value(value), column)
        else:
            inner.setdefault(column.name, []).append((field, _value(value)))
    for name, fields in inner.items():
        old = fn.col(f"{quoted(alias)}.{quoted(name)}" if alias else quoted(name))
        for field, one in fields:
            old = old.withField(field, one)
        found[name] = old
    return found


def _column(name: str, schema: TableSchema, table: str) -> tuple[Column, str | None]:
    whole = schema.find(name)
    if whole is not None:
        return whole, None
    first, _, rest = name.partition(".")
    column = schema.find(first)
    if column is None or not rest or column.type != "struct":
        raise ColumnNotFound(
            f"{table} has no column {name!r}",
            hint=f"its columns are {', '.join(schema.names)}",
            data={"table": table, "column": name},
        )
    return column, rest


def _value(value: object) -> SparkColumn:
    from pyspark.sql import Column as Expression
    from pyspark.sql import functions as fn

    if isinstance(value, str):
        return fn.expr(value)
    return value if isinstance(value, Expression) else fn.lit(value)


def as_stored(value: SparkColumn, column: Column) -> SparkColumn:
    """``value`` cast as an assignment does it: what does not fit is an error (ANSI).

    Nested values are fitted by name when they are written.
    """
    return value if column.children else value.cast(spark_type(column))


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
