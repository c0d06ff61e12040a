"""A row of a table is a rule: its columns say what is written, and what is refused."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from penstock.errors import UnsupportedFeature
from penstock.sql.duckdb import strings
from penstock.sql.duckdb.functions import NAMED
from penstock.sql.duckdb.rules import Row, Rule, by_class, by_name, is_absent


def _applied(row: Rule, call: str) -> str:
    return row(sqlglot.parse_one(call, read="duckdb")).sql("databricks")


def test_arguments_stand_where_the_signature_names_them() -> None:
    row = Row("half|halve(x, y)", None, "HALF(:y, :x)")
    assert _applied(row, "halve(1, a)") == "HALF(a, 1)"
    assert by_name([row]).keys() == {"half", "halve"}


def test_the_same_call_stays() -> None:
    row = Row("abs", exp.Abs)
    assert _applied(row, "abs(a)") == "ABS(a)"
    assert by_class([row]) == {exp.Abs: row}


@pytest.mark.parametrize(
    ("row", "call", "refusal"),
    [
        (Row("f(x)", None, "F(:x)"), "f(1, 2)", "f of this form"),
        (Row("f(x)", None, "F(:x)"), "f()", "f of this form"),
        (Row("f(x)", None, "F(:x)", "decimal%", title="it"), "f(1.5)", "it of decimal"),
        (
            Row("round", exp.Round, forms={"decimals": is_absent}, otherwise="{} of digits"),
            "round(a, 1)",
            "round of digits",
        ),
    ],
)
def test_refusals(row: Row, call: str, refusal: str) -> None:
    with pytest.raises(UnsupportedFeature, match=refusal):
        _applied(row, call)


def test_a_type_is_refused_by_spark() -> None:
    text = _applied(Row("f(x)", None, "F(:x)", "float", advice="g(x)"), "f(a)")
    assert "TYPEOF(a) LIKE 'float'" in text
    assert "refused: f of float; write g(x)" in text


def test_a_failure_stands_around_the_value() -> None:
    row = Row("f(x)", None, "F(:x)", fails=(":x < 0", "f of a negative number"))
    assert _applied(row, "f(a)") == "IF(a < 0, RAISE_ERROR('f of a negative number'), F(a))"


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_function_of_any_number_of_arguments_is_read_or_refused(name: str) -> None:
    for count in range(5):
        call = exp.Anonymous(this=name, expressions=[exp.column(f"c{n}") for n in range(count)])
        try:
            NAMED[name](call)
        except UnsupportedFeature:
            continue


def test_the_length_of_a_text_is_counted_in_bytes() -> None:
    """As DuckDB's ``strlen`` does."""
    rule = by_name(strings.STRINGS)["strlen"]
    translated = rule(sqlglot.parse_one("strlen(a)", read="duckdb"))
    assert "OCTET_LENGTH(a)" in translated.sql("databricks")
