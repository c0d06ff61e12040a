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
    choice.take(sorted((item for item in queued if not _is_backfill(item)), key=_age), free)
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
        """Choose up to a number of candidates, the first that may start.

        Args:
            candidates: The firings, in the order in which they are looked at.
            number: The number of firings to choose.
        """
        for firing in candidates:
            if number <= 0:
                return
            if not self._is_busy(firing) and not self._order.has_to_wait(firing):
                self.firings.append(firing)
                number -= 1
            # Later firings of the slice do not overtake one that waits, either.
            self._slices[firing.model].add(firing.key)

    def _is_busy(self, firing: Firing) -> bool:
        slices = self._slices.get(firing.model, ())
        return bool(slices) and (firing.key == WHOLE or WHOLE in slices or firing.key in slices)


class _Order:
    """The order of firings for the same time, which is that of the graph."""

    def __init__(
        self, firings: Iterable[Firing], subscriptions: Mapping[str, Subscription]
    ) -> None:
        self._subscriptions = subscriptions
        self._inputs: InputGraph | None = None
        self._keys: defaultdict[datetime, dict[str, _Keys]] = defaultdict(dict)
        for firing in firings:
            models = self._keys[firing.fire_time]
            keys = models.get(firing.model)
            if keys is None:
                keys = models[firing.model] = _Keys()
            (keys.of_backfills if _is_backfill(firing) else keys.of_others).add(firing.key)

    def has_to_wait(self, firing: Firing) -> bool:
        """Return whether a model that is read, directly or not, has a firing for the same time.

        Work that is no backfill does not wait for one.

        Args:
            firing: A firing that is queued.

        Returns:
            True if it has to wait for one of them.
        """
        models = self._keys[firing.fire_time]
        if len(models) == 1:
            return False
        if self._inputs is None:
            self._inputs = InputGraph.of(self._subscriptions)
        for model in self._inputs.inputs_among(models, firing.model):
            keys = models[model]
            if self._may_need(firing, model, keys.of_others):
                return True
            if _is_backfill(firing) and self._may_need(firing, model, keys.of_backfills):
                return True
        return False

    def _may_need(self, firing: Firing, model: str, keys: set[str]) -> bool:
        if not keys or firing.key in keys:
            return bool(keys)
        if firing.key == WHOLE or WHOLE in keys:
            return True
        spec, input_spec = self._partition_of(firing.model), self._partition_of(model)
        if spec == input_spec:
            return False
        return meets(spec, [Part(key) for key in keys], input_spec)(Part(firing.key))

    def _partition_of(self, model: str) -> PartitionSpec | None:
        reader = self._subscriptions.get(model)
        return reader.partition if reader else None


@dataclass(frozen=True, slots=True)
class InputGraph:
    """The models that each model reads, directly or not, as the bits of a number.

    Attributes:
        bits: The bit of each model.
        inputs: The bits of the models that each model reads.
    """

    bits: Mapping[str, int]
    inputs: Mapping[str, int]

    @classmethod
    def of(cls, subscriptions: Mapping[str, Subscription]) -> InputGraph:
        """Follow the graph.

        Args:
            subscriptions: The subscriptions by model. A circle in the graph is no error.

        Returns:
            The graph.
        """
        bits = {model: 1 << place for place, model in enumerate(subscriptions)}
        reads = {
            model: tuple(name for name in reader.reads if name in bits)
            for model, reader in subscriptions.items()
        }
        inputs = dict.fromkeys(bits, 0)
        order, is_complete = _inputs_before_readers(reads), False
        while not is_complete:  # once and a check, or a few times around a circle
            is_complete = True
            for model in order:
                reached = inputs[model]
                for name in reads[model]:
                    reached |= bits[name] | inputs[name]
                is_complete &= reached == inputs[model]
                inputs[model] = reached
        return cls(bits, inputs)

    def inputs_among(self, models: Iterable[str], reader: str) -> Iterator[str]:
        """Return the models that a model reads, without those that read it, in a circle.

        They are looked up as they are asked for: one is enough to wait for.

        Args:
            models: The models to look at.
            reader: The model that reads.

        Returns:
            The names of its inputs.
        """
        inputs, bit = self.inputs.get(reader, 0), self.bits.get(reader, 0)
        candidates = (model for model in models if self.bits.get(model, 0) & inputs)
        return (model for model in candidates if not self.inputs[model] & bit)


def _inputs_before_readers(reads: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the models in an order in which each comes after its inputs, if no circle is there."""
    order: dict[str, None] = {}
    entered: set[str] = set()
    stack = list(reads)
    while stack:
        model = stack[-1]
        if model in entered:
            order[stack.pop()] = None
        else:
            entered.add(model)
            stack += (name for name in reads[model] if name not in entered)
    return list(order)


def _is_backfill(firing: Firing) -> bool:
    return firing.kind is EventKind.BACKFILL


def _age(firing: Firing) -> tuple[datetime, str]:
    return firing.queued_at or _NEVER, firing.id


def _by_slice(
    firings: Iterable[Firing], subscriptions: Mapping[str, Subscription]
) -> Iterator[Firing]:
    """Yield the newest slice of each model in turn, then the next; the oldest model comes first."""
    by_model: defaultdict[str, list[Firing]] = defaultdict(list)
    for firing in firings:
        by_model[firing.model].append(firing)
    turns: list[list[Firing]] = []
    for slices in sorted(by_model.values(), key=lambda slices: min(map(_age, slices))):
        reader = subscriptions.get(slices[0].model)
        order = in_time(reader.partition if reader else None)
        slices.sort(key=_age)
        slices.sort(key=lambda firing: order(firing.key), reverse=True)
        turns.append(slices)
    for turn in zip_longest(*turns):
        yield from (firing for firing in turn if firing is not None)
