"""Find values that break a NOT NULL inside of structs, lists and maps: Delta's tables have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

from penstock.lake.format.schema import Column
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
