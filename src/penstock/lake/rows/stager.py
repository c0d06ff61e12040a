"""What a change writes, side by side: rows removed and rows written. A failure leaves no file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from penstock.lake.candidate.state import Removed
from penstock.lake.reading.parquet.footers import remove_directory
from penstock.lake.writing.spark import Written

if TYPE_CHECKING:
    from penstock.lake.candidate.staged import StagedTable


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Files:
    """Rows ``removed``; rows ``updated``, which are among these, and rows ``inserted``."""

    removed: Removed = field(default_factory=Removed)
    updated: Sequence[Written] = ()
    inserted: Written = field(default_factory=Written)

    @property
    def rows_updated(self) -> int:
        return sum(one.rows for one in self.updated)

    @property
    def changes_nothing(self) -> bool:
        return not (self.removed.rows or self.inserted.rows)

    def discard(self) -> None:
        """Remove all that was written."""
        directories = [one.directory for one in (*self.updated, self.inserted)]
        for directory in (*self.removed.directories, *directories):
            if directory is not None:
                remove_directory(directory)

    def stage(self, table: StagedTable) -> None:
        table.take(self.removed, [one for one in (*self.updated, self.inserted) if one.rows])


def write(
    remove: Callable[[], Removed],
    update: Callable[[], Sequence[Written]],
    insert: Callable[[], Written],
) -> Files:
    """The three writes side by side: each alone would leave cores idle at its start and end.

    All are awaited. Where one fails, what the others wrote is removed.
    """
    with ThreadPoolExecutor(3, "penstock-rows") as pool:
        removed, updated, inserted = pool.submit(remove), pool.submit(update), pool.submit(insert)
    try:
        return Files(removed.result(), updated.result(), inserted.result())
    except BaseException:
        Files(_of(removed, Removed()), _of(updated, ()), _of(inserted, Written())).discard()
        raise


def _of(written: Future[_T], otherwise: _T) -> _T:
    return otherwise if written.exception() is not None else written.result()
