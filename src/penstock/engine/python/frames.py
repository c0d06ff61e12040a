"""Carry rows between a step and its run, as Parquet files; type rows of Python values as a table's.

The types of Python values are those of the values of one run: ``1`` is a BIGINT and
``Decimal("1.5")`` a DECIMAL(38, 1), whatever the table's column is. What loses nothing is cast to
the type of the column; declared types (``# column amount DECIMAL(12,2)``) are cast to in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock.errors import Location, SchemaMismatch, StepError
from penstock.lakes.reading.conversions.spark_types import spark_type as type_of_column
from penstock.lakes.rows.given import arrow_of, table_in_micros
from penstock.lazy import pa, pq
from penstock.model.values.asset import ColumnType
from penstock.spark.functions import fn
from penstock.spark.pandas_frames import to_pandas
from penstock.spark.struct_casts import cast_columns
from penstock.sql.identifiers import fold, quoted
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from penstock.destinations.values import TableSchema

FORMS = ("arrow", "rows", "pandas", "spark")
_RETURN = "return a DataFrame of Spark or pandas, an Arrow table, or a list of dicts"


class NotRows(TypeError):
    """Raised for a result that is not rows; the message says what would be."""


def is_spark(rows: object) -> bool:
    """Return whether it is a DataFrame of Spark, or of Spark Connect."""
    return type(rows).__module__.startswith("pyspark.sql") and type(rows).__name__ == "DataFrame"


def to_file(rows: object, folder: str) -> dict[str, Any]:
    """Rows as a Parquet file in ``folder``; ``{"empty": True}`` for a list of none.

    ``nulls`` are columns without a value and so without a type, which the file does not have.

    Raises NotRows.
    """
    if isinstance(rows, list) and not rows:
        return {"empty": True}
    table = to_arrow(rows)
    nulls = _check(table)
    table = _uuids_as_texts(table.drop_columns(nulls))
    path = str(Path(folder) / f"{uuid4()}.parquet")
    try:
        table = table_in_micros(table)
    except SchemaMismatch as error:
        raise NotRows(f"{error.message}: {error.hint}") from None
    pq.write_table(_plain(table), path, coerce_timestamps="us")
    return {"path": path, "nulls": nulls}


def to_arrow(rows: Any) -> Any:
    """The Arrow table of rows in any form but Spark's. Raises NotRows."""
    if isinstance(rows, list):
        return _of_dicts(rows)
    try:
        table = arrow_of(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise NotRows(f"its rows cannot be had in Arrow: {error}") from None
    if table is not None:
        return table
    raise NotRows(f"{type(rows).__name__} is not rows: {_RETURN}")


def _of_dicts(rows: list[Any]) -> Any:
    wrong = next((row for row in rows if not isinstance(row, Mapping)), None)
    if wrong is not None:
        raise NotRows(f"a list of {type(wrong).__name__} is not rows: {_RETURN}")
    names = dict.fromkeys(str(name) for row in rows for name in row)
    try:
        table = pa.table({name: [row.get(name) for row in rows] for name in names})
        return table.cast(pa.schema([_widest(field) for field in table.schema]))
    except (pa.ArrowException, TypeError, OverflowError) as error:
        first = str(error).splitlines()[0]
        raise NotRows(f"a column of the rows has no one type: {first}") from None


def _widest(field: Any) -> Any:
    """Decimals have the scale of the values, and room for larger ones of other runs."""
    if not pa.types.is_decimal(field.type):
        return field
    return field.with_type(pa.decimal128(38, field.type.scale))


def _check(table: Any) -> list[str]:
    """The columns without a type. Raises NotRows."""
    names = table.column_names
    if not names:
        raise NotRows(f"the rows have no columns: {_RETURN}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise NotRows(f"two columns are called {twice}")
    untyped = [field.name for field in table.schema if pa.types.is_null(field.type)]
    if len(untyped) == len(names):
        raise NotRows("every column is None in every row, so none has a type")
    return untyped


def _uuids_as_texts(table: Any) -> Any:
    """UUIDs as the texts that queries have of them: Spark reads no UUID of a Parquet file."""
    for at, field in enumerate(table.schema):
        if getattr(field.type, "extension_name", None) == "arrow.uuid":
            texts = [None if value is None else str(value) for value in table[at].to_pylist()]
            table = table.set_column(at, field.name, pa.array(texts, pa.string()))
    return table


def _plain(table: Any) -> Any:
    """Without metadata: ids of fields are those of another table."""
    fields = [field.remove_metadata() for field in table.schema]
    return (
        table.cast(pa.schema(fields))
        if table.schema.metadata or any(field.metadata for field in table.schema)
        else table
    )


def from_files(path: str, form: str) -> Any:
    """The rows that a run wrote to a directory or file, in a form but Spark's."""
    files = sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [Path(path)]
    tables = [_plain(pq.read_table(file)) for file in files]
    return _FORMS[form](pa.concat_tables(tables))


_FORMS: Mapping[str, Callable[[Any], Any]] = {
    "arrow": lambda table: table,
    "rows": lambda table: table.to_pylist(),
    "pandas": to_pandas,
}


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
    casts = {name: types[fold(name)] for name in df.columns if fold(name) in types}
    made = dict(zip(casts, cast_columns(df, casts), strict=True))
    return df.select(*(made.get(name, fn.col(quoted(name))) for name in df.columns))


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
