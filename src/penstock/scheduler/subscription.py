"""Say what triggers a model, in the terms of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from penstock.model.time.cron import Cron
from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.values import Catchup


@dataclass(frozen=True, slots=True)
class Source:
    """An asset that triggers a model.

    Attributes:
        name: The full name of a table (``lake.schema.table``), or the URI of a file, which may
            hold ``{partition}``.
        is_partitioned: Whether it takes part in a join by partition (``trigger all``).
        debounce: How long the asset must be quiet.
    """

    name: str
    is_partitioned: bool = False
    debounce: timedelta | None = None


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
