"""Rows of Python values as a table has them: their types are those of the values of one run.

``1`` is a BIGINT and ``Decimal("1.5")`` a DECIMAL(38, 1), whatever the table's column is. What
loses nothing is cast to the type of the column; declared types (``# column amount DECIMAL(12,2)``)
are cast to in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import Location, StepError
from penstock.lake.reading.conversions.spark_types import spark_type as type_of_column
from penstock.model.values.asset import ColumnType
from penstock.spark.functions import fn
from penstock.sql.identifiers import fold, quoted
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from penstock.lake.format.schema import TableSchema


def with_nulls(
    df: DataFrame,
    nulls: Sequence[str],
    columns: Sequence[ColumnType],
    schema: TableSchema | None,
    place: Location,
) -> DataFrame:
    """``df`` with columns that are NULL in each row, of the types that are declared or the table's.

    Raises StepError for one whose type is not known.
    """
    types = (
        {fold(c.name): type_of_column(c).simpleString() for c in schema.columns} if schema else {}
    )
    types |= {fold(c.name): spark_type(c.type, c.dialect) for c in columns}
    for name in nulls:
        if fold(name) not in types:
            raise StepError(
                f"column {name} is None in every row, so it has no type",
                hint=f"declare it in the header: `# column {name} TYPE`",
                location=place,
            )
        df = df.withColumn(name, fn.lit(None).cast(types[fold(name)]))
    return df


def declared(df: DataFrame, columns: Sequence[ColumnType]) -> DataFrame:
    """Cast the columns whose types the header declares. Raises StepError, at its line."""
    made = {fold(name) for name in df.columns}
    for column in columns:
        if fold(column.name) not in made:
            raise StepError(
                f"column {column.name} is declared, and the rows of main do not have it",
                hint=f"they have {', '.join(df.columns)}",
                location=column.location,
            )
    return _cast(df, {fold(c.name): spark_type(c.type, c.dialect) for c in columns})


def fitted(df: DataFrame, schema: TableSchema) -> DataFrame:
    """Cast the columns whose values the table's types hold; the others stay as they are."""
    wanted = {fold(column.name): type_of_column(column) for column in schema.columns}
    casts = {
        fold(field.name): wanted[fold(field.name)].simpleString()
        for field in df.schema.fields
        if fold(field.name) in wanted and _fits(field.dataType, wanted[fold(field.name)])
    }
    return _cast(df, casts)


def _cast(df: DataFrame, types: Mapping[str, str]) -> DataFrame:
    if not types:
        return df
    return df.selectExpr(
        *(
            f"CAST({quoted(name)} AS {types[fold(name)]}) AS {quoted(name)}"
            if fold(name) in types
            else quoted(name)
            for name in df.columns
        )
    )


def _fits(made: DataType, wanted: DataType) -> bool:
    """Return whether a cast keeps each value, or fails: one that is too large does."""
    from pyspark.sql.types import DecimalType, FractionalType, IntegralType

    if made == wanted:
        return False
    if isinstance(made, IntegralType):
        return isinstance(wanted, IntegralType | DecimalType | FractionalType)
    if isinstance(made, DecimalType) and isinstance(wanted, DecimalType):
        return made.scale <= wanted.scale
    return False
