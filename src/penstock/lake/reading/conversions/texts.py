"""Reject invalid UTF-8 in string columns as rows are written.

Spark converts bytes to strings without a check (``CAST(blob AS STRING)``, ``blob || 'a'``, files of
other writers). DuckDB cannot read the column of a data file with such a string.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from penstock.lake.format.schema import Column
from penstock.lake.format.values.bounds import base_type
from penstock.spark.functions import fn

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

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


def _in_struct(value: SparkColumn, column: Column) -> SparkColumn | None:
    return _all([_valid(value.getField(child.name), child) for child in column.children])


def _in_list(value: SparkColumn, column: Column) -> SparkColumn | None:
    """Join the values: calling a function for each of them is slow."""
    element = column.children[0]
    if not element.children:
        return fn.is_valid_utf8(fn.array_join(value, _APART))

    def valid(item: SparkColumn) -> SparkColumn:
        is_valid = _valid(item, element)
        assert is_valid is not None, "there is text in it"
        return fn.coalesce(is_valid, fn.lit(True))

    return fn.forall(value, valid)


def _in_map(value: SparkColumn, column: Column) -> SparkColumn | None:
    key, item = column.children
    keys = _valid(fn.map_keys(value), replace(column, type="list", children=(key,)))
    items = _valid(fn.map_values(value), replace(column, type="list", children=(item,)))
    return _all([keys, items])


_INSIDE: Mapping[str, Callable[[SparkColumn, Column], SparkColumn | None]] = {
    "list": _in_list,
    "map": _in_map,
    "struct": _in_struct,
}
