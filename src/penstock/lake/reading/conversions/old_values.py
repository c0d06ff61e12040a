"""Values of a column as a file holds it, as those of the column that the table has.

The two have the same place in their schemas, and the same ids; names, types and what is there
may differ at any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.conversions.defaults import initial_value
from penstock.lake.reading.conversions.file_kinds import NANOSECONDS_IN_UTC
from penstock.lake.reading.conversions.promotions import promoted
from penstock.lake.reading.conversions.spark_types import file_schema, spark_type
from penstock.lake.reading.conversions.stored_values import (
    READERS,
    without_nanoseconds,
    without_nanoseconds_in_utc,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql.types import DataType

    from penstock.lake.reading.conversions.stored_values import Convert


@dataclass(frozen=True, slots=True)
class _Pair:
    """A column in the file and in the table; ``lacks`` are ids that the file does not have."""

    old: Column
    new: Column
    lacks: frozenset[int]
    path: str

    @property
    def is_lacking(self) -> bool:
        return self.new.id in self.lacks

    @property
    def is_plain(self) -> bool:
        """Whether the values are the same, whatever the names inside."""
        if self.is_lacking or self.old.type != self.new.type:
            return False
        return base_type(self.new.type) not in READERS and all(c.is_plain for c in self.inside())

    def inside(self) -> list[_Pair]:
        return [
            _Pair(old, new, self.lacks, f"{self.path}.{new.name}")
            for old, new in zip(self.old.children, self.new.children, strict=True)
        ]


def is_as_read(old: Column, new: Column, lacks: frozenset[int]) -> bool:
    """Whether the file's value is the column's: an expression less to make, which takes time."""
    return old == new and _Pair(old, new, lacks, new.name).is_plain


def from_old(name: str, old: Column, new: Column, lacks: frozenset[int]) -> SparkColumn:
    """The value of column ``new`` from the one called ``name`` (quoted) in the file.

    Names inside become the table's by a cast first, which also has Spark read the column whole: a
    struct of which it reads some fields loses its id, and is all NULL where the file calls it
    something else (measured, 4.3).
    """
    from pyspark.sql import functions as fn

    source = fn.col(name)
    if old.children and old != new:
        old = _named_as(old, new)
        source = source.cast(_stored_type(old))
    pair = _Pair(old, new, lacks, new.name)
    value = _value(source, pair)
    if new.children:  # its names, by position, and all of it nullable: literals inside are not
        return value.cast(spark_type(_without_ids(new)))
    return value


def _value(value: SparkColumn, pair: _Pair) -> SparkColumn:
    if pair.is_lacking:
        return initial_value(pair.new)
    if pair.is_plain:
        return value
    nested = _NESTED.get(pair.new.type)
    if nested is not None:
        return nested(value, pair)
    kinds = base_type(pair.old.type), base_type(pair.new.type)
    reader = _COARSER.get(kinds) or READERS.get(kinds[0])
    read = value if reader is None else reader(value, pair.path)
    if pair.old.type == pair.new.type:
        return read
    return promoted(read, pair.old.type, pair.new, spark_type(pair.new), path=pair.path)


def _in_struct(value: SparkColumn, pair: _Pair) -> SparkColumn:
    from pyspark.sql import functions as fn

    fields = [_part(value.getField(p.old.name), p).alias(p.new.name) for p in pair.inside()]
    return fn.when(value.isNotNull(), fn.struct(*fields))


def _part(value: SparkColumn, pair: _Pair) -> SparkColumn:
    """One value inside, by name the table's."""
    found = _value(value, pair)
    if pair.is_plain and pair.old.children and pair.old != pair.new:
        return found.cast(spark_type(_without_ids(pair.new)))
    return found


def _in_list(value: SparkColumn, pair: _Pair) -> SparkColumn:
    from pyspark.sql import functions as fn

    (element,) = pair.inside()
    return fn.transform(value, lambda item: _part(item, element))


def _in_map(value: SparkColumn, pair: _Pair) -> SparkColumn:
    from pyspark.sql import functions as fn

    key, item = pair.inside()
    return fn.map_from_entries(
        fn.transform(
            fn.map_entries(value),
            lambda entry: fn.struct(
                _part(entry["key"], key).alias("key"), _part(entry["value"], item).alias("value")
            ),
        )
    )


# Of files whose values the column holds without a part of them: read at once as what it holds.
_COARSER: Mapping[tuple[str, str], Convert] = {
    ("timestamp_ns", "timestamp"): without_nanoseconds,
    (NANOSECONDS_IN_UTC, "timestamptz"): without_nanoseconds_in_utc,
}

_NESTED: Mapping[str, Callable[[SparkColumn, _Pair], SparkColumn]] = {
    "struct": _in_struct,
    "list": _in_list,
    "map": _in_map,
}


def _named_as(old: Column, new: Column) -> Column:
    pairs = zip(old.children, new.children, strict=True)
    return replace(old, name=new.name, children=tuple(_named_as(a, b) for a, b in pairs))


def _stored_type(column: Column) -> DataType:
    return file_schema(TableSchema((column,)), ids=False)[0].dataType


def _without_ids(column: Column) -> Column:
    return replace(column, id=None, children=tuple(_without_ids(c) for c in column.children))
