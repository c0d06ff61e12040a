"""What each test makes of NULL, NaN and bounds: Spark counts it, and proofs say nothing else.

Tests ``engine/checks/check.py`` (a proof says nothing else than Spark's count).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.destinations.values import Rows
from penstock.engine.checks.check import Check, ReferencedTable, Scope
from penstock.engine.checks.run import build, proven, run_checks
from penstock.errors import Location
from penstock.model.values.asset import Asset
from penstock.model.values.data_test import (
    AcceptedRangeTest,
    AcceptedValuesTest,
    AggregateTest,
    CustomTest,
    DataTest,
    ExpressionTest,
    NotNullTest,
    QueryTest,
    RelationshipsTest,
    RowCountTest,
    UniqueTest,
)
from tests.model.headers.reading import declared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.model.values.data_test import DataTest

pytestmark = pytest.mark.spark

COLUMNS = {"id": pa.int32(), "a": pa.int32(), "b": pa.string(), "f": pa.float64()}
TYPES = {"id": "int", "a": "int", "b": "string", "f": "double"}
ROWS: list[tuple[Any, ...]] = [
    (1, 1, "x", 0.0),
    (2, 1, "x", -0.0),
    (3, 1, None, float("nan")),
    (4, 1, None, None),
    (5, None, "y", 1.5),
    (6, None, None, 2.5),
]
# Each test with the number of its failures.
CASES: list[tuple[DataTest, int]] = [
    (UniqueTest(("id",)), 0),
    (UniqueTest(("id", "a")), 0),
    (UniqueTest(("a",)), 1),  # 1 and, not counted, two NULLs
    (UniqueTest(("b",)), 1),
    (UniqueTest(("a", "b")), 1),
    (UniqueTest(("a", "b"), nulls_equal=True), 2),
    (UniqueTest(("f",)), 1),  # the zeros
    (NotNullTest(("id",)), 0),
    (NotNullTest(("a",)), 2),
    (NotNullTest(("a", "b")), 4),
    (AcceptedValuesTest("b", ("x", "y")), 0),
    (AcceptedValuesTest("b", ("x",)), 1),
    (AcceptedRangeTest("a", "1", "1"), 0),
    (AcceptedRangeTest("a", "0.5", "0.5"), 4),
    (AcceptedRangeTest("id", "1", "6", inclusive=False), 2),
    (AcceptedRangeTest("b", None, "x"), 1),
    (AcceptedRangeTest("f", None, "3"), 1),  # NaN is more than any number
    (AcceptedRangeTest("f", "0"), 0),
    (RowCountTest(1, 6), 0),
    (RowCountTest(7), 1),
    (RowCountTest(None, 5), 1),
    (ExpressionTest("a = 1"), 0),
    (ExpressionTest("a > 1"), 4),
    (ExpressionTest("a IS NOT NULL AND b IS NOT NULL"), 4),
    (ExpressionTest("length(b) > 1 -- letters"), 3),
    (AggregateTest("count(`a`) > 0", "count(`a`)", "some", ("a",)), 0),
    (AggregateTest("avg(`id`) < 3", "avg(`id`)", "mean", ("id",)), 1),
    (AggregateTest("avg(CAST(NULL AS INT)) < 3", "1", "null", ()), 0),
    (QueryTest("SELECT * FROM @this_model WHERE a IS NULL", "query", ("a",)), 2),
    (RelationshipsTest("a", Asset("ducklake", "main/dim"), "a"), 0),
    (RelationshipsTest("id", Asset("ducklake", "main/dim"), "a"), 5),
]
AUDITS = {
    "sequential_values(column := id)": 0,
    "sequential_values(column := id, interval := 2)": 5,
    "mutually_exclusive_ranges(lower_bound_column := id, upper_bound_column := id)": 0,
    "z_score(column := id, threshold := 3)": 0,
    "z_score(column := id, threshold := 1)": 2,
    "kl_divergence(column := id, target_column := a, threshold := 1.49)": 1,  # 5/6 * ln(6)
    "kl_divergence(column := id, target_column := a, threshold := 1.5)": 0,
    "chi_square(column := id, target_column := b, critical_value := 2.9)": 1,  # 3, by 2 degrees
    "chi_square(column := id, target_column := b, critical_value := 3.1)": 0,
    "chi_square(column := a, target_column := b, critical_value := 3, dependent := true)": 1,
    "not_constant(column := a)": 1,
    "not_constant(column := b)": 0,
    "at_least_one(column := b)": 0,
    "not_null_proportion(column := a, threshold := 0.5)": 0,
    "not_null_proportion(column := a, threshold := 0.7)": 1,
    "mean_in_range(column := id, min_v := 4)": 1,
    "stddev_in_range(column := id, min_v := 1, max_v := 2)": 0,
    "valid_uuid(column := b)": 3,
    "valid_email(column := b)": 3,
    "valid_url(column := b)": 3,
    "valid_http_method(column := b)": 3,
    "not_empty_string(column := b)": 0,
    r"match_regex_pattern_list(column := b, patterns := ('^y', '^\w$'))": 0,
    "not_match_like_pattern_list(column := b, patterns := ('x%'))": 2,
    "not_accepted_values(column := a, is_in := (1, 7))": 4,
    "string_length_equal(column := b, v := 2)": 3,
    "string_length_between(column := b, max_v := 1, inclusive := false)": 3,
    "forall(criteria := (a = 1 OR b = 'x'))": 0,
    "unique_combination_of_columns(columns := (a, b))": 2,
    "number_of_rows(threshold := 6)": 1,
    "chi_square(column_a := a, column_b := b, critical_value := 3)": 1,
    "kl_divergence(source_column := id, target_column := a, threshold := 1.49)": 1,
    "accepted_range(column := b, max_v := 'x')": 1,
    "not_null(columns := a, condition := id > 5)": 1,
    "unique_values(columns := a, condition := id < 2)": 0,
    "unique_combination_of_columns(columns := (a, b), condition := id < 3)": 1,
    "accepted_values(column := b, is_in := ('x'), condition := id < 5)": 0,
    "accepted_range(column := b, max_v := 'x', condition := id > 0)": 1,
    "number_of_rows(threshold := 4, condition := a = 1)": 1,
    "at_least_one(column := b, condition := id = 6)": 1,
    "not_constant(column := b, condition := id < 3)": 1,
    "not_null_proportion(column := a, threshold := 0.7, condition := id < 6)": 0,
    "mean_in_range(column := id, max_v := 2, condition := id < 4)": 0,
    "sequential_values(column := id, condition := id <> 3)": 1,
    "forall(criteria := (a = 2), condition := b = 'x')": 2,
    "z_score(column := id, threshold := 1, condition := id < 6)": 3,
    "not_empty_string(column := b, condition := TRUE)": 0,
}
TABLE = pa.table(
    [
        pa.array(values, kind)
        for values, kind in zip(zip(*ROWS, strict=True), COLUMNS.values(), strict=True)
    ],
    names=list(COLUMNS),
)


@dataclass
class Slice:
    session: SparkSession
    rows: list[tuple[Any, ...]]

    def checks(self, tests: list[DataTest], view: str) -> list[Check]:
        schema = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        self.session.createDataFrame(self.rows, schema).createOrReplaceTempView(view)
        self.session.createDataFrame([(1,)], "a int").createOrReplaceTempView(f"{view}_dim")
        dim = ReferencedTable(f"{view}_dim", "main.dim", ("a",), lambda _: None)
        return [
            build(test, Scope(view, TYPES, f"t{n}", Location(Path("m")), lambda _: dim, _script))
            for n, test in enumerate(tests)
        ]

    def count(self, tests: list[DataTest], view: str) -> list[int]:
        results = run_checks(self.session, self.checks(tests, view), view, 20)
        return [result.count for result in results]


def _script(test: CustomTest) -> tuple[Rows, str]:
    raise AssertionError(test)


def test_failures_of_each_test(spark: SparkSession) -> None:
    """All in one run, as a step has them; then those alone that take a pass of their own."""
    tests = [test for test, _ in CASES]
    expected = [failures for _, failures in CASES]
    tested = Slice(spark, ROWS)
    assert tested.count(tests, "semantics") == expected
    for alone in (UniqueTest(("a",)), NotNullTest(("a",)), RowCountTest(7)):
        assert tested.count([alone], "semantics") == [expected[tests.index(alone)]]


@pytest.mark.parametrize(
    ("tests", "counts"),
    [
        ([UniqueTest(("id",)), NotNullTest(("a",))], [0, 2]),
        ([UniqueTest(("id",)), NotNullTest(("id",))], [0, 0]),
        ([UniqueTest(("a",)), NotNullTest(("id",))], [1, 0]),
        ([UniqueTest(("a",)), NotNullTest(("a",)), UniqueTest(("b",))], [1, 2, 1]),
        ([RowCountTest(1), NotNullTest(("a",))], [0, 2]),
        ([RowCountTest(7), NotNullTest(("id",)), UniqueTest(("id",))], [1, 0, 0]),
        ([AcceptedValuesTest("b", ("x",)), AcceptedValuesTest("b", ("y",))], [1, 2]),
    ],
)
def test_what_fails_beside_what_passes(
    spark: SparkSession, tests: list[DataTest], counts: list[int]
) -> None:
    """A row that fails one test hides nothing that fails another."""
    assert Slice(spark, ROWS).count(tests, "semantics") == counts


def test_failures_of_each_audit(spark: SparkSession) -> None:
    tests = [test for audit in AUDITS for test in declared(f"audits ({audit})").data_tests]
    assert dict(zip(AUDITS, Slice(spark, ROWS).count(tests, "semantics"), strict=True)) == AUDITS


def test_proofs_say_nothing_that_spark_does_not(spark: SparkSession) -> None:
    checks = Slice(spark, ROWS).checks([test for test, _ in CASES], "semantics")
    for (test, failures), passes in zip(CASES, proven(checks, TABLE.select), strict=True):
        assert not passes or failures == 0, test
    sure: list[DataTest] = [
        UniqueTest(("id",)),
        AcceptedRangeTest("a", "1", "1"),
        RowCountTest(1, 6),
        ExpressionTest("a = 1"),
    ]
    again = Slice(spark, ROWS).checks(sure, "semantics")
    assert proven(again, TABLE.select) == [True] * 4


def test_no_rows(spark: SparkSession) -> None:
    tests: list[DataTest] = [
        UniqueTest(("id",)),
        NotNullTest(("id",)),
        RowCountTest(1),
        ExpressionTest("a = 1"),
        AggregateTest("count(`a`) > 0", "count(`a`)", "some", ("a",)),
    ]
    assert Slice(spark, []).count(tests, "semantics") == [0, 0, 1, 0, 1]


def test_samples_are_as_many_as_asked_for(spark: SparkSession) -> None:
    tests: list[DataTest] = [NotNullTest(("a", "b")), RowCountTest(7), UniqueTest(("a",))]
    tested = Slice(spark, ROWS)
    checks = tested.checks(tests, "semantics")
    rows, count, keys = run_checks(spark, checks, "semantics", 3)
    assert (len(rows.samples), rows.count) == (3, 4)
    assert count.samples == ({"row_count": 6},)
    assert keys.samples == ({"a": 1, "occurrences": 4},)
    assert [each.samples for each in run_checks(spark, checks, "semantics", 0)] == [()] * 3
