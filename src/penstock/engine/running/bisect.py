"""Bisection of a batch: which of its slices can be made, and which pass their tests, where all of
them together do not. Pure.

Tests that rows pass together only if those of each slice do (`MONOTONE`) are evaluated over all
slices, and by halves where that fails; others over each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Generic, TypeVar

from penstock.engine.results import CheckResult
from penstock.model.time.interval import Interval, Intervals, IntervalUnit, split, union
from penstock.model.time.slice import Slice

MOST = 400  # parts of a range that are tested one by one: days of a year
Checks = tuple[CheckResult, ...]
T = TypeVar("T")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Divide(Generic[T]):
    """An answer about some items: it is to be asked about each of these groups of them."""

    groups: Sequence[Sequence[T]]


def bisect(
    groups: Iterable[Sequence[T]], ask: Callable[[Sequence[T]], Answer | Divide[T]]
) -> Iterator[tuple[Sequence[T], Answer]]:
    """The answers about groups, in their order."""
    left = list(groups)
    while left:
        group = left.pop(0)
        answer = ask(group)
        if isinstance(answer, Divide):
            left[:0] = answer.groups
        else:
            yield group, answer


def halves(items: Sequence[T]) -> Divide[T]:
    middle = len(items) // 2
    return Divide((items[:middle], items[middle:]))


def singly(items: Sequence[T]) -> Divide[T]:
    return Divide([(item,) for item in items])


@dataclass(frozen=True, slots=True)
class Verdict:
    """The results of a slice's tests, or of a part's."""

    slice: Slice
    checks: Checks = ()

    @property
    def failed(self) -> Checks:
        return tuple(check for check in self.checks if check.outcome == "failed")


def tested(
    items: Sequence[T], test: Callable[[Sequence[T]], Checks], *, together: bool
) -> Iterator[tuple[Sequence[T], Checks]]:
    """The results of groups as large as they pass, and of single items that do not."""

    def ask(group: Sequence[T]) -> Checks | Divide[T]:
        checks = test(group)
        passes = len(group) == 1 or all(check.passed for check in checks)
        return checks if passes else halves(group)

    return bisect([items] if together else singly(items).groups, ask)


def verdicts(
    units: Sequence[Interval], test: Callable[[Interval], Checks], *, together: bool
) -> list[Verdict]:
    """Test a range of these units, which touch: what passes is as large as it can be, what fails
    is by units, or by parts of several where there are more than `MOST` of them.
    """
    size = -(-len(units) // MOST)
    parts = [_hull(units[first : first + size]) for first in range(0, len(units), size)]
    found = tested(parts, lambda group: test(_hull(group)), together=together)
    return _joined([Verdict(_hull(group), checks) for group, checks in found])


def passing(found: Sequence[Verdict]) -> Intervals:
    return union(
        each.slice for each in found if not each.failed and isinstance(each.slice, Interval)
    )


def parts_to_make(
    interval: Interval, unit: IntervalUnit, is_lost: Callable[[Slice], bool], *, in_order: bool
) -> list[Interval]:
    """Divide an interval where some of its units cannot be made: neighbours that can are one part,
    and those that cannot another. In an order nothing is made after the first that cannot.
    """
    units = list(split(interval, unit))
    lost = list(map(is_lost, units))
    if in_order and True in lost:
        first = lost.index(True)
        lost[first:] = [True] * (len(lost) - first)
    groups = groupby(zip(lost, units, strict=True), key=lambda each: each[0])
    return [_hull([each for _, each in group]) for _, group in groups]


def _hull(parts: Sequence[Interval]) -> Interval:
    return Interval(parts[0].start, parts[-1].end)


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
