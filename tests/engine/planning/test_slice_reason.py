"""What a plan decides about slices and skipped steps. No Spark."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from penstock.engine.planning.made_from import MadeFrom
from penstock.engine.planning.plan import Condition, PlannedStep, Work
from penstock.engine.planning.slice_reason import (
    NOTHING_TO_DO,
    UP_TO_DATE,
    Cause,
    Reason,
    Skip,
    SkipKind,
)
from penstock.model.time.slice import Part, Slice

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
    assert divided.without == {whole: "raw missing"}
    assert replace(divided, slices=DAYS).without == dict.fromkeys(DAYS, "raw missing")
    assert step.divided(DAYS[1], DAYS[2:]).works == step.works


def test_parts_do_not_have_the_rows_of_the_whole() -> None:
    whole, *parts = DAYS
    built_from = MadeFrom(frozenset(), (), rows=300, made_in=7)
    step = step_of(whole).decide((whole,), condition=Condition.INPUTS, built_from=built_from)
    divided = step.divided(whole, parts)
    assert {divided.work(part) for part in parts} == {Work(condition=Condition.INPUTS)}


def test_slices_that_wait_are_in_the_order_of_the_step() -> None:
    step = step_of(*DAYS).decide((DAYS[2],), condition=Condition.ROWS)
    waits: dict[Slice, str] = dict.fromkeys(DAYS[:3], "raw missing")
    assert list(step.decide_each("waits_for", waits).waits) == list(DAYS[:3])


def test_a_skip_that_reads_an_outdated_input_is_not_called_up_to_date() -> None:
    skip = Skip(SkipKind.IDLE, UP_TO_DATE, "3 materialized")
    assert str(skip) == "up to date: 3 materialized"
    outdated = Skip(skip.kind, skip.reason, skip.detail, "raw, which it reads, is failed")
    assert str(outdated) == f"{NOTHING_TO_DO}: 3 materialized; raw, which it reads, is failed"
    early = Skip(SkipKind.IDLE, "nothing is due before 2100-01-01", None, "raw is failed")
    assert str(early) == "nothing is due before 2100-01-01; raw is failed"


def test_only_a_step_whose_slices_are_current_ends_unchanged() -> None:
    ends = {kind: Skip(kind, "why").ends_as for kind in SkipKind}
    assert {kind for kind, state in ends.items() if state == "unchanged"} == {SkipKind.CURRENT}
