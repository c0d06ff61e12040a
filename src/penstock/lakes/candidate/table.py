"""Reading a table inside a transaction: base files without what ended, and staged files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.errors import ColumnNotFound, TableNotFound
from penstock.lakes.candidate.state import Candidate
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.inlined.writes import OF_FRAMES, row_limit
from penstock.lakes.catalog.options import Options, write_facts
from penstock.lakes.catalog.snapshots.history import first_change_by_others
from penstock.lakes.format.changes import Slice
from penstock.lakes.format.files import DataFile, FileSet
from penstock.lakes.format.naming import fold
from penstock.lakes.format.partitioning import partition_keys, partition_value
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.limits import LIMITS, Limits
from penstock.lakes.reading import scan
from penstock.lakes.reading.arrow_files import read_small
from penstock.lakes.reading.conversions.align import with_values
from penstock.lakes.reading.conversions.spark_types import cast_type, literal
from penstock.lakes.reading.parquet.footers import remove_directory
from penstock.lakes.snapshot import Snapshot
from penstock.lakes.writing.settings import write_settings
from penstock.lakes.writing.spark import Target, rows_to_inline
from penstock.lazy import pa, pc
from penstock.spark.functions import fn
from penstock.spark.session import SparkSource, session_zone
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lakes.candidate.state import Removed
    from penstock.lakes.writing.spark import Written
    from penstock.sql.text import Predicate


@dataclass(frozen=True, slots=True)
class Context:
    """Values that the tables of one transaction share."""

    catalog: Catalog
    spark: SparkSource
    base: Snapshot
    schema_path: Callable[[str], str]  # name -> absolute directory; raises SchemaNotFound
    options: Options | None = None  # of the lake, as they were at the start
    limits: Limits = LIMITS
    started: datetime = field(default_factory=lambda: datetime.now(UTC))  # what now() is


class CandidateTable:
    """The candidate state of one table: what a commit would publish. For one thread at a time."""

    def __init__(self, context: Context, schema_name: str, name: str) -> None:
        self._context = context
        base = context.catalog.known_table(schema_name, name, context.base)
        if base is not None:  # in its own letters: another name would be a rename
            schema_name, name = base.schema_name, base.name
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
    def qualified_name(self) -> str:
        return self._candidate.qualified_name

    @property
    def made_in(self) -> int:
        """The snapshot that made the table: what is recorded of earlier ones is another's of its
        name, which was dropped.
        """
        base = self._candidate.base
        return 0 if base is None else base.begin_snapshot

    @property
    def written_schema(self) -> TableSchema:
        """The columns for rows to be written, with the values of defaults such as ``1 + 1``;
        ``now()`` is when the transaction began.
        """
        context, schema = self._context, self.schema
        if not schema.computes_defaults:
            return schema
        return with_values(schema, context.started, lambda: session_zone(context.spark()))

    @property
    def schema(self) -> TableSchema:
        """The columns. Raises TableNotFound."""
        schema = self._candidate.schema
        if schema is None:
            raise TableNotFound(
                f"table {self._candidate.qualified_name} does not exist yet",
                hint="append or replace creates it",
                data={"table": self._candidate.qualified_name},
            )
        return schema

    def to_df(self, predicate: Predicate | None = None) -> DataFrame:
        """The rows after the commit; files that cannot match ``predicate`` are pruned."""
        return scan.read(self._context.spark(), self.scan_all(predicate))

    def changed_by_others(self, since: int, own: Sequence[str]) -> Snapshot | None:
        """Return the first snapshot after ``since`` in which others changed rows; ``own`` are
        patterns, as LIKE has them, of the extra information of snapshots that are not others'.
        """
        base, catalog = self._candidate.base, self._context.catalog
        if base is None:
            return None
        with catalog.reading() as connection:
            return first_change_by_others(connection, base.id, since, own)

    def rows(self, predicate: Predicate | None = None) -> scan.Rows:
        """The rows of `to_df`, with how Spark reads them."""
        return scan.rows_of(self._context.spark(), self.scan_all(predicate))

    def slice_df(self, column: str, value: object) -> DataFrame:
        """The rows of a slice after the commit; only files that may hold some are read."""
        whole, maybe = self.split(column, value)
        files = replace(self.files(), files=(*whole, *maybe))
        return scan.read(self._context.spark(), self._scan(files)).where(
            self.is_in_slice(column, value)
        )

    def few_rows(
        self,
        names: Sequence[str],
        slice: Slice | None = None,  # noqa: A002 - as in merge
    ) -> pa.Table | None:
        """These columns of `to_df`, or of a slice's rows, read without Spark where possible."""
        limits = self._context.limits
        if slice is None:
            return read_small(self._scan(self.files()), names, limits)
        column, value = self._column(slice[0]), slice[1]
        if base_type(column.type) != "varchar":
            return None  # Spark casts the value to the column's type
        whole, maybe = self.split(*slice)
        files = replace(self.files(), files=(*whole, *maybe))
        wanted = list(dict.fromkeys((*names, column.name)))
        rows = read_small(self._scan(files), wanted, limits)
        return None if rows is None else rows.filter(pc.equal(rows[column.name], value))

    @property
    def context(self) -> Context:
        return self._context

    def files(self, predicate: Predicate | None = None) -> FileSet:
        """The files of the candidate state; those that cannot match ``predicate`` are pruned."""
        base = self._files_of_base(predicate) if self._candidate.reads_base else FileSet(())
        return self._candidate.files(base)

    def stage(self, candidate: Candidate, *directories: str | None) -> None:
        """Adopt a candidate state; the directories are removed when it is discarded."""
        self._candidate = candidate
        new = (directory for directory in directories if directory is not None)
        self._directories += [directory for directory in new if directory not in self._directories]

    def unstage(self, written: Written) -> None:
        """Remove written files that belong to no candidate state."""
        if written.directory is not None:
            self._directories.remove(written.directory)
            remove_directory(written.directory)

    @property
    def is_unchanged(self) -> bool:
        """Return whether nothing was staged yet."""
        return self._candidate == self._start

    def in_slice(self, df: DataFrame, column: str, value: object) -> DataFrame:
        """``df`` with the slice's column: added when missing, else checked row by row."""
        wanted = literal(value)
        name_in_df = next((name for name in df.columns if fold(name) == fold(column)), None)
        if name_in_df is None:
            known = self._candidate.schema and self._candidate.schema.find(column)
            return df.withColumn(column, wanted.cast(cast_type(known)) if known else wanted)
        have = fn.col(quoted(name_in_df))
        refusal = fn.raise_error(f"a row's {column} is not the slice's value {value}")
        return df.withColumn(name_in_df, fn.when(have.eqNullSafe(wanted), have).otherwise(refusal))

    def target(self, slice: tuple[str, object] | None) -> Target:  # noqa: A002 - as in merge
        """Return where rows of this table are written; all in one slice if that is the
        partitioning.
        """
        candidate = self._candidate
        keys = partition_keys(self.schema, candidate.partition_by)
        values: tuple[str | None, ...] | None = None
        if slice is not None and len(keys) == 1 and candidate.partition_index(slice[0]) == 0:
            values = (partition_value(keys[0].column, slice[1]),)
        catalog, snapshot = self._context.catalog, self._context.base
        with catalog.reading() as connection:
            facts = write_facts(connection, candidate.schema_name, candidate.base, snapshot.id)
        sort_by = facts.sort_by if candidate.sorting is None else candidate.sorting
        return Target(
            table=candidate.qualified_name,
            path=str(candidate.path),
            schema=self.schema,
            partition_by=keys,
            partition_id=candidate.partition_id,
            values=values,
            sort_by=sort_by if candidate.create is None else candidate.create.sort_by,
            settings=write_settings(facts.options.get, facts.row_bytes),
        )

    def scan_with(self, files: Sequence[DataFile]) -> scan.Scan:
        """The candidate state with these of its files, and what the catalog itself holds."""
        return self._scan(replace(self.files(), files=tuple(files)))

    def scan_all(self, predicate: Predicate | None = None) -> scan.Scan:
        """All rows of the candidate state; files that cannot match ``predicate`` are pruned."""
        return self._scan(self.files(predicate))

    def take(self, removed: Removed, written: Iterable[Written], *, in_files: bool = False) -> None:
        """Stage removed and written rows, inlined up to the limit unless ``in_files`` is set."""
        new = list(written)
        after = self._candidate.without(removed.files, removed.deletes)
        inline = after.inline.without_rows(removed.inlined).with_deletes(removed.places)
        after = replace(after, inline=inline).with_files(removed.added)
        for rows in new:
            after = after.with_files(rows.files) if in_files else self._with_written(after, rows)
        directories = (*removed.directories, *(rows.directory for rows in new))
        self.stage(after, *directories)

    def _with_written(self, candidate: Candidate, written: Written) -> Candidate:
        """The candidate with rows written, in the catalog up to its limit; files stay staged."""
        limit = self.inline_limit()
        to_inline = rows_to_inline(written, self.schema, limit) if written.rows <= limit else None
        if to_inline is None:
            return candidate.with_files(written.files)
        if written.directory is not None:
            remove_directory(written.directory)
        values, row_ids = to_inline
        begin = self._context.base.id + 1
        inline = candidate.inline.with_rows(self.schema, values, begin, row_ids)
        return replace(candidate, inline=inline)

    def inline_limit(self) -> int:
        """The largest number of rows of a DataFrame that are inlined."""
        context = self._context
        return row_limit(context.catalog, self._candidate.base, OF_FRAMES, context.options)

    def _scan(self, files: FileSet) -> scan.Scan:
        name = self._candidate.qualified_name
        return scan.Scan(name, self.schema, files, self._context.base.id)

    def _files_of_base(self, predicate: Predicate | None = None) -> FileSet:
        base = self._candidate.base
        catalog, snapshot = self._context.catalog, self._context.base
        # The catalog knows columns by their old names: after a rename it would test others.
        if predicate is not None and base is not None and base.schema == self._candidate.schema:
            return catalog.files(base, snapshot.id, predicate)
        if self._base_files is None:
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

    def is_in_slice(self, column: str, value: object) -> SparkColumn:
        """The condition that a row belongs to the slice; NULL is a value."""
        schema_column = self._column(column)
        return fn.col(quoted(schema_column.name)).eqNullSafe(
            literal(value).cast(cast_type(schema_column))
        )

    def split(self, column: str, value: object) -> tuple[list[DataFile], list[DataFile]]:
        """Files that hold only rows of the slice, and files that may hold some."""
        return self._candidate.split(self.files().files, *self.slice_key(column, value))

    def slice_key(self, column: str, value: object) -> Slice:
        """The column as the table calls it, and the catalog's text of the value."""
        schema_column = self._column(column)
        return schema_column.name, partition_value(schema_column, value)
