"""Rows of CSV that are shorter than others: ``null_padding`` of ``read_csv``, as DuckDB has it.

Spark pads a short row, and takes it for malformed; so it does with one that is too long, or has a
value that is not of its column's type. Its text is split once more, which tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from penstock.spark.functions import fn
from penstock.sql.identifiers import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

_RECORD, _WORDS = "penstock_record", "penstock_words"
_NULL = "\x01"  # no value of a file: all that is written is a word
_OF_WORDS = ("sep", "quote", "escape", "comment")


def read_padded(
    session: SparkSession, paths: list[str], options: Mapping[str, str], schema: str | None
) -> DataFrame:
    """The rows of CSV files, NULL where a row has no more values; a row that is wrong in another
    way fails when it is read.
    """
    lenient = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _RECORD}

    def reader() -> DataFrameReader:
        return session.read.format("csv").options(**lenient)

    if schema is None:
        inferred = reader().load(paths).schema
        schema = ", ".join(
            f"{quote_identifier(each.name, mark='`')} {each.dataType.simpleString()}"
            for each in inferred
        )
    frame = reader().schema(f"{schema}, {_RECORD} STRING").load(paths)
    names = [name for name in frame.columns if name != _RECORD]
    words = ", ".join(f"w{at} STRING" for at in range(len(names) + 1))
    of_words = {name: options[name] for name in _OF_WORDS if name in options}
    split = fn.from_csv(
        fn.col(_RECORD), words, {**of_words, "mode": "PERMISSIVE", "nullValue": _NULL}
    )
    rows = frame.withColumn(_WORDS, split).where(_is_right(names, options.get("nullValue", "")))
    return rows.drop(_RECORD, _WORDS)


def _is_right(names: list[str], null: str) -> Column:
    """Return a condition that every row meets, or fails the query with its file."""
    words = [fn.col(f"{_WORDS}.w{at}") for at in range(len(names) + 1)]
    values = [fn.col(quote_identifier(name, mark="`")) for name in names]
    lost = [
        fn.when(value.isNull() & (word != "") & (word != null), word)
        for value, word in zip(values, words, strict=False)
    ]
    wrong = reduce(fn.coalesce, lost, fn.lit(None).cast("string"))
    said = fn.concat(
        fn.lit("reading file "),
        fn.col("_metadata.file_path"),
        fn.lit('. Malformed CSV record. For input string: "'),
        fn.coalesce(wrong, fn.lit("")),
        fn.lit('"'),
    )
    bad = fn.col(_RECORD).isNotNull() & (wrong.isNotNull() | words[-1].isNotNull())
    return fn.when(bad, fn.raise_error(said).cast("boolean")).otherwise(fn.lit(True))
