"""What a plan decides about slices and skipped steps. No Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from penstock.engine.planning.plan import Condition, PlannedStep, Work
from penstock.engine.planning.slice_reason import (
    NOTHING_TO_DO,
    UP_TO_DATE,
    Cause,
    Reason,
    Skip,
    SkipKind,
)
from penstock.model.time.slice import Part

DAYS = tuple(Part(f"2026-01-0{day}") for day in range(1, 5))


def step_of(*days: Part) -> PlannedStep:
    return PlannedStep(cast(Any, SimpleNamespace(name="m")), days)


def test_a_decision_keeps_what_is_decided_already() -> None:
    first, second, third, _ = DAYS
    step = step_of(*DAYS).decide((first, second), condition=Condition.ROWS)
    step = step.decide_each("waits_for", {second: "raw missing", third: "raw failed"})
    assert step.work(first) == Work(condition=Condition.ROWS)
    assert step.work(second) == Work(condition=Condition.ROWS, waits_for="raw missing")
    assert step.waits == {second: "raw missing", third: "raw failed"}
    assert step.work(DAYS[3]) == Work()
    assert step.conditional() == {first, second}
    assert step.conditional(Condition.INPUTS) == frozenset()


def test_parts_of_a_slice_have_its_decisions() -> None:
    whole, *parts = DAYS
    cause = Cause(Reason.BEHIND, "raw: snapshot 4, read 2")
    step = step_of(whole).decide((whole,), cause=cause, lacks="raw missing")
    divided = step.divided(whole, parts)
    assert [divided.work(part) for part in parts] == [step.work(whole)] * 3
    assert divided.without == dict.fromkeys(DAYS, "raw missing")
    assert step.divided(DAYS[1], DAYS[2:]).works == step.works


def test_a_skip_that_reads_an_outdated_input_is_not_called_up_to_date() -> None:
    skip = Skip(SkipKind.IDLE, UP_TO_DATE, "3 materialized")
    assert str(skip) == "up to date: 3 materialized"
    outdated = Skip(skip.kind, skip.reason, skip.detail, "raw, which it reads, is failed")
    assert str(outdated) == f"{NOTHING_TO_DO}: 3 materialized; raw, which it reads, is failed"


def test_only_a_step_whose_slices_are_current_ends_unchanged() -> None:
    ends = {kind: Skip(kind, "why").ends_as for kind in SkipKind}
    assert {kind for kind, state in ends.items() if state == "unchanged"} == {SkipKind.CURRENT}
