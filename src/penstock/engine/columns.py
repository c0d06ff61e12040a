"""The columns that a model declares for its table: ``columns (name TYPE, ...)`` of MODEL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import QueryFailed
from penstock.model.asset import ColumnType
from penstock.sql.identifiers import fold, quoted
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def cast_to(df: DataFrame, columns: Sequence[ColumnType]) -> DataFrame:
    """``df`` with these columns, in this order, cast to their types; itself where there are none.

    Raises QueryFailed, at its place, for a column that ``df`` lacks, and for one of ``df`` that is
    not declared.
    """
    if not columns:
        return df
    made = {fold(name): name for name in df.columns}
    for column in columns:
        if fold(column.name) not in made:
            raise QueryFailed(
                f"column {column.name} is declared, and the query does not make it",
                hint=f"it makes {', '.join(df.columns)}",
                location=column.location,
            )
    declared = {fold(column.name) for column in columns}
    others = [name for name in df.columns if fold(name) not in declared]
    if others:
        raise QueryFailed(
            f"the query makes {', '.join(others)}, which `columns` does not declare",
            hint="declare all columns of the query, or none",
            location=columns[0].location,
        )
    return df.selectExpr(
        *(
            f"CAST({quoted(made[fold(c.name)])} AS {spark_type(c.type, c.dialect)}) "
            f"AS {quoted(c.name)}"
            for c in columns
        )
    )
