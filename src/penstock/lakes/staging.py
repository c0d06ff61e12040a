"""Staging the changes of one table inside a transaction: append, replace, replace a slice, merge.

Rows are written to files at once and registered in the catalog at the commit. The candidate state
with its staged changes is read by the same scan as any snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError
from penstock.lakes.candidate.staged import SliceOf, StagedTable
from penstock.lakes.candidate.state import Staged
from penstock.lakes.format.naming import names_of
from penstock.lakes.rows import overwrite
from penstock.lakes.rows.append import append_frame, append_rows
from penstock.lakes.rows.change import Condition, Keys, MergeBuilder, On, RowChange
from penstock.lakes.rows.engine import stage
from penstock.lakes.rows.given import frame_of, given, is_literal
from penstock.lakes.rows.overwrite import Replacing
from penstock.lakes.rows.slices import (
    Ranges,
    WrittenSlices,
    fits_slices,
    replace_partitions,
    replace_ranges,
    slices_df,
    stage_slices,
    write_slices,
)
from penstock.lakes.rows.spark_finder import AddressedRows, addressed_rows
from penstock.sql.dialect import hinted, texts_in

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lakes.rows.given import Given


class TransactionTable(StagedTable):
    """One table inside a transaction: its changes. For one thread at a time."""

    def append(
        self,
        df: Given,
        *,
        partition_by: str | Sequence[str] = (),
        slice: tuple[str, object] | None = None,  # noqa: A002 - what the engine calls it
    ) -> Staged:
        """Add rows; the table is created, partitioned by these columns, when it is missing.

        Dicts and what has Arrow's interface (frames of pandas and polars, relations of DuckDB)
        need no Spark where the table exists; dicts do not create it.

        ``slice`` says that all rows have this value in this column: it saves a sort.
        """
        rows = given(df)
        if is_literal(rows) and (self.exists or isinstance(rows, list | tuple)):
            return append_rows(self, rows)
        return append_frame(self, frame_of(self, rows), partition_by, slice)

    def replace(
        self,
        df: Given,
        *,
        partition_by: str | Sequence[str] = (),
        known_fingerprint: str | None = None,
    ) -> Staged:
        """Replace all rows. If the columns differ, the table is created again.

        When the content is unchanged (by ``known_fingerprint``, or by a scan when the number of
        rows agrees) and all files exist, nothing is staged.
        """
        return overwrite.replace_table(
            self, Replacing(frame_of(self, df, whole=True), partition_by, known_fingerprint)
        )

    def replace_slice(
        self,
        df: Given,
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
        keys = (column,) if partition_by is None else partition_by
        new = Replacing(frame_of(self, df), keys, known_fingerprint)
        return overwrite.replace_slice(self, (column, value), new)

    def replace_partitions(self, df: Given, keys: str | Sequence[str]) -> Staged:
        """Replace each partition, by these keys, that ``df`` has rows of; see `rows.partitions`."""
        return replace_partitions(self, frame_of(self, df), names_of(keys, "keys"))

    def replace_ranges(
        self,
        df: DataFrame,
        ranges: Ranges,
        *,
        partition_by: str | Sequence[str] = (),
        known_fingerprint: str | None = None,
    ) -> Staged:
        """Replace the rows of these ranges of a column; ``df`` holds no others.

        Files that hold no other rows end whole; others lose theirs by position. Unchanged content
        stages nothing, as in `replace`.
        """
        return replace_ranges(self, ranges, Replacing(df, partition_by, known_fingerprint))

    def fits_slices(self, column: str) -> bool:
        """Return whether `write_slices` can be used: each file holds rows of one slice."""
        return fits_slices(self, column)

    def write_slices(self, df: DataFrame, column: str, count: int) -> WrittenSlices:
        """Write the rows of ``count`` slices, which ``column`` tells apart, by one job."""
        return write_slices(self, df, column, count)

    def stage_slices(
        self, written: WrittenSlices, values: Sequence[str], *, replaces: bool
    ) -> dict[str, Staged]:
        """Stage some of the slices that were written, in place of others staged before."""
        return stage_slices(self, written, values, replaces=replaces)

    def slices_df(self, values: Sequence[str]) -> DataFrame:
        """The rows of these slices, which `write_slices` wrote or found, as they are staged."""
        return slices_df(self, values)

    def drop_slice(self, column: str, value: object) -> int:
        """Delete the rows whose ``column`` is ``value``; returns their number."""
        return overwrite.drop_slice(self, (column, value))

    def missing_files(self, slice_of: SliceOf | None = None) -> tuple[str, ...]:
        """Paths of missing files that the rows, or those of a slice, need."""
        return overwrite.missing_files(self, slice_of)

    def merge(
        self,
        df: Given,
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
        return stage(self, RowChange.upsert(frame_of(self, df, alike=True), Keys(names), slice))

    def addressed_rows(self, where: str | None = None) -> AddressedRows:
        """The rows for which a condition in Spark's SQL holds, each with its address."""
        return addressed_rows(self, where)

    def close_versions(
        self, closed: DataFrame, void: DataFrame | None, opened: DataFrame, among: AddressedRows
    ) -> Staged:
        """Give rows new values and add others, as a history does: ``closed`` have the columns of
        the table and the address of the row that they become, each once; rows whose addresses are
        in ``void`` are deleted; ``opened`` are added. ``among`` are the rows that may change.
        """

        def match(rows: DataFrame) -> Condition:
            return Condition(selected=lambda _: rows, files=among.files, once=True)

        gone = Staged() if void is None else stage(self, RowChange.delete(match(void)))
        changed = stage(self, RowChange.update(match(closed), None))
        added = self.append(opened)
        if changed.unchanged and added.unchanged and not gone.rows_deleted:
            return Staged(unchanged=True, slice_rows=self.count_rows())
        self.depend()  # rows that others add meanwhile may be versions of the same keys
        return Staged(
            rows_written=changed.rows_written + added.rows_written,
            rows_inserted=added.rows_inserted,
            rows_updated=changed.rows_updated,
            rows_deleted=gone.rows_deleted,
            slice_rows=self.count_rows(),
        )

    def merge_into(
        self,
        source: Given,
        on: str | SparkColumn,
        *,
        target_alias: str = "t",
        source_alias: str = "s",
    ) -> MergeBuilder[Staged]:
        """A MERGE by any condition, with clauses to be added; see `penstock.lakes.rows.change`."""
        change = RowChange(
            On.of(on, target_alias, source_alias), source=frame_of(self, source, alike=True)
        )
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
        """Give the rows that satisfy a condition new values; see `rows.engine`."""
        with hinted(where, *set.values()):
            return stage(self, RowChange.update(Condition.of(where), texts_in(set)))

    def overwrite(
        self,
        df: Given,
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
            return stage(self, RowChange.overwrite(frame_of(self, df), Condition.of(where)))
