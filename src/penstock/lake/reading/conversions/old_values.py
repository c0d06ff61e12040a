"""Converting the values of a column in a file to those of the table's present column.

The two have the same id and the same position in their schemas; names, types and fields may differ
at any depth. In files that are older than a column its value is ``initial_default``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import CatalogCorrupt, UnsupportedFeature
from penstock.lake.format.schema import Column, TableSchema
from penstock.lake.format.values import duck_text
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.conversions.spark_types import file_schema, spark_type
from penstock.lake.reading.conversions.stored_values import (
    NANOSECONDS_IN_UTC,
    READERS,
    moment,
    without_nanoseconds,
    without_nanoseconds_in_utc,
)
from penstock.lake.reading.conversions.widening import promoted
from penstock.spark.functions import fn

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
        """Return whether the values are the same, whatever the names inside."""
        if self.is_lacking or self.old.type != self.new.type:
            return False
        return base_type(self.new.type) not in READERS and all(c.is_plain for c in self.inside())

    def inside(self) -> list[_Pair]:
        return [
            _Pair(old, new, self.lacks, f"{self.path}.{new.name}")
            for old, new in zip(self.old.children, self.new.children, strict=True)
        ]


def is_as_read(old: Column, new: Column, lacks: frozenset[int]) -> bool:
    """Return whether the file's value needs no conversion: creating an expression takes time."""
    return old == new and _Pair(old, new, lacks, new.name).is_plain


def from_old(name: str, old: Column, new: Column, lacks: frozenset[int]) -> SparkColumn:
    """The value of column ``new`` from the column ``name`` (quoted) in the file.

    A cast first changes the inner names to the table's, and makes Spark read the whole column: a
    struct that is read in part loses its id, and is NULL throughout where the file has another name
    for it (measured, 4.3).
    """
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
    fields = [_part(value.getField(p.old.name), p).alias(p.new.name) for p in pair.inside()]
    return fn.when(value.isNotNull(), fn.struct(*fields))


def _part(value: SparkColumn, pair: _Pair) -> SparkColumn:
    """One inner value, with the table's names."""
    part = _value(value, pair)
    if pair.is_plain and pair.old.children and pair.old != pair.new:
        return part.cast(spark_type(_without_ids(pair.new)))
    return part


def _in_list(value: SparkColumn, pair: _Pair) -> SparkColumn:
    (element,) = pair.inside()
    return fn.transform(value, lambda item: _part(item, element))


def _in_map(value: SparkColumn, pair: _Pair) -> SparkColumn:
    key, item = pair.inside()
    return fn.map_from_entries(
        fn.transform(
            fn.map_entries(value),
            lambda entry: fn.struct(
                _part(entry["key"], key).alias("key"), _part(entry["value"], item).alias("value")
            ),
        )
    )


# Files with finer values than the column's: they are converted to what the column holds.
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


def initial_value(column: Column) -> SparkColumn:
    """The initial default, which is DuckDB's text of a value, as users see it.

    Raises UnsupportedFeature for types whose text only DuckDB understands, CatalogCorrupt for text
    that is not valid for the column's type.
    """
    text = column.initial_default
    if text is None:
        raise ValueError(f"column {column.name} has no initial default")
    read = _READ.get(base_type(column.type))
    if read is None:
        raise UnsupportedFeature(
            f"column {column.name!r} is {column.type} and has {text!r} in older files, "
            "which this version does not read",
            hint="rewrite the table's files with DuckDB, or read an earlier snapshot",
            data={"column": column.name, "type": column.type},
        )
    try:
        return read(text).cast(spark_type(column))
    except (ValueError, KeyError) as error:
        raise CatalogCorrupt(
            f"the initial default {text!r} of column {column.name!r} is not a valid {column.type}",
            hint="look at the row of ducklake_column",
            data={"column": column.name, "type": column.type},
        ) from error


def _literal(convert: Callable[[str], object]) -> Callable[[str], SparkColumn]:
    def read(text: str) -> SparkColumn:
        return fn.lit(convert(text))

    return read


def _number(text: str) -> SparkColumn:
    """Use Spark's cast of the text, which is exact; text that is not a number is refused before."""
    float(text)
    return fn.lit(text)


def _date(text: str) -> SparkColumn:
    return fn.date_from_unix_date(fn.lit(duck_text.days(text)))


def _timestamp(text: str) -> SparkColumn:
    return moment(fn.lit(duck_text.micros(text)).cast("long"))


def _timestamptz(text: str) -> SparkColumn:
    return fn.timestamp_micros(fn.lit(duck_text.micros(text)))


def _interval(text: str) -> SparkColumn:
    return fn.struct(*(fn.lit(n).alias(part) for part, n in duck_text.interval(text).items()))


def _blob(text: str) -> SparkColumn:
    return fn.lit(bytearray(duck_text.blob(text)))


_NUMBERS = (
    *("int8", "int16", "int32", "int64", "int128"),
    *("uint8", "uint16", "uint32", "uint64", "uint128", "decimal"),
    *("float32", "float64"),
)
_READ: Mapping[str, Callable[[str], SparkColumn]] = {
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(("varchar", "json", "uuid", "time", "time_ns", "timetz"), _literal(str)),
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"), _timestamp),
    "timestamptz": _timestamptz,
    "boolean": _literal(duck_text.boolean),
    "date": _date,
    "interval": _interval,
    "blob": _blob,
}
