"""The lake: attach it, read and change its tables, query them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast
from weakref import finalize

from penstock.errors import ArgumentError
from penstock.lakes import methods
from penstock.lakes import storage as storages
from penstock.lakes.catalog.catalog import LOCK_TIMEOUT, Catalog
from penstock.lakes.catalog.definitions.stored_sql import load_macros, load_views
from penstock.lakes.catalog.options import load_options
from penstock.lakes.format.files import Table as TableInfo
from penstock.lakes.format.naming import DEFAULT_SCHEMA, LAKES, TableRef, fold
from penstock.lakes.format.objects import ListedFile, Option, View
from penstock.lakes.limits import LIMITS, Limits
from penstock.lakes.maintenance.calls import Maintained
from penstock.lakes.methods import Added, add_data_files
from penstock.lakes.queries.explain import Explanation, explain
from penstock.lakes.queries.resolver import Resolver
from penstock.lakes.queries.running import view_names
from penstock.lakes.recovery.backup import Backup, backup
from penstock.lakes.snapshot import LATEST, At, Moment, Snapshot
from penstock.lakes.statements.session import Current
from penstock.lakes.statements.session import Session as Statements
from penstock.lakes.storage import Storage
from penstock.lakes.table import Table
from penstock.lakes.transaction import Transaction
from penstock.lakes.writing.adding.fit import Rules
from penstock.settings.keys import DIALECTS
from penstock.settings.refused_settings import refuse_others
from penstock.spark.failures import explained
from penstock.spark.session import SparkSource, source
from penstock.sql.dialect import SPARK, hinted, normalized
from penstock.sql.identifiers import quoted
from penstock.sql.macros import Macro

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONS = (
    *("data_path", "override_data_path", "metadata_schema", "create_if_not_exists", "new_catalog"),
    *("read_only", "snapshot_version", "snapshot_time", "lock_timeout", "storage"),
    *("data_inlining_row_limit", "name", "limits"),
)


L = TypeVar("L", bound="Lake")


class Lake(Maintained):
    """A DuckLake: a catalog and, for data, a Spark session. Threads may share it.

    ``at`` is the snapshot that reads see when they name none::

        with Lake.attach("ducklake:sqlite:meta.sqlite", data_path="data", spark=spark) as lake:
            lake.sql("CREATE TABLE orders AS SELECT 1 AS id, 'ada' AS customer")
            lake.sql("SELECT * FROM orders AT (VERSION => 1)").show()
            lake.table("orders").append([{"id": 2, "customer": "grace"}])
            print(lake.snapshots()[-1], [table.name for table in lake.tables()])
    """

    def __init__(
        self,
        catalog: Catalog,
        spark: SparkSource,
        at: At,
        name: str = "lake",
        limits: Limits = LIMITS,
    ) -> None:
        """For `attach`."""
        self.name = name
        self.catalog = catalog
        self.at = at
        self.limits = limits
        self._spark = spark
        self._current = Current()
        self._closing: finalize[[], Lake] | None = None  # of the one that `attach` made

    @classmethod
    def attach(
        cls,
        uri: str,
        *,
        data_path: str | None = None,
        spark: SparkSession | SparkSource | None = None,
        read_only: bool = False,
        snapshot_version: int | None = None,
        snapshot_time: Moment | None = None,
        create_if_not_exists: bool = True,
        override_data_path: bool = False,
        new_catalog: bool = False,
        metadata_schema: str | None = None,
        lock_timeout: float = LOCK_TIMEOUT,
        data_inlining_row_limit: int | None = None,
        name: str = "lake",
        storage: Storage | Mapping[str, object] | None = None,
        limits: Limits = LIMITS,
        **others: object,
    ) -> Lake:
        """Open the lake at ``uri`` (``ducklake:PATH``, ``ducklake:sqlite:PATH``, ...)::

            Lake.attach("ducklake:sqlite:meta.sqlite", data_path="data", read_only=True)

        ``spark`` is a session, or a function that gives one, called when data is first needed;
        without it only the catalog can be used. Session settings that the lake relies on are set.
        A snapshot makes the lake read-only at it. A new catalog is refused over a data path that
        holds files of a lake, whose catalog may have been lost: ``new_catalog`` makes it all the
        same. ``lock_timeout`` is in seconds. Writes of up to ``data_inlining_row_limit`` rows stay
        in the catalog, unless an option of the lake says otherwise. ``name`` is what SQL may call
        the lake (``name.schema.table``, ``CALL name.f()``), as ``ATTACH ... AS`` has it.
        ``storage`` is what the S3 store needs (`penstock.lakes.storage`), ``limits`` bound changes
        of rows without Spark (`penstock.lakes.limits`), ``others`` are DuckDB's refused options.
        """
        refuse_others(others, _OPTIONS)
        at = At.of(snapshot_version, snapshot_time)
        open_catalog = partial(
            Catalog.open,
            uri,
            data_path=data_path,
            read_only=read_only or at != At(),
            create=create_if_not_exists and at == At(),
            metadata_schema=metadata_schema,
            override_data_path=override_data_path,
            lock_timeout=lock_timeout,
            inlining_row_limit=data_inlining_row_limit,
            new_catalog=new_catalog,
        )
        make = partial(cls, at=at, name=name, limits=limits)
        return opened(make, open_catalog, data_path, Storage.of(storage), spark)

    def __repr__(self) -> str:
        return f"Lake({self.name!r}, {str(self.catalog)!r})"

    def with_session(self, session: SparkSession) -> Lake:
        """The same lake, read and written by another session: ``lake.with_session(spark)``.

        DataFrames of two sessions do not mix.
        """
        more = partial(storages.spark_settings, self.catalog.data_path)
        return Lake(self.catalog, source(session, more), self.at, self.name, self.limits)

    @property
    def spark_source(self) -> SparkSource:
        """A function that returns the session, ``lake.spark_source()``, or EnvironmentMissing."""
        return self._spark

    def table(self, name: str) -> Table:
        """A table, ``schema.name`` or ``name`` in ``main``: ``lake.table("orders").exists()``."""
        return self._of(TableRef.parse(name))

    def _of(self, ref: TableRef) -> Table:
        begin, view = self.transaction, self._names().read_view
        return Table(ref, self.catalog, self._spark, self.at, begin, view, self.limits)

    def sql(
        self,
        text: str,
        args: Mapping[str, Any] | None = None,
        views: Mapping[str, DataFrame] | None = None,
        *,
        dialect: str = "spark",
    ) -> DataFrame:
        """Run a query or another statement, or several with ``;`` between; the last one's rows::

            lake.sql("SELECT * FROM orders WHERE id > :least", args={"least": 1}).show()
            lake.sql("CREATE TABLE IF NOT EXISTS visits (id INTEGER)")

        ``args`` are the values of ``:name`` markers. ``views`` are DataFrames that a query may
        name like tables. The answer of a statement other than a query (counts, names) needs no
        Spark, but can be used as a DataFrame. BEGIN opens a transaction for this lake in this
        thread. Text of the ``dialect`` ``duckdb`` is translated to Spark's SQL, or refused with
        UnsupportedFeature where the translation might change its meaning.
        """
        self.catalog.check_open()  # a query may name no table
        return self._run(self._current, text, args, views, dialect)

    def _run(
        self,
        current: Current,
        text: str,
        args: Mapping[str, Any] | None,
        views: Mapping[str, DataFrame] | None,
        dialect: str,
    ) -> DataFrame:
        from penstock.lakes.statements import dispatch  # all statements: many sessions run none

        if dialect not in DIALECTS:
            raise ArgumentError(f"dialect {dialect!r} does not exist", hint="write spark or duckdb")
        session = Statements(
            catalog=self.catalog,
            spark=self._spark,
            at=self.at,
            begin=self.transaction,
            names=lambda transaction: self._names_in(transaction, current.schema),
            current=current,
            args=args or {},
            views=views,
            dialect=dialect,
            lakes=self._called,
        )
        with hinted(text), explained():
            return cast("DataFrame", dispatch.run(session, normalized(text, dialect)))

    def register(
        self,
        spark: SparkSession | None = None,
        *,
        tables: Sequence[str] | None = None,
        prefix: str = "",
        version: int | None = None,
        timestamp: Moment | None = None,
    ) -> dict[str, str]:
        """Make tables and views temporary views of a session, for ``spark.sql`` and
        ``spark.table``::

            lake.register(spark)
            spark.table("orders").show()  # and in texts of its SQL
            spark.table("shop_customers").show()  # shop.customers: a view's name has no dots

        All of them at one snapshot, the latest or the one that is named: register again to see
        later commits, which replaces temporary views of these names. Of ``tables``, or all.
        ``prefix`` is put before each name. Returns the names of the views with what each is of.
        """
        lake = self if spark is None else self.with_session(spark)
        at = self._snapshot_id(version, timestamp)
        refs = [TableRef.parse(each) for each in tables or ()]
        if tables is None:
            refs = [TableRef(each.schema_name, each.name) for each in self.tables(at)]
            refs += [TableRef(each.schema_name, each.name) for each in self.views(at)]
        views = view_names(refs, prefix)
        for name, ref in views.items():
            lake._of(ref).to_df(at).createOrReplaceTempView(quoted(name))
        return {name: str(ref) for name, ref in views.items()}

    def explain(
        self,
        text: str,
        args: Mapping[str, Any] | None = None,
        views: Mapping[str, DataFrame] | None = None,
        *,
        plan: bool = False,
    ) -> Explanation:
        """Return what `sql` would read: how many files and bytes of how many, chosen by which
        conditions::

            print(lake.explain("SELECT * FROM orders WHERE id = 1"))

        With ``plan`` also Spark's plan. Its text (``str()``) is for reading.
        """
        with hinted(text):
            return explain(
                self._names(), normalized(text, SPARK), args=args, views=views, plan=plan
            )

    def transaction(
        self, author: str | None = None, message: str | None = None, extra: str | None = None
    ) -> Transaction:
        """Begin a transaction on the latest snapshot::

            with lake.transaction(author="ada", message="late orders") as tx:
                tx.table("orders").append([{"id": 9, "customer": "ada"}])

        ``author``, ``message`` and ``extra`` are noted with the snapshot that it makes.
        """
        begun = Transaction(
            self.catalog,
            self._spark,
            author=author,
            message=message,
            extra=extra,
            limits=self.limits,
        )
        current = Current()
        current.passed, current.schema = True, self._current.schema

        def runs_sql(
            transaction: Transaction,
            text: str,
            args: Mapping[str, Any] | None,
            views: Mapping[str, DataFrame] | None,
            dialect: str,
        ) -> DataFrame:
            current.transaction = transaction
            return self._run(current, text, args, views, dialect)

        begun.runs_sql = runs_sql
        return begun

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first: ``lake.snapshots()[-1].changes``."""
        return self.catalog.snapshots()

    def schemas(self, version: int | None = None, timestamp: Moment | None = None) -> list[str]:
        """The names of the schemas at a snapshot: ``lake.schemas(version=1)``."""
        return self.catalog.schemas(self._snapshot_id(version, timestamp))

    def tables(
        self, version: int | None = None, timestamp: Moment | None = None
    ) -> list[TableInfo]:
        """The tables at a snapshot, by schema and name: ``lake.tables()[0].name``."""
        return self.catalog.tables(self._snapshot_id(version, timestamp))

    def views(self, version: int | None = None, timestamp: Moment | None = None) -> list[View]:
        """The views at a snapshot, by schema and name: ``lake.views()``. Listing reads none."""
        snapshot_id = self._snapshot_id(version, timestamp)
        with self.catalog.reading() as connection:
            return load_views(connection, snapshot_id)

    def macros(self, version: int | None = None, timestamp: Moment | None = None) -> list[Macro]:
        """The macros at a snapshot, with their parameters and defaults: ``lake.macros()``."""
        snapshot_id = self._snapshot_id(version, timestamp)
        with self.catalog.reading() as connection:
            return load_macros(connection, snapshot_id)

    def options(self) -> list[Option]:
        """Every stored option with its scope: ``lake.options()``."""
        with self.catalog.reading() as connection:
            return load_options(connection)

    def set_option(
        self, key: str, value: object, schema: str | None = None, table: str | None = None
    ) -> None:
        """Set an option: ``lake.set_option("parquet_compression", "zstd", table="orders")``.

        For the lake, a schema or a table; see `penstock.lakes.methods`.
        """
        methods.set_option(self.catalog, key, value, schema=schema, table=table)

    def add_data_files(
        self,
        table: str,
        paths: str | Sequence[str],
        *,
        schema: str | None = None,
        allow_missing: bool = False,
        ignore_extra_columns: bool = False,
        hive_partitioning: bool | None = None,
    ) -> Added:
        """Add Parquet files that exist: ``lake.add_data_files("orders", "more.parquet")``.

        See `penstock.lakes.methods`.
        """
        return add_data_files(
            self.catalog,
            TableRef.parse(table) if schema is None else TableRef(schema, table),
            paths,
            Rules(allow_missing, ignore_extra_columns, hive_partitioning),
        )

    def backup(self, target: str | Path, *, check: bool = False) -> Backup:
        """Copy the catalog, whoever writes meanwhile: ``lake.backup("copy.sqlite")``."""
        return backup(self.catalog, target, check=check)

    def list_files(
        self, name: str, version: int | None = None, timestamp: Moment | None = None
    ) -> list[ListedFile]:
        """The data files of a table with their delete files: ``lake.list_files("orders")``."""
        return self.table(name).list_files(version, timestamp)

    def close(self) -> None:
        """Close the catalog: ``lake.close()``. The Spark session is the caller's."""
        if self._closing is not None:
            self._closing()
        self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _snapshot_id(self, version: int | None, timestamp: Moment | None) -> int:
        at = At.of(version, timestamp)
        return self.catalog.snapshot(self.at if at == LATEST else at).id

    def _names(self, at: At | None = None) -> Resolver:
        at = at or self.at
        return Resolver(self.catalog, self._spark, at, self.transaction, lakes=self._called)

    def names_at(self, at: At, schema: str = DEFAULT_SCHEMA) -> Resolver:
        """A resolver of a query's names at a snapshot, as in ``lake.names_at(lake.at, "shop")``:
        names without a schema are looked up in ``schema``, then in ``main``.
        """
        return replace(self._names(at), path=tuple(dict.fromkeys((schema, DEFAULT_SCHEMA))))

    @property
    def _called(self) -> frozenset[str]:
        return LAKES | {fold(self.name)}

    def _names_in(self, transaction: Transaction | None, schema: str) -> Resolver:
        """A resolver of a statement's names, which sees the changes of its own transaction."""
        at = self.at if transaction is None else At(transaction.base.id)
        return replace(self.names_at(at, schema), transaction=transaction)


def opened(
    make: Callable[..., L],
    open_catalog: Callable[[], Catalog],
    data_path: str | None,
    storage: Storage | None,
    spark: SparkSession | SparkSource | None,
) -> L:
    """Make a lake over its catalog and its store; a failure, or the lake's end, releases both."""
    with ExitStack() as on_error:
        if data_path is not None:  # checked before a new catalog is made
            on_error.callback(storages.hold(data_path, storage))
        catalog = open_catalog()
        on_error.callback(catalog.close)
        more = partial(storages.spark_settings, catalog.data_path)
        lake = make(catalog, source(spark, more))
        if lake.at != At():
            catalog.snapshot(lake.at)  # raises now rather than at the first read
        on_error.callback(storages.hold(catalog.data_path, storage))
        lake._closing = finalize(lake, on_error.pop_all().close)
    return lake
