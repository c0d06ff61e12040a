"""Ten data tests of a step against one of them, over the same slice, all passing.

One test is ``unique id``, which shuffles; the ten are that and nine more, of which one is unique
wherever ``id`` is. The notes have ten with a second key of its own, and ten tests of rows alone
against one ``not_null``, which reads a single column and shuffles nothing.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench import harness, scan
from penstock.destinations.values import Rows
from penstock.engine.checks.check import Check, ReferencedTable, Scope
from penstock.engine.checks.run import build, run_checks
from penstock.model.values.asset import Asset
from penstock.model.values.data_test import (
    AcceptedRangeTest,
    AcceptedValuesTest,
    CustomTest,
    DataTest,
    ExpressionTest,
    NotNullTest,
    RowCountTest,
    UniqueTest,
)

VIEW = "tested"
STATES = ("new", "paid", "sent", "back")
OF_ROWS: tuple[DataTest, ...] = (
    NotNullTest(("account",)),
    NotNullTest(("amount", "ordered_at")),
    NotNullTest(("state",)),
    AcceptedValuesTest("state", STATES),
    AcceptedRangeTest("amount", "0", "10000"),
    ExpressionTest("account >= 0"),
    ExpressionTest("amount >= 0 OR state = 'back'"),
    RowCountTest(1),
)
KEY, WIDER, OTHER = UniqueTest(("id",)), UniqueTest(("id", "state")), UniqueTest(("ordered_at",))
MORE = (AcceptedRangeTest("account", "0"), ExpressionTest("id >= 0"))
SIDES: dict[str, tuple[DataTest, ...]] = {
    "one key": (KEY,),
    "ten, one key": (KEY, WIDER, *OF_ROWS),
    "ten, two keys": (KEY, OTHER, *OF_ROWS),
    "one of rows": OF_ROWS[:1],
    "ten of rows": (*OF_ROWS, *MORE),
}


def checks(tests: tuple[DataTest, ...], frame: DataFrame) -> list[Check]:
    """The tests over the view that `VIEW` names, as a step builds them."""
    types = dict(frame.dtypes)
    return [
        build(test, Scope(VIEW, types, f"t{number}", None, _no_table, _no_script))
        for number, test in enumerate(tests)
    ]


def _no_table(asset: Asset) -> ReferencedTable:
    raise AssertionError(f"no test reads {asset.path}")


def _no_script(test: CustomTest) -> tuple[Rows, str]:
    raise AssertionError(f"{test.path} is not a script")


def sides(spark: SparkSession, work: Path, rows: int) -> list[harness.Side]:
    frame = scan.fill(spark, work, rows).table("main.orders").to_df()
    frame.createOrReplaceTempView(VIEW)
    built = {name: checks(tests, frame) for name, tests in SIDES.items()}
    return [_side(spark, name, those) for name, those in built.items()]


def _side(spark: SparkSession, name: str, those: list[Check]) -> harness.Side:
    def run() -> None:
        failed = [failures.count for failures in run_checks(spark, those, VIEW, 20)]
        if any(failed):
            raise SystemExit(f"{name}: tests failed on {failed} rows")

    return harness.Side(name, run)


def main() -> None:
    options = harness.options("data_tests", __doc__, rows=10_000_000, rounds=5)
    before = harness.load()
    with harness.scratch(options.work) as work, harness.session(work) as spark:
        seconds = harness.race(sides(spark, work, options.rows), options.rounds)
    two = harness.ratio(seconds, "ten, two keys", "one key")
    of_rows = harness.ratio(seconds, "ten of rows", "one of rows")
    figure = harness.Figure(
        "Ten data tests against one",
        harness.ratio(seconds, "ten, one key", "one key"),
        1.30,
        note=f"{two:.2f} x with a second key; {of_rows:.2f} x ten tests of rows against one",
    )
    report = harness.Report(
        "data_tests", (figure,), seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


if __name__ == "__main__":
    main()
