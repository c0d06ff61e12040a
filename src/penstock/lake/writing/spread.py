"""Rows spread over the partitions of a table and sorted within them, for files with narrow bounds.

Spark removes the columns that it partitions by from the files, but the format requires them there.
So it partitions by helper columns. Spark sorts the rows of a task by them, much faster by numbers
than by texts: the helper of a text is its hash, and the value is read from the file's bounds, which
prove that the file holds no other. Where they do not, the rows are written again by helpers whose
directories have the value's text in hex: no file system, locale or escaping changes it. For a value
that is too long the directory has a digest, and the value is read from the file.

``bucket(N)`` of a column is an expression of Spark, without Python or a separate pass. Spark's
``hash`` is MurmurHash3 with the seed 42, and the hash of one argument is the seed of the next; so a
first argument that hashes to 0 gives the seed 0 that the format requires. Spark mixes the last one
to three bytes of a string in its own way: the state before them is computed back from the hash, and
they are mixed in as by MurmurHash3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedFeature
from penstock.lake import storage
from penstock.lake.format.files import DataFile
from penstock.lake.format.objects import SortKey
from penstock.lake.format.partitioning import (
    PartitionKey,
    catalog_text,
    directory_names,
    hive_directory,
)
from penstock.lake.format.values.bounds import base_type, parse
from penstock.spark.functions import expr, fn
from penstock.sql.dialect import to_spark
from penstock.sql.identifiers import quoted
from penstock.sql.text import Unreadable
from penstock.sql.trust import harmless_expression

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_HELPER = "_penstock_part"
_SEGMENT = re.compile(rf"{_HELPER}(\d+)=([^/]*)")
_LONGEST = 100  # bytes of a text in a directory's name
_NULL = "__HIVE_DEFAULT_PARTITION__"  # as Spark calls the directory of a helper that is NULL


def helper_names(keys: Sequence[PartitionKey]) -> list[str]:
    return [f"{_HELPER}{at}" for at, _ in enumerate(keys)]


class ValuesNotProven(Exception):
    """A file may hold rows of several partitions: the hashes of their values are equal."""


def with_helpers(frame: DataFrame, keys: Sequence[PartitionKey], *, hashed: bool) -> DataFrame:
    """``frame``, which has the table's columns, with a helper column for each key.

    ``hashed``: texts are told apart by their hashes, see `values_of`.
    """
    helpers = zip(helper_names(keys), keys, strict=True)
    return frame.select("*", *(_helper(key, hashed).alias(name) for name, key in helpers))


def _helper(key: PartitionKey, hashed: bool) -> SparkColumn:
    """A hash, or ``v`` and the text in hex, ``h`` and its digest, ``n`` for NULL."""
    if hashed and _is_hashed(key):
        value = fn.col(quoted(key.column.name))
        return fn.when(value.isNotNull(), fn.xxhash64(value))
    text = _text(key)
    if base_type(key.column.type) not in {"varchar", "json"} or key.transform != "identity":
        marked = fn.concat(fn.lit("v"), fn.hex(text))
    else:
        short = fn.concat(fn.lit("v"), fn.hex(text))
        long = fn.concat(fn.lit("h"), fn.sha2(text.cast("binary"), 256))
        marked = fn.when(fn.octet_length(text) <= _LONGEST, short).otherwise(long)
    return fn.when(text.isNull(), fn.lit("n")).otherwise(fn.coalesce(marked, fn.lit("n")))


def _is_hashed(key: PartitionKey) -> bool:
    return base_type(key.column.type) == "varchar" and key.transform == "identity"


def _text(key: PartitionKey) -> SparkColumn:
    """The value as text. Times with a zone are converted to UTC."""
    value = fn.col(quoted(key.column.name))
    kind = base_type(key.column.type)
    if key.transform == "bucket":
        return bucket(value, key).cast("string")
    if kind == "timestamptz":
        epoch = fn.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
        value = fn.timestamp_add("MICROSECOND", fn.unix_micros(value), epoch)
    if key.transform != "identity":
        if kind == "date" and key.transform == "hour":
            value = value.cast("timestamp_ntz")
        return fn.call_function(key.transform, value).cast("string")
    if kind in {"float32", "float64"}:
        value = fn.when(value == 0, fn.lit(0).cast("double")).otherwise(value)
    text = value.cast("string")
    return fn.concat(text, fn.lit("+00")) if kind == "timestamptz" else text


def values_of(
    file: DataFile, directory: str, keys: Sequence[PartitionKey]
) -> tuple[str | None, ...]:
    """The partition values of a staged file below ``directory``, by its helper directories.

    Raises ValuesNotProven for a hash where the file's bounds are not one value, UnsupportedFeature
    for a value that no catalog can store.
    """
    texts = [text for _, text in _SEGMENT.findall(file.path[len(directory) :])]
    return tuple(_value(file, key, text) for key, text in zip(keys, texts, strict=True))


def _value(file: DataFile, key: PartitionKey, text: str) -> str | None:
    if text in {"n", _NULL}:
        return None
    name = key.column.name
    if text[0] == "v":
        value = bytes.fromhex(text[1:]).decode()
    elif text[0] == "h":
        value = storage.first_value(file.path, name)
    else:
        value = _only_value(file, key)
    if "\x00" in value:
        raise UnsupportedFeature(
            f"a value of {name} to partition by has a NUL character, which no catalog can store",
            hint="remove it from the value in the SELECT",
            data={"column": name},
        )
    return value if key.transform != "identity" else catalog_text(key.column.type, value)


def _only_value(file: DataFile, key: PartitionKey) -> str:
    """The value of all rows of a file. Spark writes the bounds of short texts in full."""
    stats = next((each for each in file.stats if each.column_id == key.column.id), None)
    if stats is None or stats.min_value is None or stats.min_value != stats.max_value:
        raise ValuesNotProven
    return stats.min_value


def hive_paths(
    directory: str,
    paths: Sequence[str],
    values: Sequence[tuple[str | None, ...]],
    keys: Sequence[PartitionKey],
    *,
    hive: bool,
) -> list[str]:
    """The new paths of the files, with or without directories named as by the real extension."""
    names = directory_names(keys)
    targets: list[str] = []
    for at, (path, own) in enumerate(zip(paths, values, strict=True)):
        folder = hive_directory(names, own) if hive else ""
        targets.append(f"{directory}/{folder}{at:05d}-{path.rsplit('/', 1)[1]}")
    return targets


def sort_columns(keys: Sequence[SortKey]) -> list[SparkColumn]:
    """The keys as Spark's sort expressions.

    NaN is above all numbers and texts are compared byte by byte, in both engines. Raises
    UnsupportedFeature naming a key that may mean something else in Spark.
    """
    return [_ordered(key) for key in keys]


def _ordered(key: SortKey) -> SparkColumn:

    value = expr(_spark_text(key))
    if key.descending:
        return value.desc_nulls_last() if key.nulls_last else value.desc_nulls_first()
    return value.asc_nulls_last() if key.nulls_last else value.asc_nulls_first()


def _spark_text(key: SortKey) -> str:
    try:
        text = to_spark(key.expression, key.dialect, expression=True)
    except (UnsupportedFeature, Unreadable) as error:
        raise UnsupportedFeature(
            f"the table is sorted by {key.expression}, which Spark may sort differently: {error}",
            hint="sort by a plain column, or set sort_on_insert to false for the table",
            data={"expression": key.expression},
        ) from error
    return harmless_expression(text, f"the sort key {key.expression}")


_MASK = 0xFFFFFFFF
_C1, _C2 = 0xCC9E2D51, 0x1B873593
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35  # of the last mix
_DIGITS_OF_LONG = 18
_Step = Callable[["SparkColumn"], "SparkColumn"]


def bucket(value: SparkColumn, key: PartitionKey) -> SparkColumn:
    """The bucket of ``value``, NULL for NULL, by the rule of `lake.format.partitioning.bucket`."""
    hashed = _HASHED.get(base_type(key.column.type), _of_number)(value, key.column.type)
    number = hashed.bitwiseAND(fn.lit(0x7FFFFFFF)) % fn.lit(key.buckets)
    return fn.when(value.isNotNull(), number)


def _of_number(value: SparkColumn, _: str) -> SparkColumn:
    return _seeded(value.cast("long"))


def _of_date(value: SparkColumn, _: str) -> SparkColumn:
    return _seeded(fn.unix_date(value).cast("long"))


def _of_float(value: SparkColumn, _: str) -> SparkColumn:
    return _seeded(value.cast("double"))


def _of_decimal(value: SparkColumn, kind: str) -> SparkColumn:
    digits = parse(kind).precision or 0
    return _seeded(value) if digits <= _DIGITS_OF_LONG else _of_text(value.cast("string"), kind)


def _of_time(unit: int) -> Callable[[SparkColumn, str], SparkColumn]:
    def hashed(value: SparkColumn, kind: str) -> SparkColumn:
        return _seeded(floor_div(micros(value, kind), unit))

    return hashed


def micros(value: SparkColumn, kind: str) -> SparkColumn:
    """Microseconds since 1970 of a time with or without a zone."""
    if base_type(kind) == "timestamptz":
        return fn.unix_micros(value)
    epoch = fn.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return fn.timestamp_diff("MICROSECOND", epoch, value)


def floor_div(value: SparkColumn, by: int) -> SparkColumn:
    if by == 1:
        return value
    return fn.call_function("div", value - fn.pmod(value, fn.lit(by)), fn.lit(by))


def _of_text(value: SparkColumn, _: str) -> SparkColumn:
    data = value.cast("binary")
    size = fn.octet_length(data)
    rest = size % 4
    whole = _seeded(fn.substring(data, fn.lit(1), size - rest))
    tail = fn.conv(fn.hex(fn.substring(data, size - rest + 1, rest)), 16, 10).cast("long")
    word = fn.when(rest == 1, tail).when(rest == 2, _swapped(tail, 1)).otherwise(_swapped(tail, 2))
    mixed = _chain(
        _unmixed(whole.bitwiseAND(fn.lit(_MASK)), (size - rest).cast("long"))
        .bitwiseXOR(_chain(word, _times(_C1), _rotated, _times(_C2)))
        .bitwiseXOR(size.cast("long")),
        *(_shifted(16), _times(_F1), _shifted(13), _times(_F2), _shifted(16)),
    )
    return fn.when(rest == 0, whole.cast("long")).otherwise(mixed)


def _unmixed(hashed: SparkColumn, size: SparkColumn) -> SparkColumn:
    """The state from which the last mix made ``hashed``."""
    back = _chain(
        hashed,
        *(_shifted(16), _times(pow(_F2, -1, 1 << 32)), _shifted(13, 26)),
        *(_times(pow(_F1, -1, 1 << 32)), _shifted(16)),
    )
    return back.bitwiseXOR(size)


def _swapped(number: SparkColumn, more: int) -> SparkColumn:
    """A number of ``more`` + 1 bytes, at most three, with its bytes reversed."""

    def swap(n: SparkColumn) -> SparkColumn:
        first = fn.shiftleft(n.bitwiseAND(fn.lit(0xFF)), 8 * more)
        last = fn.shiftright(n, 8 * more).bitwiseAND(fn.lit(0xFF))
        middle = n.bitwiseAND(fn.lit(0xFF00)) if more == 2 else fn.lit(0).cast("long")
        return first.bitwiseOR(middle).bitwiseOR(last)

    return _chain(number, swap)


def _chain(value: SparkColumn, *steps: _Step) -> SparkColumn:
    """The steps in sequence; each names its input once, else the expression would explode."""
    for step in steps:
        value = fn.element_at(fn.transform(fn.array(value), step), 1)
    return value


def _shifted(*by: int) -> _Step:
    """``x ^ x >> n`` for each n."""

    def step(x: SparkColumn) -> SparkColumn:
        mixed = x
        for shift in by:
            mixed = mixed.bitwiseXOR(fn.shiftright(x, shift))
        return mixed

    return step


def _times(factor: int) -> _Step:
    """Multiply by ``factor``, 32 bits, in two halves so that no product exceeds 64 bits."""
    low, high = factor & 0xFFFF, factor >> 16

    def step(x: SparkColumn) -> SparkColumn:
        upper = fn.shiftleft((x * fn.lit(high)).bitwiseAND(fn.lit(0xFFFF)), 16)
        return (x * fn.lit(low) + upper).bitwiseAND(fn.lit(_MASK))

    return step


def _rotated(x: SparkColumn) -> SparkColumn:
    left = fn.shiftleft(x, 15).bitwiseAND(fn.lit(_MASK))
    return left.bitwiseOR(fn.shiftright(x, 17))


def _seeded(value: SparkColumn) -> SparkColumn:
    """MurmurHash3 with the seed 0, for values that Spark hashes as one or two words."""
    return fn.hash(fn.lit(_SEED_ZERO).cast("int"), value)


def _seed_zero(seed: int = 42) -> int:
    """The number of 4 bytes whose hash with ``seed`` is 0: the rounds of MurmurHash3 undone."""
    inverse = {factor: pow(factor, -1, 1 << 32) for factor in (_C1, _C2, 5)}
    state = 4  # only 0 is mapped to 0 by the final mix of the length
    state = (state - 0xE6546B64) * inverse[5] & _MASK
    state = (state >> 13 | state << 19) & _MASK
    word = (state ^ seed) * inverse[_C2] & _MASK
    word = (word >> 15 | word << 17) & _MASK
    word = word * inverse[_C1] & _MASK
    return word - (1 << 32) if word >> 31 else word


_SEED_ZERO = _seed_zero()
_HASHED: Mapping[str, Callable[[SparkColumn, str], SparkColumn]] = {
    "date": _of_date,
    "decimal": _of_decimal,
    "timestamp_s": _of_time(1_000_000),
    "timestamp_ms": _of_time(1_000),
    **dict.fromkeys(("timestamp", "timestamptz"), _of_time(1)),
    **dict.fromkeys(("float32", "float64"), _of_float),
    **dict.fromkeys(("varchar", "json", "blob"), _of_text),
    # The extension hashes their texts.
    **dict.fromkeys(
        ("uint8", "uint16", "uint32", "uint64"),
        lambda value, kind: _of_text(value.cast("string"), kind),
    ),
    "uuid": lambda value, kind: _of_text(_lower(value), kind),
}


def _lower(value: SparkColumn) -> SparkColumn:
    return fn.lower(value)
