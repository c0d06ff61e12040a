"""Each form that is computed, and what is left to Spark.

Tests ``lakes/arrow_expressions/functions.py``, ``lakes/arrow_expressions/functions.py``,
``lakes/arrow_expressions/nodes.py``.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.lakes.arrow_expressions.compiled import condition, expression, plain
from penstock.lakes.arrow_expressions.nodes import NotSupportedByArrow

D = Decimal
ROWS = pa.table(
    {
        "k": pa.array([1, -7, None], pa.int32()),
        "big": pa.array([5, 9223372036854775807, 0], pa.int64()),
        "yes": pa.array([True, None, False]),
        "v": pa.array(["apple", "Äpfel", None]),
        "date": pa.array([dt.date(2013, 1, 2), None, dt.date(1999, 12, 31)]),
        "m": pa.array([D("1.50"), None, D("-99.99")], pa.decimal128(4, 2)),
        "f": pa.array([1.0, None, float("nan")]),
    }
)
KINDS = {field.name: field.type for field in ROWS.schema}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("k", [1, -7, None]),
        ("`K`", [1, -7, None]),
        ("7", [7, 7, 7]),
        ("-2147483648", [-(2**31)] * 3),
        ("2.50", [D("2.50")] * 3),
        ("NULL AND false", [False, False, False]),
        ("yes AND NULL", [None, None, False]),
        ("yes OR NULL", [True, None, None]),
        ("NOT yes", [False, None, True]),
        ("k = 1", [True, False, None]),
        ("k <> 1", [False, True, None]),
        ("k < m", [True, None, None]),
        ("k <=> NULL", [False, False, True]),
        ("k <=> -7", [False, True, False]),
        ("k = NULL", [None, None, None]),
        ("k IN (1, 2)", [True, False, None]),
        ("k NOT IN (1, NULL)", [False, None, None]),
        ("v IN ('apple', '')", [True, False, None]),
        ("k BETWEEN -7 AND 0", [False, True, None]),
        ("k NOT BETWEEN -7 AND 0", [True, False, None]),
        ("date >= '2000-01-01'", [True, None, False]),
        ("date = DATE '1999-12-31'", [False, None, True]),
        ("f IS NULL", [False, True, False]),
        ("f IS NOT NULL", [True, False, True]),
        ("yes IS TRUE", [True, False, False]),
        ("yes IS NOT FALSE", [True, True, False]),
        ("v > 'b'", [False, True, None]),
        ("v LIKE '%pf%'", [False, True, None]),
        ("v NOT LIKE 'a%'", [False, True, None]),
        ("v LIKE 'apple'", [True, False, None]),
        ("v LIKE '%'", [True, True, None]),
        ("k + 1", [2, -6, None]),
        ("- k * 2 - 3", [-5, 11, None]),
        ("k % 3", [1, -1, None]),
        ("pmod(k, 3)", [1, 2, None]),
        ("PMOD(k, 100L) = 1", [True, False, None]),
        ("m + 1", [D("2.50"), None, D("-98.99")]),
        ("m * 1.1", [D("1.650"), None, D("-109.989")]),
        ("k - m", [D("-0.50"), None, None]),
        ("- m", [D("-1.50"), None, D("99.99")]),
        ("coalesce(k, 4)", [1, -7, 4]),
        ("nvl(v, 'none')", ["apple", "Äpfel", "none"]),
        ("if(yes, k, big)", [1, 2**63 - 1, 0]),
        ("CASE WHEN k > 0 THEN 'a' WHEN yes THEN 'b' END", ["a", None, None]),
        ("CAST(k AS BIGINT) + 2147483647", [2**31, 2147483640, None]),
        ("CAST(m AS DECIMAL(6, 3))", [D("1.500"), None, D("-99.990")]),
    ],
)
def test_computed(text: str, values: list[Any]) -> None:
    assert expression(text, KINDS).array(ROWS).to_pylist() == values


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", pa.int32()),
        ("2147483648", pa.int64()),
        ("9223372036854775808", pa.decimal128(19, 0)),
        ("1.50", pa.decimal128(3, 2)),
        ("0.05", pa.decimal128(2, 2)),
        ("3Y", pa.int8()),
        ("k + 1", pa.int32()),
        ("k + big", pa.int64()),
        ("m + 1", pa.decimal128(5, 2)),
        ("m * k", pa.decimal128(15, 2)),
        ("coalesce(m, 1)", pa.decimal128(12, 2)),
    ],
)
def test_types(text: str, kind: pa.DataType) -> None:
    assert expression(text, KINDS).kind == kind


@pytest.mark.parametrize(
    "text",
    [
        *("f > 1", "f = f", "k / 2", "k DIV 2", "upper(v)", "v || 'x'", "length(v) = 1"),
        *("k = '1'", "v = 1", "yes + 1", "k = yes", "date = 1", "date > '2013-1-2'"),
        *("v LIKE 'a_c'", "v LIKE 'a%c'", r"v LIKE 'a\\%'", "v LIKE 'a' ESCAPE '!'", "v LIKE v"),
        *("v = 'a\\'b'", "v = 'a' 'b'", "v = 'it''s'", 'v = "a"', "v = r'a'", "v = X'61'"),
        *("k = 1e0", "k = 1D", "k = .5", "k = 1BD", "m = 5.", "m + 1L", "k = :one", "k = ?"),
        *("t.k = 1", "other = 1", "rowid = 1", "k = (SELECT 1)", "k IN (SELECT 1)", "k IN (big)"),
        *("k = 1 -- 2", "k = 1 /* 2 */", "k --1", "${k} = 1", "k = 1;", ""),
        *(
            "yes = k IS NULL",
            "yes IS NULL = yes",
            "yes = NOT yes",
            "k ISNULL",
            "yes IN (true) = yes",
        ),
        *("pmod(k)", "1 % 0 = k", "m + -(1)", "mod(k, 2)", "CAST(m AS INT)"),
        *("CAST(v AS INT)", "CAST(k AS STRING)", "try_cast(k AS TINYINT)", "k::bigint", "k + NULL"),
        *(
            "CASE k WHEN 1 THEN 2 END",
            "coalesce(NULL, NULL)",
            "k < 9223372036854775808",
            "interval '1' day > k",
            "k @> 1",
        ),
    ],
)
def test_left_to_spark(text: str) -> None:
    with pytest.raises(NotSupportedByArrow):
        expression(text, KINDS)


@pytest.mark.parametrize(
    "text",
    [
        "big + 1",
        "big * 2",
        "k * 2147483647",
        "CAST(big AS INT)",
        "big % (k - 1)",
        "k % 0",
        "pmod(k, -3)",
    ],
)
def test_rows_that_are_left_to_spark(text: str) -> None:
    with pytest.raises(NotSupportedByArrow):
        expression(text, KINDS).array(ROWS)


@pytest.mark.parametrize("text", ["k", "'true'", "NULL", "k + 1"])
def test_no_condition(text: str) -> None:
    with pytest.raises(NotSupportedByArrow):
        condition(text, KINDS)


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("k", pa.int64(), [1, -7, None]),
        ("k + 1", pa.int8(), [2, -6, None]),
        ("5", pa.decimal128(4, 2), [D("5.00")] * 3),
        ("m", pa.decimal128(10, 4), [D("1.5000"), None, D("-99.9900")]),
        ("NULL", pa.string(), [None] * 3),
        ("f", pa.float64(), None),
    ],
)
def test_stored(text: str, kind: pa.DataType, values: list[Any] | None) -> None:
    array = expression(text, KINDS).cast(kind).array(ROWS)
    assert array.type == kind
    assert values is None or array.to_pylist() == values


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(("m", pa.int32()), ("m", pa.decimal128(3, 1)), ("k * 1000", pa.int8())),
        *(
            ("v", pa.date32()),
            ("k", pa.string()),
            ("k", pa.float64()),
            ("100", pa.decimal128(2, 0)),
        ),
    ],
)
def test_not_stored(text: str, kind: pa.DataType) -> None:
    with pytest.raises(NotSupportedByArrow):
        expression(text, KINDS).cast(kind).array(ROWS)


def test_names_that_differ_in_case_alone() -> None:
    with pytest.raises(NotSupportedByArrow):
        expression("a = 1", {"a": pa.int8(), "A": pa.int8()})


@pytest.mark.parametrize("value", [None, True, 7, -(2**31), 2**40])
def test_plain_values(value: object) -> None:
    assert plain(value).array(ROWS).to_pylist() == [value] * 3


@pytest.mark.parametrize("value", [1.5, b"a", D("1.5"), dt.date(2013, 1, 1), [1], 10**40])
def test_other_values(value: object) -> None:
    with pytest.raises(NotSupportedByArrow):
        plain(value)
