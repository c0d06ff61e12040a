"""Inlined values as typed Arrow columns: the columns of a table at the requested snapshot.

A column is found by its field id in the schema that the rows were inlined under, at any depth: it
may have been renamed, dropped, widened, or added with a default since. As in DuckDB, a value is
read as the type that it was stored as and then widened: a float32 0.1 becomes 0.10000000149011612.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from penstock.errors import CatalogCorrupt, UnsupportedFeature
from penstock.lakes.format.files import InlinedPart, NestedTexts
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.types import SparkType, to_spark_json
from penstock.lakes.format.values import duck_text
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.format.values.bounds import parse as parse_type
from penstock.lakes.format.values.duck_text import CAST, SQL_LISTS, SQL_STRUCTS, Form, parse
from penstock.lakes.format.values.precision import MOST_DIGITS, float_of, nearest, rounded
from penstock.lazy import pa

Convert = Callable[[Any], Any]

_BATCH = 10_000  # rows that are Python's at a time

# Which forms a nested value may have, the likelier first (`nested_text`).
_FORMS: Mapping[NestedTexts, Mapping[str, tuple[Form, ...]]] = {
    "cast": dict.fromkeys(("list", "struct", "map"), (CAST,)),
    "sql": {
        "list": (CAST, SQL_LISTS),
        "struct": (SQL_STRUCTS, SQL_LISTS, CAST),
        "map": (CAST,),
    },
}


def batch_schema(part: InlinedPart, schema: TableSchema) -> TableSchema:
    """The columns of ``schema`` with the types that `batches` gives them.

    They are those of ``schema`` except where a promotion of a column is left to Spark.
    """
    known = {column.id: column for column in part.schema.columns}
    return TableSchema(tuple(_batch_column(known.get(c.id), c) for c in schema.columns))


def batches(
    part: InlinedPart, schema: TableSchema, system: Mapping[str, str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a part with the columns of ``schema``, which is a `batch_schema`.

    The system columns that are keys of ``system`` follow, under the names that it gives them.

    A timestamp_ns is its count of nanoseconds; every other type is as users see it
    (`penstock.lakes.format.types`).
    """
    target = arrow_schema(schema, system)
    known = {column.id: column for column in part.schema.columns}
    columns = [_Reader(known.get(c.id), c, part.texts) for c in schema.columns]
    for batch in part.rows.to_batches(_BATCH):
        arrays = [
            column.array(batch, field.type) for column, field in zip(columns, target, strict=False)
        ]
        yield pa.record_batch([*arrays, *(batch[name] for name in system or ())], target)


def arrow_schema(schema: TableSchema, system: Mapping[str, str] | None = None) -> pa.Schema:
    """The type of the batches."""
    own = [pa.field(column.name, _arrow(_spark(column))) for column in schema.columns]
    return pa.schema([*own, *(pa.field(name, pa.int64()) for name in (system or {}).values())])


def counted(column: Column) -> Column:
    """``column`` with an int64, a count of nanoseconds, for each timestamp_ns in it."""
    kind = "int64" if base_type(column.type) == "timestamp_ns" else column.type
    return replace(column, type=kind, children=tuple(counted(c) for c in column.children))


def stored_value(column: Column, text: str) -> Any:
    """A value that the catalog has as text (a default, for instance), for Arrow.

    Raises ValueError, KeyError and ArithmeticError for text that is not valid for the type.
    """
    return _leaf(column, column)(text)


def _batch_column(source: Column | None, target: Column) -> Column:
    if source is None:
        return target
    if source.type != target.type and not target.children:
        return target if _widening(source, target) else replace(target, type=source.type)
    if source.type == "struct":
        known = {child.id: child for child in source.children}
        pairs = [(known.get(child.id), child) for child in target.children]
    else:
        pairs = list(zip(source.children, target.children, strict=True))
    return replace(target, children=tuple(_batch_column(old, new) for old, new in pairs))


class _Reader:
    """The way to read one column."""

    def __init__(self, source: Column | None, target: Column, texts: NestedTexts) -> None:
        self._source = source
        self._target = target
        self._default = default_value(target) if source is None else None
        self._convert = _identity if source is None else _from_stored(source, target, texts)

    def array(self, batch: pa.RecordBatch, kind: pa.DataType) -> pa.Array:
        if self._source is None:
            return pa.array([self._default] * batch.num_rows, kind)
        stored = batch[str(self._source.id)]
        try:
            if self._convert is _identity:
                return stored.cast(kind)
            values = stored.to_pylist()
            converted = [None if value is None else self._convert(value) for value in values]
            return pa.array(converted, kind)
        except (ValueError, KeyError, ArithmeticError, pa.ArrowInvalid) as error:
            raise CatalogCorrupt(
                f"an inlined value of column {self._source.name!r} is not a valid "
                f"{self._source.type}: {error}",
                hint="correct the value in the catalog, or restore it from a backup",
                data={"column": self._source.name, "type": self._source.type},
            ) from error


def _identity(value: Any) -> Any:
    return value


def _from_stored(source: Column, target: Column, texts: NestedTexts) -> Convert:
    forms = _FORMS[texts].get(source.type)
    if forms is None:
        plain = base_type(source.type) in _AS_STORED and source.type == target.type
        return _identity if plain else _leaf(source, target)
    inside = _inside(source, target)
    return lambda value: inside(parse(value, source, forms))


def _inside(source: Column, target: Column) -> Convert:
    """Convert a part of a parsed value; NULL stays NULL."""
    nested = _NESTED.get(source.type)
    convert = _leaf(source, target) if nested is None else nested(source, target)
    return lambda tree: None if tree is None else convert(tree)


def _list(source: Column, target: Column) -> Convert:
    element = _inside(source.children[0], target.children[0])
    return lambda tree: [element(item) for item in tree]


def _map(source: Column, target: Column) -> Convert:
    key, value = (_inside(s, t) for s, t in zip(source.children, target.children, strict=True))
    return lambda tree: [(key(k), value(v)) for k, v in tree]


def _struct(source: Column, target: Column) -> Convert:
    places = {child.id: place for place, child in enumerate(source.children)}
    fields: list[tuple[str, Convert]] = []
    for child in target.children:
        if child.id in places:
            place = places[child.id]
            fields.append((child.name, _at(place, _inside(source.children[place], child))))
        else:
            fields.append((child.name, _always(default_value(child))))
    return lambda tree: {name: convert(tree) for name, convert in fields}


def _at(place: int, convert: Convert) -> Convert:
    return lambda tree: convert(tree[place])


def _always(value: Any) -> Convert:
    return lambda _: value


_NESTED: Mapping[str, Callable[[Column, Column], Convert]] = {
    "list": _list,
    "map": _map,
    "struct": _struct,
}


def default_value(column: Column) -> Any:
    """The value of a column in rows that are older than it."""
    if column.initial_default is None or column.children:
        return None
    try:
        return _leaf(column, column)(column.initial_default)
    except (ValueError, KeyError, ArithmeticError) as error:
        raise CatalogCorrupt(
            f"the initial default of column {column.name!r} is not a valid {column.type}: {error}",
            hint="correct the value in the catalog, or restore it from a backup",
            data={"column": column.name, "type": column.type},
        ) from error


def _leaf(source: Column, target: Column) -> Convert:
    """Return how a column's stored values, text or Python values, become values for Arrow."""
    read = _READ.get(base_type(source.type))
    if read is None:
        raise UnsupportedFeature(
            f"column {target.name!r} has inlined values of type {source.type}, which this version "
            "does not read",
            hint="flush them with DuckDB: CALL ducklake_flush_inlined_data('lake')",
            data={"column": target.name, "type": source.type},
        )
    widen = _widening(source, target)
    if widen is None:
        raise UnsupportedFeature(
            f"column {target.name!r} was {source.type} and is {target.type}, which this version "
            "does not read from inlined rows",
            hint="flush them with DuckDB: CALL ducklake_flush_inlined_data('lake')",
            data={"column": target.name, "type": target.type},
        )
    return read if widen is _identity else lambda value: widen(read(value))


def _widening(source: Column, target: Column) -> Convert | None:
    """Return how a value of one type becomes a value of the other. A default keeps the text that it
    had under an earlier type, so even a decimal of the same type may have to be rounded.
    """
    was, now = base_type(source.type), base_type(target.type)
    if now == "decimal" and was == now:
        return _rounded(parse_type(target.type).scale or 0)
    if was == now:
        return _identity
    if was == "decimal" and now in _FLOATS:
        digits = parse_type(source.type)
        if (digits.precision or 0) > MOST_DIGITS:
            return None
        return float_of(digits.scale or 0, now)
    if was in _SMALL and now in _FLOATS:
        return lambda value: nearest(value, now)
    return next((f for olds, news, f in _WIDENED if was in olds and now in news), None)


def _rounded(scale: int) -> Convert:
    def convert(value: Decimal) -> Decimal:
        if value.as_tuple().exponent >= -scale:  # type: ignore[operator] # no NaN among decimals
            return value
        return rounded(value, scale)

    return convert


def _boolean(value: Any) -> bool:
    return value if isinstance(value, bool) else duck_text.boolean(value)


def _float32(value: Any) -> float:
    if isinstance(value, str) and value.lstrip("-").isdigit():  # a default of a former integer
        return nearest(int(value), "float32")
    single: float = struct.unpack("f", struct.pack("f", float(value)))[0]
    return single


def _blob(value: Any) -> bytes:
    return value if isinstance(value, bytes) else duck_text.blob(value)


def _wide(value: Any) -> Decimal:
    number = int(value)
    if abs(number) >= 10**38:
        raise UnsupportedFeature(
            f"the inlined value {value} has more than the 38 digits of Spark's decimals",
            hint="read this column with DuckDB",
            data={"value": str(value)},
        )
    return Decimal(number)


_FLOATS = frozenset({"float32", "float64"})
_SMALL = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_MOMENTS = frozenset({"timestamp", "timestamp_s", "timestamp_ms"})

# Stored in the Arrow type of the same values, which needs no conversion by Python.
_AS_STORED = (_SMALL - {"uint64"}) | {"boolean", "float64", "varchar", "json", "blob"}

_READ: Mapping[str, Convert] = {
    "boolean": _boolean,
    **dict.fromkeys(_SMALL, int),
    "int128": _wide,
    "uint128": _wide,
    "float32": _float32,
    "float64": float,
    "decimal": Decimal,
    "date": duck_text.days,
    "time": str,
    "time_ns": str,
    "timetz": str,
    **dict.fromkeys((*_MOMENTS, "timestamptz"), duck_text.micros),
    "timestamp_ns": duck_text.nanos,
    "interval": duck_text.interval,
    "varchar": str,
    "json": str,
    "uuid": str.lower,
    "blob": _blob,
}


def _midnight(days: int) -> int:
    return duck_text.scaled(days, duck_text.DATE_LIMIT, 86_400_000_000)


def _to_nanos(micros: int) -> int:
    return duck_text.scaled(micros, duck_text.MOMENT_LIMIT, 1000)


_INTS = _SMALL | {"int128", "uint128"}
_WIDENED: tuple[tuple[frozenset[str], frozenset[str], Convert], ...] = (
    (_INTS | {"boolean"}, _SMALL, int),
    (_INTS | {"boolean"}, frozenset({"int128", "uint128", "decimal"}), Decimal),
    (_INTS | {"float32", "boolean"}, frozenset({"float32", "float64"}), float),
    (frozenset({"date"}), _MOMENTS, _midnight),
    (frozenset({"date"}), frozenset({"timestamp_ns"}), lambda days: _to_nanos(_midnight(days))),
    (_MOMENTS, _MOMENTS, _identity),
    (_MOMENTS, frozenset({"timestamp_ns"}), _to_nanos),
    (frozenset({"varchar", "json"}), frozenset({"varchar", "json"}), _identity),
)


def _spark(column: Column) -> SparkType:
    return to_spark_json(counted(column))


def _arrow(spark: SparkType) -> pa.DataType:
    if isinstance(spark, dict):
        return _ARROW_NESTED[spark["type"]](spark)
    if spark.startswith("decimal("):
        precision, scale = spark.removeprefix("decimal(").removesuffix(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    if spark in _ARROW_MOMENTS:
        return pa.timestamp("us", _ARROW_MOMENTS[spark])
    return getattr(pa, _ARROW.get(spark, "null"))()


_ARROW = {
    "boolean": "bool_",
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "date": "date32",
    "string": "string",
    "binary": "binary",
}

_ARROW_MOMENTS = {"timestamp_ntz": None, "timestamp": "UTC"}

_ARROW_NESTED: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "struct": lambda spark: pa.struct(
        [pa.field(field["name"], _arrow(field["type"])) for field in spark["fields"]]
    ),
    "array": lambda spark: pa.list_(_arrow(spark["elementType"])),
    "map": lambda spark: pa.map_(_arrow(spark["keyType"]), _arrow(spark["valueType"])),
}
