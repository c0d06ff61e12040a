"""Say what triggers a model, in the terms of the scheduler.

A model subscribes to the assets of its lines ``on``. A view changes with the tables that it reads,
so a model that is triggered by a view subscribes to those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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

_ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)  # on which a fixed moment is read


@dataclass(frozen=True, slots=True)
class Source:
    """An asset that triggers a model.

    Attributes:
        name: The full name of a table (``lake.schema.table``), or the URI of a file, which may
            hold ``{partition}``.
        is_partitioned: Whether it takes part in a join by partition (``trigger all``).
        debounce: How long the asset must be quiet.
        table: The table; None of a file.
    """

    name: str
    is_partitioned: bool = False
    debounce: timedelta | None = None
    table: TableName | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """A model as the scheduler sees it.

    Attributes:
        model: The name of the model.
        target: The full name of its table; None for a model that writes files.
        tags: Its tags.
        partition: How its slices are named; None for the whole table or intervals of time.
        sources: The assets that trigger it.
        joins: Whether all partitioned sources must arrive before it fires (``trigger all``).
        cron: Its schedule.
        messages: The names of the messages that trigger it.
        debounce: How long its sources must be quiet, if a source says nothing else.
        freshness: How old its slices may be.
        catchup: What happens to times that were missed.
        reads: The models that it reads, directly.
        starts_at: Times of the schedule before this one do not fire.
        ends_at: Times of the schedule after this one do not fire. The intervals before the end of a
            model are complete when it is due at the end or next after it.
        message_debounces: How long messages must be quiet, by their names; of others `debounce`.
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

    def debounce_of(self, message: str) -> timedelta | None:
        """Return how long messages must be quiet.

        Args:
            message: The name of the messages.

        Returns:
            The debounce of that name, or of the model.
        """
        return dict(self.message_debounces).get(message, self.debounce)

    def is_due_at(self, moment: datetime) -> bool:
        """Return whether a time of the schedule is between the start and the end of the model.

        Args:
            moment: The time.

        Returns:
            False for a time that never fires.
        """
        if self.starts_at is not None and moment < self.starts_at:
            return False
        return self.ends_at is None or moment <= self.ends_at


def subscriptions_of(
    models: Iterable[Model], serve: ServeSettings | None = None
) -> dict[str, Subscription]:
    """Return what triggers each model of a project. Raises ModelError for a circle of models.

    Args:
        models: The models, with the defaults of the project. A model that the environment only
            reads has a subscription that nothing fires.
        serve: The settings that say what happens to missed times, if a model does not.

    Returns:
        The subscriptions by the names of the models.
    """
    project = tuple(models)
    parents = Graph.of(project).parents
    makers = makers_by_table(project)
    return {model.name: _subscribe(model, makers, parents[model.name], serve) for model in project}


def _subscribe(
    model: Model, makers: Mapping[str, Model], parents: Sequence[str], serve: ServeSettings | None
) -> Subscription:
    is_made = model.strategy.runs and model.target.is_table
    target = model.target.full if is_made else None
    common = Subscription(
        model.name, target, frozenset(model.tags), model.partition, reads=tuple(parents)
    )
    return _with_triggers(common, model, makers, serve) if model.own else common


def _with_triggers(
    common: Subscription, model: Model, makers: Mapping[str, Model], serve: ServeSettings | None
) -> Subscription:
    schedule, cron = model.schedule, cron_of(model)
    messages: dict[str, timedelta | None] = {}
    for trigger in schedule.triggers:
        name = trigger.message(model.name)
        if name is not None:
            messages.setdefault(name, _duration(trigger.debounce))
    quiet = ((name, debounce) for name, debounce in messages.items() if debounce is not None)
    return replace(
        common,
        sources=tuple(_sources(model, makers)),
        joins=schedule.join == "all",
        cron=cron,
        messages=tuple(messages),
        debounce=_duration(schedule.debounce),
        freshness=_duration(schedule.freshness),
        catchup=_catchup(schedule.catchup, serve),
        starts_at=None if model.cadence.start is None else fixed_moment(model.cadence.start),
        ends_at=_last_due(cron, model.cadence.end),
        message_debounces=tuple(quiet),
    )


def _duration(text: str | None) -> timedelta | None:
    seconds = seconds_of(text)
    return timedelta(seconds=seconds) if seconds else None


def _sources(model: Model, makers: Mapping[str, Model]) -> Iterator[Source]:
    """Yield the assets of a model, each once."""
    names: set[str] = set()
    for trigger in model.schedule.triggers:
        for source in _sources_of(trigger, model, makers):
            if source.name.casefold() not in names:
                names.add(source.name.casefold())
                yield source


def _sources_of(trigger: Trigger, model: Model, makers: Mapping[str, Model]) -> Iterator[Source]:
    asset, debounce = trigger.asset, _duration(trigger.debounce)
    table = None if asset is None else table_of(asset)
    if table is not None:
        for stored, maker in _stored_tables(table, makers, frozenset()):
            joins = joins_by_partition(trigger, model, maker)
            yield Source(stored.full, joins, debounce, stored)
    elif asset is not None and asset.is_file:
        yield Source(one_spelling(str(asset)), trigger.bears_partition, debounce)


def _stored_tables(
    table: TableName, makers: Mapping[str, Model], above: frozenset[str]
) -> Iterator[tuple[TableName, Model | None]]:
    """Yield the tables with rows that a table or a view is made of, each with its model."""
    key = table_key(table)
    maker = makers.get(key)
    if maker is None or not maker.strategy.by_readers:
        yield (table if maker is None else maker.target), maker
        return
    for source in maker.reads if key not in above else ():
        yield from _stored_tables(source, makers, above | {key})


def _catchup(line: CatchupLine | None, serve: ServeSettings | None) -> Catchup:
    """Return what the header says, and for the rest what the settings say."""
    mode, limit, seconds = (
        (None, None, None)
        if serve is None
        else (serve.catchup, serve.max_catchup, serve.catchup_window)
    )
    window = None if seconds is None else timedelta(seconds=seconds)
    if line is None:
        return Catchup(mode, limit, window)
    return Catchup(line.mode, line.limit or limit, _duration(line.window) or window)


def _last_due(cron: Cron | None, end: str | None) -> datetime | None:
    """Return the last time that fires; None without an end, or with one that each day moves."""
    if cron is None or end is None or fixed_moment(end) is None:
        return None
    try:
        return cron.next(read_end(end, _ANY_DAY) - timedelta.resolution)
    except OverflowError:  # the end of the year 9999
        return None
