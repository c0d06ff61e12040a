"""Queue waiting firings: when all sources have arrived, and pauses and debounces have ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from penstock.scheduler.covering import Board, required_sources
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import EventKind, Firing, FiringState, Pause
from penstock.sql.identifiers import fold

_TAG = "tag:"


@dataclass(frozen=True, slots=True)
class Wait:
    """The reason why a firing is not queued.

    Attributes:
        reason: The reason, in words.
        until: When the wait ends; None if only an event or a user ends it.
    """

    reason: str
    until: datetime | None = None


def settle(
    board: Board,
    subscriptions: Mapping[str, Subscription],
    pauses: Iterable[Pause],
    moment: datetime,
) -> datetime | None:
    """Queue the firings that need not wait, and update the reasons of the others.

    What nothing would fire any more is cancelled.

    Args:
        board: The firings. They are changed.
        subscriptions: The subscriptions by model.
        pauses: The pauses that nobody has removed.
        moment: The time of the decision.

    Returns:
        When the first wait ends without an event; None if no wait does.
    """
    active_pauses = [pause for pause in pauses if pause.is_active_at(moment)]
    pauses_of: dict[str, list[Pause]] = {}
    wait_ends: list[datetime] = []
    for firing in board.not_started:
        reader = subscriptions.get(firing.model)
        end = find_end(firing, reader)
        if end is not None:
            board.end(replace(firing, state=FiringState.CANCELLED, reason=end, queued_at=None))
            continue
        if firing.model not in pauses_of:
            pauses_of[firing.model] = find_pauses(active_pauses, firing.model, reader)
        changed = _update_sources(firing, reader)
        wait = find_wait(changed, pauses_of[firing.model], moment)
        changed = _update_state(changed, wait, moment)
        if changed is not firing and changed != firing:
            board.put(changed)
        if wait is not None and wait.until is not None:
            wait_ends.append(wait.until)
    return min(wait_ends, default=None)


def find_end(firing: Firing, reader: Subscription | None) -> str | None:
    """Find why a firing is not to run any more.

    Args:
        firing: A firing that has not started.
        reader: The subscription of its model; None of a model that the project has no more.

    Returns:
        The reason; None if it is to run.
    """
    if reader is None:
        return f"model {firing.model} is no longer in the project"
    if reader.has_trigger or firing.kind is EventKind.BACKFILL:  # people ask for backfills
        return None
    return f"model {firing.model} has no trigger any more"


def find_pauses(pauses: Iterable[Pause], model: str, reader: Subscription | None) -> list[Pause]:
    """Find the pauses that apply to a model.

    Args:
        pauses: The pauses.
        model: The name of the model.
        reader: Its subscription, with its tags.

    Returns:
        The pauses of the model or of one of its tags.
    """
    tags = reader.tags if reader else frozenset[str]()
    selectors = {fold(model), *(fold(_TAG + tag) for tag in tags)}
    return [pause for pause in pauses if fold(pause.selector) in selectors]


def find_wait(firing: Firing, pauses: Iterable[Pause], moment: datetime) -> Wait | None:
    """Find why a firing must wait.

    Args:
        firing: A firing that has not started.
        pauses: The active pauses of its model.
        moment: The time of the decision.

    Returns:
        The reason; None if it may be queued.
    """
    if firing.missing:
        return Wait(f"waits for {', '.join(firing.missing)}")
    ready_at = firing.ready_at if firing.ready_at and moment < firing.ready_at else None
    active_pauses = list(pauses)
    if active_pauses:
        end_times = [pause.until for pause in active_pauses if pause.until is not None]
        is_limited = len(end_times) == len(active_pauses)
        until = max((*end_times, *([ready_at] if ready_at else []))) if is_limited else None
        return Wait(describe_pause(active_pauses[0]), until)
    if ready_at:
        return Wait(f"debounced until {_format_time(ready_at)}", ready_at)
    return None


def _update_state(firing: Firing, wait: Wait | None, moment: datetime) -> Firing:
    if wait is not None:
        return replace(firing, state=FiringState.WAITING, reason=wait.reason, queued_at=None)
    if firing.state is FiringState.QUEUED:
        return firing
    return replace(firing, state=FiringState.QUEUED, reason=None, queued_at=moment)


def _update_sources(firing: Firing, reader: Subscription | None) -> Firing:
    """Update the missing sources of a join. The model may have other sources than before."""
    if not firing.missing or reader is None:
        return firing
    required = required_sources(reader)
    missing = tuple(name for name in required if name not in firing.arrived)
    return firing if missing == firing.missing else replace(firing, missing=missing)


def describe_pause(pause: Pause) -> str:
    """Describe a pause for people.

    Args:
        pause: The pause.

    Returns:
        By whom, until when and why.
    """
    text = f"paused by {pause.user}" if pause.user else "paused"
    if pause.until:
        text += f" until {_format_time(pause.until)}"
    return f"{text}: {pause.reason}" if pause.reason else text


def _format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
