"""Functions that conditions are evaluated with: each returns what Spark does, or nothing.

Tests ``model/slicing/evaluated_values.py`` and ``model/slicing/evaluated_values.py`` (casts);
``python -m tests.model.slicing.evaluated`` tries values by chance.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from penstock.model.slicing.evaluation import NAMES, Expression
from tests.model.slicing.evaluated import (
    CONDITIONS,
    LITERALS,
    VALUES,
    differences,
    expression_of,
)


def test_each_value_is_that_of_spark(spark: SparkSession) -> None:
    assert list(differences(spark, LITERALS)) == []


def operations(expression: Expression) -> set[str]:
    inner = [operations(each) for each in expression[1:] if isinstance(each, tuple)]
    return {str(expression[0])}.union(*inner)


def test_each_function_is_compared() -> None:
    compared = set[str]().union(*(operations(expression_of(e)) for e in (*VALUES, *CONDITIONS)))
    assert NAMES - compared == set()
