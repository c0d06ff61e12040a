"""All rows of a table, or of a slice of it, replaced by others: unless the content is what it was.

Files that hold no other rows end whole; others lose theirs by position. New rows are written first:
their fingerprint, or a scan where the number of rows agrees, tells whether anything changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.lakes.candidate.state import Removed, Staged, same_fields
from penstock.lakes.format.files import DataFile, FileSet, all_rows, live_rows
from penstock.lakes.format.schema import same_columns
from penstock.lakes.format.types import from_spark_schema, to_spark_schema
from penstock.lakes.reading.conversions.align import typed
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.recovery.backup import missing_below
from penstock.lakes.rows.deletes import end_whole, remove_rows, take_all
from penstock.lakes.rows.spark_finder import find, rows_of
from penstock.lakes.rows.stager import Files, remove_both
from penstock.lakes.writing import fingerprint
from penstock.lakes.writing.spark import Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lakes.candidate.staged import SliceOf, StagedTable


@dataclass(frozen=True, slots=True)
class Replacing:
    """New rows, how the table they go to is partitioned, and the fingerprint of what is there, if
    it is known.
    """

    rows: DataFrame
    partition_by: str | Sequence[str] = ()
    known: str | None = None


def replace_table(table: StagedTable, new: Replacing) -> Staged:
    """Replace all rows. With the columns it has, the table stays; with others, it is rebuilt."""
    df, unchanged = typed(new.rows, table.candidate.schema), table.is_unchanged
    if not _keeps_table(table, df, new.partition_by):
        with table.all_or_nothing():
            table.create_for(df, new.partition_by)
            written = table.write_frame(df, with_fingerprint=True)
            return _staged(table, Removed(), written)
    written, files = table.write_frame(df, with_fingerprint=True), table.files()
    current = table.to_df if all_rows(files) == written.rows else None
    if unchanged and is_same(table, written, new.known, files, current):
        return as_it_was(table, written)
    staged = _staged(table, take_all(table), written)
    if not staged.rows_deleted:
        table.depend()
    return staged


def replace_slice(table: StagedTable, slice_of: SliceOf, new: Replacing) -> Staged:
    """Replace the rows of a slice; the new ones are all of it."""
    with table.all_or_nothing():
        df = table.in_slice(typed(new.rows, table.candidate.schema), *slice_of)
        table.ensure(df, new.partition_by)
        unchanged = table.is_unchanged
        whole, maybe = table.split(*slice_of)
        mixed = bool(maybe) or table.files().inlined is not None
        written = table.write_frame(df, slice=slice_of, with_fingerprint=True)
        may_be = mixed or live_rows(whole) >= written.rows
        files = replace(table.files(), files=(*whole, *maybe))
        current = partial(table.slice_df, *slice_of) if may_be else None
        if unchanged and is_same(table, written, new.known, files, current):
            return as_it_was(table, written)
        return _stage_slice(table, whole, maybe, slice_of, written)


def drop_slice(table: StagedTable, slice_of: SliceOf) -> int:
    """Take the rows of a slice away; how many they are."""
    with table.all_or_nothing():
        return _stage_slice(table, *table.split(*slice_of), slice_of, Written()).rows_deleted


def missing_files(table: StagedTable, slice_of: SliceOf | None = None) -> tuple[str, ...]:
    """Paths of the files that the rows, or those of a slice, stand on and that are gone.

    Asks the file system for each; reads none.
    """
    files = table.files()
    if slice_of is not None:
        whole, maybe = table.split(*slice_of)
        files = replace(files, files=(*whole, *maybe))
    return _missing(table, files)


def _missing(table: StagedTable, files: FileSet) -> tuple[str, ...]:
    """Of files that were committed; those staged here are there."""
    paths = [file.path for file in files.files if file.id is not None]
    paths += [delete.path for file in files.files for delete in file.deletes]
    return missing_below(str(table.candidate.path), paths)


def _stage_slice(
    table: StagedTable,
    whole: Sequence[DataFile],
    maybe: Sequence[DataFile],
    slice_of: SliceOf,
    written: Written,
) -> Staged:
    """Stage that the rows of a slice go, and those written come; files that hold no others are not
    read.
    """
    removed = end_whole(table, table.scan_all(), whole)
    if maybe or table.files().inlined is not None:
        removed = remove_both(removed, lambda: _rows_of_slice(table, maybe, slice_of))
    staged = _staged(table, removed, written)
    table.depend(slice_of, mixed=bool(maybe))
    return staged


def _rows_of_slice(table: StagedTable, files: Sequence[DataFile], slice_of: SliceOf) -> Removed:
    """Take the slice's rows away from files that hold others too, and from the catalog."""
    source = table.scan_with(files)
    rows = rows_of(table, source).where(table.is_in_slice(*slice_of))
    found = find(rows, source, table.context.limits, once=True)
    try:
        return remove_rows(table, source, found)
    finally:
        found.release()


def _keeps_table(table: StagedTable, df: DataFrame, partition_by: str | Sequence[str]) -> bool:
    """Return whether Spark has the same columns for the table as for ``df``, and it is partitioned
    so.

    Types that Spark lacks (``uuid``, ``uint8``) compare as what it holds them in.
    """
    candidate = table.candidate
    if candidate.schema is None:
        return False
    held, wanted = (
        from_spark_schema(to_spark_schema(schema)) for schema in (candidate.schema, schema_of(df))
    )
    fields = table.wanted_fields(candidate.schema, partition_by)
    return same_fields(candidate.partition_by, fields) and same_columns(held, wanted)


def is_same(
    table: StagedTable,
    written: Written,
    known: str | None,
    files: FileSet,
    current: Callable[[], DataFrame] | None,
) -> bool:
    """Return whether the rows there now are those written; one scan where nothing tells before.

    ``current`` reads them; None where they are not as many. Rows of ``files`` that are gone are not
    there, whatever the catalog says.
    """
    may_be = current is not None if known is None else written.fingerprint == known
    if not may_be or _missing(table, files):
        return False
    if known is not None or current is None:
        return True
    seen = written.fingerprint
    return seen is not None and seen == fingerprint.of(current(), table.schema)


def as_it_was(table: StagedTable, written: Written) -> Staged:
    table.unstage(written)
    return Staged(fingerprint=written.fingerprint, unchanged=True, slice_rows=written.rows)


def _staged(table: StagedTable, removed: Removed, written: Written) -> Staged:
    """Stage all rows of a table or slice; in files, which the next replacement ends unread."""
    staged = Files(removed, inserted=written, in_files=True).stage(table)
    return replace(staged, fingerprint=written.fingerprint, slice_rows=written.rows)
