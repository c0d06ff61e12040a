"""Table schemas as Spark's types, and the values of types that Spark stores in another form.

Types that Spark stores in a wider one are checked before a write, so that no file holds a value
that its column cannot. `old_values` converts values of files that differ from the table's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.errors import UnsupportedFeature
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.types import (
    NOT_WRITTEN,
    from_spark_json,
    from_spark_schema,
    to_spark_json,
    to_spark_schema,
)
from penstock.lake.format.values.bounds import base_type
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    from penstock.lake.reading.conversions.stored_values import Convert

_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def literal(value: object) -> SparkColumn:
    """``value`` as a Spark literal. A time without a zone must not get Python's zone."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return fn.lit(value.isoformat(sep=" ")).cast("timestamp_ntz")
    return fn.lit(value)


def spark_type(column: Column) -> DataType:
    """The type users see, with field ids on the struct fields inside."""
    return _parse(to_spark_json(column))


def cast_type(column: Column) -> DataType | str:
    """Return what to cast to for `spark_type`: its name where possible, which takes one call to the
    JVM instead of nine.
    """
    kind = spark_type(column)
    return kind if column.children else kind.simpleString()


def spark_schema(schema: TableSchema) -> StructType:
    """The type of a table's rows, with field ids."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(to_spark_schema(schema))


def file_schema(schema: TableSchema, *, ids: bool) -> StructType:
    """Return what to read Parquet files with: by field id, or by name when they have none."""
    from pyspark.sql.types import StructType

    columns = tuple(_stored(column, ids) for column in schema.columns)
    return StructType.fromJson(to_spark_schema(TableSchema(columns), form="read"))


def schema_of(df: DataFrame) -> TableSchema:
    """The table that a DataFrame would create; ids unset."""
    return from_spark_schema(df.schema.jsonValue())


def to_files(value: SparkColumn, column: Column) -> SparkColumn:
    """A value of the type users see, checked to be within the column's range.

    Raises UnsupportedFeature for types that Spark cannot write.
    """
    refuse_unwritable(column)
    return _convert(value, column, column.name, _checks())


def as_bytes(value: SparkColumn, column: Column) -> SparkColumn:
    """A value of a DataFrame with Spark's geometries, if any, as well-known bytes."""
    return _convert(value, column, column.name, {"geometry": _well_known_bytes})


def cacheable(df: DataFrame) -> DataFrame:
    """``df`` with geometries as well-known bytes, as Spark cannot cache GEOMETRY.

    Raises SchemaMismatch for geometries that a table cannot hold.
    """
    kinds = ('"geometry(', '"geography(')
    fields = [f for f in df.schema.fields if any(kind in f.dataType.json() for kind in kinds)]
    columns = [from_spark_json(field.dataType.jsonValue(), field.name) for field in fields]
    geometries = {c.name: as_bytes(df[quoted(c.name)], c) for c in columns if _has_geometry(c)}
    return df.withColumns(geometries) if geometries else df


def as_parquet(rows: DataFrame, schema: TableSchema) -> DataFrame:
    """Rows of the types that users see, as they are written to files: bytes as geometries."""
    columns = [column for column in schema.columns if _has_geometry(column)]
    written = {column.name: _geometries(rows, column) for column in columns}
    if not written:
        return rows
    # Spark Connect's withColumns leaves out the metadata, which is the id of the field.
    return rows.select(*(written.get(name, rows[quoted(name)]) for name in rows.columns))


def _geometries(rows: DataFrame, column: Column) -> SparkColumn:
    value = rows[quoted(column.name)]
    made = _convert(value, column, column.name, {"geometry": lambda item, _: as_geometry(item)})
    if column.children:
        made = made.cast(_parse(to_spark_json(column, form="written")))
    return made.alias(column.name, metadata=rows.schema[column.name].metadata)


def as_geometry(well_known_bytes: SparkColumn) -> SparkColumn:
    return fn.st_geomfromwkb(well_known_bytes)


def _well_known_bytes(value: SparkColumn, path: str) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    return fn.st_asbinary(value)


def _has_geometry(column: Column) -> bool:
    return any(base_type(part.type) == "geometry" for part in column.walk())


def is_writable(column: Column) -> bool:
    """Return whether Spark can write a column of this type."""
    return not any(base_type(part.type) in NOT_WRITTEN for part in column.walk())


def refuse_unwritable(column: Column) -> None:
    """Raise UnsupportedFeature for a column of a type that Spark cannot write."""
    for part in column.walk():
        if base_type(part.type) in NOT_WRITTEN:
            raise UnsupportedFeature(
                f"column {column.name!r} is {part.type}, which Spark cannot write",
                hint="write this table with DuckDB, or give it a column of another type",
                data={"column": column.name, "type": part.type},
            )


def _parse(json: Any) -> DataType:
    from pyspark.sql.types import StructField

    return StructField.fromJson(
        {"name": "c", "type": json, "nullable": True, "metadata": {}}
    ).dataType


def _stored(column: Column, ids: bool) -> Column:
    children = tuple(_stored(child, ids) for child in column.children)
    return replace(column, id=column.id if ids else None, children=children)


def _convert(
    value: SparkColumn, column: Column, path: str, table: Mapping[str, Convert]
) -> SparkColumn:
    """Apply the functions of ``table`` to the leaves of their type; others stay untouched."""
    if not any(base_type(part.type) in table for part in column.walk()):
        return value
    nested = _NESTED.get(column.type)
    if nested is not None:
        converted: SparkColumn = nested(value, column, path, table)
        return converted
    return table[base_type(column.type)](value, path)


def _in_struct(
    value: SparkColumn, column: Column, path: str, table: Mapping[str, Convert]
) -> SparkColumn:
    fields = [
        _convert(value.getField(c.name), c, f"{path}.{c.name}", table).alias(c.name)
        for c in column.children
    ]
    return fn.when(value.isNotNull(), fn.struct(*fields))


def _in_list(
    value: SparkColumn, column: Column, path: str, table: Mapping[str, Convert]
) -> SparkColumn:
    return fn.transform(value, lambda item: _convert(item, column.children[0], path, table))


def _in_map(
    value: SparkColumn, column: Column, path: str, table: Mapping[str, Convert]
) -> SparkColumn:
    key, item = column.children
    return fn.map_from_entries(
        fn.transform(
            fn.map_entries(value),
            lambda entry: fn.struct(
                _convert(entry["key"], key, f"{path}.key", table).alias("key"),
                _convert(entry["value"], item, f"{path}.value", table).alias("value"),
            ),
        )
    )


_NESTED: Mapping[str, Callable[[Any, Column, str, Any], Any]] = {
    "struct": _in_struct,
    "list": _in_list,
    "map": _in_map,
}


def _checks() -> Mapping[str, Convert]:
    return {
        "uint8": _within("255"),
        "uint16": _within("65535"),
        "uint32": _within("4294967295"),
        "uint64": _within("18446744073709551615"),
        "timestamp_s": _fraction(1_000_000, "seconds"),
        "timestamp_ms": _fraction(1_000, "milliseconds"),
        "uuid": _check_uuid,
    }


def _within(highest: str) -> Convert:
    def check(value: SparkColumn, path: str) -> SparkColumn:
        fits = (value >= 0) & (value <= expr(highest))
        message = f"column {path} holds 0 to {highest} only"
        return fn.when(fits | value.isNull(), value).otherwise(fn.raise_error(message))

    return check


def _fraction(micros: int, unit: str) -> Convert:
    def check(value: SparkColumn, path: str) -> SparkColumn:
        fraction = fn.extract(fn.lit("SECOND"), value) * 1_000_000
        message = f"column {path} holds whole {unit} only: truncate the value in the SELECT"
        fits = value.isNull() | (fn.pmod(fraction.cast("long"), fn.lit(micros)) == 0)
        return fn.when(fits, value).otherwise(fn.raise_error(message))

    return check


def _check_uuid(value: SparkColumn, path: str) -> SparkColumn:
    fits = value.isNull() | value.rlike(_UUID)
    return fn.when(fits, value).otherwise(fn.raise_error(f"column {path} holds UUIDs only"))
