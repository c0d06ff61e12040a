"""The public class of a lake's table: its rows at any snapshot, and changes of one table each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock.errors import ArgumentError, EnvironmentMissing
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.definitions import tables
from penstock.lakes.catalog.files.feed import Bound, Range
from penstock.lakes.format.files import Table as TableInfo
from penstock.lakes.format.naming import TableRef
from penstock.lakes.format.objects import Description, ListedFile, listed
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.limits import LIMITS, Limits
from penstock.lakes.methods import Added, Altering, add_data_files
from penstock.lakes.reading import feed, scan
from penstock.lakes.reading.arrow_files import read_small
from penstock.lakes.reading.hidden import ROWID, known
from penstock.lakes.reading.hidden import read as read_hidden
from penstock.lakes.recovery.rollback import RolledBack, rollback
from penstock.lakes.rows.change import MergeBuilder, On, RowChange
from penstock.lakes.rows.engine import stage
from penstock.lakes.rows.given import frame_of
from penstock.lakes.snapshot import LATEST, At, Moment, Snapshot, moment
from penstock.lakes.transaction import Staged, Transaction, TransactionTable
from penstock.lakes.writing.adding.fit import Rules
from penstock.lazy import pa
from penstock.spark.failures import explained
from penstock.spark.functions import as_condition
from penstock.spark.pandas_frames import to_pandas
from penstock.spark.session import SparkSource, session_zone
from penstock.sql.dialect import hinted, if_text
from penstock.sql.predicate import of_where
from penstock.sql.text import Predicate

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.lakes.rows.given import Given


Since = int | Moment


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A finished change: its counts, and the snapshot it made; none when it changed nothing."""

    staged: Staged
    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A name in a lake; whether the table exists is checked when it is used.

    ``at`` is the snapshot at which the lake was attached, for reads that name none::

        orders = lake.table("main.orders")
        orders.append([{"id": 3, "customer": "edsger"}])
        orders.update({"customer": "upper(customer)"}, "id = 1")
        orders.delete("id = 2")
        rows = orders.to_df(version=2).collect()
    """

    ref: TableRef
    catalog: Catalog
    spark: SparkSource
    at: At
    begin: Callable[[], Transaction]
    view: Callable[[TableRef, Snapshot], DataFrame | None] | None = None  # reads a view
    limits: Limits = LIMITS

    def __repr__(self) -> str:
        return f"Table({str(self.ref)!r}, {str(self.catalog)!r})"

    def to_df(
        self,
        version: int | None = None,
        timestamp: Moment | None = None,
        where: str | SparkColumn | None = None,
        *,
        row_ids: bool = False,
        hidden: Collection[str] = (),
        predicate: Predicate | None = None,
    ) -> DataFrame:
        """The rows at a snapshot: by id, by time (in force then), or the latest::

            orders.to_df(where="id > 1").show()
            orders.to_df(timestamp="2026-05-16 09:30", row_ids=True).show()

        A time may be a text (``"2026-05-16 09:30"``), and one without a zone is in UTC.
        If ``where`` is a text, files that cannot match it are pruned; ``predicate`` prunes files
        by a condition that the caller applies.

        ``row_ids`` adds the column ``rowid``, which stays the same through updates and
        compactions; ``hidden`` names it and others: ``["filename", "snapshot_id"]``.
        Raises SnapshotNotFound, SchemaNotFound, TableNotFound, UnsupportedFeature, ArgumentError.
        """
        names = known({*hidden, ROWID} if row_ids else hidden)
        with hinted(where), explained(table=str(self.ref)):
            return self._read(version, timestamp, if_text(where), hidden=names, predicate=predicate)

    def _read(
        self,
        version: int | None,
        timestamp: Moment | None,
        where: str | SparkColumn | None,
        *,
        hidden: frozenset[str],
        predicate: Predicate | None,
    ) -> DataFrame:
        at = self._snapshot(version, timestamp)
        if self.view is not None and not hidden and not self._is_there(at):
            rows = self.view(self.ref, at)
            if rows is not None:
                return rows if where is None else rows.where(as_condition(where))
        spark = self.spark()
        if isinstance(where, str) and predicate is None:
            predicate = of_where(where, zone=session_zone(spark))
        source = self._scan(at, predicate)
        df = read_hidden(spark, source, hidden) if hidden else scan.read(spark, source)
        return df if where is None else df.where(as_condition(where))

    def rows_at(self, version: int, predicate: Predicate | None = None) -> scan.Rows:
        """Return what `to_df` reads at a snapshot of a table, not a view, with how Spark reads it:
        ``orders.rows_at(1).df``.

        Raises SnapshotNotFound, SchemaNotFound, TableNotFound, UnsupportedFeature.
        """
        return scan.rows_of(self.spark(), self.scan_at(version, predicate))

    def scan_at(self, version: int, predicate: Predicate | None = None) -> scan.Scan:
        """Return what `to_df` reads at a snapshot of a table, not a view:
        ``orders.scan_at(1).files``.

        Raises SnapshotNotFound, SchemaNotFound, TableNotFound, UnsupportedFeature.
        """
        return self._scan(self.catalog.snapshot(At(version)), predicate)

    def few_rows(self, names: Sequence[str], version: int) -> pa.Table | None:
        """Columns of a small table at a snapshot, without Spark: ``orders.few_rows(["id"], 2)``.

        ``None`` where it has too many rows; see `TransactionTable.few_rows`.
        Raises SnapshotNotFound, SchemaNotFound, TableNotFound.
        """
        return read_small(self.scan_at(version), names, self.limits)

    def to_arrow(
        self,
        version: int | None = None,
        timestamp: Moment | None = None,
        where: str | SparkColumn | None = None,
    ) -> pa.Table:
        """The rows of `to_df` as an Arrow table: ``orders.to_arrow().to_pylist()``.

        Of a small table without a condition Spark is not started.
        """
        small = self._small(version, timestamp) if where is None else None
        if small is not None:
            return small
        with explained(table=str(self.ref)):
            return self.to_df(version, timestamp, where).toArrow()

    def to_pandas(
        self,
        version: int | None = None,
        timestamp: Moment | None = None,
        where: str | SparkColumn | None = None,
    ) -> Any:
        """The rows of `to_arrow` as a frame of pandas: ``orders.to_pandas().describe()``.

        Integers and booleans have pandas' nullable types; decimals, lists and structs have Arrow's.
        Raises EnvironmentMissing where pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise EnvironmentMissing("pandas is not installed", hint="pip install pandas")
        return to_pandas(self.to_arrow(version, timestamp, where))

    def _small(self, version: int | None, timestamp: Moment | None) -> pa.Table | None:
        """The rows without Spark; ``None`` for a view, and where there are too many."""
        at = self._snapshot(version, timestamp)
        if self.view is not None and not self._is_there(at):
            return None
        read = self._scan(at, None)
        return read_small(read, read.schema.names, self.limits)

    def changes(self, from_: Since, to: Since | None = None) -> DataFrame:
        """The changed rows in a range of snapshots; see `penstock.lakes.reading.feed`::

            orders.changes(2, 4).where("change_type = 'delete'").show()

        ``from_`` and ``to`` are ids of snapshots or times (also as texts), both inclusive; without
        ``to`` the range ends with the latest snapshot. Raises ArgumentError where ``from_`` is the
        later, SnapshotNotFound, SchemaNotFound, TableNotFound.
        """
        return feed.changes(self.spark(), self.catalog, self.ref, *self._range(from_, to))

    def changed_rows(self, after: int, until: int, *, only_new: bool = False) -> feed.FinalRows:
        """The rows that changed after a snapshot, each once, as it is at a later one:
        ``orders.changed_rows(2, 4).df``.

        Raises SnapshotNotFound, TableNotFound.
        """
        first = min(after + 1, until)  # where nothing was committed since, the last is read again
        rows = feed.final_rows(
            self.spark(), self.catalog, self.ref, first, until, only_new=only_new
        )
        return rows if after < until else replace(rows, df=rows.df.limit(0))

    def images(self, after: int, until: int, only: Collection[int] | None = None) -> feed.Images:
        """The rows that changed after a snapshot up to another, before and after, with their ids:
        ``orders.images(2, 4).before``.

        Of ``only`` some snapshots' changes, if they are given. Raises SnapshotNotFound,
        TableNotFound.
        """
        within = Range(after + 1, self._snapshot(until, None).id)
        return feed.images(self.spark(), self.catalog, self.ref, within, only)

    def insertions(self, from_: Since, to: Since | None = None) -> DataFrame:
        """The new rows, by inserts and updates alike: ``orders.insertions(2, 4).show()``."""
        return feed.insertions(self.spark(), self.catalog, self.ref, *self._range(from_, to))

    def deletions(self, from_: Since, to: Since | None = None) -> DataFrame:
        """The removed rows, by deletes and updates alike: ``orders.deletions(2, 4).show()``."""
        return feed.deletions(self.spark(), self.catalog, self.ref, *self._range(from_, to))

    def _range(self, from_: Since, to: Since | None) -> tuple[Bound, Bound]:
        return _range(from_, self._snapshot(None, None).id if to is None else to)

    @property
    def schema(self) -> TableSchema:
        """The columns now: ``orders.schema.names``. Raises TableNotFound."""
        return self.info().schema

    def info(self, version: int | None = None, timestamp: Moment | None = None) -> TableInfo:
        """The catalog's metadata of the table at a snapshot: ``orders.info().partition_by``."""
        return self._info(self._snapshot(version, timestamp))

    def exists(self, version: int | None = None, timestamp: Moment | None = None) -> bool:
        """Return whether the table exists at a snapshot: ``orders.exists(version=1)``."""
        return self._is_there(self._snapshot(version, timestamp))

    def describe(self, version: int | None = None, timestamp: Moment | None = None) -> Description:
        """Comments, tags and sort keys at a snapshot: ``orders.describe()``."""
        snapshot = self._snapshot(version, timestamp)
        info = self._info(snapshot)
        with self.catalog.reading() as connection:
            return tables.describe(connection, info, snapshot.id)

    def list_files(
        self, version: int | None = None, timestamp: Moment | None = None
    ) -> list[ListedFile]:
        """The data files at a snapshot with their delete files: ``orders.list_files(version=2)``.

        A file with several delete files is listed once for each.
        """
        at = self._snapshot(version, timestamp)
        return listed(self.catalog.files(self._info(at), at.id).files)

    def append(self, df: Given, *, partition_by: str | Sequence[str] = ()) -> WriteResult:
        """Add rows in a transaction of their own; the table is created when it is missing::

            orders.append([{"id": 3, "customer": "edsger"}])

        ``df`` is a DataFrame of Spark, a list of dicts, or what has Arrow's interface: frames of
        pandas and polars, relations of DuckDB, Arrow tables. Those need no Spark where the table
        exists; dicts do not create it.
        """
        return self._alone(lambda table: table.append(df, partition_by=partition_by))

    def replace(self, df: Given, *, partition_by: str | Sequence[str] = ()) -> WriteResult:
        """Another name of `overwrite` without a condition: ``orders.replace(df)``."""
        return self.overwrite(df, partition_by=partition_by)

    def replace_slice(self, df: Given, column: str, value: object) -> WriteResult:
        """Replace the rows whose ``column`` is ``value``: ``orders.replace_slice(df, "id", 3)``."""
        return self._alone(lambda table: table.replace_slice(df, column, value))

    def overwrite(
        self,
        df: Given,
        where: str | SparkColumn | None = None,
        *,
        partition_by: str | Sequence[str] = (),
    ) -> WriteResult:
        """Replace the rows that satisfy ``where`` by ``df``, or the whole table without it::

            orders.overwrite(df, "id > 2")

        Without a condition the table gets the columns of ``df`` and the partitioning
        ``partition_by``, if it is set. With a condition the columns stay, and all rows of ``df``
        must satisfy it: QueryFailed shows a row that does not.
        """
        return self._alone(lambda table: table.overwrite(df, where, partition_by=partition_by))

    def delete(self, where: str | SparkColumn | None = None) -> WriteResult:
        """Delete the rows that satisfy ``where``, all without it: ``orders.delete("id = 2")``."""
        return self._alone(lambda table: table.delete(where))

    def update(
        self,
        set: Mapping[str, object],  # noqa: A002 - SQL's word, and Delta's
        where: str | SparkColumn | None = None,
    ) -> WriteResult:
        """Give the rows that satisfy ``where`` (all without it) new values; row ids stay::

            orders.update({"customer": "upper(customer)", "id": 7}, where="id = 1")

        ``set`` has them by column or ``struct.field``: SQL text, a Column, or a value other than a
        string. All of them see the old rows.
        """
        return self._alone(lambda table: table.update(set, where))

    def merge(self, df: Given, keys: str | Sequence[str]) -> WriteResult:
        """Update the rows whose keys ``df`` has, insert its others: ``orders.merge(df, "id")``.

        A text is one key, several are a list.
        """
        return self._alone(lambda table: table.merge(df, keys))

    @property
    def alter(self) -> Altering:
        """Changes of the table's definition: ``orders.alter.add_column("note", "varchar")``."""
        return Altering(self._defined)

    def merge_into(
        self,
        source: Given,
        on: str | SparkColumn,
        *,
        target_alias: str = "t",
        source_alias: str = "s",
    ) -> MergeBuilder[WriteResult]:
        """A MERGE by any condition: add clauses to what this returns, then ``execute()`` it::

            merge = orders.merge_into(df, "t.id = s.id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()

        Conditions and values name the sides by their aliases. Of the clauses of a kind the first
        whose condition is true applies to a row.
        """
        change = RowChange(On.of(on, target_alias, source_alias))

        def execute(whole: RowChange) -> WriteResult:
            def staged(table: TransactionTable) -> Staged:
                return stage(table, replace(whole, source=frame_of(table, source, alike=True)))

            return self._alone(staged)

        return MergeBuilder(change, execute)

    def add_data_files(
        self,
        paths: str | Sequence[str],
        *,
        allow_missing: bool = False,
        ignore_extra_columns: bool = False,
        hive_partitioning: bool | None = None,
    ) -> Added:
        """Add Parquet files that exist, in one commit: ``orders.add_data_files("more.parquet")``.

        See `penstock.lakes.methods`.
        """
        return add_data_files(
            self.catalog,
            self.ref,
            paths,
            Rules(allow_missing, ignore_extra_columns, hive_partitioning),
        )

    def rollback(self, version: int | None = None, timestamp: Moment | None = None) -> RolledBack:
        """Restore the table's state at a snapshot as a new one: ``orders.rollback(2)``."""
        return rollback(self.catalog, self.ref, version, timestamp)

    def _snapshot(self, version: int | None, timestamp: Moment | None) -> Snapshot:
        """The requested snapshot, or else the one at which the lake is attached."""
        at = At.of(version, timestamp)
        return self.catalog.snapshot(self.at if at == LATEST else at)

    def _scan(self, at: Snapshot, predicate: Predicate | None) -> scan.Scan:
        info = self._info(at)
        files = self.catalog.files(info, at.id, predicate)
        return scan.Scan(str(self.ref), info.schema, files, at.id)

    def _is_there(self, at: Snapshot) -> bool:
        return self.catalog.known_table(self.ref.schema, self.ref.name, at) is not None

    def _info(self, at: Snapshot) -> TableInfo:
        schema, name = self.ref.schema, self.ref.name
        return self.catalog.known_table(schema, name, at) or self.catalog.table(schema, name, at.id)

    def _defined(self, stage: Callable[[TransactionTable], None]) -> Snapshot | None:
        transaction = self.begin()
        try:
            stage(transaction.table(str(self.ref)))
        except BaseException:
            transaction.rollback()
            raise
        return transaction.commit()

    def _alone(self, stage: Callable[[TransactionTable], Staged]) -> WriteResult:
        transaction = self.begin()
        try:
            staged = stage(transaction.table(str(self.ref)))
        except BaseException:
            transaction.rollback()
            raise
        return WriteResult(staged, transaction.commit())


def _range(from_: Since, to: Since) -> tuple[Bound, Bound]:
    """The bounds of a range. Raises ArgumentError for two of a kind in the wrong order."""
    first, last = (bound if isinstance(bound, int) else moment(bound) for bound in (from_, to))
    if isinstance(first, int) == isinstance(last, int) and first > last:  # type: ignore[operator]
        raise ArgumentError(
            f"nothing lies between {from_} and {to}: the first is the later",
            hint=f"give the earlier one first: ({to!r}, {from_!r})",
        )
    return first, last
