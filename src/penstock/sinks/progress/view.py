"""A run as seen from its events: one row per step, and its text. Knows no terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from penstock.events import (
    CheckFinished,
    Event,
    Notice,
    RunFinished,
    RunProgress,
    RunStarted,
    SparkStarted,
    SparkStarting,
    SparkWaiting,
    StepFinished,
    StepOutput,
    StepProgress,
    StepQuery,
    StepStarted,
)
from penstock.rendering.text import count


@dataclass(frozen=True, slots=True)
class Row:
    """``state``: ``waiting``, a phase of ``StepProgress``, or a state of ``StepFinished``.

    Of a step of many ``slices``, ``ended`` have come to their end and ``failed`` have failed;
    ``slice`` is the one now, ``rows`` are those of all so far, and ``worst`` is the state of the
    worst of them, whose ``reason`` it is. ``states`` counts its slices by their states.
    """

    step: str
    slice: str | None = None
    state: str = "waiting"
    started: float | None = None  # on the clock of Progress
    seconds: float | None = None  # once finished
    rows: int | None = None
    snapshot_id: int | None = None
    checks: int = 0
    failed_checks: int = 0
    reason: str | None = None
    slices: int = 1
    ended: int = 0
    failed: int = 0
    worst: str | None = None
    states: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.worst is not None and self.ended >= self.slices


@dataclass(frozen=True, slots=True)
class View:
    """The picture to draw. ``rows`` are in the order of the run."""

    rows: tuple[Row, ...] = ()
    starting_spark: float | None = None  # since when, on the clock of Progress
    master: str | None = None  # the cluster that it starts on, and where that stands
    standing: str | None = None
    notices: tuple[str, ...] = ()
    state: str | None = None
    seconds: float | None = None
    progress: RunProgress | None = None
    states: Mapping[str, int] = field(default_factory=dict)

    def row(self, step: str) -> Row:
        return next((row for row in self.rows if row.step == step), Row(step))


class Progress:
    """Takes events from several threads; ``view`` is replaced as a whole, so reading needs no lock
    of the reader. The caller serialises ``apply``.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.view = View()

    def apply(self, event: Event) -> None:
        self.view = APPLY[type(event)](self.view, event, self.clock())


def _run_started(view: View, event: RunStarted, _now: float) -> View:
    slices = event.slices or (1,) * len(event.steps)
    rows = (Row(step, slices=each) for step, each in zip(event.steps, slices, strict=True))
    return replace(view, starting_spark=None, rows=tuple(rows))


def _step_started(view: View, event: StepStarted, now: float) -> View:
    began = view.row(event.step).started
    started = now if began is None else began
    return _change(view, event.step, slice=event.slice, state="starting", started=started)


def _unchanged(view: View, _event: StepQuery | StepOutput, _now: float) -> View:
    return view


#: what a failed test of a severity does, before the number of rows
SAID = {"warn": "warns of", "quarantine": "set aside"}


def _check_finished(view: View, event: CheckFinished, _now: float) -> View:
    row = view.row(event.step)
    said = None if event.passed else SAID.get(event.severity)
    warns = said is not None
    if warns and row.slices < 2:  # of many slices the end of the run says so once
        message = f"{event.step}: test {event.check} {said} {count(event.failures, 'row')}"
        view = replace(view, notices=(*view.notices, message))
    failed = row.failed_checks + (not event.passed and not warns)
    return _change(view, event.step, checks=row.checks + 1, failed_checks=failed)


# From the best to the worst state of a slice.
_STATES = ("unchanged", "done", "skipped", "waiting", "cancelled", "failed")


def _step_finished(view: View, event: StepFinished, now: float) -> View:
    row = view.row(event.step)
    ended, failed = row.ended + event.slices, row.failed + event.failed
    counts = Counter(row.states)
    counts.update(event.states or {event.state: event.slices})
    state = max(counts, key=_STATES.index) if counts else event.state
    is_worse = row.worst is None or _STATES.index(state) > _STATES.index(row.worst)
    is_over = ended >= row.slices
    seconds: float | None = event.seconds
    if row.ended or row.slices > 1:
        seconds = None if row.started is None else now - row.started
    return _change(
        view,
        event.step,
        ended=ended,
        failed=failed,
        worst=state,
        states=dict(counts),
        state=state if is_over else row.state,
        seconds=seconds if is_over else None,
        rows=row.rows if event.rows is None else (row.rows or 0) + event.rows,
        snapshot_id=event.snapshot_id or row.snapshot_id,
        reason=event.reason if is_worse or row.reason is None else row.reason,
    )


def states_text(states: Mapping[str, int]) -> str:
    """``59 done, 1 failed, 1 skipped``."""
    order = ("done", "unchanged", "failed", "skipped", "waiting", "cancelled")
    return ", ".join(f"{states[state]:,} {state}" for state in order if states.get(state))


def _notice(view: View, event: Notice, _now: float) -> View:
    text = f"{event.step}: {event.message}" if event.step else event.message
    return replace(view, notices=(*view.notices, text))


def _run_finished(view: View, event: RunFinished, _now: float) -> View:
    return replace(view, state=event.state, seconds=event.seconds, states=event.states)


def _change(view: View, step: str, **values: Any) -> View:
    """The view with one row changed; a step that was not announced gets a new row."""
    rows = view.rows if any(row.step == step for row in view.rows) else (*view.rows, Row(step))
    return replace(
        view, rows=tuple(replace(row, **values) if row.step == step else row for row in rows)
    )


APPLY: dict[type, Callable[[View, Any, float], View]] = {
    RunStarted: _run_started,
    SparkStarting: lambda view, event, now: replace(view, starting_spark=now, master=event.master),
    SparkWaiting: lambda view, event, _now: replace(view, standing=event.state),
    SparkStarted: lambda view, _event, _now: replace(view, starting_spark=None),
    StepStarted: _step_started,
    StepProgress: lambda view, event, _now: _change(view, event.step, state=event.phase),
    StepQuery: _unchanged,
    StepOutput: _unchanged,  # its lines scroll by above the table
    CheckFinished: _check_finished,
    StepFinished: _step_finished,
    Notice: _notice,
    RunProgress: lambda view, event, _now: replace(view, progress=event),
    RunFinished: _run_finished,
}
