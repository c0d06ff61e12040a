from __future__ import annotations

import pytest

from penstock.model.annotation import parse
from penstock.model.asset import Asset
from penstock.model.data_test import (
    AcceptedValuesTest,
    CustomTest,
    DataTest,
    NotNullTest,
    RelationshipsTest,
    UniqueTest,
)


@pytest.mark.parametrize(
    ("line", "expected", "name"),
    [
        ("unique id", UniqueTest("id"), "unique id"),
        ("not_null id", NotNullTest("id"), "not_null id"),
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
        ("unique a b", "unique a"),
        ('unique "weird col"', "unique column"),
        ("notnull id", "not_null id"),
        ("accepted_values s a", "accepted_values s = a"),
        ("accepted_values s =", "accepted_values s = a,b"),
        ("accepted_values s = ''", "accepted_values s = a,b"),
        ("relationships a -> m/t.c", "relationships a -> ducklake://main/table.column"),
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


def test_tests_accumulate() -> None:
    annotations, _ = parse("-- data_test unique a\n-- data_test uniq b\n-- data_test unique a")
    assert annotations.data_tests == (UniqueTest("a"), UniqueTest("a"))


def test_a_dropped_value_is_reported() -> None:
    annotations, (finding,) = parse("-- data_test accepted_values s = a,,b")
    assert annotations.data_tests == (AcceptedValuesTest("s", ("a", "b")),)
    assert finding.rule == "accepted-values-empty"
