"""Choose the queued firings that start: one for each slice, in graph order, backfills last.

Firings of one model that have a slice in common run one after another. A firing also waits for the
firings of its inputs with the same fire time. So models that are due at the same time run in graph
order.
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

_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _OpenKeys:
    """The keys of the open firings of a model for one fire time."""

    regular: set[str] = field(default_factory=set)
    backfill: set[str] = field(default_factory=set)


def choose_next(
    agenda: Agenda,
    subscriptions: Mapping[str, Subscription],
    slots: int,
    backfill_share: float = 0.5,
) -> tuple[Firing, ...]:
    """Choose the queued firings that start now.

    Args:
        agenda: The agenda with the queued and the running firings.
        subscriptions: The subscriptions by model.
        slots: The maximum number of firings that run at once.
        backfill_share: The maximum share of the slots for backfills, but at least one slot. Other
            firings take the free slots first.

    Returns:
        The firings, in the order in which they start.
    """
    running = [item for item in agenda.firings.values() if item.state is FiringState.RUNNING]
    queued = [item for item in agenda.firings.values() if item.state is FiringState.QUEUED]
    free = slots - len(running)
    if free <= 0 or not queued:
        return ()
    choice = _Choice(running, _Order((*running, *queued), subscriptions))
    regular = (item for item in queued if not _is_backfill(item))
    choice.add_startable(sorted(regular, key=_queue_position), free)
    share = max(1, int(slots * backfill_share)) - sum(map(_is_backfill, running))
    free = min(free - len(choice.firings), share)
    if free > 0:
        backfills = [item for item in queued if _is_backfill(item)]
        choice.add_startable(_interleave_models(backfills, subscriptions), free)
    return tuple(choice.firings)


class _Choice:
    """The chosen firings, and the slices that are busy. It is mutable."""

    def __init__(self, running: Iterable[Firing], order: _Order) -> None:
        self.firings: list[Firing] = []
        self._order = order
        self._busy_keys: defaultdict[str, set[str]] = defaultdict(set)
        for firing in running:
            self._busy_keys[firing.model].add(firing.key)

    def add_startable(self, candidates: Iterable[Firing], limit: int) -> None:
        """Choose the first candidates that may start.

        Args:
            candidates: The firings, in the order of their priority.
            limit: The maximum number of firings to choose.
        """
        for firing in candidates:
            if limit <= 0:
                return
            if not self._is_busy(firing) and not self._order.has_to_wait(firing):
                self.firings.append(firing)
                limit -= 1
            # A firing that waits also keeps its slice busy: later firings do not overtake it.
            self._busy_keys[firing.model].add(firing.key)

    def _is_busy(self, firing: Firing) -> bool:
        keys = self._busy_keys.get(firing.model, ())
        return bool(keys) and (firing.key == WHOLE or WHOLE in keys or firing.key in keys)


class _Order:
    """The order of the firings with the same fire time: graph order."""

    def __init__(
        self, firings: Iterable[Firing], subscriptions: Mapping[str, Subscription]
    ) -> None:
        self._subscriptions = subscriptions
        self._inputs: InputGraph | None = None
        self._keys: defaultdict[datetime, dict[str, _OpenKeys]] = defaultdict(dict)
        for firing in firings:
            models = self._keys[firing.fire_time]
            keys = models.get(firing.model)
            if keys is None:
                keys = models[firing.model] = _OpenKeys()
            (keys.backfill if _is_backfill(firing) else keys.regular).add(firing.key)

    def has_to_wait(self, firing: Firing) -> bool:
        """Return whether an input, direct or indirect, has an open firing for the same time.

        Only a backfill waits for backfills.

        Args:
            firing: A queued firing.

        Returns:
            True if the firing has to wait for a firing of an input.
        """
        models = self._keys[firing.fire_time]
        if len(models) == 1:
            return False
        if self._inputs is None:
            self._inputs = InputGraph.of(self._subscriptions)
        for model in self._inputs.find_inputs(firing.model, models):
            keys = models[model]
            if self._may_read(firing, model, keys.regular):
                return True
            if _is_backfill(firing) and self._may_read(firing, model, keys.backfill):
                return True
        return False

    def _may_read(self, firing: Firing, model: str, keys: set[str]) -> bool:
        """Return whether the slice of a firing may read one of the slices of an input."""
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
    """The direct and indirect inputs of each model, as bit sets.

    Attributes:
        bits: The bit of each model.
        inputs: The bits of all inputs of each model.
    """

    bits: Mapping[str, int]
    inputs: Mapping[str, int]

    @classmethod
    def of(cls, subscriptions: Mapping[str, Subscription]) -> InputGraph:
        """Build the graph.

        Args:
            subscriptions: The subscriptions by model. They may contain a circle.

        Returns:
            The graph.
        """
        bits = {model: 1 << position for position, model in enumerate(subscriptions)}
        reads = {
            model: tuple(name for name in reader.reads if name in bits)
            for model, reader in subscriptions.items()
        }
        inputs = dict.fromkeys(bits, 0)
        order, is_complete = _sort_inputs_first(reads), False
        while not is_complete:  # without a circle, the second pass changes nothing
            is_complete = True
            for model in order:
                union = inputs[model]
                for name in reads[model]:
                    union |= bits[name] | inputs[name]
                is_complete &= union == inputs[model]
                inputs[model] = union
        return cls(bits, inputs)

    def find_inputs(self, reader: str, models: Iterable[str]) -> Iterator[str]:
        """Find the inputs of a model, except those that also read the model, in a circle.

        Args:
            reader: The model that reads.
            models: The models to search for inputs.

        Returns:
            An iterator over their names. It is lazy, because one input may be enough.
        """
        inputs, bit = self.inputs.get(reader, 0), self.bits.get(reader, 0)
        candidates = (model for model in models if self.bits.get(model, 0) & inputs)
        return (model for model in candidates if not self.inputs[model] & bit)


def _sort_inputs_first(reads: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the models, each after its inputs. Within a circle, the order is arbitrary."""
    order: dict[str, None] = {}
    visited: set[str] = set()
    stack = list(reads)
    while stack:
        model = stack[-1]
        if model in visited:
            order[stack.pop()] = None
        else:
            visited.add(model)
            stack += (name for name in reads[model] if name not in visited)
    return list(order)


def _is_backfill(firing: Firing) -> bool:
    return firing.kind is EventKind.BACKFILL


def _queue_position(firing: Firing) -> tuple[datetime, str]:
    return firing.queued_at or _NEVER, firing.id


def _interleave_models(
    firings: Iterable[Firing], subscriptions: Mapping[str, Subscription]
) -> Iterator[Firing]:
    """Yield the newest slice of each model, then the second newest of each, and so on.

    The models are in the order in which they were queued.
    """
    by_model: defaultdict[str, list[Firing]] = defaultdict(list)
    for firing in firings:
        by_model[firing.model].append(firing)
    columns: list[list[Firing]] = []
    for slices in sorted(by_model.values(), key=lambda slices: min(map(_queue_position, slices))):
        reader = subscriptions.get(slices[0].model)
        sort_key = in_time(reader.partition if reader else None)
        slices.sort(key=_queue_position)
        slices.sort(key=lambda firing: sort_key(firing.key), reverse=True)
        columns.append(slices)
    for row in zip_longest(*columns):
        yield from (firing for firing in row if firing is not None)
