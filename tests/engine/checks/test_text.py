"""Data tests as SQL text. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from penstock.engine.checks import accepted_values, not_null, relationships, unique
from penstock.engine.checks.check import (
    Check,
    ReferencedTable,
    Scope,
    build,
    counted,
    failing_query,
    marks,
    sample_query,
)
from penstock.engine.pins import Rows
from penstock.errors import ColumnNotFound, Location
from penstock.model.asset import Asset
from penstock.model.data_test import (
    AcceptedValuesTest,
    CustomTest,
    NotNullTest,
    RelationshipsTest,
    UniqueTest,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCOPE = Scope(
    view="v",
    types={"Id": "int", "name": "string", "a`b": "string", "price": "decimal(9,2)"},
    prefix="t0",
    location=Location(Path("m.sql"), 4, 1),
    tables=lambda _: ReferencedTable("ref", ("Code", "label"), lambda _: None),
    scripts=lambda path: Rows(cast("DataFrame", f"rows of {path}"), one_task=True),
)


def test_not_null() -> None:
    check = not_null.build(NotNullTest("id"), SCOPE)
    assert check.predicate == "`Id` IS NULL"
    assert check.failing == "SELECT * FROM `v` WHERE `Id` IS NULL"


def test_names_are_quoted() -> None:
    assert not_null.build(NotNullTest("a`b"), SCOPE).predicate == "`a``b` IS NULL"


def test_unique_counts_values_that_repeat() -> None:
    check = unique.build(UniqueTest("name"), SCOPE)
    assert check.predicate is None
    assert "GROUP BY `name` HAVING count(*) > 1" in str(check.failing)


def test_accepted_texts_are_bound() -> None:
    check = accepted_values.build(AcceptedValuesTest("name", ("a", "x' OR '1'='1")), SCOPE)
    assert check.args == {"t0_0": "a", "t0_1": "x' OR '1'='1"}
    assert check.predicate == (
        "`name` IS NOT NULL AND NOT CAST(`name` AS STRING) IN (:t0_0, :t0_1)"
    )


@pytest.mark.parametrize(("column", "kind"), [("id", "int"), ("price", "decimal(9,2)")])
def test_accepted_numbers_are_compared_as_numbers(column: str, kind: str) -> None:
    check = accepted_values.build(AcceptedValuesTest(column, ("1",)), SCOPE)
    assert f"try_cast(:t0_0 AS {kind})" in str(check.predicate)


def test_relationships_is_an_anti_join() -> None:
    test = RelationshipsTest("id", Asset("ducklake", "main/x"), "CODE")
    check = relationships.build(test, SCOPE)
    assert "LEFT ANTI JOIN `ref` AS referenced ON tested.`Id` = referenced.`Code`" in str(
        check.failing
    )


def test_custom_reads_the_script() -> None:
    check = build(CustomTest("tests/x"), SCOPE)
    assert check.failing == "rows of tests/x"
    assert check.one_task


def test_a_wrong_column_is_placed_and_told_the_nearest() -> None:
    with pytest.raises(ColumnNotFound, match="did you mean 'name'") as caught:
        not_null.build(NotNullTest("nme"), SCOPE)
    assert str(caught.value).startswith("m.sql:4:1: the data test names column 'nme'")


def test_a_wrong_column_of_the_other_table() -> None:
    test = RelationshipsTest("id", Asset("ducklake", "main/x"), "cod")
    with pytest.raises(ColumnNotFound, match="main/x does not have"):
        relationships.build(test, SCOPE)


def test_row_tests_look_in_one_pass() -> None:
    checks = [Check("a", "fa", "pa"), Check("u", "fu"), Check("b", "fb", "pb")]
    assert counted(checks) == ["c0", "c1", "c2"]
    assert failing_query(checks, "v") == (
        "SELECT CASE WHEN pa THEN 1 ELSE 0 END AS c0, 0 AS c1, CASE WHEN pb THEN 1 ELSE 0 END AS c2"
        " FROM `v` WHERE (pa) OR (pb)"
        " UNION ALL SELECT 0 AS c0, 1 AS c1, 0 AS c2 FROM (fu)"
    )


def test_only_other_tests() -> None:
    checks = [Check("u", "fu"), Check("w", "fw")]
    assert failing_query(checks, "v") == (
        "SELECT 1 AS c0, 0 AS c1 FROM (fu) UNION ALL SELECT 0 AS c0, 1 AS c1 FROM (fw)"
    )


def test_rows_are_marked_apart() -> None:
    rows = cast("DataFrame", object())
    checks = [Check("u", "fu"), Check("s", rows)]
    assert failing_query(checks, "v") == "SELECT 1 AS c0, 0 AS c1 FROM (fu)"
    assert marks(checks, 1) == ["0 AS c0", "1 AS c1"]
    assert failing_query([Check("s", rows)], "v") is None


def test_samples_are_limited() -> None:
    assert sample_query("SELECT 1") == "SELECT * FROM (SELECT 1) LIMIT 20"
