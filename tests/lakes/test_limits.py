from __future__ import annotations

import pytest

from penstock.lakes.limits import LIMITS


@pytest.mark.parametrize(
    ("rows", "width", "expected"),
    [(1_000_000, 56, True), (3_000_000, 24, True), (10_000_000, 24, False)],
)
def test_a_broadcast_counts_what_each_row_takes_in_the_hash_table(
    rows: int, width: int, expected: bool
) -> None:
    assert LIMITS.broadcasts(rows, width) is expected
