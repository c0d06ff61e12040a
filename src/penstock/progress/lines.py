"""Events of a run as lines of text, which notebooks and scripts print by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
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
    StepStarted,
)
from penstock.progress.view import count, seconds
from penstock.sizes import size_text


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


def text_line(event: Event) -> str | None:
    return LINES[type(event)](event)


def state_text(state: str, reason: str | None) -> str:
    """``failed: why``, ``skipped (why)``: one line, as the whole message follows the run."""
    if not reason:
        return state
    why = reason.splitlines()[0]
    return f"{state} ({why})" if state in {"skipped", "waiting"} else f"{state}: {why}"


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
    said = "warns of" if event.severity == "warn" else "FAILED on"
    verdict = "passed" if event.passed else f"{said} {count(event.failures, 'row')}"
    return f"{event.step}: test {event.check} {verdict}"


def _notice(event: Notice) -> str:
    return f"{event.step}: notice: {event.message}" if event.step else f"notice: {event.message}"


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
    StepOutput: lambda event: f"{event.step}| {event.line}",
    CheckFinished: _check_finished,
    StepFinished: _step_finished,
    Notice: _notice,
    RunProgress: progress_text,
    RunFinished: lambda event: f"run {event.state} in {seconds(event.seconds)}",
}
