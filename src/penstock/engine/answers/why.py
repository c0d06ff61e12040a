"""Answer why a slice is as it is: the run that made it and for what reason, what it was made from,
who made that; why a run would make it now, or not; and who reads it. Without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.engine.answers.runs import INTERRUPTED, past_run, state_of_dead
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.planning.recorded_plan import RecordedPlan, RecordedStep
from penstock.engine.planning.slice_reason import Reason, ReasonedRange
from penstock.engine.results import SliceStatus
from penstock.engine.state import reading, run_history
from penstock.engine.state.records import ReadRecord, RunRecord, SliceRecord, StepRecord
from penstock.engine.state.store import State
from penstock.model.definition.model import Model
from penstock.model.time.interval import interval_of
from penstock.model.time.slice import Slice, shown
from penstock.model.values.asset import DEFAULT_LAKE

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog


@dataclass(frozen=True, slots=True)
class WhyRun:
    """A run that made a slice, or tried to. ``because`` is the reason that its plan had, ``said``
    what became of it where that is not all.
    """

    run_id: str
    state: str
    at: datetime | None
    trigger: str | None
    user: str | None
    because: str | None = None
    said: str | None = None


@dataclass(frozen=True, slots=True)
class WhyInput:
    """A table or file that a slice was made from, at a ``snapshot`` of its lake. Of one that a
    ``model`` makes, the run that had made it last.
    """

    name: str
    kind: str
    snapshot: int | None
    model: str | None = None
    run: WhyRun | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """Causes of the state of a slice. ``slice`` is None for a whole table, and if none is named.

    ``now`` says what a run for it would do and why; ``waits_for`` what that would wait for, and
    ``held_by`` which run is making it. ``readers`` are models.
    """

    model: str
    table: str
    slice: str | None
    state: str
    reason: str | None
    made: WhyRun | None
    tried: WhyRun | None
    inputs: tuple[WhyInput, ...]
    now: tuple[str, ...]
    waits_for: tuple[str, ...]
    held_by: tuple[str, ...]
    readers: tuple[str, ...]


def because(plan: RecordedPlan | None, step: str, text: str) -> str | None:
    """The reason of a slice in a recorded plan: ``behind (raw/orders: snapshot 4, read 2)``."""
    found = None if plan is None else next((each for each in plan.steps if each.step == step), None)
    return None if found is None else _reason(found, text)


def _reason(step: RecordedStep, text: str) -> str | None:
    own = shown(text) or "whole table"
    for each in step.ranges:
        # Values of time sort as their times do; of others each range has its ends only.
        if each["first"] <= own <= each["last"] or own in (each["first"], each["slices"]):
            why = each["why"]
            return str(each["reason"]) if why is None else f"{each['reason']} ({why})"
    return None


def why_run(
    run: RunRecord | None, plan: RecordedPlan | None, step: StepRecord | SliceRecord
) -> WhyRun:
    """The run of an attempt, or of the record of a slice."""
    state, at, said = "done", None, None
    if isinstance(step, StepRecord):
        is_dead = run is not None and past_run(run, "", {}).state == INTERRUPTED
        state = state_of_dead(step.state) if is_dead else step.state
        at, said = step.finished_at or step.started_at, step.reason
    else:
        at = step.published_at
    return WhyRun(
        run_id=step.run_id,
        state=state,
        at=at,
        trigger=None if run is None else run.trigger,
        user=None if run is None else run.user,
        because=because(plan, step.step, step.slice),
        said=said,
    )


def inputs_of(
    read: ReadRecord | None,
    snapshot_of: Callable[[str], int | None],
    maker: Callable[[str], tuple[str, WhyRun | None] | None],
) -> Iterator[WhyInput]:
    """Yield what a slice was made from. ``snapshot_of`` tells that of a table's lake, ``maker`` the
    model that makes a table, with its last run.
    """
    for each in () if read is None else read.inputs:
        if each.kind != "table":
            yield WhyInput(each.name, each.kind, None)
            continue
        at = each.snapshot if each.snapshot is not None else snapshot_of(each.name)
        made = maker(each.name)
        name, run = (None, None) if made is None else made
        yield WhyInput(each.name, each.kind, at, name, run)


@dataclass(frozen=True, slots=True)
class History:
    """The run that made a slice last, the one that last tried to, and what it was made from."""

    made: WhyRun | None = None
    tried: WhyRun | None = None
    inputs: tuple[WhyInput, ...] = ()


def history(
    model: Model,
    slice_: Slice | None,
    catalogs: Mapping[str, Catalog],
    makers: Mapping[str, Model],
) -> History:
    """Return what is recorded of a slice of a model, or of its last one. ``makers`` are the models
    by the texts of their tables.
    """
    catalog = catalogs.get(model.target.lake)
    if catalog is None:
        return History()
    state, target = State(catalog), model.target.qualified
    record = _record(state.slices_there(target), model, slice_)
    text = None if slice_ is None else slice_.text
    if slice_ is None and record is not None:
        text = record.slice
    attempt = state.read(lambda c: run_history.last_attempt(c, target, text), None)
    if attempt is None and record is not None:
        attempt = state.read(lambda c: run_history.last_attempt(c, target, record.slice), None)
    read = None
    if record is not None and record.read_id is not None:
        read_id = record.read_id
        read = state.read(lambda c: reading.read(c, read_id), None)

    def snapshot_of(name: str) -> int | None:
        return None if read is None else read.lakes.get(_lake_of(name))

    def maker(name: str) -> tuple[str, WhyRun | None] | None:
        made, at = makers.get(name), snapshot_of(name)
        if made is None or at is None or made.target.lake not in catalogs:
            return None if made is None else (made.name, None)
        own, of = State(catalogs[made.target.lake]), made.target.qualified
        value = "" if record is None else record.slice
        step = own.read(lambda c: run_history.made_before(c, of, at, value), None)
        return made.name, None if step is None else _run_of(own, step)

    return History(
        made=None if record is None else _run_of(state, record),
        tried=None if attempt is None else _run_of(state, attempt),
        inputs=tuple(inputs_of(read, snapshot_of, maker)),
    )


def _run_of(state: State, step: StepRecord | SliceRecord) -> WhyRun:
    run = state.run(step.run_id)
    plan = None if run is None or run.plan is None else RecordedPlan.parse(run.plan)
    return why_run(run, plan, step)


def _lake_of(name: str) -> str:
    """The lake of a table, by its text: ``main.orders`` is in the one that needs no name."""
    parts = name.split(".")
    return parts[0] if len(parts) > 2 else DEFAULT_LAKE


def _record(
    records: Sequence[SliceRecord], model: Model, slice_: Slice | None
) -> SliceRecord | None:
    """The record of a slice, or of the interval that it is in; of any slice the last one."""
    own = [each for each in records if each.is_slice_of(model)]
    if slice_ is not None:
        span = interval_of(slice_.text)
        own = [
            each
            for each in own
            if each.slice == slice_.text
            or (
                span is not None
                and (of := interval_of(each.slice)) is not None
                and of.overlap(span) is not None
            )
        ]
    return max(own, key=lambda each: each.published_at, default=None)


def _whose(part: ReasonedRange) -> str:
    """The reason of a range as a clause: a failure is one of the past."""
    if part.reason is not Reason.FAILED:
        return f": {part.because}"
    return ", whose last attempt failed" if part.why is None else f", which was skipped: {part.why}"


def now(step: PlannedStep | None, slice_: Slice | None) -> Iterator[str]:
    """Say what a run would do with a slice, or with all of a step, and why."""
    if step is None:
        yield "a run would do nothing with it"
        return
    if step.skipped is not None:
        yield f"a run would leave it: {step.skipped}"
        return
    if step.fails is not None:
        yield f"a run would fail: {step.fails}"
        return
    for each in step.ranges:
        if slice_ is None or _within(each.first, each.last, slice_):
            yield f"a run would build {each.slices}{_whose(each)}"


def _within(first: Slice, last: Slice, slice_: Slice) -> bool:
    own, ends = interval_of(slice_.text), (interval_of(first.text), interval_of(last.text))
    if own is not None and ends[0] is not None and ends[1] is not None:
        return ends[0].start < own.end and own.start < ends[1].end
    return first.text <= slice_.text <= last.text


def waits(step: PlannedStep | None) -> Mapping[str, tuple[str, ...]]:
    """Return what a step waits for, and who holds slices of it, by the state of its ranges."""
    found: dict[str, list[str]] = {"waiting": [], "held": []}
    for each in () if step is None else step.ranges:
        if each.until is not None and each.state in found:
            found[each.state].append(f"{each.slices}: {each.until}")
    return {state: tuple(said) for state, said in found.items()}


def chosen(slices: Sequence[SliceStatus], text: str | None) -> SliceStatus | None:
    """The status of a slice by its text for people, or of the interval that it is in; without one
    that of a whole table.
    """
    if text is None:
        return slices[0] if len(slices) == 1 and slices[0].slice is None else None
    for each in slices:
        if each.slice == text:
            return each
    for each in slices:
        first, mark, last = (each.slice or "").partition(" to ")
        if mark and first <= text <= last:
            return each
    return None
