"""What a strategy is given, and what every strategy is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.transaction import Staged, TransactionTable


@dataclass(frozen=True, slots=True)
class Slice:
    """The slice to write. ``column`` and ``value`` are None for a whole table.

    ``keys`` are those of merge. ``known_fingerprint`` is that of the slice's present content, when
    nothing has touched it since it was recorded.
    """

    column: str | None = None
    value: str | None = None
    keys: tuple[str, ...] = ()
    known_fingerprint: str | None = None

    @property
    def partition_by(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)


class Strategy(Protocol):
    """Reconcile a slice with what the SELECT returned: staged, not yet published.

    For a partitioned target ``df`` carries the partition column, with the slice's value.
    """

    def __call__(self, table: TransactionTable, df: DataFrame, into: Slice) -> Staged: ...
