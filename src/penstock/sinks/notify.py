"""Tell others that a run failed, that a slice is late, or that it is made again since.

By webhook or command. What cannot be told is a notice of the run and changes nothing of it.
"""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from penstock.errors import InputError, PenstockError, PlanMoved
from penstock.events import Event, EventSink, Notice, RunFinished
from penstock.masking import masked
from penstock.rendering.wire import plain
from penstock.settings.sink_settings import NotifySettings
from penstock.states import PUBLISHED

if TYPE_CHECKING:
    from penstock.engine.results import RunResult, StepResult
    from penstock.settings.config import Settings

FAILURE, RECOVERY, LATE = "failure", "recovery", "late"
_TIMEOUT = 10.0  # seconds that a webhook may take
_COMMAND_TIMEOUT = 60.0
_AGAIN = 1.0  # seconds after which a webhook that was not reached, or was busy, is called again
_BUSY = range(500, 600)
_NAMED = 5  # models that the sentence names


@dataclass(frozen=True, slots=True)
class Message:
    """One message as JSON; its ``text`` is a sentence for people."""

    event: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """The project, the machine and the moment, which all messages of a run name."""

    project: str
    host: str
    at: datetime

    @classmethod
    def now(cls, project: str) -> Told:
        return cls(project, platform.node(), datetime.now(UTC))

    def message(self, event: str, text: str, run_id: str | None = None, **more: Any) -> Message:
        document = {
            "event": event,
            "text": f"{self.project}: {text}",
            "project": self.project,
            "host": self.host,
            "time": self.at.isoformat(),
            "run_id": run_id,
            **more,
        }
        return Message(event, document)


def messages_of(
    result: RunResult,
    told: Told,
    *,
    models: Collection[str] | None = None,
    recovered: Collection[str] = (),
    has_values: bool = False,
) -> Iterator[Message]:
    """Yield what a run that has ended has to tell of ``models`` (None: all): at most one failure
    and one recovery. ``recovered`` are the models that had failed and have not any more. Only where
    it ``has_values``, a failure has rows that failed a test.
    """
    of = [step for step in result.steps if models is None or step.name in models]
    failed = [step for step in of if step.state == "failed"]
    if failed:
        names = tuple(dict.fromkeys(step.name for step in failed))
        why = failed[0].error.message if failed[0].error is not None else failed[0].reason
        text = f"{_listed(names)} failed" + (f": {why}" if why else "")
        skipped = tuple(dict.fromkeys(step.name for step in of if step.state == "skipped"))
        yield told.message(
            FAILURE,
            text,
            result.run_id,
            state=result.state,
            seconds=result.seconds,
            steps=[_step(step, has_values=has_values) for step in failed],
            skipped=skipped,
        )
    back = [name for name in sorted(recovered) if models is None or name in models]
    if back:
        steps = [_step(step) for step in of if step.name in back]
        yield told.message(
            RECOVERY,
            f"{_listed(back)} made again after a failure",
            result.run_id,
            state=result.state,
            seconds=result.seconds,
            steps=steps,
            skipped=(),
        )


def message_of_error(error: PenstockError, told: Told) -> Message:
    """Return what a run that could not go on has to tell."""
    text = f"a run ended with an error: {error.message}"
    return told.message(
        FAILURE,
        text,
        state="failed",
        seconds=None,
        steps=[],
        skipped=(),
        error={"type": type(error).__name__, "message": error.message, "hint": error.hint},
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _step(step: StepResult, *, has_values: bool = False) -> Mapping[str, Any]:
    failures = [check for check in step.checks if check.outcome == "failed"]
    return {
        "step": step.name,
        "table": step.target,
        "slice": step.slice,
        "state": step.state,
        "reason": step.error.message if step.error is not None else step.reason,
        "failed_tests": [check.name for check in failures],
        "tests": [
            {"name": check.name, "rows": check.failures}
            | ({"values": plain(check.samples)} if has_values else {})
            for check in failures
        ],
    }


@dataclass(frozen=True, slots=True)
class LateSlice:
    """A slice that is, or was, past the freshness of its model; ``key`` is empty for a whole table.

    ``built_at`` is None where it never was; ``since`` is when it became late, where that is known.
    """

    model: str
    key: str
    freshness: str
    built_at: datetime | None = None
    since: datetime | None = None


def message_of_late(event: str, slices: Sequence[LateSlice], sender: Told) -> Message:
    """Return what is to be told of slices that became late, or that are fresh again.

    Args:
        event: `LATE` or `RECOVERY`.
        slices: The slices.
        sender: Who tells.

    Returns:
        The message.
    """
    by_model: dict[str, list[LateSlice]] = {}
    for part in slices:
        by_model.setdefault(part.model, []).append(part)
    names = [_late_model(name, parts) for name, parts in by_model.items()]
    text = "past the freshness: " if event == LATE else "fresh again: "
    models = [
        {
            "model": name,
            "freshness": parts[0].freshness,
            "slices": [
                {
                    "slice": part.key or None,
                    "built_at": plain(part.built_at),
                    "since": plain(part.since),
                }
                for part in parts
            ],
        }
        for name, parts in by_model.items()
    ]
    return sender.message(event, text + _listed(names), steps=[], skipped=(), models=models)


def _late_model(name: str, slices: Sequence[LateSlice]) -> str:
    """Return ``orders (1h)``, ``days 2026-01-01 (1h)`` or ``days (1h, 3 slices)``."""
    first = slices[0]
    if len(slices) > 1:
        return f"{name} ({first.freshness}, {len(slices):,} slices)"
    return f"{name} {first.key}".rstrip() + f" ({first.freshness})"


@dataclass(frozen=True, slots=True)
class Notifier:
    """Sends messages to whom ``settings`` name; ``selected`` gives the models of a selection."""

    settings: Sequence[NotifySettings]
    told: Told
    root: Path
    selected: Callable[[Sequence[str]], Collection[str]]

    @classmethod
    def of(
        cls, settings: Settings, selected: Callable[[Sequence[str]], Collection[str]]
    ) -> Notifier:
        """Return that of a project, for runs from now on."""
        return cls(settings.notify, Told.now(settings.name), settings.root, selected)

    def ended(self, result: RunResult, recovered: Collection[str]) -> Iterator[str]:
        """Tell what a run made; yield what could not be told, each as a sentence."""
        for each in self.settings:
            models = self.selected(each.select) if each.select else None
            messages = messages_of(
                result,
                self.told,
                models=models,
                recovered=recovered,
                has_values=each.values,
            )
            yield from self._send(each, messages)

    def broken(self, error: PenstockError) -> Iterator[str]:
        """Tell that a run ended with an error, whatever models it was of."""
        for each in self.settings:
            yield from self._send(each, [message_of_error(error, self.told)])

    def _send(self, to: NotifySettings, messages: Iterable[Message]) -> Iterator[str]:
        for message in messages:
            if to.failure if message.event == FAILURE else to.recovery:
                problem = send(to, message, self.root)
                if problem is not None:
                    yield f"notify.{to.name} could not be told of the {message.event}: {problem}"


@contextmanager
def notifying(
    notifier: Notifier, failing: Callable[[], Collection[str]], report: EventSink
) -> Iterator[EventSink]:
    """Yield a sink that notifies when a run has ended, or has raised an error.

    Wrong input is not told: who gave it sees it.

    Args:
        notifier: Sends the messages.
        failing: Names the models with slices whose last attempt failed.
        report: Receives a notice for each message that did not arrive.

    Yields:
        The sink.

    Raises:
        PenstockError: The error of the run.
    """
    try:
        before = frozenset(failing())

        def sink(event: Event) -> None:
            if isinstance(event, RunFinished):
                still = frozenset(failing()) if before else before
                published = {step.name for step in event.result.steps if step.state in PUBLISHED}
                for problem in notifier.ended(event.result, (before - still) & published):
                    report(Notice(problem))

        yield sink
    except PenstockError as error:
        if not isinstance(error, InputError | PlanMoved):
            for problem in notifier.broken(error):
                report(Notice(problem))
        raise


def send(to: NotifySettings, message: Message, root: Path) -> str | None:
    """Send one message; return why it did not arrive, or None."""
    body = json.dumps(message.document, ensure_ascii=False).encode()
    if to.webhook is not None:
        return _post(to.webhook, body)
    return _call(to.command, body, root)


def _post(address: str, body: bytes) -> str | None:
    """POST it; again, once, where nobody answers or the answer is 500 to 599."""
    problem = _posted(address, body)
    if problem is not None and problem[1]:
        time.sleep(_AGAIN)
        problem = _posted(address, body)
    return None if problem is None else problem[0]


def _posted(address: str, body: bytes) -> tuple[str, bool] | None:
    """Return what went wrong and whether another time may go better; never the address, which is a
    secret.
    """
    request = Request(
        address, data=body, headers={"Content-Type": "application/json", "User-Agent": "penstock"}
    )
    try:
        with urlopen(request, timeout=_TIMEOUT):
            return None
    except HTTPError as error:
        return f"the webhook answered {error.code} {error.reason}", error.code in _BUSY
    except URLError as error:
        return masked(f"the webhook cannot be reached: {error.reason}"), True
    except (OSError, ValueError) as error:
        return masked(f"the webhook cannot be reached: {error}"), True


def _call(command: Sequence[str], body: bytes, root: Path) -> str | None:
    """Run it in the project's directory, with the document as its input."""
    try:
        ended = subprocess.run(
            command,
            input=body,
            cwd=root,
            capture_output=True,
            timeout=_COMMAND_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} took longer than {_COMMAND_TIMEOUT:.0f} s"
    except OSError as error:
        return f"{command[0]} cannot be run: {error.strerror}"
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        return f"{command[0]} ended with {ended.returncode}" + (f": {said[-1]}" if said else "")
    return None
