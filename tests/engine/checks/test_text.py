"""Data tests as SQL text. No Spark.

Tests ``engine/checks/accepted_range.py`` (bounds as SQL); ``engine/checks/accepted_values.py``
(values as SQL); ``engine/checks/not_null.py`` (a condition for each column);
``engine/checks/unique.py`` (keys that occur twice); ``engine/checks/relationships.py`` (values that
the other table lacks); ``engine/checks/expression.py`` (conditions, row counts, aggregates,
queries); and ``engine/checks/check.py`` (scopes and columns).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from penstock.destinations.values import Rows
from penstock.engine.checks import (
    accepted_range,
    accepted_values,
    expression,
    not_null,
    one_pass,
    relationships,
    unique,
)
from penstock.engine.checks.check import (
    Aggregate,
    Check,
    ReferencedTable,
    Scope,
    UniqueKey,
    build,
    failing_query,
    marks,
    sample_query,
)
from penstock.engine.checks.run import shown
from penstock.errors import ArgumentError, ColumnNotFound, Location
from penstock.model.values.asset import Asset
from penstock.model.values.data_test import (
    AcceptedRangeTest,
    AcceptedValuesTest,
    CustomTest,
    ExpressionTest,
    NotNullTest,
    RelationshipsTest,
    RowCountTest,
    UniqueTest,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCOPE = Scope(
    view="v",
    types={"Id": "int", "name": "string", "a`b": "string", "price": "decimal(9,2)"},
    prefix="t0",
    location=Location(Path("m.sql"), 4, 1),
    tables=lambda _: ReferencedTable(
        "ref", "`main`.`main`.`ref`", ("Code", "label"), lambda _: None
    ),
    scripts=lambda test: (Rows(cast("DataFrame", f"rows of {test.path}"), one_task=True), "SELECT"),
)


def test_not_null() -> None:
    check = not_null.build(NotNullTest(("id",)), SCOPE)
    assert check.predicate == "`Id` IS NULL"
    assert check.failing == "SELECT * FROM `v` WHERE `Id` IS NULL"


def test_names_are_quoted() -> None:
    assert not_null.build(NotNullTest(("a`b",)), SCOPE).predicate == "`a``b` IS NULL"


def test_unique_counts_values_that_repeat() -> None:
    check = unique.build(UniqueTest(("name",)), SCOPE)
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
    assert shown(check, "v", "t").startswith(
        "SELECT tested.* FROM t AS tested LEFT ANTI JOIN `main`.`main`.`ref` AS referenced ON"
    )


def test_custom_reads_the_script() -> None:
    check = build(CustomTest("tests/x"), SCOPE)
    assert check.failing == "rows of tests/x"
    assert check.one_task


def test_a_wrong_column_is_placed_and_told_the_nearest() -> None:
    with pytest.raises(ColumnNotFound, match="did you mean 'name'") as caught:
        not_null.build(NotNullTest(("nme",)), SCOPE)
    assert str(caught.value).startswith("m.sql:4:1: the data test names column 'nme'")


def test_a_wrong_column_of_the_other_table() -> None:
    test = RelationshipsTest("id", Asset("ducklake", "main/x"), "cod")
    with pytest.raises(ColumnNotFound, match="main/x does not have"):
        relationships.build(test, SCOPE)


def test_only_other_tests() -> None:
    checks = [Check("u", "fu"), Check("w", "fw")]
    assert failing_query(checks) == (
        "SELECT 1 AS c0, 0 AS c1 FROM (fu) UNION ALL SELECT 0 AS c0, 1 AS c1 FROM (fw)"
    )


def test_rows_are_marked_apart() -> None:
    rows = cast("DataFrame", object())
    checks = [Check("u", "fu"), Check("s", rows)]
    assert failing_query(checks) == "SELECT 1 AS c0, 0 AS c1 FROM (fu)"
    assert marks(checks, 1) == ["0 AS c0", "1 AS c1"]
    assert failing_query([Check("s", rows)]) is None


def test_samples_are_limited() -> None:
    assert sample_query("SELECT 1", 20) == "SELECT * FROM (SELECT 1) LIMIT 20"


def test_not_null_of_several() -> None:
    check = not_null.build(NotNullTest(("id", "name")), SCOPE)
    assert check.predicate == "`Id` IS NULL OR `name` IS NULL"


def test_a_key_has_to_be_whole_to_be_counted() -> None:
    check = unique.build(UniqueTest(("id", "name")), SCOPE)
    assert check.failing == (
        "SELECT `Id`, `name`, count(*) AS occurrences FROM `v` "
        "WHERE `Id` IS NOT NULL AND `name` IS NOT NULL GROUP BY `Id`, `name` HAVING count(*) > 1"
    )
    assert check.key == UniqueKey(("Id", "name"))
    assert check.key.hashed(1) == (
        "CASE WHEN `Id` IS NULL OR `name` IS NULL THEN NULL ELSE xxhash64(1, `Id`, `name`) END"
    )


def test_equal_nulls_are_part_of_a_key() -> None:
    check = unique.build(UniqueTest(("id",), nulls_equal=True), SCOPE)
    assert "WHERE" not in str(check.failing)
    assert check.key is not None
    assert check.key.hashed(0) == "xxhash64(0, `Id` IS NULL, `Id`)"


@pytest.mark.parametrize("kind", ["double", "float", "array<int>", "struct<a:double>", "variant"])
def test_keys_that_spark_hashes_otherwise_than_it_groups_are_queries(kind: str) -> None:
    check = unique.build(UniqueTest(("x", "id")), replace(SCOPE, types={"x": kind, "id": "int"}))
    assert check.key is None
    assert not check.in_pass


RANGED = replace(
    SCOPE,
    types={
        "n": "int",
        "d": "decimal(9,2)",
        "f": "float",
        "day": "date",
        "at": "timestamp",
        "clock": "timestamp_ntz",
        "s": "string",
        "xs": "array<int>",
    },
)


@pytest.mark.parametrize(
    ("test", "predicate"),
    [
        (AcceptedRangeTest("N", "0", "10"), "`n` < 0 OR `n` > 10"),
        (AcceptedRangeTest("n", "0.5"), "`n` < 0.5"),
        (AcceptedRangeTest("n", None, "1e3", inclusive=False), "`n` >= 1000"),
        (AcceptedRangeTest("n", None, "1e40"), "`n` > CAST('1E+40' AS DOUBLE)"),
        (AcceptedRangeTest("d", "-1.50"), "`d` < -1.50"),
        (AcceptedRangeTest("f", "0.1"), "`f` < CAST('0.1' AS FLOAT)"),
        (AcceptedRangeTest("day", "2026-01-31"), "`day` < DATE'2026-01-31'"),
        (AcceptedRangeTest("at", "2026-01-31 10:00"), "`at` < TIMESTAMP'2026-01-31 10:00:00'"),
        (AcceptedRangeTest("clock", "2026-01-31"), "`clock` < TIMESTAMP_NTZ'2026-01-31 00:00:00'"),
        (AcceptedRangeTest("s", "a'", "b"), "`s` < :t0_min OR `s` > :t0_max"),
    ],
)
def test_ranges_are_in_the_type_of_the_column(test: AcceptedRangeTest, predicate: str) -> None:
    check = accepted_range.build(test, RANGED)
    assert check.predicate == predicate
    assert check.args == ({} if test.column != "s" else {"t0_min": "a'", "t0_max": "b"})


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (
            AcceptedRangeTest("n", "few"),
            "m.sql:4:1: `min=few` is not a value of n, which is int\n  → write it like min=0.5",
        ),
        (
            AcceptedRangeTest("n", None, "NaN"),
            "m.sql:4:1: `max=NaN` is not a value of n, which is int\n  → write it like max=0.5",
        ),
        (
            AcceptedRangeTest("day", "1.1.2026"),
            "m.sql:4:1: `min=1.1.2026` is not a value of day, which is date\n"
            "  → write it like min=2026-05-16",
        ),
        (
            AcceptedRangeTest("xs", "1"),
            "m.sql:4:1: accepted_range tests numbers, dates, times and texts, and xs is array<int>"
            "\n  → write a condition: data_test expression ...",
        ),
    ],
)
def test_a_bound_that_the_column_cannot_be(test: AcceptedRangeTest, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        accepted_range.build(test, RANGED)
    assert str(caught.value) == message


def test_a_condition_fails_where_it_is_false() -> None:
    check = expression.build(ExpressionTest("id > 0 -- positive"), SCOPE)
    assert check.predicate == "NOT (id > 0 -- positive\n)"
    assert check.proof is not None
    assert check.proof.columns == ("Id",)


def test_a_condition_in_the_dialect_of_the_script() -> None:
    duckdb = replace(SCOPE, dialect="duckdb")
    check = expression.build(ExpressionTest("name ~ 'a' AND id::DOUBLE > 0"), duckdb)
    assert "::" not in str(check.predicate)


def test_row_count() -> None:
    check = expression.build_row_count(RowCountTest(1, 9), SCOPE)
    assert check.aggregate == Aggregate("count(*) >= 1 AND count(*) <= 9")
    assert check.failing == (
        "SELECT count(*) AS row_count FROM `v` HAVING NOT (count(*) >= 1 AND count(*) <= 9)"
    )


PASS = (
    Check("a", "", predicate="pa"),
    Check("k", "", key=UniqueKey(("id",))),
    Check("n", "", aggregate=Aggregate("avg(`x`) > 1", ("x",))),
    Check("b", "", predicate="pb"),
)


def test_one_pass_reads_what_its_tests_need() -> None:
    key = "CASE WHEN `id` IS NULL THEN NULL ELSE xxhash64(0, `id`) END"
    assert one_pass.pass_query(PASS, [UniqueKey(("id",))], "v") == (
        f"SELECT `x`, CASE WHEN (pa) OR (pb) THEN 1L ELSE {key} END AS penstock_key_0 FROM `v`"
    )
    assert one_pass.pass_query(PASS, [], "v") == (
        "SELECT `x`, CASE WHEN (pa) OR (pb) THEN 1 ELSE 0 END AS penstock_rows FROM `v`"
    )
    assert one_pass.pass_query([Check("n", "", aggregate=Aggregate("true"))], [], "v") == (
        "SELECT 1 FROM `v`"
    )
    assert one_pass.metrics({2: Aggregate("avg(`x`) > 1", ("x",))}) == {
        "penstock_2": "CASE WHEN NOT (avg(`x`) > 1) THEN 1 ELSE 0 END"
    }


def test_failing_rows_say_of_which_tests() -> None:
    assert one_pass.failing_rows({0: PASS[0], 3: PASS[3]}, "v") == (
        "SELECT CASE WHEN pa THEN 1 ELSE 0 END AS penstock_0, "
        "CASE WHEN pb THEN 1 ELSE 0 END AS penstock_3 FROM `v` WHERE (pa) OR (pb)"
    )


ID, NAME = UniqueKey(("id",)), UniqueKey(("name",))
BOTH, ID_NULLS = UniqueKey(("id", "name")), UniqueKey(("id",), nulls_equal=True)


@pytest.mark.parametrize(
    ("keys", "hashed"),
    [
        ([BOTH, ID], [ID]),
        ([ID, NAME, BOTH, ID], [ID, NAME]),
        ([ID, ID_NULLS], [ID_NULLS]),
        ([ID, UniqueKey(("id", "name"), nulls_equal=True)], None),
    ],
)
def test_keys_that_follow_from_others_are_not_hashed(
    keys: list[UniqueKey], hashed: list[UniqueKey] | None
) -> None:
    assert one_pass.distinct_keys(keys) == (keys if hashed is None else hashed)


def test_the_query_of_a_failure_is_one_that_a_user_can_run() -> None:
    check = accepted_values.build(AcceptedValuesTest("name", ("it's", "\\")), SCOPE)
    assert shown(check, "v", "`main`.`main`.`t`") == (
        "SELECT * FROM `main`.`main`.`t` WHERE `name` IS NOT NULL "
        "AND NOT CAST(`name` AS STRING) IN ('it\\'s', '\\\\')"
    )
