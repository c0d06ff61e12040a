"""Data tests of each interval of a range that one query made. Pure.

Tests that rows pass together only if those of each interval do (`MONOTONE`) are evaluated over the
whole range, and by halves where that fails; others over each interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from penstock.engine.results import CheckResult
from penstock.model.time.interval import Interval, Intervals, union
from penstock.model.time.slice import Slice

MOST = 400  # parts of a range that are tested by themselves: days of a year
Checks = tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The results of a slice's tests, or of a part's."""

    slice: Slice
    checks: Checks = ()

    @property
    def failed(self) -> Checks:
        return tuple(check for check in self.checks if check.outcome == "failed")


def verdicts(
    units: Sequence[Interval], test: Callable[[Interval], Checks], *, together: bool
) -> list[Verdict]:
    """Those of a range of these units, which touch: what passes as large as it can be, and what
    fails by units; by parts of several where there are more than `MOST` of them.
    """
    size = -(-len(units) // MOST)
    parts = [_hull(units[first : first + size]) for first in range(0, len(units), size)]
    found: list[tuple[Interval, Checks]] = []
    left = [parts] if together else [[part] for part in parts]
    while left:
        some = left.pop(0)
        checks = test(_hull(some))
        if len(some) > 1 and not all(check.passed for check in checks):
            half = len(some) // 2
            left = [some[:half], some[half:], *left]
        else:
            found.append((_hull(some), checks))
    return _joined([Verdict(*each) for each in found])


def passing(found: Sequence[Verdict]) -> Intervals:
    return union(
        each.slice for each in found if not each.failed and isinstance(each.slice, Interval)
    )


def _joined(found: Sequence[Verdict]) -> list[Verdict]:
    """Neighbours that pass as one."""
    made: list[Verdict] = []
    for each in found:
        if made and not made[-1].failed and not each.failed:
            slices = [part.slice for part in (made[-1], each) if isinstance(part.slice, Interval)]
            made[-1] = Verdict(_hull(slices), _sum(made[-1].checks, each.checks))
        else:
            made.append(each)
    return made


def _sum(checks: Checks, others: Checks) -> Checks:
    return tuple(
        replace(
            check,
            passed=check.passed and other.passed,
            failures=check.failures + other.failures,
            samples=check.samples or other.samples,
        )
        for check, other in zip(checks, others, strict=True)
    )


def _hull(parts: Sequence[Interval]) -> Interval:
    return Interval(parts[0].start, parts[-1].end)
