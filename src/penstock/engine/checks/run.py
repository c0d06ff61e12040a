"""Run the tests of a step: one Spark query counts failures, one more per failed test shows some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.engine.checks.check import Check, assign_counts, counting_query, sample_query
from penstock.engine.results import CheckResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_checks(
    session: SparkSession, checks: Sequence[Check], view: str
) -> tuple[CheckResult, ...]:
    """Results in the order of ``checks``, which were built over ``view``."""
    if not checks:
        return ()
    args: dict[str, Any] = {name: value for check in checks for name, value in check.args.items()}
    rows = session.sql(counting_query(checks, view), args=args).collect()
    failures = assign_counts(checks, {row["leg"]: row["counts"] for row in rows})
    return tuple(
        CheckResult(
            name=check.name,
            passed=count == 0,
            failures=count,
            samples=_samples(session, check) if count else (),
        )
        for check, count in zip(checks, failures, strict=True)
    )


def _samples(session: SparkSession, check: Check) -> tuple[Mapping[str, Any], ...]:
    rows = session.sql(sample_query(check), args=dict(check.args)).collect()
    return tuple(row.asDict(recursive=True) for row in rows)
