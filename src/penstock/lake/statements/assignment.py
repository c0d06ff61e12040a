"""Rows of a query as columns of a table take them: by position or name, cast as DuckDB does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import QueryFailed
from penstock.lake.align import fits, typed
from penstock.lake.bounds import base_type
from penstock.lake.naming import fold
from penstock.lake.schema import Column, TableSchema
from penstock.lake.spark_types import quoted, schema_of, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_INTEGERS = ("int", "uint")


def by_position(df: DataFrame, columns: Sequence[Column], table: str) -> DataFrame:
    """The columns of ``df`` under the names of ``columns``, in order."""
    if len(df.columns) != len(columns):
        listed = ", ".join(column.name for column in columns)
        raise QueryFailed(
            f"{len(df.columns)} columns are given for {len(columns)} of {table}: {listed}",
            hint="name the columns, INSERT INTO t (a, b) ..., or insert BY NAME",
            data={"table": table},
        )
    return df.toDF(*(column.name for column in columns))


def cast(df: DataFrame, schema: TableSchema) -> DataFrame:
    """``df`` with columns of other types cast to those of the table's columns of their names.

    Numbers with a fraction are rounded to whole ones, as in DuckDB; a value that does not fit
    fails the statement. Nested columns, and floats for text, are left for the write to judge.
    """
    df = typed(df, schema)
    casts: dict[str, SparkColumn] = {}
    for have in schema_of(df).columns:
        want = schema.find(have.name)
        if want is not None and _needs_cast(have, want):
            casts[have.name] = value(_column(have.name), have, want)
    return df.withColumns(casts) if casts else df


def _needs_cast(have: Column, want: Column) -> bool:
    if have.children or want.children or have.type == want.type or fits(have, want):
        return False
    return not (have.type.startswith("float") and want.type == "varchar")


def value(given: SparkColumn, have: Column, want: Column) -> SparkColumn:
    """``given`` cast to the type of ``want``."""
    from pyspark.sql import functions as fn

    old, new = base_type(have.type), base_type(want.type)
    if new.startswith(_INTEGERS) and old.startswith("float"):
        given = fn.rint(given)
    elif new.startswith(_INTEGERS) and old == "decimal":
        given = fn.round(given, 0)
    return given.cast(spark_type(want))


def _column(name: str) -> SparkColumn:
    from pyspark.sql import functions as fn

    return fn.col(quoted(name))


def columns_of(schema: TableSchema, names: Sequence[str], table: str) -> list[Column]:
    """The columns of these names, each once. Raises QueryFailed naming what there is."""
    found: list[Column] = []
    for name in names:
        column = schema.find(name)
        if column is None:
            raise QueryFailed(
                f"{table} has no column {name!r}",
                hint=f"its columns are {', '.join(schema.names)}",
                data={"table": table, "column": name},
            )
        if fold(name) in {fold(one.name) for one in found}:
            raise QueryFailed(f"the column {name!r} is named twice", hint="name it once")
        found.append(column)
    return found
