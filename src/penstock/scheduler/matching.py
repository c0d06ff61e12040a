"""Find the models that an event concerns, and prevent cycles in chains of firings."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from penstock.model.script.file_uris import one_spelling
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_macros import TOKEN
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import EventKind, TriggerEvent
from penstock.sql.identifiers import fold, nearest

MAX_DEPTH = 50
"""The maximum number of firings in a chain."""


@dataclass(frozen=True, slots=True)
class Match:
    """A model that an event concerns.

    Attributes:
        reader: The subscription of the model.
        source: The source that changed; None for events that are not changes of assets.
        partition: The partition of the source, from the event or the URI of a file.
        origin: The partition format of the model that writes the source, if there is one.
    """

    reader: Subscription
    source: Source | None = None
    partition: str | None = None
    origin: PartitionSpec | None = None


@dataclass(frozen=True, slots=True)
class _FilePattern:
    expression: re.Pattern[str]
    match: Match


@dataclass(frozen=True, slots=True, eq=False)
class Index(Mapping[str, Subscription]):
    """An index of subscriptions by trigger. It is also a mapping of the subscriptions by model.

    Attributes:
        subscriptions: The subscriptions by model.
        readers: The readers of each table and file, by `asset_name`.
        patterns: The readers of files with ``{partition}`` in the URI, by the prefix before it.
        lengths: The lengths of these prefixes.
        listeners: The models that a message triggers, by the name of the message.
        owners: The model that writes a table, by `asset_name`.
    """

    subscriptions: Mapping[str, Subscription]
    readers: Mapping[str, list[Match]] = field(default_factory=lambda: defaultdict(list))
    patterns: Mapping[str, list[_FilePattern]] = field(default_factory=lambda: defaultdict(list))
    lengths: set[int] = field(default_factory=set)
    listeners: Mapping[str, list[Match]] = field(default_factory=lambda: defaultdict(list))
    owners: Mapping[str, Subscription] = field(default_factory=dict)

    @classmethod
    def of(cls, subscriptions: Mapping[str, Subscription]) -> Index:
        """Index subscriptions.

        Args:
            subscriptions: The subscriptions by model. An index is returned unchanged.

        Returns:
            The index.
        """
        if isinstance(subscriptions, Index):
            return subscriptions
        owners = {
            asset_name(subscription.target): subscription
            for subscription in subscriptions.values()
            if subscription.target
        }
        index = cls(dict(subscriptions), owners=owners)
        for subscription in subscriptions.values():
            for source in subscription.sources:
                index._add(Match(subscription, source))
            for name in dict.fromkeys(subscription.messages):
                index.listeners[name].append(Match(subscription))
        return index

    def _add(self, match: Match) -> None:
        name = asset_name(match.source.name) if match.source else ""
        owner = self.owners.get(name)
        match = replace(match, origin=owner.partition if owner else None)
        self.readers[name].append(match)
        prefix, token, _ = name.partition(TOKEN)
        if token and is_file(name):
            expression = _file_expression(name, match.reader.partition)
            self.patterns[prefix].append(_FilePattern(expression, match))
            self.lengths.add(len(prefix))

    def __getitem__(self, model: str) -> Subscription:
        """Return the subscription of a model."""
        return self.subscriptions[model]

    def __iter__(self) -> Iterator[str]:
        """Return the names of the models."""
        return iter(self.subscriptions)

    def __len__(self) -> int:
        """Return the number of models."""
        return len(self.subscriptions)


def is_file(name: str) -> bool:
    """Return whether an asset is a file. Only files have a slash in the name.

    Args:
        name: The full name of a table, or the URI of a file.

    Returns:
        True for a file.
    """
    return "/" in name


def asset_name(name: str) -> str:
    """Normalize the name of a table or the URI of a file, to compare it.

    Args:
        name: The full name of a table, or the URI of a file.

    Returns:
        The normalized name. It is equal for all spellings of an asset.
    """
    return one_spelling(name) if is_file(name) else fold(name)


def find_matches(index: Index, event: TriggerEvent) -> tuple[Match, ...]:
    """Find the models that an event concerns.

    Args:
        index: The subscriptions.
        event: The event.

    Returns:
        One match for each model. A source of a join by partition takes precedence.
    """
    by_model: dict[str, Match] = {}
    for match in _FINDERS[event.kind](index, event):
        earlier = by_model.get(match.reader.model)
        if earlier is None or (_is_partitioned(match) and not _is_partitioned(earlier)):
            by_model[match.reader.model] = match
    return tuple(by_model.values())


def explain_no_match(index: Index, event: TriggerEvent) -> str:
    """Return why an event concerns no model.

    Args:
        index: The subscriptions.
        event: The event.

    Returns:
        The reason, with a similar name if there is one.
    """
    if event.kind is EventKind.ASSET:
        return f"no model is triggered by {event.source}"
    is_message = event.kind is EventKind.MESSAGE
    guess = nearest(event.source, index.listeners if is_message else index)
    text = f"no model has the message {event.source}" if is_message else f"no model {event.source}"
    return f"{text}: did you mean {guess}?" if guess else text


def find_obstacle(event: TriggerEvent, match: Match) -> str | None:
    """Find why a model must not fire for an event that concerns it.

    Args:
        event: The event.
        match: The model.

    Returns:
        The reason; None if the model may fire.
    """
    model, target = match.reader.model, match.reader.target
    if event.kind is EventKind.ASSET:
        is_own = target is not None and asset_name(target) == asset_name(event.source)
        if is_own or event.models[-1:] == (model,):
            return f"the change of {event.source} is its own change"
    if model in event.models:
        return f"{model} is in the chain already: {' > '.join((*event.models, model))}"
    if event.depth >= MAX_DEPTH:
        return f"the chain is {event.depth} firings long, and {MAX_DEPTH} is the limit"
    return None


def _is_partitioned(match: Match) -> bool:
    return match.source is not None and match.source.is_partitioned


def _match_asset(index: Index, event: TriggerEvent) -> Iterator[Match]:
    name, partition = asset_name(event.source), event.partition or None
    direct = index.readers.get(name, ())
    for match in direct:
        yield _with_partition(match, partition)
    if direct or not is_file(name):
        return
    for length in sorted(index.lengths):
        for pattern in index.patterns.get(name[:length], ()):
            values = pattern.expression.fullmatch(name)
            if values is not None:
                yield _with_partition(pattern.match, partition or values["partition"])


def _match_message(index: Index, event: TriggerEvent) -> Iterator[Match]:
    for match in index.listeners.get(event.source, ()):
        yield _with_partition(match, event.partition or None)


def _with_partition(match: Match, partition: str | None) -> Match:
    return Match(match.reader, match.source, partition, match.origin) if partition else match


def _match_model(index: Index, event: TriggerEvent) -> Iterator[Match]:
    reader = index.get(event.source)
    if reader is not None:
        yield Match(reader, partition=event.partition or None)


_FINDERS = {
    EventKind.ASSET: _match_asset,
    EventKind.MESSAGE: _match_message,
    EventKind.SCHEDULE: _match_model,
    EventKind.FRESHNESS: _match_model,
    EventKind.BACKFILL: _match_model,
}


def _file_expression(name: str, spec: PartitionSpec | None) -> re.Pattern[str]:
    """Return the regular expression for the URIs of a pattern.

    The partition has as many path segments as the format of the reader. For a reader without
    partitions, it has any number.
    """
    value = ".+" if spec is None else "/".join(["[^/]+"] * ((spec.pattern or "").count("/") + 1))
    prefix, *parts = map(re.escape, name.split(TOKEN))
    return re.compile(prefix + f"(?P<partition>{value})" + "(?P=partition)".join(parts), re.DOTALL)
