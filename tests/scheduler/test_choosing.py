"""Which queued firings start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.choosing import choose_next
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import WHOLE, Agenda, EventKind, Firing, FiringState
from tests.scheduler.building import MINUTE, NOON, by_model

DAILY, MONTHLY = PartitionSpec("daily"), PartitionSpec("monthly")
BACKFILL = EventKind.BACKFILL
RUNNING = FiringState.RUNNING


def firing(
    identity: str, model: str = "", key: str = WHOLE, *, minute: int = 0, **more: Any
) -> Firing:
    """Return a queued firing of a schedule at noon; without a model, of one with its own id."""
    queued_at = NOON + minute * MINUTE
    base = Firing(identity, model or identity, key, EventKind.SCHEDULE, NOON, queued_at=queued_at)
    return replace(base, **more)


def chosen(
    firings: Iterable[Firing], *readers: Subscription, slots: int = 10, share: float = 0.5
) -> list[str]:
    agenda = Agenda({item.id: item for item in firings})
    return [item.id for item in choose_next(agenda, by_model(*readers), slots, share)]


def test_the_longest_queued_start_in_free_slots() -> None:
    firings = [firing("c", minute=2), firing("b", minute=1), firing("a", minute=1), firing("d")]
    assert chosen(firings, slots=3) == ["d", "a", "b"]
    running = firing("r", state=RUNNING)
    assert chosen([*firings, running], slots=3) == ["d", "a"]
    assert chosen([*firings, running], slots=1) == []
    assert chosen(firings, slots=0) == []
    assert chosen([]) == []


def test_what_waits_or_has_ended_does_not_start() -> None:
    others = set(FiringState) - {FiringState.QUEUED}
    assert chosen([firing(state.value, state=state) for state in others]) == []


@pytest.mark.parametrize(
    ("running", "queued", "starts"),
    [
        ("2026-05-16", "2026-05-16", False),
        ("2026-05-16", "2026-05-17", True),
        (WHOLE, "2026-05-16", False),
        ("2026-05-16", WHOLE, False),
        (WHOLE, WHOLE, False),
    ],
)
def test_a_slice_runs_once_at_a_time(running: str, queued: str, starts: bool) -> None:
    before, after = firing("1", "m", running, state=RUNNING), firing("2", "m", queued)
    assert chosen([before, after]) == (["2"] if starts else [])
    both = [replace(before, state=FiringState.QUEUED), after]
    assert chosen(both) == (["1", "2"] if starts else ["1"])


CHAIN = [
    Subscription("a"),
    Subscription("b", reads=("a",)),
    Subscription("c", reads=("b", "elsewhere")),
]


@pytest.mark.parametrize("state", [FiringState.QUEUED, RUNNING])
def test_models_for_one_time_run_in_the_order_of_the_graph(state: FiringState) -> None:
    firings = [firing("c"), firing("b", minute=1), firing("a", minute=2, state=state)]
    assert chosen(firings, *CHAIN) == (["a"] if state is FiringState.QUEUED else [])
    assert chosen([firing("c"), firing("a", minute=2, state=RUNNING)], *CHAIN) == []
    assert chosen([firing("c"), firing("a", state=FiringState.WAITING)], *CHAIN) == ["c"]


def test_models_for_different_times_do_not_wait() -> None:
    later = firing("a", fire_time=NOON + MINUTE, minute=1)
    assert chosen([firing("c"), later], *CHAIN) == ["c", "a"]


def test_models_in_a_circle_do_not_wait_for_each_other() -> None:
    circle = [
        Subscription("a", reads=("b", "top")),
        Subscription("b", reads=("a",)),
        Subscription("top"),
    ]
    assert chosen([firing("a"), firing("b")], *circle) == ["a", "b"]
    assert chosen([firing("a"), firing("b"), firing("top")], *circle) == ["top"]


@pytest.mark.parametrize(
    ("above", "below", "input_key", "key", "waits"),
    [
        (DAILY, DAILY, "2026-05-16", "2026-05-16", True),
        (DAILY, DAILY, "2026-05-16", "2026-05-17", False),
        (DAILY, MONTHLY, "2026-05-16", "2026-05", True),
        (DAILY, MONTHLY, "2026-05-16", "2026-06", False),
        (None, DAILY, WHOLE, "2026-05-16", True),
        (DAILY, None, "2026-05-16", WHOLE, True),
    ],
)
def test_a_slice_waits_for_the_slices_that_it_may_need(
    above: PartitionSpec | None, below: PartitionSpec | None, input_key: str, key: str, waits: bool
) -> None:
    readers = Subscription("a", partition=above), Subscription("b", partition=below, reads=("a",))
    firings = [firing("1", "b", key), firing("2", "a", input_key)]
    assert chosen(firings, *readers) == (["2"] if waits else ["1", "2"])


def backfills(number: int, model: str = "m", **more: Any) -> list[Firing]:
    days = (NOON.replace(day=1) + timedelta(days=day) for day in range(number))
    return [
        firing(f"{model}{day:%d}", model, f"{day:%Y-%m-%d}", kind=BACKFILL, **more) for day in days
    ]


def test_backfills_take_half_of_the_slots_the_newest_slice_first() -> None:
    assert chosen(backfills(9), slots=6) == ["m09", "m08", "m07"]
    assert chosen(backfills(9), slots=6, share=1) == ["m09", "m08", "m07", "m06", "m05", "m04"]


def test_a_backfill_refills_a_slot_at_once() -> None:
    queued = backfills(9)
    running = [replace(item, state=RUNNING) for item in queued[-2:]]
    assert chosen([*queued[:-2], *running], slots=6) == ["m07"]
    assert chosen([*queued[:-2], *running], slots=4) == []


def test_other_work_comes_before_a_backfill() -> None:
    others = [firing(f"w{number}", minute=9) for number in range(3)]
    assert chosen([*backfills(3), *others], slots=4) == ["w0", "w1", "w2", "m03"]
    assert chosen([*backfills(3), *others], slots=3) == ["w0", "w1", "w2"]


def test_a_backfill_has_one_slot_that_no_other_work_takes() -> None:
    assert chosen(backfills(3), slots=1) == ["m03"]
    assert chosen([*backfills(3), firing("w")], slots=1) == ["w"]


def test_the_newest_slice_is_that_of_the_latest_time() -> None:
    reader = Subscription("m", partition=PartitionSpec("daily", format="%d.%m.%Y"))
    firings = [
        firing(key, "m", key, kind=BACKFILL) for key in ("30.01.2026", "01.02.2026", "02.01.2026")
    ]
    assert chosen(firings, reader, slots=6) == ["01.02.2026", "30.01.2026", "02.01.2026"]


def test_several_backfills_take_turns() -> None:
    firings = [*backfills(3), *backfills(2, "other", minute=1)]
    assert chosen(firings, slots=8) == ["m03", "other02", "m02", "other01"]


def test_other_work_does_not_wait_for_a_backfill_of_its_input() -> None:
    readers = (
        Subscription("m", partition=DAILY),
        Subscription("whole", reads=("m",)),
        Subscription("day", partition=DAILY, reads=("m",)),
    )
    asked = backfills(2)
    assert chosen([*asked, firing("whole")], *readers, slots=3) == ["whole", "m02"]
    below = backfills(2, "day")
    assert chosen([*asked, *below], *readers, slots=8) == ["m02", "m01"]


QUEUES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([WHOLE, "x", "y"]),
        st.sampled_from([FiringState.QUEUED, RUNNING]),
        st.sampled_from([EventKind.ASSET, BACKFILL]),
        st.integers(0, 2),
    ),
    max_size=12,
)


@given(rows=QUEUES, slots=st.integers(1, 6))
def test_something_starts_unless_something_runs(
    rows: list[tuple[str, str, FiringState, EventKind, int]], slots: int
) -> None:
    firings = {
        str(number): firing(
            str(number), model, key, state=state, kind=kind, fire_time=NOON + minute * MINUTE
        )
        for number, (model, key, state, kind, minute) in enumerate(rows)
    }
    choice = choose_next(Agenda(firings), by_model(*CHAIN), slots)
    running = [item for item in firings.values() if item.state is RUNNING]
    assert len(choice) <= max(0, slots - len(running))
    assert choice or running or not firings
    for item in choice:
        busy = [other for other in (*running, *choice) if other.model == item.model]
        busy.remove(item)
        assert item.state is FiringState.QUEUED
        assert not any(WHOLE in (other.key, item.key) or other.key == item.key for other in busy)


def test_a_firing_does_not_overtake_an_earlier_one_of_its_slice() -> None:
    reader = Subscription("sums", reads=("days",))
    input_, later = firing("i", "days", state=RUNNING), NOON + MINUTE
    waits, other = firing("w", "sums"), firing("o", "sums", minute=1, fire_time=later)
    assert chosen([input_, waits, other], Subscription("days"), reader) == []
    assert chosen([input_, other], Subscription("days"), reader) == ["o"]
