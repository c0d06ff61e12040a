"""Protocols of a destination, the place where steps make their tables: all that the engine asks.

A step begins a transaction, stages rows in tables, reads them as they would be, and commits them
together with its records. Each protocol has what some module of the engine calls, and no more; a
lake's own classes are the first implementation. Names of tables are quoted: ``"schema"."table"``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlalchemy import Connection

    from penstock.destinations.catalog import Catalog
    from penstock.destinations.values import (
        AddressedRows,
        FinalRows,
        Ranges,
        Rows,
        Staged,
        TableSchema,
    )
    from penstock.lakes.candidate.staged import StagedView
    from penstock.lakes.format.files import Table
    from penstock.lakes.limits import Limits
    from penstock.lakes.queries.resolver import Resolver
    from penstock.lakes.snapshot import At, Snapshot
    from penstock.lazy import pa
    from penstock.sql.text import Predicate

Place = tuple[str, str]  # the column of slices, and the value of one
Written = Any  # rows of many slices, as the destination that wrote them knows them
State = Any  # of a staged table, as its destination knows it


class StagedTable(Protocol):
    """A table as its transaction would leave it. Reads see what is staged."""

    @property
    def qualified_name(self) -> str: ...

    @property
    def exists(self) -> bool: ...

    @property
    def schema(self) -> TableSchema:
        """Raises TableNotFound."""
        ...

    @property
    def made_in(self) -> int:
        """The snapshot that made the table, 0 for one that this transaction makes."""
        ...

    @property
    def candidate(self) -> State: ...

    def stage(self, candidate: State, /) -> None:
        """Return to what `candidate` was."""
        ...

    def all_or_nothing(self) -> AbstractContextManager[None]:
        """Undo what the block staged when it fails."""
        ...

    # What there is.

    def to_df(self, predicate: Predicate | None = None, /) -> DataFrame: ...

    def rows(self, predicate: Predicate | None = None, /) -> Rows: ...

    def slice_df(self, column: str, value: object, /) -> DataFrame: ...

    def slices_df(self, values: Sequence[str], /) -> DataFrame: ...

    def few_rows(self, names: Sequence[str], place: Place | None = None, /) -> pa.Table | None:
        """Read columns without Spark; None where the rows are not small or not simple to read."""
        ...

    def count_rows(self, place: Place | None = None, /) -> int: ...

    def missing_files(self, place: Place | None = None, /) -> tuple[str, ...]: ...

    def changed_by_others(self, since: int, own: Sequence[str], /) -> Snapshot | None:
        """Return the first snapshot after ``since`` in which others changed rows, unless that was
        rolled back. ``own`` are patterns of the notes of those that are not others.
        """
        ...

    # Rows. Where nothing was staged before, content that stays as it is stages nothing, which
    # `Staged.unchanged` says.

    def append(
        self,
        df: DataFrame,
        /,
        *,
        partition_by: Sequence[str] = (),
        slice: Place | None = None,  # noqa: A002 - the lake's word
    ) -> Staged: ...

    def replace(self, df: DataFrame, /, *, known_fingerprint: str | None = None) -> Staged: ...

    def replace_slice(
        self,
        df: DataFrame,
        column: str,
        value: object,
        /,
        *,
        partition_by: Sequence[str] | None = None,
        known_fingerprint: str | None = None,
    ) -> Staged: ...

    def replace_partitions(self, df: DataFrame, keys: Sequence[str], /) -> Staged: ...

    def replace_ranges(
        self, df: DataFrame, ranges: Ranges, /, *, known_fingerprint: str | None = None
    ) -> Staged: ...

    def merge(
        self,
        df: DataFrame,
        keys: Sequence[str],
        /,
        *,
        slice: Place | None = None,  # noqa: A002 - the lake's word
    ) -> Staged:
        """Raises MergeKeyError for keys that are NULL or come twice."""
        ...

    def addressed_rows(self, where: str | None = None, /) -> AddressedRows: ...

    def close_versions(
        self, closed: DataFrame, void: DataFrame | None, opened: DataFrame, among: AddressedRows, /
    ) -> Staged: ...

    def drop_slice(self, column: str, value: object, /) -> int: ...

    def fits_slices(self, column: str, /) -> bool:
        """Tell whether `write_slices` can be used."""
        ...

    def write_slices(self, df: DataFrame, column: str, count: int, /) -> Written:
        """Write the rows of ``count`` slices, which ``column`` tells apart, by one job."""
        ...

    def stage_slices(
        self, written: Written, values: Sequence[str], /, *, replaces: bool
    ) -> dict[str, Staged]:
        """Stage some of the slices that were written, in place of others staged before."""
        ...

    # The table itself.

    def drop(self) -> None: ...

    def evolve(self, df: DataFrame, /, *, drop: Sequence[str] = ()) -> None: ...

    def lay_out(self, partition_by: Sequence[str], sort_by: Sequence[str], /) -> None: ...

    def comments(self) -> tuple[str | None, Mapping[str, str]]: ...

    def comment(self, text: str | None, column: str | None = None, /) -> None: ...


class Transaction(Protocol):
    """Changes that are published together, on top of the snapshot ``base``. As a context manager
    it commits at the end, and rolls back after an error.
    """

    base: Snapshot

    def __enter__(self) -> Transaction: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any, /) -> None: ...

    def table(self, name: str, /) -> StagedTable: ...

    def kind_of(self, name: str, /) -> str | None:
        """``table``, ``view``, or None for a name that is free."""
        ...

    def create_schema(self, name: str, /) -> None: ...

    def drop_table(self, name: str, /) -> None: ...

    def view(self, name: str, /) -> StagedView | None: ...

    def create_view(
        self, name: str, sql: str, /, *, or_replace: bool = False, comment: str | None = None
    ) -> None: ...

    def comment_on_view(self, name: str, text: str | None, /) -> None: ...

    def drop_view(self, name: str, /) -> None: ...

    def sql(
        self,
        text: str,
        args: Mapping[str, Any] | None = None,
        views: Mapping[str, DataFrame] | None = None,
        *,
        dialect: str = "spark",
    ) -> DataFrame: ...

    def describe(
        self, author: str | None = None, message: str | None = None, extra: str | None = None
    ) -> None:
        """Set what is noted with the commit."""
        ...

    def on_commit(self, write: Callable[[Connection, int], None], /) -> None:
        """Write records in the commit of the data, with the id of its snapshot; a destination
        without `Capability.RECORDS` writes them when it has committed.
        """
        ...

    @property
    def has_changes(self) -> bool: ...

    def commit(self) -> Snapshot | None:
        """Raises CommitConflict and others; None, and no records, where nothing was staged."""
        ...

    def rollback(self) -> None: ...


class PublishedTable(Protocol):
    """A table or view as snapshots have it. Reads raise NotFound."""

    def info(self, version: int | None = None, /) -> Table: ...

    def to_df(
        self,
        version: int | None = None,
        timestamp: Any = None,
        *,
        predicate: Predicate | None = None,
    ) -> DataFrame: ...

    def rows_at(self, version: int, predicate: Predicate | None = None, /) -> Rows: ...

    def few_rows(self, names: Sequence[str], version: int) -> pa.Table | None: ...

    def changed_rows(self, after: int, until: int, /, *, only_new: bool = False) -> FinalRows:
        """The rows that changed after a snapshot, each once, as it is at a later one."""
        ...


class Destination(Protocol):
    """A place for tables, under a name of penstock.toml."""

    @property
    def catalog(self) -> Catalog: ...

    @property
    def limits(self) -> Limits: ...

    def transaction(
        self, author: str | None = None, message: str | None = None, extra: str | None = None
    ) -> Transaction: ...

    def table(self, name: str, /) -> PublishedTable: ...

    def with_session(self, session: SparkSession, /) -> Destination:
        """The same one, read and written by another session."""
        ...

    def names_at(self, at: At, schema: str = "main", /) -> Resolver:
        """Resolve the names in a query at a snapshot."""
        ...
