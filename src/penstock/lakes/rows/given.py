"""Rows as users give them: DataFrames of Spark, dicts, or whatever has Arrow's interface.

Frames of pandas and polars, relations of DuckDB, Arrow's tables and batches become Arrow tables.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from penstock.errors import ArgumentError, SchemaMismatch, TableNotFound, UnsupportedFeature
from penstock.lakes.format.inlined import literal_rows
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.format.values import precision
from penstock.lakes.reading.conversions.spark_types import spark_schema
from penstock.lazy import pa
from penstock.spark.functions import arrow_frame
from penstock.spark.pandas_frames import from_pandas
from penstock.spark.session import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import TypeIs

    from penstock.lakes.format.inlined.literal_rows import Rows

    class ArrowStream(Protocol):
        """Arrow's interface, which frames of other libraries have."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

    Given: TypeAlias = DataFrame | Rows | ArrowStream

    from penstock.lakes.candidate.staged import StagedTable

_FORMS = (
    "give a DataFrame of Spark, pandas or polars, a relation of DuckDB, an Arrow table, or a list "
    "of dicts"
)


def is_literal(rows: object) -> TypeIs[Rows]:
    """Return whether these are rows themselves: dicts in a list, or an Arrow table."""
    if isinstance(rows, list | tuple):
        return all(isinstance(row, Mapping) for row in rows)
    return isinstance(rows, pa.Table)


def is_frame(rows: object) -> TypeIs[DataFrame]:
    """Return whether it is a DataFrame of Spark, or of Spark Connect."""
    return type(rows).__module__.startswith("pyspark.sql") and type(rows).__name__ == "DataFrame"


def arrow_of(rows: Any) -> pa.Table | None:
    """The Arrow table of what has Arrow's interface; ``None`` for anything else.

    Raises ArrowException, TypeError and ValueError for a frame whose columns Arrow has no types of.
    """
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(rows, pandas.DataFrame):
        return from_pandas(rows)
    return pa.table(rows) if hasattr(rows, "__arrow_c_stream__") else None


def given(rows: Any) -> DataFrame | Rows:
    """Return what a method was given as a DataFrame of Spark, dicts or an Arrow table.

    Raises ArgumentError, saying what rows are.
    """
    if is_frame(rows) or is_literal(rows):
        return rows
    to_df = getattr(rows, "to_df", None)  # the answer of a statement
    if type(rows).__module__.startswith("penstock.") and to_df is not None:
        return given(to_df())
    try:
        table = arrow_of(rows)
    except (pa.ArrowException, TypeError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise ArgumentError(f"the rows cannot be had in Arrow: {first}", hint=_FORMS) from None
    if table is None:
        raise ArgumentError(f"{type(rows).__name__} is not rows", hint=_FORMS)
    return _decoded(table)


def frame_of(
    table: StagedTable, rows: Any, *, whole: bool = False, alike: bool = False
) -> DataFrame:
    """Return what a method was given as a DataFrame of Spark; see `frame_for`."""
    return frame_for(
        rows,
        table.context.spark,
        table.candidate.qualified_name,
        table.schema if table.exists else None,
        whole=whole,
        alike=alike,
    )


def frame_for(
    rows: Any,
    spark: SparkSource,
    name: str,
    schema: TableSchema | None,
    *,
    whole: bool = False,
    alike: bool = False,
) -> DataFrame:
    """Return rows for the table ``name`` as a DataFrame of Spark; without a schema it is new.

    Values take the types of the table's columns that they are for. ``whole``: they may become all
    of the table, and columns that it lacks its new ones. ``alike``: dicts have the same columns,
    as one that lacks some would set them to their defaults. Raises ArgumentError, SchemaMismatch,
    and TableNotFound for dicts without a table.
    """
    found = given(rows)
    if not is_literal(found):
        return found
    columns = _columns(found, alike=alike)
    if schema is None and isinstance(found, list | tuple):
        raise TableNotFound(
            f"table {name} does not exist",
            hint="create it first: rows alone do not tell the types of its columns",
            data={"table": name},
        )
    taken = {fold(column) for column in columns}
    own = () if schema is None else schema.columns
    known = TableSchema(tuple(c for c in own if fold(c.name) in taken) if taken else own)
    if schema is not None and not (whole and len(known.columns) < len(taken)):
        try:
            typed = literal_rows.typed(found, known, table=name)
        except UnsupportedFeature:  # values that only Spark converts, as geometries
            if isinstance(found, list | tuple):
                raise
        else:
            return spark().createDataFrame(typed, schema=spark_schema(known))
    return _untyped(spark(), found)


def _columns(rows: Rows, *, alike: bool) -> list[str]:
    if isinstance(rows, pa.Table):
        return list(rows.column_names)
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    lacking = next(((at, row) for at, row in enumerate(rows, 1) if len(row) < len(names)), None)
    if alike and lacking is not None:
        at, row = lacking
        missing = next(name for name in names if name not in row)
        raise ArgumentError(
            f"row {at} has no {missing}, which others have: it would be set to its default",
            hint="give all rows the same columns, or merge them apart",
        )
    return names


def _untyped(spark: SparkSession, rows: Any) -> DataFrame:
    """An Arrow table with its own types; a timestamp without a zone has none in Spark."""
    from pyspark.sql.types import StructType, TimestampNTZType

    table = table_in_micros(rows)
    wide = pa.schema([field.with_type(_in_spark(field.type)) for field in table.schema])
    table = table.cast(wide)
    schema = StructType()
    for have, field in zip(
        table.schema, arrow_frame(spark, table.slice(0, 0)).schema.fields, strict=True
    ):
        zoneless = pa.types.is_timestamp(have.type) and have.type.tz is None
        schema.add(field.name, TimestampNTZType() if zoneless else field.dataType)
    return spark.createDataFrame(table, schema=schema)


def table_in_micros(table: pa.Table) -> pa.Table:
    """Return a table with its timestamps in microseconds, as Spark has them.

    Raises SchemaMismatch for a value with nanoseconds.
    """
    for position, field in enumerate(table.schema):
        if not (pa.types.is_timestamp(field.type) or pa.types.is_nested(field.type)):
            continue
        try:
            values = precision.column_in_micros(table.column(position))
        except precision.TooFine as error:
            raise SchemaMismatch(
                f"row {error.row}, column {field.name!r}: {error}, and a timestamp of Spark holds "
                "microseconds",
                hint=precision.HINT,
                data={"column": field.name, "row": error.row},
            ) from error
        table = table.set_column(position, field.with_type(values.type), values)
    return table


def _in_spark(kind: pa.DataType) -> pa.DataType:
    """The nearest type that Spark has and that holds all values."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.date64(): pa.date32(),
    }
    return wider.get(kind, kind)


def _decoded(table: pa.Table) -> pa.Table:
    """The table without dictionaries, views and long offsets: forms of the same values."""
    plain = pa.schema([field.with_type(_plain(field.type)) for field in table.schema])
    return table if plain.equals(table.schema) else table.cast(plain)


def _plain(kind: pa.DataType) -> pa.DataType:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_large_list(kind) or types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    return kind
