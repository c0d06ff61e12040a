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
from penstock.lakes import storage
from penstock.lakes.format.files import DataFile
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.partitioning import (
    PartitionKey,
    catalog_text,
    directory_names,
    hive_directory,
)
from penstock.lakes.format.values.bounds import base_type, parse
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
    is_text = base_type(key.column.type) == "varchar"
    if hashed and is_text and key.transform == "identity":
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


def _text(key: PartitionKey) -> SparkColumn:
    """The value as text. Times with a zone are converted to UTC."""
    value = fn.col(quoted(key.column.name))
    kind = base_type(key.column.type)
    if key.transform == "bucket":
        return bucket(key).cast("string")
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
        # The value of all rows of the file. Spark writes the bounds of short texts in full.
        stats = next((each for each in file.stats if each.column_id == key.column.id), None)
        if stats is None or stats.min_value is None or stats.min_value != stats.max_value:
            raise ValuesNotProven
        value = stats.min_value
    if "\x00" in value:
        raise UnsupportedFeature(
            f"a value of {name} to partition by has a NUL character, which no catalog can store",
            hint="remove it from the value in the SELECT",
            data={"column": name},
        )
    return value if key.transform != "identity" else catalog_text(key.column.type, value)


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
_Step = Callable[[str], str]

# SQL, of which Spark makes its expression: over Connect one of as many functions is too deep to be
# sent (a hundred messages within each other).


def bucket(key: PartitionKey) -> SparkColumn:
    """The bucket of the key's column, NULL for NULL, by the rule of
    `lake.format.partitioning.bucket`.
    """
    value, kind = quoted(key.column.name), key.column.type
    hashed = _HASHED.get(base_type(kind), _of_number)(value, kind)
    number = f"({hashed} & {0x7FFFFFFF}) % {key.buckets}"
    return expr(f"CASE WHEN {value} IS NOT NULL THEN {number} END")


def _of_number(value: str, _: str) -> str:
    return _seeded(f"CAST({value} AS BIGINT)")


def _of_decimal(value: str, kind: str) -> str:
    digits = parse(kind).precision or 0
    return _seeded(value) if digits <= _DIGITS_OF_LONG else _as_text(value, kind)


def _of_time(unit: int) -> Callable[[str, str], str]:
    def hashed(value: str, kind: str) -> str:
        micros = _micros(value, kind)
        if unit == 1:
            return _seeded(micros)
        return _seeded(f"(({micros} - pmod({micros}, {unit})) DIV {unit})")

    return hashed


def _micros(value: str, kind: str) -> str:
    """Microseconds since 1970 of a time with or without a zone."""
    if base_type(kind) == "timestamptz":
        return f"unix_micros({value})"
    return f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', {value})"


def _as_text(value: str, kind: str) -> str:
    return _of_text(f"CAST({value} AS STRING)", kind)


def _of_text(value: str, _: str) -> str:
    data = f"CAST({value} AS BINARY)"
    size = f"octet_length({data})"
    rest = f"({size} % 4)"
    whole = f"CAST({_seeded(f'substring({data}, 1, {size} - {rest})')} AS BIGINT)"
    tail = f"CAST(conv(hex(substring({data}, {size} - {rest} + 1, {rest})), 16, 10) AS BIGINT)"
    word = (
        f"CASE WHEN {rest} = 1 THEN {tail} "
        f"WHEN {rest} = 2 THEN {_swapped(tail, 1)} ELSE {_swapped(tail, 2)} END"
    )
    scrambled = _chain(word, _times(_C1), _rotated, _times(_C2))
    before = _unmixed(f"({whole} & {_MASK})", f"CAST({size} - {rest} AS BIGINT)")
    mixed = _chain(
        f"({before} ^ {scrambled} ^ CAST({size} AS BIGINT))",
        *(_shifted(16), _times(_F1), _shifted(13), _times(_F2), _shifted(16)),
    )
    return f"(CASE WHEN {rest} = 0 THEN {whole} ELSE {mixed} END)"


def _unmixed(hashed: str, size: str) -> str:
    """The state from which the last mix made ``hashed``."""
    back = _chain(
        hashed,
        *(_shifted(16), _times(pow(_F2, -1, 1 << 32)), _shifted(13, 26)),
        *(_times(pow(_F1, -1, 1 << 32)), _shifted(16)),
    )
    return f"({back} ^ {size})"


def _swapped(number: str, more: int) -> str:
    """A number of ``more`` + 1 bytes, at most three, with its bytes reversed."""

    def swap(n: str) -> str:
        middle = f" | ({n} & {0xFF00})" if more == 2 else ""
        first, last = f"shiftleft({n} & {0xFF}, {8 * more})", f"shiftright({n}, {8 * more})"
        return f"{first}{middle} | ({last} & {0xFF})"

    return _chain(number, swap)


def _chain(value: str, *steps: _Step) -> str:
    """The steps in sequence; each names its input once, else the expression would explode."""
    for step in steps:
        value = f"element_at(transform(array({value}), x -> {step('x')}), 1)"
    return value


def _shifted(*by: int) -> _Step:
    """``x ^ x >> n`` for each n."""
    return lambda x: " ^ ".join([x, *(f"shiftright({x}, {shift})" for shift in by)])


def _times(factor: int) -> _Step:
    """Multiply by ``factor``, 32 bits, in two halves so that no product exceeds 64 bits."""
    low, high = factor & 0xFFFF, factor >> 16
    return lambda x: f"({x} * {low} + shiftleft(({x} * {high}) & {0xFFFF}, 16)) & {_MASK}"


def _rotated(x: str) -> str:
    return f"(shiftleft({x}, 15) & {_MASK}) | shiftright({x}, 17)"


def _seeded(value: str) -> str:
    """MurmurHash3 with the seed 0, for values that Spark hashes as one or two words."""
    return f"hash({_SEED_ZERO}, {value})"


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
_HASHED: Mapping[str, Callable[[str, str], str]] = {
    "date": lambda value, _: _seeded(f"CAST(unix_date({value}) AS BIGINT)"),
    "decimal": _of_decimal,
    "timestamp_s": _of_time(1_000_000),
    "timestamp_ms": _of_time(1_000),
    **dict.fromkeys(("timestamp", "timestamptz"), _of_time(1)),
    **dict.fromkeys(("float32", "float64"), lambda value, _: _seeded(f"CAST({value} AS DOUBLE)")),
    **dict.fromkeys(("varchar", "json", "blob"), _of_text),
    # The extension hashes their texts.
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), _as_text),
    "uuid": lambda value, kind: _of_text(f"lower({value})", kind),
}
