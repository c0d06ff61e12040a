"""The columns that a model declares for its table: ``columns (name TYPE, ...)`` of MODEL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import QueryFailed
from penstock.model.values.asset import ColumnType
from penstock.spark.functions import fn
from penstock.spark.struct_casts import cast_columns
from penstock.sql.identifiers import fold, quoted
from penstock.sql.literals import LETTERED, PARTIAL
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def cast_to(df: DataFrame, columns: Sequence[ColumnType]) -> DataFrame:
    """``df`` with these columns, in this order, cast to their types; itself where there are none.

    Raises QueryFailed, at its place, for a column that ``df`` lacks, and for one of ``df`` that is
    not declared.
    """
    if not columns:
        return df
    wrong = apart(df.columns, columns)
    if wrong is not None:
        raise wrong
    types = {c.name: spark_type(c.type, c.dialect) for c in columns}
    sources = {fold(name): (name, kind) for name, kind in df.dtypes}
    return df.select(
        *(
            _refusing(value, *sources[fold(name)], types[name]).alias(name)
            for value, name in zip(cast_columns(df, types), types, strict=True)
        )
    )


# Texts that Spark alone takes for a number, or for a moment: 1D, 2024-05, 10:00 of today.
_ODD = {
    **dict.fromkeys(("DOUBLE", "FLOAT"), LETTERED),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"), PARTIAL),
}


def _refusing(value: Column, source: str, type_: str, kind: str) -> Column:
    """Return a cast, which fails in Spark's words for a text that is a value to Spark alone."""
    odd = _ODD.get(kind)
    if odd is None or type_ != "string":
        return value
    text = fn.col(quoted(source))
    ending = f'\' of the type "STRING" cannot be cast to "{kind}"'
    words = fn.concat(fn.lit("The value '"), text, fn.lit(ending))
    return fn.when(text.rlike(rf"\A{odd}\z"), fn.raise_error(words)).otherwise(value)


def apart(made: Sequence[str], columns: Sequence[ColumnType]) -> QueryFailed | None:
    """The error of a query that makes other columns than are declared, if any are."""
    if not columns:
        return None
    names = set(map(fold, made))
    for column in columns:
        if fold(column.name) not in names:
            return QueryFailed(
                f"column {column.name} is declared, and the query does not make it",
                hint=f"it makes {', '.join(made)}",
                location=column.location,
            )
    declared = {fold(column.name) for column in columns}
    others = [name for name in made if fold(name) not in declared]
    if not others:
        return None
    return QueryFailed(
        f"the query makes {', '.join(others)}, which `columns` does not declare",
        hint="declare all columns of the query, or none",
        location=columns[0].location,
    )
