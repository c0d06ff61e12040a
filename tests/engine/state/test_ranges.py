"""Ranges of time that are published: trimmed and split by later ones."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.engine.state import ranges
from penstock.engine.state.ranges import RangeRecord, forget_ranges, made, publish_range
from penstock.engine.state.store import State, forget, publish
from penstock.model.interval import Interval
from tests.engine.state.builders import START, at, publication, run_record


def days(first: int, last: int) -> Interval:
    """From the first of these days of January up to the start of the last."""
    return Interval(datetime(2026, 1, first, tzinfo=UTC), datetime(2026, 1, last, tzinfo=UTC))


def record(first: int, last: int, run: str = "r1", rows: int = 9) -> RangeRecord:
    return RangeRecord("main.a", days(first, last), run, 1, rows, f"by {run}", START)


def known(state: State) -> list[RangeRecord]:
    none = list[RangeRecord]()
    return state.read(lambda connection: ranges.ranges(connection, "main.a"), none)


def after(state: State, *records: RangeRecord) -> list[RangeRecord]:
    state.begin_run(run_record())
    for each in records:
        state.write(lambda connection, each=each: publish_range(connection, each))  # type: ignore[misc]
    return known(state)


@pytest.mark.parametrize(
    ("later", "left"),
    [
        ((5, 8), [(1, 5, "r1"), (5, 8, "r2"), (8, 11, "r1")]),
        ((1, 11), [(1, 11, "r2")]),
        ((9, 15), [(1, 9, "r1"), (9, 15, "r2")]),
        ((11, 12), [(1, 11, "r1"), (11, 12, "r2")]),
    ],
)
def test_a_later_range_takes_its_time_from_others(
    state: State, later: tuple[int, int], left: list[tuple[int, int, str]]
) -> None:
    found = after(state, record(1, 11), record(*later, run="r2"))
    assert [(each.interval, each.run_id) for each in found] == [
        (days(first, last), run) for first, last, run in left
    ]
    assert made(found) == (days(1, max(11, later[1])),)
    assert made(found, "by r2") == (days(*later),)
    whole = [each for each in found if each.run_id == "r1" and each.interval == days(1, 11)]
    assert all(each.rows is None for each in found if each.run_id == "r1" and each not in whole)


def test_a_range_is_published_as_any_slice_is(state: State) -> None:
    state.begin_run(run_record())
    what = publication(interval=days(1, 3), slice=days(1, 3).text, at=at(1))
    state.write(lambda connection: publish(connection, 7, what))
    found = known(state)
    assert [(each.interval, each.snapshot_id, each.rows) for each in found] == [(days(1, 3), 7, 3)]
    assert state.slices("main.a") == []


def test_what_is_dropped_is_no_longer_there(state: State) -> None:
    after(state, record(1, 11))
    state.write(lambda connection: forget_ranges(connection, "main.a", days(2, 3)))
    found = known(state)
    assert made(found) == (days(1, 2), days(3, 11))
    state.write(lambda connection: forget(connection, "main.a", None, at(5)))
    assert known(state) == []
