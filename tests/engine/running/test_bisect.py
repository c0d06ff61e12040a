"""Which intervals of a range pass their tests, and over which parts that is asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.engine.results import CheckResult
from penstock.engine.running import bisect
from penstock.engine.running.bisect import Verdict, passing, verdicts
from penstock.model.time.interval import Interval

BEGIN, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(1)


def days(first: int, last: int) -> Interval:
    return Interval(BEGIN + (first - 1) * DAY, BEGIN + last * DAY)


class Asked:
    """A test that fails on some days, or on parts that hold one; what it was asked for."""

    def __init__(self, *bad: int, severity: str = "error") -> None:
        self.asked: list[str] = []
        self._bad, self._severity = [days(day, day) for day in bad], severity

    def __call__(self, interval: Interval) -> tuple[CheckResult, ...]:
        self.asked.append(str(interval))
        failures = sum(interval.contains(day) for day in self._bad)
        return (CheckResult("t", not failures, failures, severity=self._severity),)


def found(tests: Asked, count: int, *, together: bool) -> list[Verdict]:
    units = [days(day, day) for day in range(1, count + 1)]
    return verdicts(units, tests, together=together)


def test_a_range_that_passes_is_looked_at_once() -> None:
    tests = Asked()
    (verdict,) = found(tests, 31, together=True)
    assert (verdict.slice, tests.asked) == (days(1, 31), ["2026-01-01 to 2026-01-31"])


def test_halves_find_the_days_that_fail() -> None:
    tests = Asked(3, 4)
    results = found(tests, 8, together=True)
    assert [str(each.slice) for each in results if each.failed] == ["2026-01-03", "2026-01-04"]
    assert passing(results) == (days(1, 2), days(5, 8))
    assert len(tests.asked) == 7


def test_a_test_of_all_rows_is_asked_of_each_day() -> None:
    tests = Asked(2)
    results = found(tests, 3, together=False)
    assert len(tests.asked) == 3
    assert [each.slice for each in results] == [days(1, 1), days(2, 2), days(3, 3)]


def test_warnings_are_counted_and_keep_nothing_out() -> None:
    (verdict,) = found(Asked(1, 3, severity="warn"), 3, together=False)
    assert (verdict.slice, verdict.checks[0].failures, verdict.failed) == (days(1, 3), 2, ())


def test_many_intervals_are_tested_by_parts() -> None:
    tests = Asked(1)
    results = found(tests, 2 * bisect.MOST + 1, together=False)
    assert len(tests.asked) < bisect.MOST
    assert passing(results) == (days(4, 2 * bisect.MOST + 1),)
