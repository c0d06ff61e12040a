"""Answer what the logs of runs hold: which log a text names, and what it says of steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from penstock.engine.state import run_log
from penstock.errors import ArgumentError

Line = Mapping[str, Any]
_ENDS = ("StepFinished", "StepStarted")


@dataclass(frozen=True, slots=True)
class StepErrorText:
    """The whole error of a slice: its message and hint, and what led to it."""

    step: str
    slice: str | None
    type: str
    message: str
    hint: str | None
    traceback: str


def find_log(directory: Path | None, text: str) -> Path | None:
    """The log of a run that is called by its id, a part that only one begins or ends with, or
    ``last``; None where there is none. Raises ArgumentError where several are meant.
    """
    if directory is None:
        raise ArgumentError(
            "this project writes no logs", hint='penstock.toml has directory = "none" in [logs]'
        )
    every = run_log.logs(directory)
    if text == "last":
        return every[-1] if every else None
    found = [path for path in every if path.stem.startswith(text) or path.stem.endswith(text)]
    if len(found) > 1:
        ids = ", ".join(path.stem for path in found[-3:])
        raise ArgumentError(f"{text!r} names several runs: {ids}", hint="give more of the id")
    return found[0] if found else None


def of_step(lines: Iterable[Line], step: str | None) -> list[Line]:
    """The lines of one step, with those of the run itself; all without a step."""
    return [each for each in lines if step is None or each.get("step") in (None, step)]


def errors(lines: Iterable[Line]) -> tuple[StepErrorText, ...]:
    """The errors of a run, whole."""
    names = [each.name for each in fields(StepErrorText)]
    found = [each for each in lines if each.get("event") == "StepError"]
    known: list[dict[str, Any]] = [{name: each.get(name) for name in names} for each in found]
    return tuple(StepErrorText(**values) for values in known)


def phases(lines: Sequence[Line]) -> dict[str, dict[str, float]]:
    """The seconds of each step by phase; ``starting`` is what comes before the first of a batch."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    since: dict[str, tuple[str, datetime]] = {}
    for each in lines:
        event, step = each.get("event"), each.get("step")
        if step is None or event not in (*_ENDS, "StepProgress"):
            continue
        at = datetime.fromisoformat(each["at"])
        if step in since:
            phase, began = since.pop(step)
            found[step][phase] += (at - began).total_seconds()
        if event != "StepFinished":
            since[step] = (each.get("phase", "starting"), at)
    return {
        step: {phase: round(seconds, 3) for phase, seconds in of.items()}
        for step, of in found.items()
    }
