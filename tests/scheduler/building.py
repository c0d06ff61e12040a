"""Values of the scheduler as tests write them, and a chain of decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from penstock.scheduler.decide import apply, decide
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import (
    Agenda,
    Decision,
    EventKind,
    Firing,
    FiringState,
    Outcome,
    TriggerEvent,
)

NOON = datetime(2026, 5, 16, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def by_model(*readers: Subscription) -> dict[str, Subscription]:
    """Return subscriptions by model."""
    return {reader.model: reader for reader in readers}


def reads(*names: str, is_partitioned: bool = False) -> tuple[Source, ...]:
    """Return sources of tables of the schema ``main.main``."""
    return tuple(Source(f"main.main.{name}", is_partitioned) for name in names)


def change(identity: str, table: str, partition: str | None = None, **more: Any) -> TriggerEvent:
    """Return the event of a table that changed at noon."""
    more = {"time": NOON} | more
    return TriggerEvent(
        identity, EventKind.ASSET, f"main.main.{table}", partition=partition, **more
    )


def message(
    identity: str, name: str, payload: Mapping[str, Any] | None, **more: Any
) -> TriggerEvent:
    """Return a message that arrived at noon."""
    return TriggerEvent(
        identity, EventKind.MESSAGE, name, payload=payload, **({"time": NOON} | more)
    )


def due(identity: str, model: str, **more: Any) -> TriggerEvent:
    """Return the event of a schedule that was due at noon."""
    return replace(TriggerEvent(identity, EventKind.SCHEDULE, model, NOON), **more)


@dataclass
class Scheduler:
    """Decisions one after another, each from the agenda that the one before left.

    Attributes:
        subscriptions: The models.
        agenda: The agenda after the last decision.
        outcomes: All outcomes, in order.
        firings: Each firing as it was decided last.
        wakes_at: When the last decision asked to decide again.
    """

    subscriptions: Mapping[str, Subscription]
    agenda: Agenda = field(default_factory=Agenda)
    outcomes: list[Outcome] = field(default_factory=list)
    firings: dict[str, Firing] = field(default_factory=dict)
    wakes_at: datetime | None = None
    ids: Any = field(default_factory=lambda: (f"f{number:04d}" for number in count(1)))

    def decide(self, *events: TriggerEvent, moment: datetime = NOON) -> Decision:
        """Decide, and apply the decision."""
        decision = decide(
            self.subscriptions, self.agenda, events, moment, lambda: str(next(self.ids))
        )
        self.agenda = apply(self.agenda, decision)
        self.outcomes += decision.outcomes
        self.firings.update({firing.id: firing for firing in decision.firings})
        self.wakes_at = decision.wakes_at
        return decision

    def move(self, identity: str, state: FiringState) -> None:
        """Let a firing start, or end."""
        firing = replace(self.agenda.firings[identity], state=state)
        self.firings[identity] = firing
        self.agenda = apply(self.agenda, Decision((firing,)))

    def shown(self) -> list[tuple[str, str]]:
        """Return the keys and states of all firings."""
        return [(firing.key, firing.state.value) for firing in self.firings.values()]


def kinds(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """Return the events and kinds of outcomes."""
    return [(outcome.event, outcome.kind.value) for outcome in outcomes]
