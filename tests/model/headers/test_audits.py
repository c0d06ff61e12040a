"""Audits are data tests, by the names and options that SQLMesh has for them.

Tests ``model/headers/audit_tests.py`` (each audit, with its options).
"""

from __future__ import annotations

import pytest

from penstock.model.headers.audit_tests import AUDITS
from penstock.model.values.data_test import (
    AcceptedRangeTest,
    AcceptedValuesTest,
    AggregateTest,
    DataTest,
    ExpressionTest,
    NotNullTest,
    QueryTest,
    RowCountTest,
    UniqueTest,
)
from tests.model.headers.reading import declared, found


def audit(text: str) -> DataTest:
    (test,) = declared(f"audits ({text})").data_tests
    return test


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not_null(columns := (a, b))", NotNullTest(("a", "b"))),
        (
            "unique_combination_of_columns(columns := (a, b))",
            UniqueTest(("a", "b"), nulls_equal=True),
        ),
        ("unique_values(columns := a)", UniqueTest(("a",), nulls_equal=True)),
        ("accepted_values(column := a, is_in := ('x', -1))", AcceptedValuesTest("a", ("x", "-1"))),
        ("number_of_rows(threshold := 10)", RowCountTest(11)),
        ("accepted_range(column := a, min_v := 0)", AcceptedRangeTest("a", "0")),
        (
            "accepted_range(column := a, max_v := -1.5, inclusive := false)",
            AcceptedRangeTest("a", None, "-1.5", inclusive=False),
        ),
        (
            "accepted_range(column := a, min_v := DATE '2024-01-01', max_v := '2024-02-01'::date)",
            AcceptedRangeTest("a", "2024-01-01", "2024-02-01"),
        ),
        ("accepted_range(column := a, max_v := 'm')", AcceptedRangeTest("a", None, "m")),
        ("not_null(columns := a, condition := true)", NotNullTest(("a",))),
    ],
)
def test_audits_that_are_tests_of_annotations(text: str, expected: DataTest) -> None:
    assert audit(text) == expected


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("forall(criteria := (a > 0))", "a > 0"),
        ("not_accepted_values(column := a, is_in := ('it''s', 2))", "`a` NOT IN ('it\\'s', 2)"),
        ("not_empty_string(column := a)", "`a` <> ''"),
        ("string_length_equal(column := a, v := 5)", "length(`a`) = 5"),
        ("string_length_between(column := a, min_v := 1, max_v := 9)", None),
        ("valid_uuid(column := a)", None),
        ("valid_email(column := a)", None),
        ("valid_url(column := a)", None),
        ("valid_http_method(column := a)", None),
        (
            "match_like_pattern_list(column := a, patterns := ('x%', 'y%'))",
            "`a` LIKE 'x%' OR `a` LIKE 'y%'",
        ),
        (
            "not_match_regex_pattern_list(column := a, patterns := ('^x', '\\d'))",
            "NOT (`a` RLIKE '^x' OR `a` RLIKE '\\\\d')",
        ),
    ],
)
def test_audits_that_are_conditions(text: str, sql: str | None) -> None:
    test = audit(text)
    assert isinstance(test, ExpressionTest)
    assert sql is None or test.sql == sql
    assert test.location is not None
    assert test.name == f"{text.partition('(')[0]} {sql if text[:3] == 'for' else 'a'}"


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("at_least_one(column := a)", "count(*) = 0 OR count(`a`) > 0"),
        ("not_constant(column := a)", "coalesce(max(`a`) > min(`a`), false)"),
        ("not_null_proportion(column := a, threshold := 0.8)", "count(`a`) > count(*) * 0.8"),
        ("mean_in_range(column := a, min_v := 1, max_v := 2)", "avg(`a`) >= 1 AND avg(`a`) <= 2"),
        ("stddev_in_range(column := a, max_v := 2, inclusive := false)", "stddev(`a`) < 2"),
    ],
)
def test_audits_of_aggregates(text: str, sql: str) -> None:
    test = audit(text)
    assert isinstance(test, AggregateTest)
    assert (test.sql, test.columns) == (sql, ("a",))


@pytest.mark.parametrize(
    "text",
    [
        "sequential_values(column := a)",
        "z_score(column := a, threshold := 3)",
        "kl_divergence(column := a, target_column := b, threshold := 0.1)",
        "chi_square(column := a, target_column := b, critical_value := 3.84)",
        "mutually_exclusive_ranges(lower_bound_column := a, upper_bound_column := b)",
    ],
)
def test_audits_that_are_queries(text: str) -> None:
    test = audit(text)
    assert isinstance(test, QueryTest)
    assert "@this_model" in test.sql


@pytest.mark.parametrize(
    "text",
    [
        "not_null_non_blocking(columns := a)",
        "not_null(columns := a, blocking := false)",
        "NOT_NULL(columns := a, blocking := FALSE)",
    ],
)
def test_an_audit_that_does_not_block_warns(text: str) -> None:
    assert audit(text) == NotNullTest(("a",), severity="warn")


def test_several_criteria_are_several_tests() -> None:
    tests = declared("audits (forall(criteria := (a > 0, length(b) > 0)))").data_tests
    assert [test.name for test in tests] == ["forall a > 0", "forall length(b) > 0"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "not_nul(columns := a)",
            "audit not_nul does not exist",
            "did you mean not_null?",
        ),
        (
            "everything_fine(column := a)",
            "audit everything_fine does not exist",
            f"the audits are {', '.join(AUDITS)}",
        ),
        (
            "accepted_range(column := a, min := 1)",
            "`min` is not an option of the audit",
            "its options are column, min_v, max_v, inclusive, condition, blocking",
        ),
        (
            "accepted_range(column := a)",
            "accepted_range needs `min_v` or `max_v`",
            "write min_v := 0",
        ),
        (
            "accepted_range(column := a, min_v := few)",
            "`few` is not a number, date, time or text",
            "write it out, as 0.5 or '2026-01-31'",
        ),
        (
            "not_null(columns := a, condition := b >)",
            "`b >` cannot be read near `>`: Required keyword: 'expression'",
            "write a condition of a row's columns, as status = 'paid'",
        ),
        (
            "chi_square(column_a := a, column := b)",
            "`column` is given twice, once as `column`",
            "keep one",
        ),
        ("z_score(column := a)", "the audit needs `threshold`", "write z_score(threshold := ...)"),
        ("not_null(columns := a, columns := b)", "`columns` is given twice", "keep one"),
    ],
)
def test_wrong_audits(text: str, message: str, hint: str) -> None:
    (finding,) = found(f"audits ({text})")
    place, said = finding.split(": error: ")
    assert place.startswith("m.sql:4:")
    assert said == f"{message}\n  → {hint}"
