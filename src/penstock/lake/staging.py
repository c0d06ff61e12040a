"""Staging the changes of one table inside a transaction: append, replace, replace a slice, merge.

Rows are written as files at once; the catalog hears of them at the commit. The candidate state,
staged changes included, is read by the same scan as any snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import ColumnNotFound, SchemaMismatch, TableNotFound
from penstock.lake import fingerprint, scan
from penstock.lake.align import align, growth
from penstock.lake.candidate import Candidate, Staged, live_rows
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.changes import NewTable
from penstock.lake.deletes import Removed, remove
from penstock.lake.files import DataFile, FileSet, PartitionField
from penstock.lake.footers import remove_directory
from penstock.lake.merge import merge
from penstock.lake.naming import directory_name, fold, new_uuid7
from penstock.lake.partitioning import partition_columns, partition_value
from penstock.lake.schema import (
    Column,
    TableSchema,
    assign_ids,
    assign_missing_ids,
    evolve,
    same_columns,
    without_columns,
)
from penstock.lake.session import SparkSource
from penstock.lake.snapshot import Snapshot
from penstock.lake.spark_types import quoted, schema_of, spark_type
from penstock.lake.types import from_spark_schema, to_spark_schema
from penstock.lake.write import Target, Written, parquet_options, write

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Context:
    """What the tables of one transaction share."""

    catalog: Catalog
    spark: SparkSource
    base: Snapshot
    schema_path: Callable[[str], str]  # name -> absolute directory; raises SchemaNotFound


class TransactionTable:
    """One table inside a transaction. Not for several threads at once."""

    def __init__(self, context: Context, schema_name: str, name: str) -> None:
        self._context = context
        base = context.catalog.find_table(schema_name, name, context.base.id)
        self._start = Candidate(schema_name, name, base)
        self._candidate = self._start
        self._base_files: FileSet | None = None
        self._directories: list[str] = []

    @property
    def candidate(self) -> Candidate:
        return self._candidate

    @property
    def exists(self) -> bool:
        return self._candidate.exists

    @property
    def schema(self) -> TableSchema:
        """The columns. Raises TableNotFound."""
        found = self._candidate.schema
        if found is None:
            raise TableNotFound(
                f"there is no table {self._candidate.qualified_name} yet",
                hint="append or replace creates it",
                data={"table": self._candidate.qualified_name},
            )
        return found

    def to_df(self) -> DataFrame:
        """The rows as they will be after the commit."""
        return scan.read(self._context.spark(), self._scan(self.files()))

    def slice_df(self, column: str, value: object) -> DataFrame:
        """The rows of a slice as they will be; only files that may hold some are read."""
        whole, maybe = self._split(column, value)
        files = FileSet((*whole, *maybe), self.files().mappings)
        return scan.read(self._context.spark(), self._scan(files)).where(self._is(column, value))

    def append(
        self,
        df: DataFrame,
        *,
        partition_by: Sequence[str] = (),
        slice: tuple[str, object] | None = None,  # noqa: A002 - what the engine calls it
    ) -> Staged:
        """Add rows; the table is created, partitioned by these columns, when it is missing.

        ``slice`` says that all rows have this value in this column: it saves a sort.
        """
        if slice is not None:
            df = self.in_slice(df, *slice)
        self.ensure(df, partition_by)
        written = self._write(df, slice=slice)
        self._candidate = self._candidate.with_files(written.files)
        return Staged(
            rows_written=written.rows, rows_inserted=written.rows, slice_rows=written.rows
        )

    def replace(
        self,
        df: DataFrame,
        *,
        partition_by: Sequence[str] = (),
        known_fingerprint: str | None = None,
    ) -> Staged:
        """Replace all rows. With the columns it has, the table stays; with others, it is made anew.

        When the content is what it was (``known_fingerprint``, or a scan when the number of rows
        agrees), nothing is staged.
        """
        before = self._candidate
        if not self._keeps_table(df, partition_by):
            self._create(df, partition_by)
            written = self._write(df, with_fingerprint=True)
            self._candidate = replace(self._candidate, added=written.files)
            return _replaced(written, 0)
        written = self._write(df, with_fingerprint=True)
        rows = live_rows(self.files().files)
        if before == self._start and self._is_same(
            written, known_fingerprint, rows == written.rows, self.to_df
        ):
            return self._unchanged(written)
        self._candidate = before.with_only(written.files, self._files_of_base())
        return _replaced(written, rows)

    def replace_slice(
        self,
        df: DataFrame,
        column: str,
        value: object,
        *,
        partition_by: Sequence[str] | None = None,
        known_fingerprint: str | None = None,
    ) -> Staged:
        """Replace the rows whose ``column`` is ``value``; ``df`` holds no others.

        Files of that partition end whole; rows in files of another partitioning are deleted by
        position. Unchanged content stages nothing, as in `replace`.
        """
        df = self.in_slice(df, column, value)
        self.ensure(df, (column,) if partition_by is None else partition_by)
        before = self._candidate
        whole, maybe = self._split(column, value)
        written = self._write(df, slice=(column, value), with_fingerprint=True)
        may_be_same = bool(maybe) or live_rows(whole) == written.rows
        if before == self._start and self._is_same(
            written, known_fingerprint, may_be_same, lambda: self.slice_df(column, value)
        ):
            return self._unchanged(written)
        removed = self._remove_rows(maybe, column, value) if maybe else Removed()
        removed = removed.and_files(whole)
        after = before.without(removed.files, removed.deletes).with_files(written.files)
        self._candidate = replace(after, depends_on_rows=before.depends_on_rows or bool(maybe))
        return _replaced(written, removed.rows)

    def merge(
        self,
        df: DataFrame,
        keys: Sequence[str],
        *,
        slice: tuple[str, object] | None = None,  # noqa: A002 - what the engine calls it
    ) -> Staged:
        """Update the rows whose keys ``df`` has, insert its others; see `penstock.lake.merge`."""
        return merge(self, df, tuple(keys), slice)

    def evolve(self, df: DataFrame, *, drop: Sequence[str] = ()) -> None:
        """Make the table able to hold ``df``: its new columns are added at the end (NULL in the
        rows there are), types are widened where that loses nothing, columns in ``drop`` go.

        Other snapshots keep their columns. A type that cannot be widened is left for the write to
        refuse; a column that the table is partitioned by stays.
        """
        base = self._candidate.base
        if base is None or self._candidate.create is not None:
            return
        current = without_columns(self.schema, self._droppable(drop))
        wanted = growth(schema_of(df), current)
        if wanted.columns or current != self.schema:
            first = self._context.catalog.next_column_id(base)
            altered = assign_missing_ids(evolve(current, wanted), first)
            self._candidate = replace(self._candidate, altered=altered)

    def _droppable(self, names: Sequence[str]) -> list[str]:
        keys = {fold(one.column) for one in self._candidate.partition_by}
        return [name for name in names if fold(name) not in keys]

    def discard(self) -> None:
        """Forget what was staged for this table and remove its files."""
        self._candidate = self._start
        for directory in self._directories:
            remove_directory(directory)
        self._directories.clear()

    # What `merge` builds on.

    @property
    def context(self) -> Context:
        return self._context

    def files(self) -> FileSet:
        """The files of the candidate state."""
        base = self._files_of_base() if self._candidate.reads_base else FileSet(())
        return self._candidate.files(base)

    def update(self, candidate: Candidate, *directories: str | None) -> None:
        """Take on a candidate state; the directories are removed when it is discarded."""
        self._candidate = candidate
        self._directories += [one for one in directories if one is not None]

    def in_slice(self, df: DataFrame, column: str, value: object) -> DataFrame:
        """``df`` with the slice's column: added when missing, else checked row by row."""
        from pyspark.sql import functions as fn

        literal = fn.lit(value)
        found = next((name for name in df.columns if fold(name) == fold(column)), None)
        if found is None:
            known = self._candidate.schema and self._candidate.schema.find(column)
            return df.withColumn(column, literal.cast(spark_type(known)) if known else literal)
        have = fn.col(quoted(found))
        refusal = fn.raise_error(f"a row's {column} is not the slice's value {value}")
        return df.withColumn(found, fn.when(have.eqNullSafe(literal), have).otherwise(refusal))

    def ensure(self, df: DataFrame, partition_by: Sequence[str]) -> None:
        """Create the table with the columns of ``df`` when it is missing."""
        if not self.exists:
            self._create(df, partition_by)

    def target(self, slice: tuple[str, object] | None) -> Target:  # noqa: A002
        """Where rows of this table go; all of one slice when that is the partitioning."""
        candidate = self._candidate
        columns = partition_columns(self.schema, candidate.partition_by)
        values: tuple[str | None, ...] | None = None
        if slice is not None and len(columns) == 1 and fold(columns[0].name) == fold(slice[0]):
            values = (partition_value(columns[0], slice[1]),)
        option = self._context.catalog.option
        return Target(
            table=candidate.qualified_name,
            path=str(candidate.path),
            schema=self.schema,
            partition_by=columns,
            partition_id=candidate.partition_id,
            values=values,
            options=parquet_options(
                option("parquet_compression", candidate.base),
                option("parquet_compression_level", candidate.base),
            ),
        )

    def scan_of(self, files: Sequence[DataFile]) -> scan.Scan:
        return self._scan(FileSet(tuple(files), self.files().mappings))

    def split(self, column: str, value: object) -> tuple[list[DataFile], list[DataFile]]:
        return self._split(column, value)

    def is_in_slice(self, column: str, value: object) -> SparkColumn:
        return self._is(column, value)

    def _scan(self, files: FileSet) -> scan.Scan:
        name = self._candidate.qualified_name
        return scan.Scan(name, self.schema, files, self._context.base.id)

    def _files_of_base(self) -> FileSet:
        if self._base_files is None:
            base = self._candidate.base
            catalog, snapshot = self._context.catalog, self._context.base
            self._base_files = FileSet(()) if base is None else catalog.files(base, snapshot.id)
        return self._base_files

    def _column(self, name: str) -> Column:
        column = self.schema.find(name)
        if column is None:
            raise ColumnNotFound(
                f"{self._candidate.qualified_name} has no column {name!r}",
                hint=f"its columns are {', '.join(self.schema.names)}",
                data={"table": self._candidate.qualified_name, "column": name},
            )
        return column

    def _is(self, column: str, value: object) -> SparkColumn:
        from pyspark.sql import functions as fn

        found = self._column(column)
        literal = fn.lit(value).cast(spark_type(found))
        return fn.col(quoted(found.name)).eqNullSafe(literal)

    def _split(self, column: str, value: object) -> tuple[list[DataFile], list[DataFile]]:
        text = partition_value(self._column(column), value)
        return self._candidate.split(self.files().files, column, text)

    def _write(
        self,
        df: DataFrame,
        *,
        slice: tuple[str, object] | None = None,  # noqa: A002
        with_fingerprint: bool = False,
    ) -> Written:
        target = self.target(slice)
        columns = align(df, self.schema, table=self._candidate.qualified_name)
        written = write(df, columns, target, with_fingerprint=with_fingerprint)
        self.update(self._candidate, written.directory)
        return written

    def _create(self, df: DataFrame, partition_by: Sequence[str]) -> None:
        schema = assign_ids(schema_of(df))
        if not schema.columns:
            raise SchemaMismatch(
                f"{self._candidate.qualified_name} cannot be made of rows without columns",
                hint="select at least one column",
            )
        fields = tuple(PartitionField(name) for name in partition_by)
        partition_columns(schema, fields)
        uuid = new_uuid7()
        start = self._candidate
        directory = self._context.schema_path(start.schema_name)
        path = f"{directory}{directory_name(start.name, uuid)}"
        self._candidate = Candidate(
            start.schema_name, start.name, start.base, NewTable(uuid, schema, path, fields)
        )

    def _keeps_table(self, df: DataFrame, partition_by: Sequence[str]) -> bool:
        """Whether Spark has the same columns for the table as for ``df``, and it is partitioned so.

        Types that Spark lacks (``uuid``, ``uint8``) compare as what it holds them in.
        """
        candidate = self._candidate
        if candidate.schema is None:
            return False
        held = from_spark_schema(to_spark_schema(candidate.schema))
        now = [(fold(one.column), one.transform) for one in candidate.partition_by]
        wanted = [(fold(name), "identity") for name in partition_by]
        return now == wanted and same_columns(held, schema_of(df))

    def _is_same(
        self,
        written: Written,
        known: str | None,
        may_be: bool,
        current: Callable[[], DataFrame],
    ) -> bool:
        """Whether the rows there now are those written; one scan where nothing tells before."""
        if known is not None:
            return written.fingerprint == known
        return may_be and written.fingerprint == fingerprint.of(current(), self.schema)

    def _unchanged(self, written: Written) -> Staged:
        if written.directory is not None:
            self._directories.remove(written.directory)
            remove_directory(written.directory)
        return Staged(fingerprint=written.fingerprint, unchanged=True, slice_rows=written.rows)

    def _remove_rows(self, files: Sequence[DataFile], column: str, value: object) -> Removed:
        """Delete the slice's rows from files that hold others too."""
        spark = self._context.spark()
        source = self.scan_of(files)
        rows = scan.read(spark, source, positions=True).where(self._is(column, value))
        found = rows.select(scan.FILE, scan.POSITION).persist()
        try:
            counts = {row[0]: row[1] for row in found.groupBy(scan.FILE).count().collect()}
            removed = remove(spark, source, found, counts, str(self._candidate.path))
        finally:
            found.unpersist()
        self.update(self._candidate, removed.directory)
        return removed


def _replaced(written: Written, before: int) -> Staged:
    return Staged(
        rows_written=written.rows,
        rows_inserted=written.rows,
        rows_deleted=before,
        fingerprint=written.fingerprint,
        slice_rows=written.rows,
    )
