"""Choose which queued firings start: one for each slice, in the order of the graph, backfills last.

Firings of one model run one after another if they have a slice in common. A firing also waits for
firings of the models that it reads, if they are for the same time. So models that are due at one
time run in the order of the graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest

from penstock.model.time.partition import PartitionSpec
from penstock.model.time.slice import Part, in_time, meets
from penstock.scheduler.subscription import Subscription
from penstock.scheduler.values import WHOLE, Agenda, EventKind, Firing, FiringState


@dataclass(frozen=True, slots=True)
class _Keys:
    """The slices of a model that have a firing which has not ended."""

    of_others: set[str] = field(default_factory=set)
    of_backfills: set[str] = field(default_factory=set)


_NEVER = datetime.max.replace(tzinfo=UTC)


def choose_next(
    agenda: Agenda,
    subscriptions: Mapping[str, Subscription],
    slots: int,
    backfill_share: float = 0.5,
) -> tuple[Firing, ...]:
    """Choose the queued firings that start now.

    Args:
        agenda: The firings that are queued, and those that run.
        subscriptions: The subscriptions by model.
        slots: The number of firings that may run at once, with those that run already.
        backfill_share: The share of the slots that backfills have at most. They have one at least,
            which other work takes first.

    Returns:
        The firings, in the order in which they start.
    """
    running = [item for item in agenda.firings.values() if item.state is FiringState.RUNNING]
    queued = [item for item in agenda.firings.values() if item.state is FiringState.QUEUED]
    free = slots - len(running)
    if free <= 0 or not queued:
        return ()
    choice = _Choice(running, _Order((*running, *queued), subscriptions))
    choice.take(_by_age(item for item in queued if not _is_backfill(item)), free)
    share = max(1, int(slots * backfill_share)) - sum(map(_is_backfill, running))
    free = min(free - len(choice.firings), share)
    if free > 0:
        backfills = [item for item in queued if _is_backfill(item)]
        choice.take(_by_slice(backfills, subscriptions), free)
    return tuple(choice.firings)


class _Choice:
    """The firings that were chosen, and the slices that run. It is changed."""

    def __init__(self, running: Iterable[Firing], order: _Order) -> None:
        self.firings: list[Firing] = []
        self._order = order
        self._slices: defaultdict[str, set[str]] = defaultdict(set)
        for firing in running:
            self._slices[firing.model].add(firing.key)

    def take(self, candidates: Iterable[Firing], number: int) -> None:
        """Choose up to a number of candidates, the first that may start."""
        for firing in candidates:
            if number <= 0:
                return
            if not self._is_busy(firing) and not self._order.has_to_wait(firing):
                self.firings.append(firing)
                self._slices[firing.model].add(firing.key)
                number -= 1

    def _is_busy(self, firing: Firing) -> bool:
        slices = self._slices.get(firing.model, ())
        return bool(slices) and (firing.key == WHOLE or WHOLE in slices or firing.key in slices)


class _Order:
    """The order of firings for the same time, which is that of the graph."""

    def __init__(
        self, firings: Iterable[Firing], subscriptions: Mapping[str, Subscription]
    ) -> None:
        self._subscriptions = subscriptions
        self._inputs: dict[str, frozenset[str]] = {}
        self._keys: defaultdict[datetime, dict[str, _Keys]] = defaultdict(dict)
        for firing in firings:
            keys = self._keys[firing.fire_time].setdefault(firing.model, _Keys())
            (keys.of_backfills if _is_backfill(firing) else keys.of_others).add(firing.key)

    def has_to_wait(self, firing: Firing) -> bool:
        """Return whether a model that is read, directly or not, has a firing for the same time.

        Work that is no backfill does not wait for one.
        """
        models = self._keys[firing.fire_time]
        if len(models) == 1:
            return False
        for model in self._inputs_of(firing.model).intersection(models):
            keys = models[model].of_others
            if _is_backfill(firing):
                keys = keys | models[model].of_backfills
            if keys and self._may_need(firing, model, keys):
                return True
        return False

    def _may_need(self, firing: Firing, model: str, keys: set[str]) -> bool:
        if firing.key == WHOLE or WHOLE in keys:
            return True
        specs = [self._partition_of(firing.model), self._partition_of(model)]
        return meets(specs[0], [Part(key) for key in keys], specs[1])(Part(firing.key))

    def _partition_of(self, model: str) -> PartitionSpec | None:
        reader = self._subscriptions.get(model)
        return reader.partition if reader else None

    def _inputs_of(self, model: str) -> frozenset[str]:
        """Return the models that a model reads, without those that read it, in a circle."""
        if model not in self._inputs:
            inputs = self._reached_from(model)
            if model in inputs:
                inputs = {name for name in inputs if model not in self._reached_from(name)}
            self._inputs[model] = frozenset(inputs)
        return self._inputs[model]

    def _reached_from(self, model: str) -> set[str]:
        reached: set[str] = set()
        models = [model]
        while models:
            reader = self._subscriptions.get(models.pop())
            unseen = set(reader.reads) - reached if reader else set()
            reached |= unseen
            models += unseen
        return reached


def _is_backfill(firing: Firing) -> bool:
    return firing.kind is EventKind.BACKFILL


def _by_age(firings: Iterable[Firing]) -> list[Firing]:
    return sorted(firings, key=lambda firing: (firing.queued_at or _NEVER, firing.id))


def _by_slice(
    firings: Iterable[Firing], subscriptions: Mapping[str, Subscription]
) -> Iterator[Firing]:
    """Yield the newest slice of each model in turn, then the next; the oldest model comes first."""
    by_model: dict[str, list[Firing]] = {}
    for firing in _by_age(firings):
        by_model.setdefault(firing.model, []).append(firing)
    for model, slices in by_model.items():
        reader = subscriptions.get(model)
        order = in_time(reader.partition if reader else None)
        slices.sort(key=lambda firing: order(firing.key), reverse=True)
    for turn in zip_longest(*by_model.values()):
        yield from (firing for firing in turn if firing is not None)
