"""Decide which models fire, as a pure function of subscriptions, agenda, events and time.

`decide` reads no clock, file or catalog. The same input gives the same decision, except for the
ids. The caller supplies them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from penstock.scheduler.covering import Board, Demand, cover
from penstock.scheduler.matching import (
    Index,
    Match,
    explain_no_match,
    find_matches,
    find_obstacle,
)
from penstock.scheduler.partitions import find_slices
from penstock.scheduler.readiness import settle
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import (
    Agenda,
    Decision,
    FreshnessMark,
    Outcome,
    OutcomeKind,
    ScheduleMark,
    TriggerEvent,
)


class Production(Protocol):
    """The events of a producer.

    It may also have ``outcomes``. An event with such an outcome is recorded, but fires no model.
    """

    @property
    def events(self) -> Sequence[TriggerEvent]:
        """Return the events."""

    @property
    def marks(self) -> Sequence[ScheduleMark] | Sequence[FreshnessMark]:
        """Return the marks to record with the events."""

    @property
    def wakes_at(self) -> datetime | None:
        """Return the next time when there may be events."""


class Producer(Protocol):
    """A source of events that depend on time: schedules and freshness."""

    def __call__(
        self, subscriptions: Mapping[str, Subscription], agenda: Agenda, moment: datetime, /
    ) -> Production:
        """Return the events that are due."""


def decide(
    subscriptions: Mapping[str, Subscription],
    agenda: Agenda,
    events: Sequence[TriggerEvent],
    moment: datetime,
    new_id: Callable[[], str],
    *,
    producers: Sequence[Producer] = (),
    excluded: Mapping[str, Collection[str]] | None = None,
) -> Decision:
    """Decide the outcomes of new events, and the states of waiting firings.

    Args:
        subscriptions: The subscriptions by model. `Index.of` makes repeated decisions quicker.
        agenda: The state from which to decide.
        events: The new events, in the order of their detection.
        moment: The time of the decision.
        new_id: Returns the id of a new firing.
        producers: The producers of further events. These events are decided after ``events``.
        excluded: The models that an event does not trigger, by event id. They subscribed later.

    Returns:
        The decision.
    """
    index = Index.of(subscriptions)
    productions = [producer(index, agenda, moment) for producer in producers]
    produced = tuple(event for production in productions for event in production.events)
    outcomes: list[Outcome] = []
    for production in productions:
        outcomes += getattr(production, "outcomes", ())  # only schedules skip times
    skipped = {outcome.event for outcome in outcomes}
    to_decide = (event for event in produced if event.id not in skipped)
    decision = decide_events(
        index, agenda, (*events, *to_decide), moment, new_id, excluded=excluded
    )
    marks = [mark for production in productions for mark in production.marks]
    return replace(
        decision,
        events=produced,
        outcomes=(*outcomes, *decision.outcomes),
        marks=tuple(mark for mark in marks if isinstance(mark, ScheduleMark)),
        freshness=tuple(mark for mark in marks if isinstance(mark, FreshnessMark)),
        wakes_at=_earliest((decision.wakes_at, *(item.wakes_at for item in productions))),
    )


def decide_events(
    subscriptions: Mapping[str, Subscription],
    agenda: Agenda,
    events: Iterable[TriggerEvent],
    moment: datetime,
    new_id: Callable[[], str],
    *,
    excluded: Mapping[str, Collection[str]] | None = None,
) -> Decision:
    """Decide the outcomes of events, without producers.

    If an open firing already covers an event, the event keeps its outcome.

    Args:
        subscriptions: The subscriptions by model.
        agenda: The state from which to decide.
        events: The events, in the order of their detection.
        moment: The time of the decision.
        new_id: Returns the id of a new firing.
        excluded: The models that an event does not trigger, by event id. They subscribed later.

    Returns:
        The decision, without marks.
    """
    index = Index.of(subscriptions)
    board = Board(agenda, new_id)
    for event in {event.id: event for event in events}.values():
        matches = find_matches(index, event)
        if not matches:
            board.record(event.id, "", OutcomeKind.IGNORED, reason=explain_no_match(index, event))
        excluded_models = (excluded or {}).get(event.id, ())
        for match in matches:
            model = match.reader.model
            if model not in excluded_models and not board.has_covered(model, event.id):
                _admit(board, event, match)
    wakes_at = settle(board, index, agenda.pauses, moment)
    return Decision(board.changed, outcomes=board.outcomes, wakes_at=wakes_at)


def apply(agenda: Agenda, decision: Decision) -> Agenda:
    """Return the agenda after a decision.

    Args:
        agenda: The agenda before the decision. It is not changed.
        decision: The decision.

    Returns:
        The agenda with the new firings and marks, and without ended firings.
    """
    firings = {**agenda.firings, **{firing.id: firing for firing in decision.firings}}
    freshness = {
        **agenda.freshness,
        **{(mark.model, mark.key): mark for mark in decision.freshness},
    }
    return replace(
        agenda,
        firings={key: firing for key, firing in firings.items() if firing.state.is_open},
        marks={**agenda.marks, **{mark.model: mark for mark in decision.marks}},
        freshness={key: mark for key, mark in freshness.items() if mark.attempts},
    )


def _admit(board: Board, event: TriggerEvent, match: Match) -> None:
    model = match.reader.model
    obstacle = find_obstacle(event, match)
    if obstacle is not None:
        board.record(event.id, model, OutcomeKind.IGNORED, reason=obstacle)
        return
    slices = find_slices(event, match)
    if slices.reason is not None:
        board.record(event.id, model, OutcomeKind.IGNORED, reason=slices.reason)
    for key in slices.keys:
        cover(board, Demand(event, match.reader, key, match.source))


def _earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
