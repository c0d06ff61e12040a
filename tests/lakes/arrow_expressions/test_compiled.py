"""Arrow computes the same results as Spark, for most of the tested expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import types

from penstock.lakes.arrow_expressions.compiled import Expression, expression
from penstock.lakes.arrow_expressions.nodes import NotSupportedByArrow
from penstock.spark.session import session_zone
from tests.lakes.arrow_expressions import expressions as make
from tests.lakes.arrow_expressions.expressions import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SPARK = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture]
# Each step would be a query of Spark's; the message names the expression and its rows.
_WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
_KINDS = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def computed(text: str, rows: pa.Table) -> tuple[Expression, list[object]] | None:
    try:
        compiled = expression(text, COLUMNS, in_utc=True)
        return compiled, compiled.array(rows).to_pylist()
    except NotSupportedByArrow:
        return None


def kind_of(spark_type: types.DataType) -> pa.DataType:
    name = spark_type.simpleString()
    digits = re.fullmatch(r"decimal\((\d+),(\d+)\)", name)
    return pa.decimal128(int(digits[1]), int(digits[2])) if digits else _KINDS[name]


def check(spark: SparkSession, rows: pa.Table, texts: list[str]) -> int:
    """Compare with Spark, in one query, all that Arrow computes; returns their number."""
    pairs = [(text, result) for text in texts if (result := computed(text, rows)) is not None]
    if not pairs:
        return 0
    names = {f"c{at}": text for at, (text, _) in enumerate(pairs)}
    asked = [f"{text} AS {name}" for name, text in names.items()]
    answer = spark.createDataFrame(rows).selectExpr(*asked)
    values = answer.toArrow()
    for (text, (node, mine)), field in zip(pairs, answer.schema.fields, strict=True):
        assert kind_of(field.dataType) == node.kind, text
        assert values[field.name].to_pylist() == mine, (text, rows.select(sorted(node.columns)))
    return len(pairs)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("made", "least"),
    [
        (make.conditions(), 0.5),
        (make.integers(), 0.4),
        (make.decimals(), 0.4),
        (make.texts(), 1.0),
        (make.soup(), 0.2),
        (make.sums(), 0.4),
    ],
    ids=["conditions", "integers", "decimals", "texts", "soup", "sums"],
)
def test_as_spark(spark: SparkSession, made: st.SearchStrategy[str], least: float) -> None:
    """Where it answers, Spark does not fail and has the same values, of the same type."""
    asked, answered = 0, 0
    assert session_zone(spark) == "UTC"

    @settings(max_examples=12, suppress_health_check=_SPARK, phases=_WITHOUT_SHRINKING)
    @given(make.tables(), st.lists(made, min_size=25, max_size=25))
    def run(rows: pa.Table, texts: list[str]) -> None:
        nonlocal asked, answered
        answered += check(spark, rows, texts)
        asked += len(texts)

    run()
    assert answered >= least * asked
