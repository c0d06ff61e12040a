"""Describe what a strategy writes, and what every strategy is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.model.definition.model import Model
from penstock.model.time.interval import Intervals

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable, Transaction
    from penstock.destinations.values import Staged

Options = TypeVar("Options")
Value = TypeVar("Value")


def given(option: Value | None) -> Value:
    """Return an option that each model of a strategy has. Raises ValueError."""
    if option is None:
        raise ValueError("a model of another strategy")
    return option


@dataclass(frozen=True, slots=True)
class WriteTarget(Generic[Options]):
    """Describe the slice to write: a partition, by ``place``, its column and value; ``intervals``
    of time; or the whole table.

    ``options`` are those that the strategy takes from the model. ``known_fingerprint`` is that of
    the slice's present content, when nothing has touched it since it was recorded; of a history,
    that of its last load. ``again``: rows of the slice that the SELECT does not return any more
    go, also where a strategy keeps them.
    """

    options: Options
    place: tuple[str, str] | None = None
    intervals: Intervals = ()
    known_fingerprint: str | None = None
    again: bool = False

    @property
    def partition_by(self) -> tuple[str, ...]:
        return () if self.place is None else (self.place[0],)


AnyTarget = WriteTarget[Any]  # of whichever strategy


@dataclass(frozen=True, slots=True)
class Step:
    """Name the step that writes: its transaction, its execution time, and what tells people
    (``say``) what is worth knowing.
    """

    tx: Transaction
    now: datetime
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Strategy(Generic[Options]):
    """``stage`` reconciles a slice with what the SELECT returned: staged, not yet published. The
    DataFrame has the columns of the SELECT; the lake adds the partition column of a slice.
    """

    stage: Callable[[StagedTable, DataFrame, WriteTarget[Options]], Staged]
    options: Callable[[Model, Step], Options]
