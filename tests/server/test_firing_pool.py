"""Firings run side by side, and end in a state whatever happens."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

from penstock.scheduler.values import WHOLE, EventKind, Firing, FiringState
from penstock.server.firing_pool import FiringPool
from penstock.server.firing_runner import FiringEnd

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def firing(name: str) -> Firing:
    return Firing(name, "orders", WHOLE, EventKind.ASSET, NOON)


def test_a_firing_ends_and_is_taken_once() -> None:
    wakened = threading.Event()

    def run(one: Firing, _: threading.Event) -> FiringEnd:
        return FiringEnd(replace(one, state=FiringState.DONE))

    pool = FiringPool(2, run, wakened.set)
    pool.start(firing("a"))
    assert wakened.wait(5)
    assert [end.firing.state for end in pool.take_ends()] == [FiringState.DONE]
    assert pool.take_ends() == []
    assert pool.free == 2


def test_an_error_of_the_runner_is_a_failed_firing() -> None:
    wakened = threading.Event()

    def run(_: Firing, __: threading.Event) -> FiringEnd:
        raise RuntimeError("no memory")

    pool = FiringPool(1, run, wakened.set)
    pool.start(firing("a"))
    assert wakened.wait(5)
    (end,) = pool.take_ends()
    assert (end.firing.state, end.firing.reason) == (FiringState.FAILED, "no memory")


def test_slots_are_free_when_ends_are_taken() -> None:
    release, wakened = threading.Event(), threading.Event()

    def run(one: Firing, _: threading.Event) -> FiringEnd:
        release.wait(5)
        return FiringEnd(replace(one, state=FiringState.DONE))

    pool = FiringPool(2, run, wakened.set)
    pool.start(firing("a"))
    pool.start(firing("b"))
    assert (pool.free, sorted(pool.running)) == (0, ["a", "b"])
    release.set()
    assert pool.drain(5)
    assert sorted(end.firing.id for end in pool.take_ends()) == ["a", "b"]
    assert pool.free == 2


def test_draining_stops_what_does_not_end_in_time() -> None:
    def run(one: Firing, cancelled: threading.Event) -> FiringEnd:
        assert cancelled.wait(5)
        return FiringEnd(replace(one, state=FiringState.CANCELLED))

    pool = FiringPool(1, run, lambda: None)
    pool.start(firing("a"))
    began = time.monotonic()
    assert not pool.drain(0.05)
    assert time.monotonic() - began < 4
    assert [end.firing.state for end in pool.take_ends()] == [FiringState.CANCELLED]
    pool.cancel("a")  # it is gone: nothing happens


def test_draining_interrupts_spark_until_all_have_ended() -> None:
    interruptions: list[None] = []

    def run(one: Firing, cancelled: threading.Event) -> FiringEnd:
        assert cancelled.wait(5)
        deadline = time.monotonic() + 20
        while len(interruptions) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        return FiringEnd(replace(one, state=FiringState.CANCELLED))

    pool = FiringPool(1, run, lambda: None)
    pool.start(firing("a"))
    assert not pool.drain(0, lambda: interruptions.append(None))
    assert len(interruptions) >= 2
    assert [end.firing.id for end in pool.take_ends()] == ["a"]


def test_waiting_stops_nothing() -> None:
    ends = threading.Event()

    def run(one: Firing, cancelled: threading.Event) -> FiringEnd:
        assert ends.wait(5)
        return FiringEnd(replace(one, state=FiringState.DONE))

    pool = FiringPool(1, run, lambda: None)
    assert pool.wait(0.0)
    pool.start(firing("a"))
    assert not pool.wait(0.01)
    ends.set()
    assert pool.wait(5)
    assert [end.firing.state for end in pool.take_ends()] == [FiringState.DONE]
