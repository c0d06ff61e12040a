"""Annotations written as lines read as the same annotations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.model.headers.annotation import lines_of, parse
from penstock.model.headers.tests import write_test
from penstock.model.values.data_test import ExpressionTest, UniqueTest

CASES = Path(__file__).with_name("annotation_cases.jsonl")
HEADERS = [json.loads(line)["in"] for line in CASES.read_text().splitlines()]


@pytest.mark.parametrize("header", HEADERS)
def test_the_reference_cases(header: str) -> None:
    annotations, _ = parse(header)
    text = "\n".join(f"-- {line}" for line in lines_of(annotations))
    assert parse(text)[0] == annotations


@pytest.mark.parametrize(
    "line",
    [
        'materialize ducklake://main/t key="order id",day on_schema_change=sync',
        'partitioned daily tz="America/New_York" start="2024-01-01"',
        'partitioned dynamic key="$.a"',
        "data_test unique a, b severity=warn",
        "data_test not_null a",
        "data_test accepted_values a = x, 'y, z', 'it''s'",
        'data_test accepted_range a min=0 max="1,5" inclusive=false',
        "data_test row_count min=1 max=9",
        'data_test unique "Order Id", b',
        "data_test accepted_values \"a=b\" = '', x",
        'data_test relationships "a,b" -> ducklake://main/s."my table"."x ""y"""',
        "data_test expression a > 0 AND b <> 'x'",
        "data_test relationships a -> ducklake://main/s.t.b",
        'data_test tests/x low=1 name="a b"',
        "column a <- ducklake://main/s.x, s3://b/c.d",
        "column a DECIMAL(10, 2)",
        "on ducklake://main/t debounce=5m",
        "retry 3 10s",
        "dialect duckdb",
    ],
)
def test_a_canonical_line_stays(line: str) -> None:
    annotations, findings = parse(f"-- {line}")
    assert findings == ()
    assert lines_of(annotations) == [line]


def test_tests_of_audits_alone_have_no_line() -> None:
    assert write_test(UniqueTest(("a",))) == "unique a"
    assert write_test(UniqueTest(("a",), nulls_equal=True)) is None
    assert write_test(ExpressionTest("a > 0", label="positive")) is None
