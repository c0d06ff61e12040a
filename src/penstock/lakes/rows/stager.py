"""Stage what a change writes: rows removed, updated and inserted. A failure leaves no file.

Every change of rows is staged by `Files.stage`, which counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from penstock.lakes.candidate.state import Removed, Staged
from penstock.lakes.candidate.table import CandidateTable
from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.format.schema import EMBEDDED_ROW_ID
from penstock.lakes.reading.parquet.footers import remove_directory
from penstock.lakes.reading.scan import Scan
from penstock.lakes.rows.change import MatchedRows
from penstock.lakes.rows.deletes import both, remove_rows
from penstock.lakes.writing import arrow as arrow_files
from penstock.lakes.writing.spark import Target, Written
from penstock.lazy import pa, pc

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Files:
    """Rows ``removed``; rows ``updated``, which are among these, and rows ``inserted``.

    What is written goes into the catalog up to its limit; ``in_files`` it stays in files, however
    few rows these are.
    """

    removed: Removed = field(default_factory=Removed)
    updated: Sequence[Written] = ()
    inserted: Written = field(default_factory=Written)
    in_files: bool = False

    def discard(self) -> None:
        """Remove all that was written."""
        directories = [written.directory for written in (*self.updated, self.inserted)]
        for directory in (*self.removed.directories, *directories):
            if directory is not None:
                remove_directory(directory)

    def stage(self, table: CandidateTable) -> Staged:
        """Stage all of it; ``slice_rows`` of the result is left to who knows the slice.

        A table that this transaction makes is a change even without rows.
        """
        removed, inserted = self.removed.rows, self.inserted.rows
        updated = sum(written.rows for written in self.updated)
        written = [written for written in (*self.updated, self.inserted) if written.rows]
        table.take(self.removed, written, in_files=self.in_files)
        return Staged(
            rows_written=updated + inserted,
            rows_inserted=inserted,
            rows_updated=updated,
            rows_deleted=removed - updated,
            unchanged=not (removed or inserted or table.candidate.create),
        )


def write(
    remove: Callable[[], Removed],
    update: Callable[[], Sequence[Written]],
    insert: Callable[[], Written] = Written,
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


def remove_both(removed: Removed, remove: Callable[[], Removed]) -> Removed:
    """Return what was removed, and what ``remove`` removes from other files. Where that fails,
    what was written for the first is removed.
    """
    try:
        return both(removed, remove())
    except BaseException:
        Files(removed).discard()
        raise


def _of(written: Future[_T], otherwise: _T) -> _T:
    return otherwise if written.exception() is not None else written.result()


def write_found(
    table: CandidateTable,
    source: Scan,
    found: MatchedRows,
    inserted: pa.Table | None = None,
    target: Target | None = None,
) -> Files:
    """Remove the rows that were found, write them with their new values, if the driver has any, and
    insert others that it has.
    """
    updates = found.values is not None and found.values.num_rows > 0
    inserts = inserted is not None and inserted.num_rows > 0
    if not (updates or inserts):
        return Files(remove_rows(table, source, found))
    into = target or table.target(None)
    return write(
        lambda: remove_rows(table, source, found),
        lambda: write_updated(found.values, found.ids, into) if updates else (),
        lambda: arrow_files.write(inserted, into) if inserts else Written(),
    )


def write_updated(values: pa.Table, ids: pa.ChunkedArray, target: Target) -> list[Written]:
    """Write new values of rows under the ids that these have; those of this transaction have none
    yet.
    """
    if not values.num_rows:
        return []
    values = values.cast(arrow_schema(target.schema))
    is_old = pc.fill_null(pc.greater_equal(ids, 0), False)
    all_old = pc.all(is_old).as_py()
    old, old_ids = (values, ids) if all_old else (values.filter(is_old), ids.filter(is_old))
    written: list[Written] = []
    try:
        if old.num_rows:
            written.append(arrow_files.write_history(old, target, {EMBEDDED_ROW_ID: old_ids})[0])
        if not all_old:
            written.append(arrow_files.write(values.filter(pc.invert(is_old)), target))
    except BaseException:
        Files(updated=written).discard()
        raise
    return written
