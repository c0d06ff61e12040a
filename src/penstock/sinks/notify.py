"""Notify recipients of failed runs, late slices and recoveries, by webhook or command.

If a notification cannot be sent, the run reports a notice. Its result does not change.
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
_TIMEOUT = 10.0  # seconds for the response of a webhook
_COMMAND_TIMEOUT = 60.0
_RETRY_DELAY = 1.0  # seconds before the second request to an unreachable or busy webhook
_RETRIABLE = range(500, 600)
_MAX_NAMES = 5  # models in the text of a message


@dataclass(frozen=True, slots=True)
class Message:
    """A message as a JSON document. Its ``text`` is a sentence for people."""

    event: str
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sender:
    """The project, the machine and the time in all messages of a run."""

    project: str
    host: str
    at: datetime

    @classmethod
    def now(cls, project: str) -> Sender:
        return cls(project, platform.node(), datetime.now(UTC))

    def build(self, event: str, text: str, run_id: str | None = None, **more: Any) -> Message:
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


def build_messages(
    result: RunResult,
    sender: Sender,
    *,
    models: Collection[str] | None = None,
    recovered: Collection[str] = (),
    has_values: bool = False,
) -> Iterator[Message]:
    """Yield the messages of a run about ``models`` (None: all): at most one failure and one
    recovery. ``recovered`` are the models whose failed slices are built. With ``has_values``, a
    failure contains rows that failed a test.
    """
    selected = [step for step in result.steps if models is None or step.name in models]
    failed = [step for step in selected if step.state == "failed"]
    if failed:
        names = tuple(dict.fromkeys(step.name for step in failed))
        reason = failed[0].error.message if failed[0].error is not None else failed[0].reason
        text = f"{_join_names(names)} failed" + (f": {reason}" if reason else "")
        skipped = tuple(dict.fromkeys(step.name for step in selected if step.state == "skipped"))
        yield sender.build(
            FAILURE,
            text,
            result.run_id,
            state=result.state,
            seconds=result.seconds,
            steps=[_describe_step(step, has_values=has_values) for step in failed],
            skipped=skipped,
        )
    back = [name for name in sorted(recovered) if models is None or name in models]
    if back:
        steps = [_describe_step(step) for step in selected if step.name in back]
        yield sender.build(
            RECOVERY,
            f"{_join_names(back)} made again after a failure",
            result.run_id,
            state=result.state,
            seconds=result.seconds,
            steps=steps,
            skipped=(),
        )


def build_error_message(error: PenstockError, sender: Sender) -> Message:
    """Build the message of a run that raised an error."""
    text = f"a run ended with an error: {error.message}"
    return sender.build(
        FAILURE,
        text,
        state="failed",
        seconds=None,
        steps=[],
        skipped=(),
        error={"type": type(error).__name__, "message": error.message, "hint": error.hint},
    )


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


def _describe_step(step: StepResult, *, has_values: bool = False) -> Mapping[str, Any]:
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
    """A slice that is or was overdue. Its ``key`` is empty for a whole table.

    ``built_at`` is None if it was never built. It is overdue ``since`` this time, if known.
    """

    model: str
    key: str
    freshness: str
    built_at: datetime | None = None
    since: datetime | None = None


def build_late_message(event: str, slices: Sequence[LateSlice], sender: Sender) -> Message:
    """Build the message about slices that became late, or that are fresh again.

    Args:
        event: `LATE` or `RECOVERY`.
        slices: The slices.
        sender: The sender.

    Returns:
        The message.
    """
    by_model: dict[str, list[LateSlice]] = {}
    for part in slices:
        by_model.setdefault(part.model, []).append(part)
    names = [_describe_late(name, parts) for name, parts in by_model.items()]
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
    return sender.build(event, text + _join_names(names), steps=[], skipped=(), models=models)


def _describe_late(name: str, slices: Sequence[LateSlice]) -> str:
    """Return ``orders (1h)``, ``days 2026-01-01 (1h)`` or ``days (1h, 3 slices)``."""
    first = slices[0]
    if len(slices) > 1:
        return f"{name} ({first.freshness}, {len(slices):,} slices)"
    return f"{name} {first.key}".rstrip() + f" ({first.freshness})"


@dataclass(frozen=True, slots=True)
class Notifier:
    """A sender of messages to the recipients in ``settings``. ``selected`` resolves selectors."""

    settings: Sequence[NotifySettings]
    sender: Sender
    root: Path
    selected: Callable[[Sequence[str]], Collection[str]]

    @classmethod
    def of(
        cls, settings: Settings, selected: Callable[[Sequence[str]], Collection[str]]
    ) -> Notifier:
        """Create the notifier of a project."""
        return cls(settings.notify, Sender.now(settings.name), settings.root, selected)

    def notify_end(self, result: RunResult, recovered: Collection[str]) -> Iterator[str]:
        """Send the messages of a run. Yield a sentence for each message that was not sent."""
        for recipient in self.settings:
            models = self.selected(recipient.select) if recipient.select else None
            messages = build_messages(
                result,
                self.sender,
                models=models,
                recovered=recovered,
                has_values=recipient.values,
            )
            yield from self._send(recipient, messages)

    def notify_error(self, error: PenstockError) -> Iterator[str]:
        """Send the error of a run to all recipients. Selections of models have no effect."""
        for recipient in self.settings:
            yield from self._send(recipient, [build_error_message(error, self.sender)])

    def _send(self, to: NotifySettings, messages: Iterable[Message]) -> Iterator[str]:
        for message in messages:
            if to.failure if message.event == FAILURE else to.recovery:
                problem = send(to, message, self.root)
                if problem is not None:
                    yield f"notify.{to.name}: the {message.event} message was not sent: {problem}"


@contextmanager
def notify_after_run(
    notifier: Notifier, failing: Callable[[], Collection[str]], report: EventSink
) -> Iterator[EventSink]:
    """Yield a sink that sends notifications when a run has ended, or has raised an error.

    Errors of wrong input are not sent: the user sees them.

    Args:
        notifier: Sends the messages.
        failing: Returns the models with slices whose last attempt failed.
        report: Receives a notice for each message that was not sent.

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
                for problem in notifier.notify_end(event.result, (before - still) & published):
                    report(Notice(problem))

        yield sink
    except PenstockError as error:
        if not isinstance(error, InputError | PlanMoved):
            for problem in notifier.notify_error(error):
                report(Notice(problem))
        raise


def send(to: NotifySettings, message: Message, root: Path) -> str | None:
    """Send a message. Return the reason if it was not sent; None on success."""
    body = json.dumps(message.document, ensure_ascii=False).encode()
    if to.webhook is not None:
        return _post(to.webhook, body)
    return _call(to.command, body, root)


def _post(address: str, body: bytes) -> str | None:
    """Send a POST request. Retry once if the webhook is unreachable or returns 500 to 599."""
    problem = _try_post(address, body)
    if problem is not None and problem[1]:
        time.sleep(_RETRY_DELAY)
        problem = _try_post(address, body)
    return None if problem is None else problem[0]


def _try_post(address: str, body: bytes) -> tuple[str, bool] | None:
    """Return the problem, and whether a retry may help. The address is a secret, so the problem
    never contains it.
    """
    request = Request(
        address, data=body, headers={"Content-Type": "application/json", "User-Agent": "penstock"}
    )
    try:
        with urlopen(request, timeout=_TIMEOUT):
            return None
    except HTTPError as error:
        return f"the webhook answered {error.code} {error.reason}", error.code in _RETRIABLE
    except URLError as error:
        return masked(f"the webhook cannot be reached: {error.reason}"), True
    except (OSError, ValueError) as error:
        return masked(f"the webhook cannot be reached: {error}"), True


def _call(command: Sequence[str], body: bytes, root: Path) -> str | None:
    """Run a command in the project's directory, with the document as standard input."""
    try:
        completed = subprocess.run(
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
    if completed.returncode:
        lines = completed.stderr.decode(errors="replace").strip().splitlines()
        return ": ".join([f"{command[0]} ended with {completed.returncode}", *lines[-1:]])
    return None
