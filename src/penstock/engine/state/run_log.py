"""Logs of runs: a file of JSON lines each, beside the project and not in a catalog.

A line is an event, as `penstock run --json` prints it, with the time ``at``; besides, ``StepQuery``
has the query of a step as it ran, and ``StepError`` a whole error with what led to it. Lines are
written as they happen: the log of a run that was killed can be read up to that moment. A log is of
use and never in the way: where it cannot be written, a notice says so and the run continues.
"""

from __future__ import annotations

import contextlib
import json
import threading
import traceback
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from penstock.errors import PenstockError
from penstock.events import (
    SCHEMA_VERSION,
    Event,
    EventSink,
    Notice,
    RunStarted,
    StepFinished,
    values_of,
)
from penstock.settings.retention import Keep

SUFFIX = ".jsonl"
_MOST = 64 << 20  # bytes of one log: prints of a loop must not fill the disk
_LONGEST = 100_000  # characters of one text in it


class RunLog:
    """The sink that writes the log of a run, from its start on, to a file of ``directory``.

    It removes the logs that are not kept any longer. ``report`` receives a notice where the log
    cannot be written.
    """

    def __init__(self, directory: Path, keep: Keep, report: EventSink) -> None:
        self._directory, self._keep, self._report = directory, keep, report
        self._lock, self._left = threading.Lock(), _MOST
        self._file: TextIO | None = None

    def __call__(self, event: Event) -> None:
        """Write an event; before that of a step, its errors."""
        if isinstance(event, RunStarted):
            self._begin(event.run_id)
        if isinstance(event, StepFinished):
            for slice_, error in event.errors:
                self.write("StepError", {"step": event.step, "slice": slice_, **_whole(error)})
        self.write(type(event).__name__, values_of(event))

    def _begin(self, run_id: str) -> None:
        try:
            _make(self._directory)
            path = log_of(self._directory, run_id)
            self._file = path.open("a", encoding="utf-8", buffering=1)
        except OSError as error:
            cause = f"as {self._directory} cannot be: {error.strerror}"
            self._report(Notice(f"no log of this run is written, {cause}"))
            return
        with contextlib.suppress(OSError):  # the run is what matters
            for path in expired(self._directory, self._keep):
                _remove(path)

    def write(self, name: str, values: Mapping[str, Any]) -> None:
        """Write a line; never raises."""
        with self._lock:
            if self._file is None or self._left <= 0:
                return
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            short = {key: _short(value) for key, value in values.items()}
            line = json.dumps(_line(at, name, short), ensure_ascii=False, default=str)
            self._left -= len(line)
            if self._left <= 0:
                message = f"this log ends here: it has {_MOST >> 20} MB"
                line += "\n" + json.dumps(_line(at, "Notice", {"message": message}))
            try:
                self._file.write(f"{line}\n")
            except (OSError, ValueError):  # a full disk; the run is what matters
                self._left = 0

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.close()
                self._file = None


def _whole(error: PenstockError) -> Mapping[str, Any]:
    """An error with its causes and where they came up."""
    return {
        "type": type(error).__name__,
        "message": error.message,
        "hint": error.hint,
        "location": None if error.location is None else str(error.location),
        "traceback": "".join(traceback.format_exception(error)),
    }


def _line(at: str, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "at": at, "event": name, **values}


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}... ({len(value):,} characters)"
    return value


def _make(directory: Path) -> None:
    """Make the directory, with a file that keeps it out of Git."""
    if directory.is_dir():
        return
    directory.mkdir(parents=True, exist_ok=True)
    (directory / ".gitignore").write_text("*\n", encoding="utf-8")


def _remove(path: Path) -> str | None:
    """Remove a log; returns why it could not be."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    return None


def log_of(directory: Path, run_id: str) -> Path:
    """Return where the log of a run is, if there is one."""
    return directory / f"{run_id}{SUFFIX}"


def logs(directory: Path | None) -> list[Path]:
    """The logs of a directory, oldest first: ids of runs sort by time."""
    if directory is None or not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.suffix == SUFFIX)


def expired(directory: Path, keep: Keep, now: datetime | None = None) -> list[Path]:
    """The logs that are not kept: too old, or more than so many."""
    every = logs(directory)
    gone = [] if keep.runs is None else every[: max(0, len(every) - keep.runs)]
    if keep.age is None:
        return gone
    first = (now or datetime.now(UTC)) - timedelta(seconds=keep.age)
    for path in every[len(gone) :]:
        began = began_at(path.stem)
        if began is None or began >= first:
            break
        gone.append(path)
    return gone


def remove(paths: list[Path]) -> Iterator[str]:
    """Remove logs, and yield what could not be."""
    for path in paths:
        why = _remove(path)
        if why is not None:
            yield f"{path}: {why}"


def began_at(run_id: str) -> datetime | None:
    """Return when a run began, by its id: version 7 of UUIDs begins with milliseconds."""
    try:
        return datetime.fromtimestamp(int(run_id.replace("-", "")[:12], 16) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def read(path: Path, offset: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The whole lines of a log from an offset, and where the next begins. What is no JSON, as the
    last line of a run that was killed, is left out.
    """
    with path.open("rb") as file:
        file.seek(offset)
        content = file.read()
    end = content.rfind(b"\n") + 1
    found: list[dict[str, Any]] = []
    for line in content[:end].splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found, offset + end
