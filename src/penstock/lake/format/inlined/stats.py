"""Statistics of rows that go into the catalog, from the values as they are stored there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from penstock.lake.format.files import ColumnStats
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.values.bounds import base_type, bound_from_text, bound_to_text
from penstock.lake.format.values.nested_text import CAST, parse

if TYPE_CHECKING:
    import pyarrow as pa

_FLOATS = frozenset({"float32", "float64"})


def statistics(values: pa.Table, schema: TableSchema) -> tuple[ColumnStats, ...]:
    """Of each leaf column; ``values`` has the columns by field id, as `inlined.text` stores them.

    As everywhere, a bound that could be wrong is not given.
    """
    found: list[ColumnStats] = []
    for column in schema.columns:
        stored = values[str(column.id)].to_pylist()
        if not column.children:
            found.append(_leaf(column, stored))
            continue
        trees = [None if text is None else parse(text, column, (CAST,)) for text in stored]
        found += [_leaf(leaf, leaves) for leaf, leaves in _leaves(column, trees)]
    return tuple(found)


def _leaves(column: Column, trees: list[Any]) -> Iterator[tuple[Column, list[Any]]]:
    """The leaf columns inside with their texts; a NULL above a leaf counts as NULL there."""
    if not column.children:
        yield column, trees
        return
    for child, inner in zip(column.children, _INSIDE[column.type](column, trees), strict=True):
        yield from _leaves(child, inner)


def _in_struct(column: Column, trees: list[Any]) -> list[list[Any]]:
    return [
        [None if tree is None else tree[at] for tree in trees] for at in range(len(column.children))
    ]


def _in_list(_: Column, trees: list[Any]) -> list[list[Any]]:
    return [[item for tree in trees for item in ([None] if tree is None else tree)]]


def _in_map(_: Column, trees: list[Any]) -> list[list[Any]]:
    pairs = [pair for tree in trees for pair in ([(None, None)] if tree is None else tree)]
    return [[key for key, _ in pairs], [value for _, value in pairs]]


_INSIDE: Mapping[str, Callable[[Column, list[Any]], list[list[Any]]]] = {
    "struct": _in_struct,
    "list": _in_list,
    "map": _in_map,
}


def _leaf(column: Column, stored: list[Any]) -> ColumnStats:
    assert column.id is not None, f"column {column.name} has no id"
    values = [value for value in stored if value is not None]
    low: str | None = None
    high: str | None = None
    nan: bool | None = None
    if base_type(column.type) in _FLOATS:
        numbers = [float(value) for value in values]
        nan = any(math.isnan(number) for number in numbers)
        values = [number for number in numbers if not math.isnan(number)]
        count = len(numbers)
    else:
        count = len(values)
    texts = [_text(column.type, value) for value in values]
    known = [(bound_from_text(column.type, text), text) for text in texts if text is not None]
    if known and len(known) == len(values) and all(key is not None for key, _ in known):
        low, high = min(known)[1], max(known)[1]
    return ColumnStats(column.id, None, count, len(stored) - count, low, high, nan)


def _text(kind: str, value: Any) -> str | None:
    """The text of a bound. What is kept as text has the same one, or is none of a bound's form."""
    if isinstance(value, str):
        if base_type(kind) == "blob":
            return None
        return None if "\x00" in value else value
    return bound_to_text(kind, value)
