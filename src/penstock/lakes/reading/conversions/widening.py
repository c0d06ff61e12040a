"""Types that a column may be changed to, and the conversion of values of the older type.

All pairs of types were tried (DuckDB 1.5.5). Of those that DuckDB changes, these are refused:

* to a finer type (integers and decimals to floats and to other scales, dates to timestamps):
  DuckDB compares older rows in their own type, so that ``c = 1.4`` is true for 1;
* changes after which it cannot read all values: booleans to integers once they are inlined,
  dates to milliseconds, all times to nanoseconds, 128 bits to decimals;
* changes to JSON or VARIANT.

Where DuckDB made such a change the rows can be read nevertheless (`promoted`). It promotes more
than the format's list says: booleans to integers, integers to decimals and floats, dates to
timestamps, nearly everything to ``json`` and ``variant``. Values are converted as DuckDB does for
old files; pairs that are missing in the tables below are refused.

Converting the values of a column in a file to those of the table's present column.

The two have the same id and the same position in their schemas; names, types and fields may differ
at any depth. In files that are older than a column its value is ``initial_default``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import CatalogCorrupt, UnsupportedFeature
from penstock.lakes.format.schema import Column, TableSchema, can_widen, wider_types
from penstock.lakes.format.values import duck_text, precision
from penstock.lakes.format.values.bounds import base_type, parse
from penstock.lakes.reading.conversions.spark_types import (
    INFINITE,
    NANOSECONDS_IN_UTC,
    READERS,
    file_schema,
    moment,
    rounded,
    spark_type,
    without_nanoseconds,
    without_nanoseconds_in_utc,
)
from penstock.spark.functions import fn

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql.types import DataType

    from penstock.lakes.reading.conversions.spark_types import Convert

    Promote = Callable[[SparkColumn, str, DataType], SparkColumn]


# Digits that an integer type may need, for decimals that are to hold it.
DIGITS: Mapping[str, int] = {
    "int8": 3,
    "int16": 5,
    "int32": 10,
    "int64": 19,
    "uint8": 3,
    "uint16": 5,
    "uint32": 10,
    "uint64": 20,
}
# Besides the format's own promotions (`can_widen`), and those to decimals.
_MORE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), ("int128",)),
    "uint8": ("int16", "int32", "int64", "int128", "uint128"),
    "uint16": ("int32", "int64", "int128", "uint128"),
    "uint32": ("int64", "int128", "uint128"),
    "uint64": ("int128", "uint128"),
    "date": ("timestamptz",),
    "timestamp": ("timestamptz",),
    "timestamp_s": ("timestamp", "timestamp_ms"),
    "timestamp_ms": ("timestamp",),
}


def can_become(old: str, new: str) -> bool:
    """Return whether a column of type ``old`` may be changed to the other type ``new``."""
    if can_widen(old, new) or new in _MORE.get(old, ()):
        return True
    if base_type(new) != "decimal" or old == new or not fits_decimal(old, new):
        return False
    return (parse(old).scale or 0) == parse(new).scale


def can_become_text(old: str) -> str:
    """The types that `can_become` allows, for a message; empty for none."""
    known = [*wider_types(old), *_MORE.get(old, ())]
    if old in DIGITS:
        known.append(f"a decimal of {DIGITS[old]} digits or more, none after the point")
    if base_type(old) == "decimal":
        known.append("a decimal with more digits before the point and as many after it")
    return " or ".join(known)


def fits_decimal(old: str, new: str) -> bool:
    """Return whether a decimal type holds all values of an integer type or another decimal."""
    wanted = "decimal(20,0)" if new == "uint64" else new
    target = parse(wanted)
    if target.precision is None or target.scale is None:
        return False
    return (parse(old).scale or 0) <= target.scale and _whole(old) <= _whole(wanted)


def _whole(kind: str) -> int:
    """Digits before the point; many of a type that is not a number."""
    parsed = parse(kind)
    if parsed.precision is not None and parsed.scale is not None:
        return parsed.precision - parsed.scale
    return DIGITS.get(base_type(kind), 99)


_INTEGERS = (
    *("int8", "int16", "int32", "int64", "int128"),
    *("uint8", "uint16", "uint32", "uint64", "uint128"),
)
_MOMENTS = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "int96", "milliseconds")
_LAST_DAY = (1 << 31) - 1  # the date "infinity"
_FLOATS = ("float32", "float64")


def promoted(
    value: SparkColumn, old: str, new: Column, target: DataType, *, path: str
) -> SparkColumn:
    """``value`` of the old type converted to ``new``; ``target`` is that type in Spark.

    Raises UnsupportedFeature naming the column and both types.
    """
    key = (base_type(old), base_type(new.type))
    promote = _same if key[0] == key[1] and key[0] != "decimal" else _PROMOTIONS.get(key)
    # A decimal with more digits is not converted to a float as by DuckDB.
    if promote is None or (
        (parse(old).precision or 0) > precision.MOST_DIGITS and key[1] in _FLOATS
    ):
        raise UnsupportedFeature(
            f"column {path!r} is {new.type}, and a file of it has {old}, "
            "which this version does not convert",
            hint="read an earlier snapshot, or rewrite the table's files with DuckDB",
            data={"column": path, "type": new.type, "file": old},
        )
    return promote(value, old, target)


def _same(value: SparkColumn, old: str, target: DataType) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    return value


def _cast(value: SparkColumn, old: str, target: DataType) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    return value.cast(target)


def _text(value: SparkColumn, old: str, target: DataType) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    return value.cast("string")


def _day(value: SparkColumn, old: str, target: DataType) -> SparkColumn:  # noqa: ARG001 - of the table's shape
    """Midnight of a date, infinite ones too, without a zone or in the session's, as in DuckDB."""
    day = fn.unix_date(value)
    infinite = fn.abs(day) == _LAST_DAY
    finite = fn.when(~infinite, value).cast(target)
    forever = moment(fn.signum(day).cast("long") * fn.lit(INFINITE)).cast(target)
    return fn.when(infinite, forever).otherwise(finite)


def _in_units(unit: int) -> Promote:
    def promote(value: SparkColumn, old: str, target: DataType) -> SparkColumn:  # noqa: ARG001 - of the table's shape
        return rounded(value, unit)

    return promote


# Microseconds in what a type counts: files added from elsewhere hold finer times.
_UNITS = {"timestamp_s": 1_000_000, "timestamp_ms": 1000}


def _float(value: SparkColumn, old: str, target: DataType) -> SparkColumn:
    """A decimal as a float, converted as by DuckDB (`decimals`)."""
    to, scale = target.simpleString(), parse(old).scale or 0
    whole = value.cast("long")
    if not scale:
        return whole.cast(to)
    power = fn.lit(10**scale).cast("long")
    rest = (value - whole.cast("decimal(18,0)")).cast(f"decimal({scale},{scale})")
    digits = (rest * power.cast(f"decimal({scale + 1},0)")).cast("long")
    unscaled = whole * power + digits
    divisor = fn.lit(10.0**scale).cast(to)
    at_once = (unscaled.cast(to) / divisor).cast(to)
    in_parts = whole.cast(to) + (digits.cast(to) / divisor).cast(to)
    exact = precision.EXACT["float32" if to == "float" else "float64"]
    return fn.when(fn.abs(unscaled) <= exact, at_once).otherwise(in_parts)


_PROMOTIONS: Mapping[tuple[str, str], Promote] = {
    ("decimal", "decimal"): _cast,
    ("float32", "float64"): _cast,
    ("float64", "float32"): _cast,  # files hold an int128 as a double
    ("boolean", "json"): _text,
    ("decimal", "json"): _text,
    ("varchar", "json"): _same,
    ("json", "varchar"): _same,
    **{("boolean", kind): _cast for kind in _INTEGERS},
    **{
        (old, new): _cast
        for old in (*_INTEGERS, "decimal")
        for new in (*_INTEGERS, "decimal", "float32", "float64")
        if old != new and not (old.endswith("128") and new == "decimal")
    },
    **{("decimal", new): _float for new in _FLOATS},
    **{(kind, "json"): _text for kind in _INTEGERS if not kind.endswith("128")},
    **{("date", kind): _day for kind in (*_MOMENTS, "timestamptz")},
    **{(old, new): _same for old in _MOMENTS for new in _MOMENTS if old != new},
    **{(old, new): _in_units(_UNITS[new]) for old in _MOMENTS for new in _UNITS if old != new},
    **{(old, "timestamptz"): _cast for old in _MOMENTS},
    (NANOSECONDS_IN_UTC, "timestamptz"): _same,  # as it is read
    **{
        (old, "variant"): _cast
        for old in (*_INTEGERS, "boolean", "decimal", "float32", "float64", *_MOMENTS)
        if not old.endswith("128") and old != "timestamp_ns"
    },
    **{(old, "variant"): _cast for old in ("varchar", "blob", "date", "timestamptz")},
}


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
        source = source.cast(file_schema(TableSchema((old,)), ids=False)[0].dataType)
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
