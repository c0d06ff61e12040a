"""What the states of slices and steps mean. Each list has every state that has the property."""

from __future__ import annotations

import json

import pytest

from penstock.states import INTERRUPTED, PUBLISHED, SliceState, StepState

BUILT = {SliceState.MATERIALIZED, SliceState.BEHIND, SliceState.LATE, SliceState.UNFINISHED}
MISSING = {
    SliceState.MISSING,
    SliceState.FAILED,
    SliceState.SKIPPED,
    SliceState.WAITING,
    SliceState.RUNNING,
}
REBUILT = {SliceState.CHANGED_OUTSIDE, SliceState.BEHIND, SliceState.UNFINISHED}


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("exists", BUILT | {SliceState.STALE, SliceState.CHANGED_OUTSIDE}),
        ("is_as_recorded", BUILT | {SliceState.STALE}),
        ("has_current_definition", BUILT),
        ("blocks_readers", MISSING - {SliceState.MISSING, SliceState.RUNNING}),
        ("is_attempt", MISSING - {SliceState.MISSING}),
    ],
)
def test_properties(name: str, states: set[SliceState]) -> None:
    assert {state for state in SliceState if getattr(state, name)} == states


@pytest.mark.parametrize(("can_rebuild", "states"), [(False, MISSING), (True, MISSING | REBUILT)])
def test_what_a_run_makes(can_rebuild: bool, states: set[SliceState]) -> None:
    assert {state for state in SliceState if state.is_due(can_rebuild=can_rebuild)} == states


def test_a_failure_is_the_most_pressing() -> None:
    assert min(SliceState, key=lambda state: state.urgency) is SliceState.FAILED
    assert SliceState.BEHIND.urgency < SliceState.LATE.urgency < SliceState.MATERIALIZED.urgency
    assert sorted(state.urgency for state in SliceState) == list(range(len(SliceState)))


def test_states_are_their_words() -> None:
    assert str(SliceState.CHANGED_OUTSIDE) == "changed outside"
    assert SliceState("failed") is SliceState.FAILED
    assert json.dumps({SliceState.FAILED: StepState.DONE}) == '{"failed": "done"}'
    assert {"failed": 1}[SliceState.FAILED] == 1
    assert f"{SliceState.STALE}" == "stale"


def test_steps() -> None:
    assert {"done", "unchanged"} == PUBLISHED
    assert {"cancelled", "abandoned"} == INTERRUPTED
    assert PUBLISHED.isdisjoint(INTERRUPTED)
