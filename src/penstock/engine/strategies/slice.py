"""The input of a strategy, and the protocol of every strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from penstock.model.script.declaration import Layout
from penstock.model.time.interval import Intervals
from penstock.model.time.time_range import TimeRange
from penstock.model.values.custom_strategy import Custom
from penstock.model.values.history import History

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.state import Staged
    from penstock.lake.staging import TransactionTable


@dataclass(frozen=True, slots=True)
class ByTime:
    """The intervals to write, the model's own dialect, and how its table is laid out.

    ``say`` tells people what is worth knowing.
    """

    time_range: TimeRange
    intervals: Intervals
    dialect: str
    layout: Layout
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Slice:
    """The slice to write.

    ``place`` is the partition column and its value; None for a whole table. ``keys`` are those of
    merge, ``partition_keys`` those of partitions, ``custom`` is the project's strategy, and
    ``by_time`` what a time range is replaced by.
    ``known_fingerprint`` is that of the slice's present content, when nothing has touched it since
    it was recorded; of a history, that of its last load. ``history`` says how versions are kept, by
    ``key_expressions`` (the keys with what they are in Spark's SQL); ``now`` is the execution time
    of the run. ``again``: rows of the slice that the SELECT does not return any more go, also where
    a strategy keeps them.
    """

    place: tuple[str, str] | None = None
    keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    custom: Custom | None = None
    known_fingerprint: str | None = None
    history: History | None = None
    key_expressions: tuple[tuple[str, str], ...] = ()
    now: datetime | None = None
    by_time: ByTime | None = None
    again: bool = False

    @property
    def managed(self) -> tuple[str, ...]:
        """Columns of the table that no SELECT has: the engine writes them."""
        return (*self.partition_by, *(self.history.managed if self.history else ()))

    @property
    def partition_by(self) -> tuple[str, ...]:
        return () if self.place is None else (self.place[0],)


class Strategy(Protocol):
    """Reconcile a slice with what the SELECT returned: staged, not yet published.

    ``df`` has the columns of the SELECT; the lake adds the partition column of a slice.
    """

    def __call__(self, table: TransactionTable, df: DataFrame, into: Slice) -> Staged: ...
