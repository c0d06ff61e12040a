"""What many queries answer, by DuckDB and by Spark, to compare: Spark's in one job.

Numbers are compared by value, whatever their type (DuckDB sums integers into 128 bits), to twelve
digits; all else by type and value, columns and fields of structs by name as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.lakes.differential import canonical
from tests.quick import quick

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import DataFrame, SparkSession

_NUMBER = "number"
# The time goes into planning and starting, not into rows.
_QUICK = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}


@dataclass(frozen=True)
class Answer:
    """``kinds`` by column: a type's name, a list of one, or fields; ``rows`` are sorted texts."""

    kinds: dict[str, Any]
    rows: list[str]


def of_duckdb(con: duckdb.DuckDBPyConnection, query: str) -> Answer:
    table = con.execute(query).to_arrow_table()
    kinds = [_arrow_kind(field.type) for field in table.schema]
    columns = [[canonical.arrow_value(scalar) for scalar in column] for column in table.columns]
    rows = zip(*columns, strict=True)
    return Answer(_named(table.column_names, kinds), _texts(rows, kinds))


def of_spark(spark: SparkSession, frames: Mapping[str, DataFrame]) -> dict[str, Answer]:
    """The answers by the same keys."""
    from pyspark.sql import functions as fn

    tagged = []
    for tag, df in enumerate(frames.values()):
        plain = df.toDF(*(f"c{at}" for at in range(len(df.columns))))  # names may come twice
        tagged.append(
            plain.select(fn.lit(tag).alias("tag"), canonical.in_spark(plain).alias("text"))
        )
    with quick(spark):
        collected = _union(tagged).collect()
    rows: list[list[Any]] = [[] for _ in frames]
    for tag, text in collected:
        kinds = [field.dataType for field in list(frames.values())[tag].schema.fields]
        rows[tag].append(json.loads(canonical.of_spark(text, kinds)))
    return {key: _answer(df, rows[tag]) for tag, (key, df) in enumerate(frames.items())}


def _answer(df: DataFrame, rows: list[Any]) -> Answer:
    kinds = [_spark_kind(field.dataType) for field in df.schema.fields]
    return Answer(_named(df.columns, kinds), _texts(rows, kinds))


def _named(names: list[str], kinds: list[Any]) -> dict[str, Any]:
    return {f"{at} {name}": kind for at, (name, kind) in enumerate(zip(names, kinds, strict=True))}


def _union(frames: list[DataFrame]) -> DataFrame:
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return _union(frames[:half]).union(_union(frames[half:]))


def _texts(rows: Any, kinds: list[Any]) -> list[str]:
    return sorted(
        json.dumps([_value(v, kind) for v, kind in zip(row, kinds, strict=True)]) for row in rows
    )


def _value(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, list):
        return [_value(item, kind[0]) for item in value]
    if isinstance(kind, dict):
        return [_value(item, k) for item, k in zip(value, kind.values(), strict=True)]
    if kind != _NUMBER:
        return value
    number = float.fromhex(value) if "0x" in value else float(value)
    return f"{number + 0.0:.12g}"


def _arrow_kind(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {field.name: _arrow_kind(field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_arrow_kind(kind.value_type)]
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _NUMBER
    return canonical.arrow_type(kind)


def _spark_kind(kind: Any) -> Any:
    name = kind.typeName()
    if name == "struct":
        return {field.name: _spark_kind(field.dataType) for field in kind.fields}
    if name == "array":
        return [_spark_kind(kind.elementType)]
    if name in {"byte", "short", "integer", "long", "float", "double", "decimal"}:
        return _NUMBER
    return _NUMBER if name == "void" else kind.simpleString()  # NULL of DuckDB is an INTEGER
