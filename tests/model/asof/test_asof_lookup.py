"""The search in sorted arrays, worked out in Python as its text says: each halving adds a power."""

from __future__ import annotations

import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable

import pytest

from penstock.model.asof.asof_lookup import arrays, joined, search

OPERATORS: dict[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
TIMES = [3, 3, 5, 8, 13, 21]


def nearest(sign: str, time: int, times: list[int]) -> int | None:
    """Return what Spark would: a place behind the array is NULL, which matches nothing."""
    head, closing = search(sign, "t")
    assert head.count("(") - head.count(")") == len(closing), "each halving is closed"
    ascending = ", true) AS a" in arrays(sign, 1)[0]
    a = sorted(times, reverse=not ascending)
    p = 0
    for place, size in reversed(re.findall(r"get\(a, p \+ (\d+)\)\.t, (\d+), 0\) AS p", head)):
        at = p + int(place)
        p += int(size) if at < len(a) and OPERATORS[sign](time, a[at]) else 0
    return a[p - 1] if p else None


@pytest.mark.parametrize("time", range(24))
def test_the_search_finds_the_nearest_that_matches(time: int) -> None:
    before, after = bisect_right(TIMES, time), bisect_left(TIMES, time)
    assert nearest(">=", time, TIMES) == (TIMES[before - 1] if before else None)
    assert nearest(">", time, TIMES) == (TIMES[after - 1] if after else None)
    assert nearest("<=", time, TIMES) == (TIMES[after] if after < len(TIMES) else None)
    assert nearest("<", time, TIMES) == (TIMES[before] if before < len(TIMES) else None)


def test_long_arrays_are_searched_whole() -> None:
    times = list(range(0, 2000, 2))
    assert [nearest(">=", t, times) for t in range(1999)] == [t - t % 2 for t in range(1999)]


def test_an_array_holds_the_rows_of_its_keys() -> None:
    head, tail = arrays(">=", 2)
    assert head.startswith("SELECT k0, k1, sort_array(collect_list(struct(k2 AS t, d)), true) AS a")
    assert tail == ") GROUP BY k0, k1"
    assert arrays("<", 0)[1] == ")"


def test_keys_match_as_the_condition_compares_them() -> None:
    assert joined([False, True]) == "l.k0 = x.k0 AND l.k1 <=> x.k1"
    assert joined([]) == "true"
