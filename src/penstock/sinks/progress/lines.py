"""Events of a run as lines of text, which notebooks and scripts print by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import Any

from penstock.events import (
    CheckFinished,
    Event,
    EventSink,
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
from penstock.rendering.text import count, seconds, state_text
from penstock.settings.quantities import size_text
from penstock.sinks.progress.view import SAID, Progress, Row, states_text

_PACE = 60.0  # seconds between two lines that say how far a run is


@contextmanager
def lines(
    write: Callable[[str], None], line_of: Callable[[Event], str | None]
) -> Iterator[EventSink]:
    """A sink that writes one line per event; lines of several threads do not mix."""
    lock = Lock()

    def sink(event: Event) -> None:
        line = line_of(event)
        if line is not None:
            with lock:
                write(line)

    yield sink


@contextmanager
def run_lines(
    write: Callable[[str], None], clock: Callable[[], float] = monotonic
) -> Iterator[EventSink]:
    """A sink for logs: a line for each step that has ended, whatever the number of its slices.

    How far a run is takes a line a minute, and the phases of steps none.
    """
    progress, times = Progress(clock), [clock()]

    def line_of(event: Event) -> str | None:
        progress.apply(event)
        if isinstance(event, RunProgress):
            if clock() - times[-1] < _PACE:
                return None
            times.append(clock())
        if isinstance(event, CheckFinished | StepFinished):
            return _of_step(event, progress.view.row(event.step))
        return None if isinstance(event, StepStarted | StepProgress) else text_line(event)

    with lines(write, line_of) as sink:
        yield sink


def _of_step(event: CheckFinished | StepFinished, row: Row) -> str | None:
    """The line of a step: of one of many slices when all have ended."""
    if isinstance(event, CheckFinished):
        return None if event.passed or row.slices > 1 else text_line(event)
    if row.slices < 2:
        return text_line(event)
    return f"{row.step}: {_ended(row)}" if row.is_over else None


def _ended(row: Row) -> str:
    """``59 done, 1 failed: why; 3,600 rows, snapshot 12, 8.1 s``."""
    parts = [] if row.rows is None else [count(row.rows, "row")]
    parts += [] if row.snapshot_id is None else [f"snapshot {row.snapshot_id}"]
    parts += [seconds(row.seconds)] if row.seconds else []
    text = row_text(row)
    return "; ".join([text, ", ".join(parts)]) if parts else text


def row_text(row: Row, more: str = "") -> str:
    """The states of a step that has ended and the reason of the worst: ``59 done, 1 failed: why``.

    ``more`` follows the states.
    """
    states = states_text(row.states) if row.slices > 1 or len(row.states) > 1 else ""
    return state_text(f"{states or row.state}{more}", row.reason, row.worst)


def text_line(event: Event) -> str | None:
    return LINES[type(event)](event)


def outcome(event: StepFinished) -> str:
    """The outcome of a finished step: state, rows, snapshot, time."""
    said = [state_text(event.state, event.reason)]
    if event.rows is not None:
        said.append(count(event.rows, "row"))
    if event.snapshot_id is not None:
        said.append(f"snapshot {event.snapshot_id}")
    if event.seconds:
        said.append(seconds(event.seconds))
    return ", ".join(said)


def _run_started(event: RunStarted) -> str:
    partition = f", partition {event.partition}" if event.partition else ""
    total = sum(event.slices)
    slices = f", {count(total, 'slice')}" if total > len(event.steps) else ""
    return f"run {event.run_id}: {count(len(event.steps), 'step')}{slices}{partition}"


def _step_finished(event: StepFinished) -> str:
    name = f"{event.step} {event.slice}" if event.slice else event.step
    return f"{name}: {outcome(event)}"


def progress_text(event: RunProgress) -> str:
    """``12 of 365 slices, about 3 min 05 s left``."""
    left = "" if event.left is None else f", about {seconds(event.left)} left"
    return f"{event.ended:,} of {count(event.slices, 'slice')}{left}"


def _step_started(event: StepStarted) -> str:
    return f"{event.step}: started" + (f", slice {event.slice}" if event.slice else "")


def _check_finished(event: CheckFinished) -> str:
    said = SAID.get(event.severity, "FAILED on")
    verdict = "passed" if event.passed else f"{said} {count(event.failures, 'row')}"
    return f"{event.step}: test {event.check} {verdict}"


def _notice(event: Notice) -> str:
    return f"{event.step}: notice: {event.message}" if event.step else f"notice: {event.message}"


def finished_text(state: str, took: float | None, states: Mapping[str, int]) -> str:
    """``done in 18 s``, ``failed in 18 s: 59 done, 1 failed, 1 skipped``."""
    text = f"{state} in {seconds(took)}"
    counts = "" if state == "done" else states_text(states)
    return f"{text}: {counts}" if counts else text


def starting_text(event: SparkStarting | SparkWaiting) -> str:
    """``starting Spark on spark://host:7077: 10 s, nothing answers at host:7077``."""
    where = f" on {event.master}" if event.master else ""
    waited = f": {seconds(event.seconds)}, {event.state}" if isinstance(event, SparkWaiting) else ""
    return f"starting Spark{where}{waited}"


_WHOSE = {
    "container": "the container's {}",
    "machine": "{} of this machine",
    "setting": "{} by spark.memory",
}


def started_text(event: SparkStarted) -> str:
    """``Spark started in 5.2 s, with a heap of 1.6 GiB, of the container's 3 GiB``."""
    text = f"Spark started in {seconds(event.seconds)}"
    if event.heap is None or event.memory is None or event.memory_of is None:
        return text
    whole = _WHOSE[event.memory_of].format(size_text(event.memory))
    return f"{text}, with a heap of {size_text(event.heap)}, of {whole}"


LINES: dict[type, Callable[[Any], str | None]] = {
    RunStarted: _run_started,
    SparkStarting: starting_text,
    SparkWaiting: starting_text,
    SparkStarted: started_text,
    StepStarted: _step_started,
    StepProgress: lambda event: f"{event.step}: {event.phase}",
    StepQuery: lambda _: None,
    StepOutput: lambda event: f"{event.step}| {event.line}",
    CheckFinished: _check_finished,
    StepFinished: _step_finished,
    Notice: _notice,
    RunProgress: progress_text,
    RunFinished: lambda event: f"run {finished_text(event.state, event.seconds, event.states)}",
}
