from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from penstock.scheduler.freshness import (
    Late,
    find_first_wait,
    find_overdue_since,
    is_late,
    is_overdue,
    late_events,
)
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import (
    WHOLE,
    Age,
    Agenda,
    EventKind,
    Firing,
    FiringState,
    FreshnessMark,
)

MODEL = "main.main.orders"
NOW = datetime(2026, 5, 16, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
TICK = timedelta.resolution


def _late(
    built: timedelta | None,
    changed: timedelta | None,
    mark: tuple[int, timedelta] | None = None,
    *,
    freshness: timedelta = 16 * HOUR,
    key: str = WHOLE,
    open_key: str | None = None,
) -> Late:
    """Judge a slice whose times are given as how long ago they were."""
    age = Age(MODEL, key, *(None if ago is None else NOW - ago for ago in (built, changed)))
    marks = {(MODEL, key): FreshnessMark(MODEL, key, mark[0], NOW - mark[1])} if mark else {}
    firing = Firing("f", MODEL, open_key or WHOLE, EventKind.ASSET, NOW, FiringState.RUNNING)
    firings = {} if open_key is None else {"f": firing}
    agenda = Agenda(firings, freshness=marks, ages=(age,))
    return late_events({MODEL: Subscription(MODEL, freshness=freshness)}, agenda, NOW)


def test_a_slice_is_late_when_it_is_older_than_its_freshness() -> None:
    age = Age(MODEL, WHOLE, NOW - HOUR)
    assert not is_late(age, HOUR, NOW)
    assert is_late(age, HOUR, NOW + TICK)
    assert is_late(Age(MODEL, WHOLE, None), HOUR, NOW)


@pytest.mark.parametrize(
    ("age", "since"),
    [
        (Age(MODEL, WHOLE, NOW - 2 * HOUR), "never"),
        (Age(MODEL, WHOLE, NOW - HOUR, NOW), "never"),
        (Age(MODEL, WHOLE, NOW - 3 * HOUR, NOW - MINUTE), NOW - MINUTE),
        (Age(MODEL, WHOLE, NOW - 3 * HOUR, NOW - 150 * MINUTE), NOW - 2 * HOUR),
        (Age(MODEL, WHOLE, None), None),
        (Age(MODEL, "a", None, due_at=NOW - HOUR), "never"),
        (Age(MODEL, "a", None, due_at=NOW - 2 * HOUR), NOW - HOUR),
    ],
)
def test_a_slice_is_overdue_if_it_could_be_newer(age: Age, since: datetime | str | None) -> None:
    assert is_overdue(age, HOUR, NOW) == (since != "never")
    if since != "never":
        assert find_overdue_since(age, HOUR) == since


def test_the_first_wait_is_a_minute_or_a_part_of_the_freshness() -> None:
    waits = [find_first_wait(each) for each in (MINUTE / 2, HOUR / 4, 16 * HOUR)]
    assert waits == [MINUTE / 2, MINUTE, HOUR]


def test_a_late_slice_with_new_inputs_fires() -> None:
    late = _late(17 * HOUR, HOUR, key="2026-05-15")
    (event,) = late.events
    assert event.id == f"freshness:{MODEL}/2026-05-15@2026-05-16T12:00:00+00:00"
    assert (event.kind, event.source, event.partition) == (
        EventKind.FRESHNESS,
        MODEL,
        "2026-05-15",
    )
    assert event.time == event.fire_time == NOW
    assert late.marks == (FreshnessMark(MODEL, "2026-05-15", 1, NOW),)


@pytest.mark.parametrize("changed", [None, HOUR])
def test_a_slice_that_was_never_built_fires_once(changed: timedelta | None) -> None:
    assert len(_late(None, changed).events) == 1
    assert _late(None, None, (1, 40 * HOUR)) == Late()


def test_a_late_slice_waits_for_its_inputs() -> None:
    assert _late(17 * HOUR, None) == Late()
    assert _late(17 * HOUR, 3 * HOUR, (1, 2 * HOUR)) == Late()
    assert _late(17 * HOUR, 2 * HOUR, (1, 2 * HOUR)) == Late()


def test_a_fresh_slice_is_looked_at_when_it_becomes_late() -> None:
    late = _late(15 * HOUR, HOUR, (3, 15.5 * HOUR))
    assert late == Late((), (FreshnessMark(MODEL, WHOLE, 0, NOW - 15.5 * HOUR),), NOW + HOUR + TICK)
    assert is_late(Age(MODEL, WHOLE, NOW - 15 * HOUR), 16 * HOUR, late.wakes_at or NOW)


@pytest.mark.parametrize(
    ("attempts", "freshness", "wait"),
    [
        (1, 16 * HOUR, HOUR),
        (2, 16 * HOUR, 2 * HOUR),
        (4, 16 * HOUR, 8 * HOUR),
        (5, 16 * HOUR, 16 * HOUR),
        (900, 16 * HOUR, 16 * HOUR),
        (1, 8 * MINUTE, MINUTE),
        (3, 8 * MINUTE, 4 * MINUTE),
        (4, 8 * MINUTE, 8 * MINUTE),
        (5, MINUTE / 2, MINUTE / 2),
    ],
)
def test_attempts_wait_twice_as_long_each_up_to_the_freshness(
    attempts: int, freshness: timedelta, wait: timedelta
) -> None:
    built = freshness + wait + HOUR
    early = _late(built, TICK, (attempts, wait - TICK), freshness=freshness)
    assert early == Late(wakes_at=NOW + TICK)
    due = _late(built, TICK, (attempts, wait), freshness=freshness)
    assert due.marks == (FreshnessMark(MODEL, WHOLE, attempts + 1, NOW),)


def test_a_build_after_the_attempts_ends_the_wait() -> None:
    late = _late(17 * HOUR, MINUTE, (5, 18 * HOUR))
    assert late.marks == (FreshnessMark(MODEL, WHOLE, 1, NOW),)
    assert len(late.events) == 1


@pytest.mark.parametrize(("open_key", "number"), [("a", 0), (WHOLE, 0), ("b", 1)])
def test_an_open_firing_of_the_slice_renews_it(open_key: str, number: int) -> None:
    assert len(_late(17 * HOUR, HOUR, key="a", open_key=open_key).events) == number


def test_an_attempt_of_the_future_is_marked_with_the_moment() -> None:
    late = _late(17 * HOUR, HOUR, (2, -1000 * HOUR))
    assert late == Late(marks=(FreshnessMark(MODEL, WHOLE, 2, NOW),))
    assert _late(17 * HOUR, HOUR, (2, timedelta())) == Late()


def test_models_without_freshness_lose_their_marks() -> None:
    mark = FreshnessMark(MODEL, WHOLE, 3, NOW)
    agenda = Agenda(freshness={(MODEL, WHOLE): mark}, ages=(Age(MODEL, WHOLE, None),))
    removed = late_events({MODEL: Subscription(MODEL)}, agenda, NOW)
    assert removed == Late(marks=(FreshnessMark(MODEL, WHOLE, 0, NOW),))
    assert late_events({}, agenda, NOW) == Late()
