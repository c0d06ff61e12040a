"""Slices: their texts, and which slices of a reader need which of what it reads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.model.time.interval import Interval
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.slice import WHOLE, Part, Slice, described, meets

DAILY, MONTHLY, DYNAMIC = (
    PartitionSpec("daily"),
    PartitionSpec("monthly"),
    PartitionSpec("dynamic", key="$.k"),
)
HOUR = Interval(datetime(2026, 1, 1, 5, tzinfo=UTC), datetime(2026, 1, 1, 6, tzinfo=UTC))


def test_texts() -> None:
    days = [Part("2026-01-01"), Part("2026-01-02")]
    assert described([WHOLE]) is None
    assert described(days[:1]) == "2026-01-01"
    assert described(days) == "2026-01-01 to 2026-01-02 (2 slices)"
    assert described([HOUR]) == "2026-01-01T05:00Z to 2026-01-01T06:00Z"
    assert (WHOLE.text, days[0].text) == ("", "2026-01-01")


@pytest.mark.parametrize(
    ("mine", "of_mine", "other", "of_other", "needs"),
    [
        (Part("2026-01-01"), DAILY, Part("2026-01-01"), DAILY, True),
        (Part("2026-01-01"), DAILY, Part("2026-01-02"), DAILY, False),
        (Part("2026-01"), MONTHLY, Part("2026-01-31"), DAILY, True),
        (Part("2026-02"), MONTHLY, Part("2026-01-31"), DAILY, False),
        (Part("2026-01-01"), DAILY, HOUR, None, True),
        (Part("2026-01-02"), DAILY, HOUR, None, False),
        (WHOLE, None, Part("2026-01-31"), DAILY, True),
        (Part("2026-01-31"), DAILY, WHOLE, None, True),
        (Part("eu"), DYNAMIC, Part("2026-01-31"), DAILY, True),
    ],
)
def test_a_reader_needs_slices_with_a_moment_in_common(
    mine: Slice,
    of_mine: PartitionSpec | None,
    other: Slice,
    of_other: PartitionSpec | None,
    needs: bool,
) -> None:
    assert meets(of_mine, [other], of_other)(mine) is needs
    assert not meets(of_mine, [], of_other)(mine)
