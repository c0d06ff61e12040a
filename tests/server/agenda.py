"""Events, firings and decisions for tests, and strategies that draw them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from penstock.engine.state.records import ProcessId, this_process
from penstock.scheduler.values import (
    Decision,
    EventKind,
    Firing,
    FiringState,
    Outcome,
    OutcomeKind,
    TriggerEvent,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GONE = replace(this_process(), pid=2**22 + 1)  # no process has such a number
ELSEWHERE = ProcessId("elsewhere", 7, "1")


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def event(event_id: str = "e1", **changes: Any) -> TriggerEvent:
    return replace(TriggerEvent(event_id, EventKind.MESSAGE, "orders", NOON), **changes)


def firing(firing_id: str = "f1", **changes: Any) -> Firing:
    return replace(Firing(firing_id, "daily", "", EventKind.MESSAGE, NOON), **changes)


def outcome(of: TriggerEvent, by: Firing, kind: OutcomeKind = OutcomeKind.FIRED) -> Outcome:
    return Outcome(of.id, by.model, kind, by.id)


def decide(of: TriggerEvent, by: Firing, kind: OutcomeKind = OutcomeKind.FIRED) -> Decision:
    """The decision that an event fires, or joins, a firing."""
    covering = by if of.id in by.events else replace(by, events=(*by.events, of.id))
    return Decision(firings=(covering,), outcomes=(outcome(of, by, kind),))


# PostgreSQL has no text with U+0000, and no database one with lone surrogates.
_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
_any_texts = st.text(st.characters(), max_size=8)  # as JSON may have them
_moments = st.integers(0, 200 * 365 * 86_400_000_000).map(
    lambda microseconds: NOON + timedelta(microseconds=microseconds)
)
_numbers = st.integers(-(2**63), 2**63 - 1)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _any_texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_any_texts, inner, max_size=3),
    max_leaves=6,
)
_payloads = st.none() | st.dictionaries(_any_texts, _json, max_size=3)
_lists = st.lists(_texts, max_size=3).map(tuple)


def events() -> st.SearchStrategy[TriggerEvent]:
    return st.builds(
        TriggerEvent,
        id=_texts,
        kind=st.sampled_from(EventKind),
        source=_texts,
        time=_moments,
        partition=st.none() | _texts,
        payload=_payloads,
        snapshot_id=st.none() | _numbers,
        run_id=st.none() | _texts,
        fire_time=st.none() | _moments,
        depth=_numbers,
        models=_lists,
    )


def firings() -> st.SearchStrategy[Firing]:
    return st.builds(
        Firing,
        id=_texts,
        model=_texts,
        key=_texts,
        kind=st.sampled_from(EventKind),
        fire_time=_moments,
        state=st.sampled_from(FiringState),
        payload=_payloads,
        events=_lists,
        arrived=_lists,
        missing=_lists,
        ready_at=st.none() | _moments,
        queued_at=st.none() | _moments,
        depth=_numbers,
        models=_lists,
        backfill=st.none() | _texts,
        reason=st.none() | _texts,
    )
