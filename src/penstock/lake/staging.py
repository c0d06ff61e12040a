"""Staging the changes of one table inside a transaction: append, replace, replace a slice, merge.

Rows are written as files at once; the catalog hears of them at the commit. The candidate state,
staged changes included, is read by the same scan as any snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError
from penstock.lake.candidate.staged import SliceOf, StagedTable
from penstock.lake.candidate.state import Removed, Staged, all_rows, live_rows
from penstock.lake.format.files import DataFile, FileSet
from penstock.lake.format.naming import fold, names_of
from penstock.lake.format.partitioning import partition_fields
from penstock.lake.format.schema import (
    same_columns,
)
from penstock.lake.format.types import from_spark_schema, to_spark_schema
from penstock.lake.reading.conversions.align import typed
from penstock.lake.reading.conversions.spark_types import schema_of
from penstock.lake.reading.parquet.footers import remove_directory
from penstock.lake.recovery.missing_files import missing_below
from penstock.lake.rows.append import append_rows, is_literal
from penstock.lake.rows.change import Condition, Keys, MergeBuilder, On, RowChange
from penstock.lake.rows.engine import stage
from penstock.lake.rows.places import find
from penstock.lake.rows.remove import both, end_whole, take_all, take_away
from penstock.lake.rows.updates import rows_of
from penstock.lake.writing import fingerprint
from penstock.lake.writing.spark import Written
from penstock.sql.dialect import hinted, texts_in

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lake.format.inlined.literal_rows import Rows


class TransactionTable(StagedTable):
    """One table inside a transaction: its changes. For one thread at a time."""

    def append(
        self,
        df: DataFrame | Rows,
        *,
        partition_by: str | Sequence[str] = (),
        slice: tuple[str, object] | None = None,  # noqa: A002 - what the engine calls it
    ) -> Staged:
        """Add rows; the table is created, partitioned by these columns, when it is missing.

        Rows given as dicts or as an Arrow table go into a table that there is, and need no Spark.

        ``slice`` says that all rows have this value in this column: it saves a sort.
        """
        if is_literal(df):
            return append_rows(self, df)
        return self.append_frame(df, partition_by, slice)

    def replace(
        self,
        df: DataFrame,
        *,
        partition_by: str | Sequence[str] = (),
        known_fingerprint: str | None = None,
    ) -> Staged:
        """Replace all rows. With the columns it has, the table stays; with others, it is made anew.

        When the content is what it was (``known_fingerprint``, or a scan when the number of rows
        agrees) and all of its files are there, nothing is staged.
        """
        before = self._candidate
        df = typed(df, before.schema)
        if not self._keeps_table(df, partition_by):
            with self.all_or_nothing():
                self._create(df, partition_by)
                written = self._write(df, with_fingerprint=True)
            self._candidate = replace(self._candidate, added=written.files)
            return _replaced(written, 0)
        written = self._write(df, with_fingerprint=True)
        files = self.files()
        if before == self._start and self._is_same(
            written, known_fingerprint, files, all_rows(files) == written.rows, self.to_df
        ):
            return self._unchanged(written)
        removed = take_all(self)
        self.take(removed, ())
        after = self._candidate.with_files(written.files)
        # Where nothing goes, two that replace the same nothing would leave the rows of both.
        self._candidate = replace(after, depends_on_rows=after.depends_on_rows or not removed.rows)
        return _replaced(written, removed.rows)

    def replace_slice(
        self,
        df: DataFrame,
        column: str,
        value: object,
        *,
        partition_by: str | Sequence[str] | None = None,
        known_fingerprint: str | None = None,
    ) -> Staged:
        """Replace the rows whose ``column`` is ``value``; ``df`` holds no others.

        Files of that partition end whole; rows in files of another partitioning are deleted by
        position. Unchanged content stages nothing, as in `replace`.
        """
        with self.all_or_nothing():
            return self._replace_slice(
                df,
                (column, value),
                (column,) if partition_by is None else partition_by,
                known_fingerprint,
            )

    def _replace_slice(
        self,
        df: DataFrame,
        slice_of: SliceOf,
        partition_by: str | Sequence[str],
        known_fingerprint: str | None,
    ) -> Staged:
        column, value = slice_of
        df = self.in_slice(typed(df, self._candidate.schema), column, value)
        self.ensure(df, partition_by)
        before = self._candidate
        whole, maybe = self.split(column, value)
        mixed = bool(maybe) or self.files().inlined is not None
        written = self._write(df, slice=(column, value), with_fingerprint=True)
        may_be_same = mixed or live_rows(whole) >= written.rows
        files = replace(self.files(), files=(*whole, *maybe))
        if before == self._start and self._is_same(
            written, known_fingerprint, files, may_be_same, lambda: self.slice_df(column, value)
        ):
            return self._unchanged(written)
        removed = self._take_slice(whole, maybe, slice_of)
        self._candidate = self._candidate.with_files(written.files)
        return _replaced(written, removed.rows)

    def drop_slice(self, column: str, value: object) -> int:
        """Take the rows away whose ``column`` is ``value``; how many they are."""
        with self.all_or_nothing():
            return self._take_slice(*self.split(column, value), (column, value)).rows

    def _take_slice(
        self, whole: Sequence[DataFile], maybe: Sequence[DataFile], slice_of: SliceOf
    ) -> Removed:
        """Stage that the rows of a slice go; files that hold no others are not read."""
        before, (column, value) = self._candidate, slice_of
        removed = end_whole(self, self.scan_all(), whole)
        if maybe or self.files().inlined is not None:
            removed = both(removed, self._rows_of_slice(maybe, column, value))
        self.take(removed, ())
        # What others write meanwhile goes by the names that the columns had.
        based = before.base_name(self._column(column))
        replaced = () if based is None else ((based, self.slice_key(column, value)[1]),)
        unknown = before.reads_base and based is None
        self._candidate = replace(
            self._candidate,
            depends_on_rows=before.depends_on_rows or bool(maybe) or unknown,
            replaces=(*before.replaces, *replaced),
        )
        return removed

    def missing_files(self, slice_of: SliceOf | None = None) -> tuple[str, ...]:
        """Paths of the files that the rows, or those of a slice, stand on and that are gone.

        Asks the file system for each; reads none.
        """
        files = self.files()
        if slice_of is not None:
            whole, maybe = self.split(*slice_of)
            files = replace(files, files=(*whole, *maybe))
        return self._missing(files)

    def _missing(self, files: FileSet) -> tuple[str, ...]:
        """Of files that were committed; those staged here are there."""
        paths = [file.path for file in files.files if file.id is not None]
        paths += [delete.path for file in files.files for delete in file.deletes]
        return missing_below(str(self._candidate.path), paths)

    def merge(
        self,
        df: DataFrame,
        keys: str | Sequence[str],
        *,
        slice: tuple[str, object] | None = None,  # noqa: A002 - what the engine calls it
    ) -> Staged:
        """Update the rows whose keys ``df`` has, insert its others; see `rows.merge_by_key`."""
        names = names_of(keys, "keys")
        if not names:
            raise ArgumentError(
                "a merge needs a key: keys is empty",
                hint='name the columns that tell rows apart, as keys=["id"]; append adds all rows',
            )
        return stage(self, RowChange.upsert(df, Keys(names), slice))

    def merge_into(
        self,
        source: DataFrame,
        on: str | SparkColumn,
        *,
        target_alias: str = "t",
        source_alias: str = "s",
    ) -> MergeBuilder[Staged]:
        """A MERGE by any condition, with clauses to be added; see `penstock.lake.rows.change`."""
        change = RowChange(On(on, target_alias, source_alias), source=source)
        return MergeBuilder(change, lambda whole: stage(self, whole))

    def delete(self, where: str | SparkColumn | None = None) -> Staged:
        """Delete the rows that satisfy a condition over the table's columns, all without one."""
        with hinted(where):
            return stage(self, RowChange.delete(Condition.of(where)))

    def update(
        self,
        set: Mapping[str, object],  # noqa: A002 - SQL's word, and Delta's
        where: str | SparkColumn | None = None,
    ) -> Staged:
        """Give the rows that satisfy a condition new values; see `rows.by_condition`."""
        with hinted(where, *set.values()):
            return stage(self, RowChange.update(Condition.of(where), texts_in(set)))

    def overwrite(
        self,
        df: DataFrame,
        where: str | SparkColumn | None = None,
        *,
        partition_by: str | Sequence[str] = (),
    ) -> Staged:
        """Replace the rows that satisfy a condition by ``df``, whose rows satisfy it too.

        Without a condition this is `replace`. Raises ArgumentError for both a condition and
        ``partition_by``, as the former leaves files of other rows where they are.
        """
        if where is None:
            return self.replace(df, partition_by=partition_by)
        if partition_by:
            raise ArgumentError(
                "overwrite takes either a condition or partition_by",
                hint="partition the table first: table.alter.partition_by(...)",
            )
        with hinted(where):
            return stage(self, RowChange.overwrite(df, Condition.of(where)))

    def _keeps_table(self, df: DataFrame, partition_by: str | Sequence[str]) -> bool:
        """Whether Spark has the same columns for the table as for ``df``, and it is partitioned so.

        Types that Spark lacks (``uuid``, ``uint8``) compare as what it holds them in.
        """
        candidate = self._candidate
        if candidate.schema is None:
            return False
        held, given = (
            from_spark_schema(to_spark_schema(one)) for one in (candidate.schema, schema_of(df))
        )
        now = [(fold(one.column), one.transform) for one in candidate.partition_by]
        fields = partition_fields(candidate.schema, partition_by)
        wanted = [(fold(field.column), field.transform) for field in fields]
        return now == wanted and same_columns(held, given)

    def _is_same(
        self,
        written: Written,
        known: str | None,
        files: FileSet,
        may_be: bool,
        current: Callable[[], DataFrame],
    ) -> bool:
        """Whether the rows there now are those written; one scan where nothing tells before.

        Rows of ``files`` that are gone are not there, whatever the catalog says.
        """
        if known is not None:
            may_be = written.fingerprint == known
        if not may_be or self._missing(files):
            return False
        if known is not None:
            return True
        seen = written.fingerprint
        return seen is not None and seen == fingerprint.of(current(), self.schema)

    def _unchanged(self, written: Written) -> Staged:
        if written.directory is not None:
            self._directories.remove(written.directory)
            remove_directory(written.directory)
        return Staged(fingerprint=written.fingerprint, unchanged=True, slice_rows=written.rows)

    def _rows_of_slice(self, files: Sequence[DataFile], column: str, value: object) -> Removed:
        """Take the slice's rows away from files that hold others too, and from the catalog."""
        source = self.scan_with(files)
        rows = rows_of(self, source).where(self.is_in_slice(column, value))
        found = find(rows, source, self.context.limits, once=True)
        try:
            return take_away(self, source, found)
        finally:
            found.release()


def _replaced(written: Written, before: int) -> Staged:
    return Staged(
        rows_written=written.rows,
        rows_inserted=written.rows,
        rows_deleted=before,
        fingerprint=written.fingerprint,
        slice_rows=written.rows,
    )
