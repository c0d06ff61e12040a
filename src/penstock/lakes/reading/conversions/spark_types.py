"""Table schemas as Spark's types, and the values of types that are stored in another form.

Types that Spark stores in a wider one are checked before a write, so that no file holds a value
that its column cannot. `widening` converts values of files that differ from the table's type.

Types whose values Parquet files store in another form than users see, and their conversions.

The forms are those that the real extension writes (measured): times and nanoseconds as counts,
``int128`` as a double, an interval as 12 bytes, a NULL variant as a value of its own.

A *kind* is the name of the DuckLake type that a file's column has, which may differ from the
table's in files that are older than a promotion or were written by other tools. Besides the names
of types there are `INT96`, `MILLISECONDS` and other kinds that only Parquet has. Which of them
Spark reads correctly as a table's type was measured (Spark 4.3, DuckDB 1.5.5).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.types import (
    NOT_WRITTEN,
    from_spark_json,
    from_spark_schema,
    to_spark_json,
    to_spark_schema,
)
from penstock.lakes.format.values.bounds import base_type, parse
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

    Convert = Callable[[SparkColumn, str], SparkColumn]


INT96 = "int96"
MILLISECONDS = "milliseconds"  # a timestamp without a zone in this unit
NANOSECONDS_IN_UTC = "timestamptz in nanoseconds"
_SMALL = ("int8", "uint8", "int16", "uint16", "int32")
_TEXTS = frozenset({"varchar", "json"})
# Kinds that Spark reads correctly with the type that it uses for files of the table's type.
_ITSELF: Mapping[str, frozenset[str]] = {
    "int16": frozenset({"int8", "uint8", "int16"}),
    "uint8": frozenset({"uint8", "int16"}),
    "int32": frozenset(_SMALL),
    "uint16": frozenset({"uint8", "uint16", "int32"}),
    "int64": frozenset({*_SMALL, "uint32", "int64"}),
    "uint32": frozenset({"uint8", "uint16", "uint32", "int64"}),
    "uint64": frozenset({"uint64", "decimal"}),
    "int128": frozenset({"float64"}),
    "uint128": frozenset({"float64"}),
    "float64": frozenset({"float32", "float64"}),
    "timestamp": frozenset({"timestamp", INT96}),
    "timestamp_s": frozenset({"timestamp", INT96}),
    "timestamp_ms": frozenset({"timestamp", INT96}),
    "timestamptz": frozenset({"timestamptz", INT96}),
    "varchar": _TEXTS,
    "json": _TEXTS,
    "uuid": frozenset({"uuid", "varchar"}),
    "blob": frozenset({"blob", "varchar", "json", "geometry"}),
    "geometry": frozenset({"geometry", "blob"}),
}


_SECOND = 1_000_000
INFINITE = (
    9_223_372_036_854_775_807  # the count that stands for "infinity", negated for "-infinity"
)


def text_of_time(value: SparkColumn, path: str) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    """Microseconds of a day as DuckDB's text: ``23:59:59.5``, and ``24:00:00``."""

    def part(unit: int, size: int) -> SparkColumn:
        count = fn.call_function("div", value, fn.lit(unit * _SECOND))
        return fn.lpad((count % size).cast("string"), 2, "0")

    fraction = fn.rtrim(fn.lpad((value % _SECOND).cast("string"), 6, "0"), fn.lit("0"))
    whole = fn.concat_ws(":", part(3600, 25), part(60, 60), part(1, 60))
    text = fn.when(value % _SECOND == 0, whole).otherwise(fn.concat(whole, fn.lit("."), fraction))
    return fn.when(value.isNotNull(), text)


def _interval(value: SparkColumn, path: str) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    """Three little-endian unsigned counts, of months, days and milliseconds."""
    digits = fn.hex(value)

    def count(at: int) -> SparkColumn:
        places = [at * 8 + n for n in (7, 5, 3, 1)]
        turned = fn.concat(*(fn.substring(digits, place, 2) for place in places))
        return fn.conv(turned, 16, 10).cast("long")

    parts = fn.struct(
        count(0).cast("int").alias("months"),
        count(1).cast("int").alias("days"),
        (count(2) * 1000).alias("micros"),
    )
    return fn.when(value.isNotNull(), parts)


def _whole_number(value: SparkColumn, path: str) -> SparkColumn:
    """The exact whole number of a double; a cast would take the digits of its shortest text."""
    step = fn.lit(float(1 << 48))
    high = _towards_zero(value / (step * step))
    rest = value - high * (step * step)
    middle = _towards_zero(rest / step)
    low = rest - middle * step
    exact = (
        high.cast("decimal(10,0)") * fn.lit(str(1 << 96)).cast("decimal(29,0)")
        + middle.cast("decimal(15,0)") * fn.lit(str(1 << 48)).cast("decimal(15,0)")
        + low.cast("decimal(15,0)")
    ).cast("decimal(38,0)")
    message = f"column {path} holds a whole number of more than 38 digits, which Spark cannot"
    refused = fn.raise_error(message).cast("decimal(38,0)")
    return fn.when(fn.abs(value) < 1e38, exact).when(value.isNotNull(), refused)


def _towards_zero(value: SparkColumn) -> SparkColumn:
    return fn.signum(value) * fn.floor(fn.abs(value)).cast("double")


def _uuid(value: SparkColumn, path: str) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    """16 raw bytes in DuckDB's files, text in Spark's."""
    digits = fn.lower(fn.hex(value))
    parts = [fn.substring(digits, at, n) for at, n in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))]
    raw = fn.concat_ws("-", *parts)
    return fn.when(fn.length(value) == 16, raw).otherwise(fn.lower(value.cast("string")))


def _nanoseconds(value: SparkColumn, path: str) -> SparkColumn:
    rest = fn.pmod(value, fn.lit(1000))
    micros = fn.call_function("div", value - rest, fn.lit(1000))
    message = (
        f"column {path} holds nanoseconds, which Spark's timestamps cannot: leave it out, "
        "or store it as timestamp"
    )
    refused = fn.raise_error(message).cast("timestamp_ntz")
    return (
        fn.when(fn.abs(value) == INFINITE, moment(value))
        .when(rest == 0, moment(micros))
        .when(value.isNotNull(), refused)
    )


def without_nanoseconds(value: SparkColumn, path: str) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    """Truncate a finer value in a file towards 1970, as DuckDB 1.5.5 does."""
    return moment(_micros(value))


def without_nanoseconds_in_utc(value: SparkColumn, path: str) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    return fn.timestamp_micros(_micros(value))


def _micros(nanoseconds: SparkColumn) -> SparkColumn:
    whole = fn.call_function("div", nanoseconds, fn.lit(1000))
    return fn.when(fn.abs(nanoseconds) == INFINITE, nanoseconds).otherwise(whole)


def _seconds(value: SparkColumn, path: str) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    """Round to seconds, as DuckDB does: other writers' files may have fractions."""
    return rounded(value, _SECOND)


def rounded(value: SparkColumn, unit: int) -> SparkColumn:
    """A time without a zone rounded to a unit in microseconds, halves away from 1970.

    DuckDB reads files that are finer than the column this way (measured, 1.5.5).
    """
    count = fn.unix_micros(value.cast("timestamp"))  # zones are off by whole seconds
    rest = fn.pmod(count, fn.lit(unit))
    later = value >= moment(fn.lit(0))
    up = fn.when(later, rest * 2 >= unit).otherwise(rest * 2 > unit)
    moved = fn.when(up, fn.lit(unit) - rest).otherwise(-rest)
    infinite = (value == moment(fn.lit(INFINITE))) | (value == moment(fn.lit(-INFINITE)))
    return fn.when(infinite, value).otherwise(fn.timestamp_add("MICROSECOND", moved, value))


def moment(micros: SparkColumn) -> SparkColumn:
    """Microseconds since 1970 as a time without a zone, ``infinity`` (the last) included."""
    epoch = fn.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return fn.timestamp_add("MICROSECOND", micros, epoch)


READERS: Mapping[str, Convert] = {
    "int128": _whole_number,
    "interval": _interval,
    "time": text_of_time,
    "timestamp_ms": lambda value, _: rounded(value, 1000),
    "timestamp_ns": _nanoseconds,
    "timestamp_s": _seconds,
    # Files store it in UTC; its own zone is lost, for DuckDB too.
    "timetz": lambda value, path: fn.concat(text_of_time(value, path), fn.lit("+00")),
    "uint128": _whole_number,
    "uuid": _uuid,
    # DuckDB stores a NULL as a variant's own null, and reads that as NULL.
    "variant": lambda value, _: fn.when(~fn.is_variant_null(value), value),
    # Spark's own reader cannot read an infinite one.
    MILLISECONDS: lambda value, _: moment(
        fn.when(fn.abs(value) == INFINITE, value).otherwise(value * 1000)
    ),
}


def reads_itself(kind: str, type_text: str) -> bool:
    """Return whether a column of ``kind`` needs no conversion to the table's type."""
    table, file = parse(type_text), parse(kind)
    if table.name == "decimal" and file.name == "decimal":
        more = (table.precision or 0) - (table.scale or 0)
        have = (file.precision or 0) - (file.scale or 0)
        return have <= more and (file.scale or 0) <= (table.scale or 0)
    return file.name in _ITSELF.get(table.name, {table.name})


def may_differ(type_text: str) -> bool:
    """Return whether files may store this type in a form that Spark cannot read on its own.

    DuckDB stores a ``timestamp_ms`` in milliseconds: Spark fails on an infinite one.
    """
    return base_type(type_text) == "timestamp_ms"


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
    table: Mapping[str, Convert] = {"geometry": lambda item, _: fn.st_asbinary(item)}
    return _convert(value, column, column.name, table)


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
