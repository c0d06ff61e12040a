"""Rows of a query cast to a table's types, as DuckDB casts them in an INSERT and an UPDATE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions.align import filled, fit, fits, typed
from penstock.lakes.reading.conversions.spark_types import schema_of, spark_type
from penstock.spark.functions import fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_INTEGERS = ("int", "uint")


def cast(df: DataFrame, schema: TableSchema) -> DataFrame:
    """``df`` with its columns cast to the types of the table's columns of the same names.

    Numbers with a fraction are rounded to whole ones, as in DuckDB; a value that does not fit
    fails the statement. Values inside structs (by name), lists and maps are cast likewise. Casts
    to and from geometries, and of floats and bytes to text, are left for the write to refuse: the
    text of floats differs between engines, and bytes may be invalid UTF-8, with which DuckDB
    cannot read the file. A text stays one for a column in nanoseconds, which Spark's casts lose.
    """
    df = typed(df, schema)
    casts: dict[str, SparkColumn] = {}
    for have in schema_of(df).columns:
        want = schema.find(have.name)
        if want is None or (have.type, base_type(want.type)) == ("varchar", "timestamp_ns"):
            continue
        if _needs_cast(have, want):
            casts[have.name] = _converted(fn.col(quoted(have.name)), have, want, rounds=True)
    return df.withColumns(casts) if casts else df


def stored(
    rows: DataFrame, values: Mapping[str, SparkColumn], schema: TableSchema, *, rounds: bool = True
) -> dict[str, SparkColumn]:
    """New values of columns, computed from ``rows``, in exactly the types of the table.

    ``rounds``: numbers with a fraction are rounded to whole ones; else Spark's cast cuts them.
    Raises SchemaMismatch for what cannot be cast.
    """
    picked = rows.select(*(value.alias(name) for name, value in values.items()))
    voids = filled(picked, schema)
    columns = zip(values.items(), schema_of(typed(picked, schema)).columns, strict=True)
    converted_by_name: dict[str, SparkColumn] = {}
    for (name, new_value), have in columns:
        want = schema.find(name)
        assert want is not None, "values are of columns of the table"
        filled_in = new_value.cast(voids[name]) if name in voids else new_value
        converted = _converted(filled_in, have, want, rounds)
        converted_by_name[name] = fit(converted, _after(have, want), want, want.name)
    return converted_by_name


def _needs_cast(have: Column, want: Column) -> bool:
    if have.type in _NESTED and have.type == want.type:
        return any(new is not None and _needs_cast(old, new) for old, new in _pairs(have, want))
    if want.type == "variant" and have.children:  # DuckDB makes lists of maps, Spark objects
        return not any(part.type == "map" for part in have.walk())
    if have.children or want.children or have.type == want.type or fits(have, want):
        return False
    if "geometry" in (have.type, want.type):
        return False
    return not (have.type.startswith(("float", "blob")) and want.type == "varchar")


def _after(have: Column, want: Column) -> Column:
    """The type of ``have`` after its conversion."""
    if have.type in _NESTED and have.type == want.type:
        inside = tuple(
            c if wanted_child is None else _after(c, wanted_child)
            for c, wanted_child in _pairs(have, want)
        )
        return replace(have, children=inside)
    return replace(have, type=want.type, children=()) if _needs_cast(have, want) else have


def _pairs(have: Column, want: Column) -> list[tuple[Column, Column | None]]:
    """The children of ``have`` with those of ``want``; fields of structs match by name."""
    if have.type != "struct":
        return list(zip(have.children, want.children, strict=True))
    known = {fold(column.name): column for column in want.children}
    return [(child, known.get(fold(child.name))) for child in have.children]


def _converted(source: SparkColumn, have: Column, want: Column | None, rounds: bool) -> SparkColumn:
    if want is None or not _needs_cast(have, want):
        return source
    if have.type in _NESTED and have.type == want.type:
        return _NESTED[have.type](source, have, want, rounds)
    return value(source, have, want, rounds)


def value(computed: SparkColumn, have: Column, want: Column, rounds: bool) -> SparkColumn:
    """``value`` cast to the type of ``want``, which is not nested."""
    old, new = base_type(have.type), base_type(want.type)
    if have.children:
        return fn.to_variant_object(computed)
    if rounds and new.startswith(_INTEGERS) and old.startswith("float"):
        computed = fn.rint(computed)
    elif rounds and new.startswith(_INTEGERS) and old == "decimal":
        computed = fn.round(computed, 0)
    return computed.cast(spark_type(want))


def _struct(source: SparkColumn, have: Column, want: Column, rounds: bool) -> SparkColumn:
    fields = [
        _converted(source.getField(child.name), child, wanted_child, rounds).alias(child.name)
        for child, wanted_child in _pairs(have, want)
    ]
    return fn.when(source.isNotNull(), fn.struct(*fields))


def _list(source: SparkColumn, have: Column, want: Column, rounds: bool) -> SparkColumn:
    old, new = have.children[0], want.children[0]
    return fn.transform(source, lambda item: _converted(item, old, new, rounds))


def _map(source: SparkColumn, have: Column, want: Column, rounds: bool) -> SparkColumn:
    (old_key, old_item), (new_key, new_item) = have.children, want.children
    entries = fn.transform(
        fn.map_entries(source),
        lambda entry: fn.struct(
            _converted(entry["key"], old_key, new_key, rounds).alias("key"),
            _converted(entry["value"], old_item, new_item, rounds).alias("value"),
        ),
    )
    return fn.map_from_entries(entries)


_NESTED = {"struct": _struct, "list": _list, "map": _map}
