"""Say when a firing that waits is queued: its sources, the pauses of its model, its debounce."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from penstock.scheduler.covering import Board, required_sources
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import Firing, FiringState, Pause
from penstock.sql.identifiers import fold

_TAG = "tag:"


@dataclass(frozen=True, slots=True)
class Wait:
    """Say why a firing is not queued.

    Attributes:
        reason: The reason, for people.
        until: When to look again; None if only an event, or a person, ends it.
    """

    reason: str
    until: datetime | None = None


def settle(
    board: Board,
    subscriptions: Mapping[str, Subscription],
    pauses: Iterable[Pause],
    moment: datetime,
) -> datetime | None:
    """Queue the firings that wait for nothing, and hold those of paused models.

    Args:
        board: The firings, which are changed.
        subscriptions: The subscriptions by model.
        pauses: The pauses that were not lifted.
        moment: The time of the decision.

    Returns:
        When the first of them may be queued without another event; None if none may.
    """
    holding = [pause for pause in pauses if pause.holds(moment)]
    pauses_of: dict[str, list[Pause]] = {}
    wakes_at: list[datetime] = []
    for firing in board.not_started:
        reader = subscriptions.get(firing.model)
        if firing.model not in pauses_of:
            pauses_of[firing.model] = find_pauses(holding, firing.model, reader)
        settled = _with_current_sources(firing, reader)
        wait = find_wait(settled, pauses_of[firing.model], moment)
        settled = _settled(settled, wait, moment)
        if settled is not firing and settled != firing:
            board.put(settled)
        if wait is not None and wait.until is not None:
            wakes_at.append(wait.until)
    return min(wakes_at, default=None)


def find_pauses(pauses: Iterable[Pause], model: str, reader: Subscription | None) -> list[Pause]:
    """Find the pauses that are about a model.

    Args:
        pauses: The pauses.
        model: The name of the model.
        reader: Its subscription, which has its tags.

    Returns:
        Those that name it, or one of its tags.
    """
    tags = reader.tags if reader else frozenset[str]()
    selectors = {fold(model), *(fold(_TAG + tag) for tag in tags)}
    return [pause for pause in pauses if fold(pause.selector) in selectors]


def find_wait(firing: Firing, pauses: Iterable[Pause], moment: datetime) -> Wait | None:
    """Find why a firing must wait.

    Args:
        firing: A firing that has not started.
        pauses: The pauses of its model that last.
        moment: The time of the decision.

    Returns:
        The reason; None if it may be queued.
    """
    if firing.missing:
        return Wait(f"waits for {', '.join(firing.missing)}")
    ready_at = firing.ready_at if firing.ready_at and moment < firing.ready_at else None
    paused = list(pauses)
    if paused:
        limits = [pause.until for pause in paused if pause.until is not None]
        is_limited = len(limits) == len(paused)
        until = max((*limits, *([ready_at] if ready_at else []))) if is_limited else None
        return Wait(describe_pause(paused[0]), until)
    if ready_at:
        return Wait(f"debounced until {_text(ready_at)}", ready_at)
    return None


def _settled(firing: Firing, wait: Wait | None, moment: datetime) -> Firing:
    if wait is not None:
        return replace(firing, state=FiringState.WAITING, reason=wait.reason, queued_at=None)
    if firing.state is FiringState.QUEUED:
        return firing
    return replace(firing, state=FiringState.QUEUED, reason=None, queued_at=moment)


def _with_current_sources(firing: Firing, reader: Subscription | None) -> Firing:
    """Return a firing that waits for the sources that its model has today.

    A model that was changed no longer waits for a source that it does not read.
    """
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
        text += f" until {_text(pause.until)}"
    return f"{text}: {pause.reason}" if pause.reason else text


def _text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
