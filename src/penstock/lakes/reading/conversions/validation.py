"""Reject values as rows are written: NULL in required fields, and strings of invalid UTF-8.

Reject invalid UTF-8 in string columns as rows are written.

Spark converts bytes to strings without a check (``CAST(blob AS STRING)``, ``blob || 'a'``, files of
other writers). DuckDB cannot read the column of a data file with such a string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from penstock.lakes.format.schema import Column
from penstock.lakes.format.values.bounds import base_type
from penstock.lazy import pa, pc
from penstock.spark.functions import fn

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn


def required_fields(column: Column, path: str = "") -> Iterator[str]:
    """The paths of the fields inside of a column that take no NULL."""
    place = f"{path}.{column.name}" if path else column.name
    for child in column.children:
        if not child.nullable:
            yield f"{place}.{child.name}"
        yield from required_fields(child, place)


def lacks_required(value: SparkColumn, column: Column) -> SparkColumn | None:
    """A condition: ``value`` has a NULL where a field inside takes none; ``None`` without such."""
    conditions: list[SparkColumn] = []
    for child in column.children:
        inside = _FIELDS[column.type](value, child)
        condition = _lacks(child)
        if condition is not None:
            conditions.append(inside(condition))
    return reduce(lambda a, b: a | b, conditions) if conditions else None


Condition = Callable[["SparkColumn"], "SparkColumn"]


def _lacks(column: Column) -> Condition | None:
    """The condition of one field, or of one element; ``None`` where all of it may be NULL."""
    if column.nullable and next(required_fields(column), None) is None:
        return None

    def condition(value: SparkColumn) -> SparkColumn:
        inner = lacks_required(value, column)
        if column.nullable:
            assert inner is not None, "a field inside of it is required"
            return inner
        return value.isNull() if inner is None else value.isNull() | inner

    return condition


def _in_struct(value: SparkColumn, child: Column) -> Callable[[Condition], SparkColumn]:
    return lambda condition: value.isNotNull() & condition(value.getField(child.name))


def _in_list(value: SparkColumn, _: Column) -> Callable[[Condition], SparkColumn]:
    return lambda condition: fn.coalesce(fn.exists(value, condition), fn.lit(False))


def _in_map(value: SparkColumn, child: Column) -> Callable[[Condition], SparkColumn]:
    part = fn.map_keys(value) if child.name == "key" else fn.map_values(value)
    return _in_list(part, child)


_FIELDS: dict[str, Callable[[Any, Column], Callable[[Condition], Any]]] = {
    "struct": _in_struct,
    "list": _in_list,
    "map": _in_map,
}


def missing_field(values: pa.ChunkedArray, column: Column) -> str | None:
    """The path of a field that takes no NULL and has one in these values; ``None`` without."""
    if next(required_fields(column), None) is None:
        return None
    paths = (_missing(chunk, column, column.name) for chunk in values.chunks)
    return next((path for path in paths if path is not None), None)


def _missing(values: pa.Array, column: Column, path: str) -> str | None:
    whole = values.take(pc.indices_nonzero(values.is_valid()))  # a copy: it is no slice of another
    for position, child in enumerate(column.children):
        inner = _PARTS[column.type](whole, position)
        place = f"{path}.{child.name}"
        if not child.nullable and inner.null_count:
            return place
        below = _missing(inner, child, place) if child.children else None
        if below is not None:
            return below
    return None


_PARTS: dict[str, Callable[[Any, int], Any]] = {
    "struct": lambda values, position: values.field(position),
    "list": lambda values, _: values.flatten(),
    "map": lambda values, position: values.items if position else values.keys,
}


_TEXT = frozenset({"varchar", "json"})
_APART = ","  # joins texts that are checked together: it is never part of a longer character
_NEXT = "decode(x, 'UTF-8') or another charset makes text of a BLOB, hex(x) shows it"


def checked(value: SparkColumn, column: Column) -> SparkColumn:
    """``value``, which fails the write where a string in it is not valid UTF-8.

    It costs a pass over the bytes of strings, and nothing for other columns.
    """
    valid = _valid(value, column)
    if valid is None:
        return value
    said = f"column {column.name} is text, and a row has bytes that are not valid UTF-8"
    cause: SparkColumn = fn.lit(f"{said}: {_NEXT}")
    if not column.children:
        shown = fn.substring(fn.hex(value), 1, 64)
        cause = fn.concat(fn.lit(f"{said}, X'"), shown, fn.lit(f"': {_NEXT}"))
    return fn.when(fn.coalesce(valid, fn.lit(True)), value).otherwise(fn.raise_error(cause))


def _valid(value: SparkColumn, column: Column) -> SparkColumn | None:
    """Return whether all strings in ``value`` are valid (NULL means yes, too); ``None`` if it has
    none.
    """
    if not any(base_type(part.type) in _TEXT for part in column.walk()):
        return None
    inside = _INSIDE.get(column.type)
    return fn.is_valid_utf8(value) if inside is None else inside(value, column)


def _all(parts: list[SparkColumn | None]) -> SparkColumn | None:
    known = [fn.coalesce(part, fn.lit(True)) for part in parts if part is not None]
    return reduce(lambda a, b: a & b, known) if known else None


def _text_in_list(value: SparkColumn, column: Column) -> SparkColumn | None:
    """Join the values: calling a function for each of them is slow."""
    element = column.children[0]
    if not element.children:
        return fn.is_valid_utf8(fn.array_join(value, _APART))

    def valid(item: SparkColumn) -> SparkColumn:
        is_valid = _valid(item, element)
        assert is_valid is not None, "there is text in it"
        return fn.coalesce(is_valid, fn.lit(True))

    return fn.forall(value, valid)


def _text_in_map(value: SparkColumn, column: Column) -> SparkColumn | None:
    key, item = column.children
    keys = _valid(fn.map_keys(value), replace(column, type="list", children=(key,)))
    items = _valid(fn.map_values(value), replace(column, type="list", children=(item,)))
    return _all([keys, items])


_INSIDE: Mapping[str, Callable[[SparkColumn, Column], SparkColumn | None]] = {
    "list": _text_in_list,
    "map": _text_in_map,
    "struct": lambda value, column: _all(
        [_valid(value.getField(child.name), child) for child in column.children]
    ),
}
