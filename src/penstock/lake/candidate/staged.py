"""Shared by all changes of a table inside a transaction: they write rows, create the table or add
the columns that the rows need, and undo everything when the call fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import SchemaMismatch
from penstock.lake.candidate.definable import DefinableTable
from penstock.lake.candidate.state import Candidate
from penstock.lake.format.changes import NewTable
from penstock.lake.format.field_ids import assign_ids
from penstock.lake.format.files import PartitionField, all_rows, live_rows
from penstock.lake.format.naming import directory_name, fold, names_of, new_uuid7
from penstock.lake.format.objects import SortKey
from penstock.lake.format.partitioning import partition_columns, partition_fields
from penstock.lake.format.schema import TableSchema, evolve, without_columns
from penstock.lake.reading.conversions.align import align, growth, typed
from penstock.lake.reading.conversions.spark_types import schema_of
from penstock.lake.reading.parquet.footers import remove_directory
from penstock.lake.writing.spark import Written, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SliceOf = tuple[str, object]


class StagedTable(DefinableTable):
    """One table inside a transaction whose rows can change; for one thread at a time."""

    _partition_by: Sequence[str] = ()  # of a table that is made, where its maker says nothing else
    _sort_by: tuple[SortKey, ...] = ()

    def lay_out(self, partition_by: Sequence[str], sort_by: Sequence[str]) -> None:
        """Partition and sort what is written from now on by these keys, in the table that there is
        and in one that is made. Files that are there stay as they are.
        """
        self._partition_by, self._sort_by = partition_by, tuple(map(SortKey, sort_by))
        if not self.exists:
            return
        self.set_partitioning(partition_fields(self.schema, partition_by))
        self.set_sorting(self._sort_by)

    def wanted_fields(
        self, schema: TableSchema, partition_by: str | Sequence[str]
    ) -> tuple[PartitionField, ...]:
        """``partition_by``, or what `lay_out` has said, as keys of these columns."""
        return partition_fields(schema, partition_by or self._partition_by)

    def evolve(self, df: DataFrame, *, drop: str | Sequence[str] = ()) -> None:
        """Make the table able to hold ``df``: its new columns are added at the end (NULL in the
        rows there are), types are widened where that loses nothing, columns in ``drop`` go.

        Other snapshots keep their columns. A type that cannot be widened is left for the write to
        refuse; a column that the table is partitioned by stays.
        """
        base = self._candidate.base
        if base is None or self._candidate.create is not None:
            return
        current = without_columns(self.schema, self._droppable(names_of(drop, "drop")))
        wanted = growth(schema_of(typed(df, current)), current)
        if wanted.columns or current != self.schema:
            self.alter(evolve(current, wanted))

    def _droppable(self, names: Sequence[str]) -> list[str]:
        keys = {fold(key.column) for key in self._candidate.partition_by}
        return [name for name in names if fold(name) not in keys]

    def discard(self) -> None:
        """Forget what was staged for this table and remove its files."""
        self._candidate = self._start
        for directory in self._directories:
            remove_directory(directory)
        self._directories.clear()

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Undo what a call staged when it fails."""
        start, candidate, directories = self._start, self._candidate, list(self._directories)
        outermost = self._aside is None
        aside: list[str] = [] if self._aside is None else self._aside
        self._aside, before = aside, len(aside)
        try:
            yield
        except BaseException:
            for directory in (*self._directories, *aside[before:]):
                if directory not in directories:
                    remove_directory(directory)
            self._start, self._candidate, self._directories = start, candidate, directories
            del aside[before:]
            raise
        finally:
            if outermost:
                self._aside = None
                for directory in aside:
                    remove_directory(directory)

    def ensure(self, df: DataFrame, partition_by: str | Sequence[str]) -> None:
        """Create the table with the columns of ``df`` when it is missing."""
        if not self.exists:
            self.create_for(df, partition_by)

    def depend(self, slice_of: SliceOf | None = None, *, mixed: bool = False) -> None:
        """Let the commit fail if another one changes rows of the table, or of a slice, meanwhile.

        What is staged was made from the rows that are there, also where there are none: two that
        fill the same nothing would leave the rows of both. ``mixed``: files hold rows of the slice
        and of others. What this transaction itself created nobody else can change.
        """
        candidate = self._candidate
        if not candidate.reads_base:
            return
        if slice_of is not None:
            name, text = self.slice_key(*slice_of)
            # What others write meanwhile goes by the names that the columns had.
            based = candidate.base_name(self._column(name))
            if based is not None and not mixed:
                slices = (*candidate.replaces, (based, text))
                self._candidate = replace(candidate, replaces=slices)
                return
        self._candidate = replace(candidate, depends_on_rows=True)

    def write_frame(
        self,
        df: DataFrame,
        *,
        slice: tuple[str, object] | None = None,  # noqa: A002 - as in merge
        partitions: int | None = None,
        with_fingerprint: bool = False,
    ) -> Written:
        """Write the rows of a DataFrame, all of one slice where ``slice`` is set, to files that
        belong to no candidate state yet and are removed with what is staged.

        ``partitions`` is the number of partitions that the rows belong to, where it is known.
        """
        target = replace(self.target(slice), partitions=partitions)
        columns = align(df, self.written_schema, table=self._candidate.qualified_name)
        written = write(df, columns, target, with_fingerprint=with_fingerprint)
        self.stage(self._candidate, written.directory)
        return written

    def count_rows(self, slice_of: SliceOf | None = None) -> int:
        """The number of rows of the table, or of a slice, after the commit; files are read only
        where the catalog does not hold the number.
        """
        files = self.files()
        if slice_of is None:
            return all_rows(files)
        whole, maybe = self.split(*slice_of)
        if maybe or files.inlined is not None or files.inlined_deletes is not None:
            return self.slice_df(*slice_of).count()
        return live_rows(whole)

    def create_for(self, df: DataFrame, partition_by: str | Sequence[str]) -> None:
        """Create the table with the columns of ``df``, replacing the one that exists."""
        schema = assign_ids(schema_of(df))
        if not schema.columns:
            raise SchemaMismatch(
                f"{self._candidate.qualified_name} cannot be made of rows without columns",
                hint="select at least one column",
            )
        self._refuse_reserved(schema.names)
        fields = self.wanted_fields(schema, partition_by)
        partition_columns(schema, fields)
        uuid = new_uuid7()
        start = self._candidate
        directory = self._context.schema_path(start.schema_name)
        path = f"{directory}{directory_name(start.name, uuid)}"
        self._candidate = Candidate(
            start.schema_name,
            start.name,
            start.base,
            NewTable(uuid, schema, path, fields, self._sort_by),
        )
