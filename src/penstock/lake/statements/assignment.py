"""Rows of a query as columns of a table take them: by position or name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import QueryFailed
from penstock.lake.format.naming import fold
from penstock.lake.format.schema import Column, TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
            raise QueryFailed(
                f"the column {name!r} is named twice",
                hint="name it once",
                data={"table": table, "column": name},
            )
        found.append(column)
    return found
