from __future__ import annotations

import pytest
from bench.spark_jobs import Interval, covered


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([], 0.0),
        ([(2.0, 3.0)], 1.0),
        ([(2.0, 4.0), (3.0, 5.0)], 3.0),  # overlapping jobs count once
        ([(2.0, 6.0), (3.0, 4.0)], 4.0),  # one inside another
        ([(6.0, 7.0), (2.0, 3.0)], 2.0),  # in any order
        ([(-5.0, 1.0), (9.0, 20.0)], 2.0),  # cut at the window's ends
        ([(-5.0, -1.0), (11.0, 12.0)], 0.0),  # outside of it
    ],
)
def test_covered_is_the_length_of_the_union(jobs: list[Interval], expected: float) -> None:
    assert covered((0.0, 10.0), jobs) == expected
