"""Tests ``model/values/data_test.py`` (tests as values)."""

from __future__ import annotations

import pytest

from penstock.model.headers.annotation import parse
from penstock.model.values.asset import Asset
from penstock.model.values.data_test import (
    AcceptedRangeTest,
    AcceptedValuesTest,
    CustomTest,
    DataTest,
    ExpressionTest,
    NotNullTest,
    RelationshipsTest,
    RowCountTest,
    UniqueTest,
)


@pytest.mark.parametrize(
    ("line", "expected", "name"),
    [
        ("unique id", UniqueTest(("id",)), "unique id"),
        (
            "unique id, b Whole table",
            UniqueTest(("id", "b"), whole_table=True),
            "unique id, b whole table",
        ),
        ("not_null id", NotNullTest(("id",)), "not_null id"),
        ("accepted_values s = a,b", AcceptedValuesTest("s", ("a", "b")), "accepted_values s"),
        ("accepted_values s=a", AcceptedValuesTest("s", ("a",)), "accepted_values s"),
        ("accepted_values s = 'a b', c", AcceptedValuesTest("s", ("a b", "c")), None),
        ("accepted_values s = 'a,b',\"c,d\"", AcceptedValuesTest("s", ("a,b", "c,d")), None),
        (
            "accepted_values s = in progress,done",
            AcceptedValuesTest("s", ("in progress", "done")),
            None,
        ),
        (
            "relationships a -> ducklake://m/t.c",
            RelationshipsTest("a", Asset("ducklake", "m/t"), "c"),
            "relationships a",
        ),
        (
            "relationships a->ducklake://m/s.t.c",
            RelationshipsTest("a", Asset("ducklake", "m/s.t"), "c"),
            None,
        ),
        ("tests/sane", CustomTest("tests/sane"), "tests/sane"),
        ('unique "Order Id"', UniqueTest(("Order Id",)), "unique Order Id"),
        ('not_null "a,b", `c "d"`', NotNullTest(("a,b", 'c "d"')), None),
        ("accepted_values `a=b` = '',x", AcceptedValuesTest("a=b", ("", "x")), None),
        ('accepted_values "s ""t"""=\'\'', AcceptedValuesTest('s "t"', ("",)), None),
        ('accepted_range "Order Id" min=0', AcceptedRangeTest("Order Id", "0"), None),
        (
            'relationships "Order Id"->ducklake://main/s."my table".`a.b`',
            RelationshipsTest("Order Id", Asset("ducklake", 'main/s."my table"'), "a.b"),
            None,
        ),
        ("unique a, b", UniqueTest(("a", "b")), "unique a, b"),
        ("unique a,b", UniqueTest(("a", "b")), "unique a, b"),
        ("not_null a, b", NotNullTest(("a", "b")), "not_null a, b"),
        ("accepted_range n min=0 max=9.5", AcceptedRangeTest("n", "0", "9.5"), "accepted_range n"),
        ("accepted_range n max=-1", AcceptedRangeTest("n", None, "-1"), None),
        ("accepted_range t min='a b' max=c", AcceptedRangeTest("t", "a b", "c"), None),
        (
            "accepted_range n min=0 inclusive=false",
            AcceptedRangeTest("n", "0", inclusive=False),
            None,
        ),
        ("row_count min=1", RowCountTest(1), "row_count"),
        ("row_count min=1 max=10", RowCountTest(1, 10), None),
        ("expression a > 0 AND b = 'x'", ExpressionTest("a > 0 AND b = 'x'"), None),
        ("expression a > 0", ExpressionTest("a > 0"), "expression a > 0"),
        (
            "tests/positive column=amount limit=3",
            CustomTest("tests/positive", (("column", "amount"), ("limit", "3"))),
            "tests/positive column=amount limit=3",
        ),
        ("tests/named of='a b'", CustomTest("tests/named", (("of", "a b"),)), None),
    ],
)
def test_forms(line: str, expected: DataTest, name: str | None) -> None:
    annotations, findings = parse(f"-- data_test {line}")
    assert annotations.data_tests == (expected,)
    assert findings == ()
    assert name is None or expected.name == name


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("uniq id", "unique id"),
        ("UNIQUE id", "unique id"),
        ("unique", "unique column"),
        ("unique a b", "unique a, b"),
        ("unique id -- the order's", "unique id"),
        ("not_null id, severity=warn", "not_null id severity=warn"),
        ("accepted_values \"Order Id\" 'a,b', c", "accepted_values \"Order Id\" = 'a,b', c"),
        ("notnull id", "not_null id"),
        ("unique a,", "unique a"),
        ("accepted_range n", "accepted_range n min=0 max=100"),
        ("accepted_range n inclusive=true", "accepted_range n min=0 max=100"),
        ("acceptedrange n min=0", "accepted_range n min=0 max=100"),
        ("row_count", "row_count min=1"),
        ("row_cuont min=3", "row_count min=1"),
        ("expression", "expression column > 0"),
        ("accepted_values s a", "accepted_values s = a"),
        ("accepted_values s =", "accepted_values s = a,b"),
        ("relationships a -> m/t.c", "relationships a -> ducklake://m/t.c"),
        ("relationships a ducklake://m/t.c", "relationships a -> ducklake://m/t.c"),
        ("relationships a -> ducklake://", "relationships a -> ducklake://main/table.column"),
        ("sane", "path/of/test"),
        ("", "path/of/test"),
    ],
)
def test_a_lost_test_is_an_error_with_the_nearest_form(line: str, form: str) -> None:
    annotations, (finding,) = parse(f"-- data_test {line}", "m.sql")
    assert annotations.data_tests == ()
    assert (finding.severity, finding.hint) == ("error", f"write `-- data_test {form}`")
    assert (finding.location.line, finding.location.column) == (1, 4)


@pytest.mark.parametrize(
    ("line", "message", "column"),
    [
        ("accepted_values a = 'x", "`'x`: a quote is not closed, or something follows it", 34),
        ("accepted_values a = 'x' y", "`'x' y`: a quote is not closed, or something follows", 34),
        ('unique "id', '`"id`: the name of the column has no closing "', 21),
        ("accepted_range `id min=0", "`id min=0`: the name of the column has no closing `", 29),
        ('relationships "a -> ducklake://m/t.c', "has no closing", 28),
    ],
)
def test_a_quote_that_is_not_closed(line: str, message: str, column: int) -> None:
    annotations, (finding,) = parse(f"-- data_test {line}", "m.sql")
    assert annotations.data_tests == ()
    assert message in finding.message
    assert (finding.severity, finding.location.column) == ("error", column)


def test_tests_accumulate() -> None:
    annotations, _ = parse("-- data_test unique a\n-- data_test uniq b\n-- data_test unique a")
    assert annotations.data_tests == (UniqueTest(("a",)), UniqueTest(("a",)))


def test_a_dropped_value_is_reported() -> None:
    annotations, (finding,) = parse("-- data_test accepted_values s = a,,b")
    assert annotations.data_tests == (AcceptedValuesTest("s", ("a", "b")),)
    assert finding.rule == "accepted-values-empty"


@pytest.mark.parametrize(
    "line",
    [
        "unique id",
        "not_null a, b",
        "accepted_values s = a,in progress",
        "accepted_range n min=0",
        "row_count max=3",
        "expression a > 0",
        "relationships a -> ducklake://m/t.c",
        "tests/sane",
        "tests/positive column=a",
    ],
)
def test_severity(line: str) -> None:
    plain, _ = parse(f"-- data_test {line}")
    said, _ = parse(f"-- data_test {line} severity=error")
    warned, findings = parse(f"-- data_test {line} severity=warn")
    assert findings == ()
    assert said.data_tests == plain.data_tests
    (plain_test,), (test,) = plain.data_tests, warned.data_tests
    assert (plain_test.severity, test.severity, test.name) == ("error", "warn", plain_test.name)
    assert test.to_dict() == {**plain_test.to_dict(), "severity": "warn"}


def test_a_value_may_end_like_a_severity() -> None:
    annotations, _ = parse("-- data_test accepted_values s = 'a severity=warn'")
    assert annotations.data_tests == (AcceptedValuesTest("s", ("a severity=warn",)),)


@pytest.mark.parametrize(
    ("line", "column", "message", "hint"),
    [
        (
            "unique id severity=wran",
            24,
            "`severity=wran`: severity has no such value",
            "write severity=warn",
        ),
        (
            "unique id severity=",
            24,
            "`severity=`: severity has no such value",
            "write severity=error or warn or quarantine",
        ),
        ("unique a, a", 21, "`a, a` names a column twice", "name each once"),
        (
            "accepted_range n minimum=0",
            31,
            "`minimum=0` is not an option of this test",
            "did you mean `min=0`?",
        ),
        (
            "accepted_range n >= 0",
            31,
            "`>=` is not an option of this test",
            "the options are min, max, inclusive",
        ),
        ("accepted_range n min=0 min=1", 37, "`min=` is given twice", "keep one"),
        ("accepted_range n min=", 31, "`min=` is empty", "give it a value"),
        ("accepted_range n min='a", 31, "`min='` has no closing quote", "close it"),
        (
            "accepted_range n min=3 max=2",
            37,
            "no value is from 3 to 2",
            "write the smaller bound as min=",
        ),
        (
            "accepted_range n min=3 inclusive=no",
            37,
            "`inclusive=no`: inclusive has no such value",
            "write inclusive=true or inclusive=false",
        ),
        (
            "row_count min=many",
            24,
            "`min=many` is not a number of rows",
            "write a whole number, as min=1",
        ),
        (
            "row_count min=3 max=2",
            30,
            "no number is from 3 to 2",
            "write the smaller number as min=",
        ),
        (
            "tests/positive amount",
            29,
            "`amount` is not an argument of a test",
            "write it as name=value",
        ),
    ],
)
def test_a_wrong_option_is_placed(line: str, column: int, message: str, hint: str) -> None:
    annotations, (finding,) = parse(f"-- data_test {line}", "m.sql")
    assert annotations.data_tests == ()
    assert (finding.severity, finding.message, finding.hint) == ("error", message, hint)
    assert (finding.location.line, finding.location.column) == (1, column)


def test_an_unknown_kind_is_named() -> None:
    _, (finding,) = parse("-- data_test acepted_values s = a,b", "m.sql")
    assert str(finding) == (
        "m.sql:1:4: error: `data_test acepted_values s = a,b` cannot be read: "
        "data test 'acepted_values' does not exist\n"
        "  → write `-- data_test accepted_values s = a,b`"
    )
