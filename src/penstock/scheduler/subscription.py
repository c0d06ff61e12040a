"""Build subscriptions: what triggers each model, as values of the scheduler.

A model subscribes to the assets of its lines ``on``. A view changes when a table that it reads
changes. So a model that a view triggers subscribes to the tables of the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from penstock.model.definition.graph import Graph, makers_by_table, table_key
from penstock.model.definition.model import Model
from penstock.model.definition.triggers import cron_of, joins_by_partition
from penstock.model.script.file_uris import one_spelling
from penstock.model.time.cron import Cron
from penstock.model.time.moments import fixed_moment, read_end
from penstock.model.time.partition import PartitionSpec
from penstock.model.values.asset import TableName, table_of
from penstock.model.values.schedule import CatchupLine, Trigger
from penstock.scheduler.values import Catchup
from penstock.settings.quantities import seconds_of
from penstock.settings.serve_settings import ServeSettings

_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)  # a fixed moment is the same on each day


@dataclass(frozen=True, slots=True)
class Source:
    """An asset that triggers a model.

    Attributes:
        name: The full name of a table (``lake.schema.table``), or the URI of a file. The URI may
            contain ``{partition}``.
        is_partitioned: Whether the asset takes part in a join by partition (``trigger all``).
        debounce: How long the asset must stay unchanged before the model fires.
        table: The table; None for a file.
    """

    name: str
    is_partitioned: bool = False
    debounce: timedelta | None = None
    table: TableName | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """The triggers of a model, and the properties that the scheduler needs.

    Attributes:
        model: The name of the model.
        target: The full name of its table; None for a model that writes files.
        tags: Its tags.
        partition: The format of its partitions; None for a whole table or intervals of time.
        sources: The assets that trigger it.
        joins: Whether it fires only when all partitioned sources have arrived (``trigger all``).
        cron: Its schedule.
        messages: The names of the messages that trigger it.
        debounce: The default debounce of its sources and messages.
        freshness: The maximum age of its slices.
        catchup: The rule for missed times of its schedule.
        reads: The names of its direct inputs.
        starts_at: The first time of the schedule that may fire.
        ends_at: The last time of the schedule that fires. It is the first due time at or after the
            end of the model: then the intervals before the end are complete.
        message_debounces: The debounces of messages that differ from `debounce`, with their names.
    """

    model: str
    target: str | None = None
    tags: frozenset[str] = frozenset()
    partition: PartitionSpec | None = None
    sources: tuple[Source, ...] = ()
    joins: bool = False
    cron: Cron | None = None
    messages: tuple[str, ...] = ()
    debounce: timedelta | None = None
    freshness: timedelta | None = None
    catchup: Catchup = field(default_factory=Catchup)
    reads: tuple[str, ...] = ()
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    message_debounces: tuple[tuple[str, timedelta], ...] = ()

    @property
    def has_trigger(self) -> bool:
        """Return whether anything but a person fires the model."""
        triggers = (self.sources, self.cron, self.messages, self.freshness)
        return any(trigger for trigger in triggers)

    def debounce_of(self, message: str) -> timedelta | None:
        """Return the debounce of a message.

        Args:
            message: The name of the message.

        Returns:
            The debounce of this message, or else of the model.
        """
        return dict(self.message_debounces).get(message, self.debounce)

    def is_due_at(self, moment: datetime) -> bool:
        """Return whether a time of the schedule is between `starts_at` and `ends_at`.

        Args:
            moment: The time.

        Returns:
            False for a time that does not fire.
        """
        if self.starts_at is not None and moment < self.starts_at:
            return False
        return self.ends_at is None or moment <= self.ends_at


def subscriptions_of(
    models: Iterable[Model], serve: ServeSettings | None = None
) -> dict[str, Subscription]:
    """Return the subscriptions of the models of a project.

    A model that the environment only reads has a subscription without triggers. A circle of models
    is a ModelError.

    Args:
        models: The models, with the defaults of the project.
        serve: The settings with the default catchup.

    Returns:
        The subscriptions by the names of the models.
    """
    project = tuple(models)
    parents = Graph.of(project).parents
    writers = makers_by_table(project)
    subscriptions: dict[str, Subscription] = {}
    for model in project:
        has_table = model.strategy.runs and model.target.is_table
        target = model.target.full if has_table else None
        reads = tuple(parents[model.name])
        subscription = Subscription(
            model.name, target, frozenset(model.tags), model.partition, reads=reads
        )
        if model.own:
            subscription = _add_triggers(subscription, model, writers, serve)
        subscriptions[model.name] = subscription
    return subscriptions


def _add_triggers(
    subscription: Subscription,
    model: Model,
    writers: Mapping[str, Model],
    serve: ServeSettings | None,
) -> Subscription:
    schedule, cron = model.schedule, cron_of(model)
    messages: dict[str, timedelta | None] = {}
    for trigger in schedule.triggers:
        name = trigger.message(model.name)
        if name is not None:
            messages.setdefault(name, _parse_duration(trigger.debounce))
    debounces = ((name, debounce) for name, debounce in messages.items() if debounce is not None)
    return replace(
        subscription,
        sources=tuple(_list_sources(model, writers)),
        joins=schedule.join == "all",
        cron=cron,
        messages=tuple(messages),
        debounce=_parse_duration(schedule.debounce),
        freshness=_parse_duration(schedule.freshness),
        catchup=_read_catchup(schedule.catchup, serve),
        starts_at=None if model.cadence.start is None else fixed_moment(model.cadence.start),
        ends_at=_find_last_due(cron, model.cadence.end),
        message_debounces=tuple(debounces),
    )


def _parse_duration(text: str | None) -> timedelta | None:
    seconds = seconds_of(text)
    return timedelta(seconds=seconds) if seconds else None


def _list_sources(model: Model, writers: Mapping[str, Model]) -> Iterator[Source]:
    """Yield the sources of a model without duplicates."""
    names: set[str] = set()
    for trigger in model.schedule.triggers:
        for source in _list_trigger_sources(trigger, model, writers):
            if source.name.casefold() not in names:
                names.add(source.name.casefold())
                yield source


def _list_trigger_sources(
    trigger: Trigger, model: Model, writers: Mapping[str, Model]
) -> Iterator[Source]:
    asset, debounce = trigger.asset, _parse_duration(trigger.debounce)
    table = None if asset is None else table_of(asset)
    if table is not None:
        for stored, writer in _list_stored_tables(table, writers, frozenset()):
            is_partitioned = joins_by_partition(trigger, model, writer)
            yield Source(stored.full, is_partitioned, debounce, stored)
    elif asset is not None and asset.is_file:
        yield Source(one_spelling(str(asset)), trigger.bears_partition, debounce)


def _list_stored_tables(
    table: TableName, writers: Mapping[str, Model], visited: frozenset[str]
) -> Iterator[tuple[TableName, Model | None]]:
    """Yield a table itself, or the tables below a view; each with the model that writes it."""
    key = table_key(table)
    writer = writers.get(key)
    if writer is None or not writer.strategy.by_readers:
        yield (table if writer is None else writer.target), writer
        return
    for source in writer.reads if key not in visited else ():
        yield from _list_stored_tables(source, writers, visited | {key})


def _read_catchup(line: CatchupLine | None, serve: ServeSettings | None) -> Catchup:
    """Return the catchup of a header, completed by the settings."""
    mode, limit, seconds = (
        (None, None, None)
        if serve is None
        else (serve.catchup, serve.max_catchup, serve.catchup_window)
    )
    window = None if seconds is None else timedelta(seconds=seconds)
    if line is None:
        return Catchup(mode, limit, window)
    return Catchup(line.mode, line.limit or limit, _parse_duration(line.window) or window)


def _find_last_due(cron: Cron | None, end: str | None) -> datetime | None:
    """Return the last time that fires; None without an end, or if the end moves with the day."""
    if cron is None or end is None or fixed_moment(end) is None:
        return None
    try:
        return cron.next(read_end(end, _ANY_DAY) - timedelta.resolution)
    except OverflowError:  # after the year 9999
        return None
