"""Quarantine: write rows that fail a data test to ``<table>_rejected``.

A step tests the rows of a slice before it writes them. The same transaction writes the rejected
rows, with their tests, run and slice. A rerun of a slice replaces its rejected rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.engine.checks.check import Scope, quoted
from penstock.engine.checks.run import build
from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.results import CheckResult
from penstock.engine.running.bisect import Verdict
from penstock.errors import ArgumentError, NotFound
from penstock.model.values.data_test import QUARANTINE, REJECTED
from penstock.spark.functions import fn, run_sql
from penstock.sql.literals import text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.engine.running.attempt import Attempt
    from penstock.model.values.asset import Asset, TableName

TESTS, RUN, SLICE = "_rejected_tests", "_rejected_run", "_rejected_slice"


def rejected_table(attempt: Attempt) -> TableName:
    """Return the table of the rows that were set aside."""
    target = attempt.model.target
    return replace(target, table=target.table + REJECTED)


def passing_rows(attempt: Attempt, df: DataFrame, *, joint: bool = False) -> DataFrame:
    """Return the rows to write, and stage those that fail a quarantine test beside the table.

    ``joint``: the managed column has the slice of each row.
    """
    predicates = _predicates(attempt, df)
    if not predicates:
        return df
    marked = _marked(attempt, df, predicates).persist()  # evaluated once: good and bad rows add up
    attempt.held.callback(marked.unpersist)
    is_good = fn.size(TESTS) == 0
    label = fn.col(attempt.column) if joint else fn.lit(attempt.planned.only.text)
    bad = marked.where(~is_good).withColumns(
        {RUN: fn.lit(attempt.context.run_id), SLICE: label.cast("string")}
    )
    _count(attempt, bad)
    _stage(attempt, bad.drop(attempt.column) if joint else bad)
    return marked.where(is_good).drop(TESTS)


def _predicates(attempt: Attempt, df: DataFrame) -> dict[str, tuple[str, dict[str, object]]]:
    """Return the condition of the failing rows of each quarantine test, with its bound values."""

    def refuse(_: Asset) -> NotFound:
        raise ArgumentError("a test that reads another table is not of each row on its own")

    predicates: dict[str, tuple[str, dict[str, object]]] = {}
    for number, (test, place) in enumerate(attempt.model.placed_tests):
        if test.severity != QUARANTINE:
            continue
        scope = Scope(
            view="rows",
            types=dict(df.dtypes),
            prefix=f"q{number}",
            location=place,
            tables=refuse,  # type: ignore[arg-type]  # it never returns
            scripts=refuse,  # type: ignore[arg-type]  # it never returns
            dialect=attempt.model.query.dialect,
        )
        check = build(test, scope)
        if check.predicate is None:
            raise ArgumentError(
                f"data test {test.name} does not test single rows: it cannot quarantine",
                hint="write severity=warn or severity=error",
                location=place,
            )
        condition, args = predicates.get(test.name, ("FALSE", {}))  # two of a kind on one column
        predicates[test.name] = f"{condition} OR ({check.predicate})", {**args, **check.args}
    return predicates


def _marked(
    attempt: Attempt, df: DataFrame, predicates: dict[str, tuple[str, dict[str, object]]]
) -> DataFrame:
    """Return the rows with the names of the tests that they fail."""
    view = attempt.views.name()
    attempt.views.put(view, df)
    failed = ", ".join(
        f"CASE WHEN {condition} THEN {text_literal(name)} END"
        for name, (condition, _) in predicates.items()
    )
    args = {name: value for _, bound in predicates.values() for name, value in bound.items()}
    tests = f"filter(array({failed}), name -> name IS NOT NULL) AS {TESTS}"
    return run_sql(attempt.context.session, f"SELECT *, {tests} FROM {quoted(view)}", args=args)


def _count(attempt: Attempt, bad: DataFrame) -> None:
    """Remember how many rows of each slice fail each test, and report the number of rows."""
    tests = bad.select(SLICE, fn.explode(TESTS).alias("test")).groupBy(SLICE, "test").count()
    for row in tests.collect():
        attempt.rejected.setdefault(row[SLICE], {})[row["test"]] = row["count"]


def _stage(attempt: Attempt, bad: DataFrame) -> None:
    table = attempt.tx.table(table_name(rejected_table(attempt)))
    if not table.exists and not attempt.rejected:
        return
    attempt.tx.create_schema(attempt.model.target.schema)
    if table.exists:
        table.evolve(bad)
        for slice_ in attempt.planned.slices:
            table.drop_slice(SLICE, slice_.text)
    if attempt.rejected:
        table.append(bad)


def counted(attempt: Attempt, verdict: Verdict) -> Verdict:
    """Return the verdict with the rows that its quarantine tests set aside."""
    failures = attempt.rejected.get(verdict.slice.text, {})
    if not failures:
        return verdict
    return replace(
        verdict, checks=tuple(_with_rows(attempt, check, failures) for check in verdict.checks)
    )


def _with_rows(attempt: Attempt, check: CheckResult, failures: dict[str, int]) -> CheckResult:
    if check.severity != QUARANTINE or check.name not in failures:
        return check
    table = rejected_table(attempt).qualified
    query = f"SELECT * FROM {table} WHERE array_contains({TESTS}, {text_literal(check.name)})"
    return replace(check, passed=False, failures=failures[check.name], query=query)
