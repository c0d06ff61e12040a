"""A DataFrame's columns fitted to a table's: by name, with lossless casts, field ids set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from penstock.errors import SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema, can_widen, type_text
from penstock.lakes.format.types import FIELD_ID
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions import validation
from penstock.lakes.reading.conversions.spark_types import (
    as_bytes,
    as_geometry,
    cast_type,
    refuse_unwritable,
    schema_of,
    spark_type,
    to_files,
)
from penstock.lakes.reading.conversions.validation import lacks_required, required_fields
from penstock.lakes.reading.conversions.widening import fits_decimal
from penstock.spark.functions import fn
from penstock.spark.session import cache_of
from penstock.spark.struct_casts import other_fields
from penstock.sql.identifiers import nearest, quoted
from penstock.sql.literals import constant

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

# Types that Spark lacks, and the Spark types that hold their values (checked on write).
_HELD_IN: Mapping[str, frozenset[str]] = {
    "uint8": frozenset({"int8", "int16"}),
    "uint16": frozenset({"int8", "int16", "int32"}),
    "uint32": frozenset({"int8", "int16", "int32", "int64"}),
    "timestamp_s": frozenset({"timestamp", "date"}),
    "timestamp_ms": frozenset({"timestamp", "date"}),
    "timestamp_ns": frozenset({"timestamp"}),  # then refused with the reason
    "timestamp": frozenset({"timestamp_s", "timestamp_ms", "date"}),
    "json": frozenset({"varchar"}),
    "geometry": frozenset({"blob"}),
    "uuid": frozenset({"varchar"}),
    "float32": frozenset({"int8", "int16"}),
    "float64": frozenset({"int8", "int16", "int32"}),
}
_SHOWN_COLUMNS, _SHOWN_CHARACTERS = 6, 200


def align(df: DataFrame, schema: TableSchema, *, table: str) -> list[SparkColumn]:
    """One expression per column of ``schema``, in its order, named and with field ids.

    Columns match by name, letter case aside; one that ``df`` lacks takes its default or NULL.
    Raises SchemaMismatch for columns that the table does not have and for types that would lose
    something.
    """
    key = ("align", df.schema, schema, table)  # everything that they depend on
    return list(cache_of(df.sparkSession).get(key, lambda: _aligned(df, schema, table)))


def _aligned(df: DataFrame, schema: TableSchema, table: str) -> list[SparkColumn]:
    for want in schema.columns:
        refuse_unwritable(want)  # before a type is asked for that is then refused
    casts = filled(df, schema)
    have = {
        fold(column.name): column for column in _unique(schema_of(typed(df, schema)), table).columns
    }
    _refuse_unknown(list(have.values()), schema.columns, table)
    columns: list[SparkColumn] = []
    for want in schema.columns:
        source = have.get(fold(want.name))
        if source is None:
            value = _default(want)
        else:
            value = _column(source.name)
            value = value.cast(casts[source.name]) if source.name in casts else value
            value = validation.checked(fit(value, source, want, want.name), want)
        required = not want.nullable or (
            want.children and next(required_fields(want), None) is not None
        )
        columns.append(finish(value, want, _sample(df) if required else None))
    return columns


def typed(df: DataFrame, schema: TableSchema | None) -> DataFrame:
    """``df`` with its untyped NULLs (``NULL AS x``) in the types that the table has for them.

    Also inside structs, lists and maps.
    """
    casts = {} if schema is None else filled(df, schema)
    return df.withColumns({k: _column(k).cast(to) for k, to in casts.items()}) if casts else df


def known(df: DataFrame) -> DataFrame:
    """``df`` with its untyped NULLs as INTEGER at any depth, as DuckDB creates a table of them."""
    from pyspark.sql.types import IntegerType

    casts = {
        field.name: kind
        for field in df.schema.fields
        if (kind := _without_void(field.dataType, IntegerType())) != field.dataType
    }
    return df.withColumns({k: _column(k).cast(to) for k, to in casts.items()}) if casts else df


def _without_void(kind: DataType, instead: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, NullType, StructField, StructType

    if isinstance(kind, NullType):
        return instead
    if isinstance(kind, ArrayType):
        return ArrayType(_without_void(kind.elementType, instead), kind.containsNull)
    if isinstance(kind, MapType):
        key, value = (_without_void(part, instead) for part in (kind.keyType, kind.valueType))
        return MapType(key, value, kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType(
            [
                StructField(field.name, _without_void(field.dataType, instead), field.nullable)
                for field in kind.fields
            ]
        )
    return kind


def filled(df: DataFrame, schema: TableSchema) -> dict[str, DataType]:
    """The types of the columns that have untyped NULLs, by name, with those filled in."""
    known = {fold(column.name): column for column in schema.columns}
    types: dict[str, DataType] = {}
    for field in df.schema.fields:
        if fold(field.name) in known:
            kind = _filled(field.dataType, known[fold(field.name)])
            if kind != field.dataType:
                types[field.name] = kind
    return types


def _filled(kind: DataType, column: Column) -> DataType:
    """``kind`` with the types of ``column`` where it is void."""
    from pyspark.sql.types import ArrayType, MapType, NullType, StructField, StructType

    inside = column.children
    if isinstance(kind, NullType):
        return spark_type(column)
    if isinstance(kind, ArrayType) and column.type == "list":
        return ArrayType(_filled(kind.elementType, inside[0]), kind.containsNull)
    if isinstance(kind, MapType) and column.type == "map":
        key, value = _filled(kind.keyType, inside[0]), _filled(kind.valueType, inside[1])
        return MapType(key, value, kind.valueContainsNull)
    if isinstance(kind, StructType) and column.type == "struct":
        known = {fold(child.name): child for child in inside}
        return StructType(
            [
                StructField(
                    field.name,
                    _filled(field.dataType, known[fold(field.name)])
                    if fold(field.name) in known
                    else field.dataType,
                    field.nullable,
                )
                for field in kind.fields
            ]
        )
    return kind


def _sample(df: DataFrame) -> SparkColumn:
    """The beginning of a row as JSON, for a message about it."""
    rows = known(df.select(*map(_column, df.columns[:_SHOWN_COLUMNS])))
    shown = [as_bytes(_column(c.name), c) for c in schema_of(rows).columns]
    text = fn.to_json(fn.struct(*shown), {"ignoreNullFields": "false"})
    return fn.substring(text, 1, _SHOWN_CHARACTERS)


def finish(value: SparkColumn, column: Column, sample: SparkColumn | None = None) -> SparkColumn:
    """``value`` as ``column``: checked, nullable in the file as the format requires, with ids.

    A NULL in a NOT NULL column, or in such a field of one, fails the write, with ``sample``, which
    shows the row. Spark writes columns that it knows to be never NULL as REQUIRED. A condition that
    the optimizer cannot simplify, and that costs nothing measurable, hides this from it.
    """
    value = to_files(value, column)
    if not column.nullable:
        cause = fn.lit(f"column {column.name} is NOT NULL in the table")
        if sample is not None:
            cause = fn.concat(cause, fn.lit(", and a row has none: "), sample)
        value = fn.coalesce(value, fn.raise_error(cause))
    lacking = lacks_required(value, column) if column.children else None
    if lacking is not None:
        names = ", ".join(required_fields(column))
        cause = fn.lit(f"fields of column {column.name} are NOT NULL in the table ({names})")
        if sample is not None:
            cause = fn.concat(cause, fn.lit(", and a row has none: "), sample)
        value = fn.when(lacking, fn.raise_error(cause)).otherwise(value)
    if column.children:
        value = value.cast(spark_type(column))  # alone carries the ids of struct fields
    return fn.when(fn.spark_partition_id() >= 0, value).alias(
        column.name, metadata={FIELD_ID: column.id}
    )


def _column(name: str) -> SparkColumn:
    return fn.col(quoted(name))


def _unique(schema: TableSchema, table: str) -> TableSchema:
    seen: set[str] = set()
    for name in schema.names:
        if fold(name) in seen:
            raise SchemaMismatch(
                f"the rows for {table} have two columns named {name!r}",
                hint="name one of them otherwise (AS ...)",
                data={"table": table, "column": name},
            )
        seen.add(fold(name))
    return schema


def _refuse_unknown(have: Sequence[Column], want: Sequence[Column], place: str) -> None:
    known = {fold(column.name): column.name for column in want}
    for column in have:
        if fold(column.name) in known:
            continue
        close = nearest(column.name, known.values())
        listed = ", ".join(known.values())
        raise SchemaMismatch(
            f"{place} has no column {column.name!r}",
            hint=f"did you mean {close}?" if close else f"its columns are {listed}",
            data={"table": place, "column": column.name},
        )


def _default(column: Column) -> SparkColumn:
    if column.default is None:
        return fn.lit(None).cast(cast_type(column))
    if not column.has_plain_default or column.children:
        raise UnsupportedFeature(
            f"column {column.name!r} has the default {column.default}, which only DuckDB evaluates",
            hint=f"give the rows a column {column.name}",
            data={"column": column.name, "default": column.default},
        )
    return fn.lit(column.default).cast(cast_type(column))


def fit(value: SparkColumn, have: Column, want: Column, path: str) -> SparkColumn:
    """``value`` of type ``have`` as ``want``, or SchemaMismatch naming both.

    Geometries become well-known bytes of one form, which compare.
    """
    if have.children and have.type == want.type and not _same(have, want):
        # Fields of structs are reordered by name: Spark casts structs by position.
        return _NESTED[want.type](value, have, want, path)
    if have.type == want.type:
        return as_bytes(value, have)
    if (have.type, want.type) == ("blob", "geometry"):
        return as_bytes(as_geometry(value), want)
    if not fits(have, want):
        raise SchemaMismatch(
            f"column {path!r} is {type_text(want)} and the rows have {type_text(have)}",
            hint=_how_to_cast(path, have, want),
            data={"column": path, "table_type": type_text(want), "given": type_text(have)},
        )
    return value.cast(cast_type(want))


def fits(have: Column, want: Column) -> bool:
    """Return whether every value of ``have`` is a value of ``want``, or the write checks it."""
    old, new = base_type(have.type), base_type(want.type)
    if have.children or want.children:
        return False
    if old == new and old != "decimal":
        return True
    if can_widen(old, new) or old in _HELD_IN.get(new, ()):
        return True
    return fits_decimal(have.type, want.type)


def growth(have: TableSchema, want: TableSchema) -> TableSchema:
    """The columns that a table needs to hold ``have``: those it lacks, and those to widen, by
    another type or by fields of structs.
    """
    known = {fold(column.name): column for column in want.columns}
    grown: list[Column] = []
    for column in have.columns:
        old = known.get(fold(column.name))
        widens = old is not None and not fits(column, old) and can_widen(old.type, column.type)
        if old is None or widens or _has_more_fields(column, old):
            grown.append(column)
    return TableSchema(tuple(grown))


def _has_more_fields(column: Column, old: Column) -> bool:
    if not column.children or column.type != old.type:
        return False
    return bool(other_fields(spark_type(column), spark_type(old), column.name))


def _how_to_cast(path: str, have: Column, want: Column) -> str:
    if want.type == "geometry":
        return "write st_geomfromwkb(...) of well-known bytes in the SELECT"
    if want.type == "variant":
        return f"write to_variant_object({path}) in the SELECT"
    if have.type == "geometry":
        return f"write its well-known bytes in the SELECT, st_asbinary({path})"
    sql_type = type_text(want) if want.children else spark_type(want).simpleString()
    return f"CAST({path} AS {sql_type}) in the SELECT, or replace the whole table"


def _same(have: Column, want: Column) -> bool:
    return (
        have.type == want.type
        and len(have.children) == len(want.children)
        and all(
            fold(a.name) == fold(b.name) and _same(a, b)
            for a, b in zip(have.children, want.children, strict=True)
        )
    )


def _fit_struct(value: SparkColumn, have: Column, want: Column, path: str) -> SparkColumn:
    children = {fold(child.name): child for child in have.children}
    _refuse_unknown(have.children, want.children, f"column {path}")
    fields: list[SparkColumn] = []
    for child in want.children:
        source = children.get(fold(child.name))
        if source is None:
            fields.append(_default(replace(child, id=None)).alias(child.name))
            continue
        inner = fit(value.getField(source.name), source, child, f"{path}.{child.name}")
        fields.append(inner.alias(child.name))
    return fn.when(value.isNotNull(), fn.struct(*fields))


def _fit_list(value: SparkColumn, have: Column, want: Column, path: str) -> SparkColumn:
    old, new = have.children[0], want.children[0]
    return fn.transform(value, lambda item: fit(item, old, new, f"{path}[]"))


def _fit_map(value: SparkColumn, have: Column, want: Column, path: str) -> SparkColumn:
    (old_key, old_item), (new_key, new_item) = have.children, want.children
    entries = fn.transform(
        fn.map_entries(value),
        lambda entry: fn.struct(
            fit(entry["key"], old_key, new_key, f"{path}.key").alias("key"),
            fit(entry["value"], old_item, new_item, f"{path}.value").alias("value"),
        ),
    )
    return fn.map_from_entries(entries)


_NESTED = {"struct": _fit_struct, "list": _fit_list, "map": _fit_map}
NOW = "now()"
_TIMES = frozenset({NOW, "current_timestamp", "get_current_timestamp()", "transaction_timestamp()"})
_DAYS = frozenset({"current_date", "today()"})
_KNOWN = {"timestamptz": _TIMES, "timestamp": _TIMES, "date": _TIMES | _DAYS}


def with_values(schema: TableSchema, moment: datetime, zone: Callable[[], str]) -> TableSchema:
    """The columns with defaults such as ``1 + 1``, and ``now()`` at ``moment``, replaced by values.

    A time without a zone, and a date, are in the session's ``zone``. Others stay expressions.
    """
    return TableSchema(tuple(_with_value(column, moment, zone) for column in schema.columns))


def _with_value(column: Column, moment: datetime, zone: Callable[[], str]) -> Column:
    if column.default is None or column.default_kind != "expression":
        return column
    if column.default.strip().lower() in _KNOWN.get(column.type, ()):
        value: str | None = _text(column, moment, zone)
    else:
        value = _constant(column, column.default)
    return column if value is None else replace(column, default=value, default_kind="literal")


def _constant(column: Column, expression: str) -> str | None:
    """The text of a constant that is of the column's kind, which numbers are of a text's."""
    value = constant(expression)
    kinds = _OF_TEXT if isinstance(value, str) else _OF_NUMBER
    return str(value) if value is not None and base_type(column.type) in kinds else None


_OF_TEXT = frozenset({"varchar"})
_OF_NUMBER = frozenset(
    {*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "varchar"}
    | {"float32", "float64", "decimal"}
)


def _text(column: Column, moment: datetime, zone: Callable[[], str]) -> str:
    if column.type == "timestamptz":
        return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    local = moment.astimezone(ZoneInfo(zone()))
    return local.strftime("%Y-%m-%d" if column.type == "date" else "%Y-%m-%d %H:%M:%S.%f")
