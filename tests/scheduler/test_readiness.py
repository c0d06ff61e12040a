"""When a firing that waits is queued: sources, pauses, debounces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.model.time.cron import Cron
from penstock.scheduler.readiness import Wait, find_pauses, find_wait
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import WHOLE, Agenda, EventKind, Firing, FiringState, Pause
from tests.scheduler.building import MINUTE, NOON, Scheduler, by_model, change, message, reads

READER = Subscription("m", tags=frozenset({"hourly"}), sources=reads("a"), messages=("sent",))
OTHER = Subscription("other", sources=reads("a"))
WAITING = Firing("f", "m", WHOLE, EventKind.ASSET, NOON, FiringState.WAITING)
LATER = NOON + 30 * MINUTE


def paused(*pauses: Pause, reader: Subscription = READER) -> Scheduler:
    return Scheduler(by_model(reader, OTHER), Agenda(pauses=pauses))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [("m", True), ("M", True), ("tag:hourly", True), ("tag:m", False), ("hourly", False)],
)
def test_a_pause_is_about_a_model_or_a_tag(selector: str, expected: bool) -> None:
    pause = Pause(selector, NOON)
    assert find_pauses([pause], "m", READER) == ([pause] if expected else [])


@pytest.mark.parametrize(
    ("reader", "kind", "reason"),
    [
        (None, EventKind.ASSET, "model m is no longer in the project"),
        (None, EventKind.BACKFILL, "model m is no longer in the project"),
        (Subscription("m"), EventKind.ASSET, "model m has no trigger any more"),
        (Subscription("m"), EventKind.BACKFILL, None),
        (Subscription("m", messages=("sent",)), EventKind.ASSET, None),
        (Subscription("m", freshness=MINUTE), EventKind.ASSET, None),
        (Subscription("m", cron=Cron("0 1 * * *")), EventKind.ASSET, None),
        (READER, EventKind.ASSET, None),
    ],
)
@pytest.mark.parametrize("state", [FiringState.WAITING, FiringState.QUEUED, FiringState.RUNNING])
def test_what_nothing_fires_any_more_is_cancelled(
    reader: Subscription | None, kind: EventKind, reason: str | None, state: FiringState
) -> None:
    firing = replace(WAITING, kind=kind, state=state, events=("e",))
    scheduler = Scheduler(by_model(*([reader] if reader else [])), Agenda({"f": firing}))
    decision = scheduler.decide()
    if reason is None or state is FiringState.RUNNING:  # what runs is for the runner to end
        assert all(one.state is FiringState.QUEUED for one in decision.firings)
        return
    expected = replace(firing, state=FiringState.CANCELLED, reason=reason)
    assert decision.firings == (expected,)
    assert scheduler.agenda.firings == {}


@pytest.mark.parametrize(
    ("changes", "pauses", "expected"),
    [
        ({}, [], None),
        ({"missing": ("a", "b")}, [Pause("m", NOON, LATER)], Wait("waits for a, b")),
        ({"ready_at": NOON}, [], None),
        ({"ready_at": LATER}, [], Wait("debounced until 2026-05-16 12:30:00 UTC", LATER)),
        ({}, [Pause("m", NOON)], Wait("paused")),
        (
            {},
            [Pause("m", NOON, LATER, reason="repair", user="ann")],
            Wait("paused by ann until 2026-05-16 12:30:00 UTC: repair", LATER),
        ),
        ({}, [Pause("m", NOON, reason="x"), Pause("m", NOON, LATER)], Wait("paused: x")),
        (
            {"ready_at": LATER + MINUTE},
            [Pause("m", NOON, LATER)],
            Wait("paused until 2026-05-16 12:30:00 UTC", LATER + MINUTE),
        ),
    ],
)
def test_a_firing_waits_for_a_reason(
    changes: dict[str, Any], pauses: list[Pause], expected: Wait | None
) -> None:
    firing = replace(WAITING, **changes)
    assert find_wait(firing, pauses, NOON) == expected


def test_the_firings_of_a_paused_model_are_kept_until_its_end() -> None:
    scheduler = paused(Pause("tag:hourly", NOON, LATER))
    scheduler.decide(*(message(f"{number}", "sent", {"n": number}) for number in range(3)))
    scheduler.decide(change("a", "a"), change("b", "a"))
    mine = [firing for firing in scheduler.firings.values() if firing.model == "m"]
    assert [firing.payload for firing in mine] == [{"n": 0}, {"n": 1}, {"n": 2}, None]
    assert {firing.state for firing in mine} == {FiringState.WAITING}
    assert scheduler.wakes_at == LATER
    scheduler.decide(moment=LATER)
    mine = [firing for firing in scheduler.firings.values() if firing.model == "m"]
    assert {(firing.state, firing.queued_at, firing.reason) for firing in mine} == {
        (FiringState.QUEUED, LATER, None)
    }


def test_other_models_are_not_paused() -> None:
    scheduler = paused(Pause("m", NOON))
    scheduler.decide(change("1", "a"))
    states = {firing.model: firing.state for firing in scheduler.firings.values()}
    assert states == {"m": FiringState.WAITING, "other": FiringState.QUEUED}
    assert scheduler.wakes_at is None


def test_a_queued_firing_of_a_paused_model_is_held_until_it_resumes() -> None:
    scheduler = paused()
    scheduler.decide(change("1", "a"))
    scheduler.agenda = replace(scheduler.agenda, pauses=(Pause("m", NOON),))
    scheduler.decide()
    held = scheduler.firings["f0001"]
    assert (held.state, held.queued_at) == (FiringState.WAITING, None)
    scheduler.agenda = replace(scheduler.agenda, pauses=())
    scheduler.decide(moment=LATER)
    assert scheduler.firings["f0001"].queued_at == LATER


def test_a_running_firing_of_a_paused_model_goes_on() -> None:
    scheduler = paused(Pause("m", NOON))
    running = replace(WAITING, state=FiringState.RUNNING)
    scheduler.agenda = replace(scheduler.agenda, firings={"f": running})
    assert scheduler.decide().firings == ()


def test_a_debounce_that_ends_within_a_pause_takes_later_changes() -> None:
    scheduler = paused(Pause("m", NOON, LATER), reader=replace(READER, debounce=MINUTE))
    scheduler.decide(change("1", "a"))
    scheduler.decide(change("2", "a", time=NOON + 2 * MINUTE), moment=NOON + 2 * MINUTE)
    assert scheduler.wakes_at == LATER
    mine = [firing.events for firing in scheduler.firings.values() if firing.model == "m"]
    assert mine == [("1", "2")]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (reads("a", is_partitioned=True), "queued"),
        (reads("a", "b", "c", is_partitioned=True), "waiting"),
    ],
)
def test_a_join_waits_for_the_sources_of_today(sources: tuple[Source, ...], expected: str) -> None:
    reader = replace(READER, joins=True, sources=reads("a", "b", is_partitioned=True))
    scheduler = Scheduler(by_model(reader))
    scheduler.decide(change("1", "a"))
    scheduler.subscriptions = by_model(replace(reader, sources=sources))
    scheduler.decide()
    assert scheduler.shown() == [(WHOLE, expected)]


def test_what_is_settled_is_not_decided_again() -> None:
    scheduler = paused(Pause("m", NOON))
    scheduler.decide(change("1", "a"))
    assert scheduler.decide(moment=LATER).firings == ()
