"""Microbatches of a model that run at once: they compute together and write in turn.

Two transactions that delete rows of one table exclude each other. So a batch begins its transaction
after the batch before has committed. What takes long is the query, and that needs no transaction.
A batch that finds nobody writing does not compute before: batches in sequence cost what they did.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from penstock.lakes.reading.conversions.spark_types import cacheable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Batch:
    """A batch that writes a table, or waits to. ``lock`` is the table's."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._is_writing = False
        self._rows: DataFrame | None = None

    def begins_at_once(self) -> bool:
        """Begin to write where no other batch does; return whether that was so."""
        self._is_writing = self._lock.acquire(blocking=False)
        return self._is_writing

    def compute(self, rows: DataFrame) -> bool:
        """Compute the rows and keep them until the end, in memory or on local disks.

        Return whether they were: Spark cannot keep geometries.
        """
        if cacheable(rows) is not rows:
            return False
        self._rows = rows.persist()
        self._rows.count()
        return True

    def wait(self) -> None:
        """Wait until this batch is the only one that writes."""
        self._is_writing = self._lock.acquire()

    def end(self) -> None:
        """Let the next batch write, and forget the rows."""
        if self._is_writing:
            self._is_writing = False
            self._lock.release()
        if self._rows is not None:
            self._rows.unpersist()
            self._rows = None
