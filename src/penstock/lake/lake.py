"""The lake: attach it, read and change its tables, query them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from penstock.lake import queries
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.files import Table as TableInfo
from penstock.lake.naming import DEFAULT_SCHEMA, TableRef
from penstock.lake.rewriters import Wanted
from penstock.lake.session import SparkSource, source
from penstock.lake.snapshot import At, Snapshot
from penstock.lake.table import Table
from penstock.lake.transaction import Transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Lake:
    """A DuckLake: a catalog and, for data, a Spark session. Threads may share it.

    ``at`` is the snapshot that reads see when they name none.
    """

    def __init__(self, catalog: Catalog, spark: SparkSource, at: At) -> None:
        """For `attach`."""
        self.catalog = catalog
        self.at = at
        self._spark = spark

    @classmethod
    def attach(
        cls,
        uri: str,
        *,
        data_path: str | None = None,
        spark: SparkSession | SparkSource | None = None,
        read_only: bool = False,
        snapshot_version: int | None = None,
        snapshot_time: datetime | None = None,
        create_if_not_exists: bool = True,
        override_data_path: bool = False,
        metadata_schema: str | None = None,
    ) -> Lake:
        """Open the lake at ``uri`` (``ducklake:sqlite:PATH``, ``ducklake:postgres:...``).

        ``spark`` is a session, or a function that gives one, called when data is first needed;
        without it only the catalog can be used. A snapshot makes the lake read-only at it.
        The session's runtime settings that the lake relies on are set (`lake.session`).
        """
        at = At(snapshot_version, snapshot_time)
        pinned = at != At()
        catalog = Catalog.open(
            uri,
            data_path=data_path,
            read_only=read_only or pinned,
            create=create_if_not_exists and not pinned,
            metadata_schema=metadata_schema,
            override_data_path=override_data_path,
        )
        if pinned:
            catalog.snapshot(at)  # raises now rather than at the first read
        return cls(catalog, source(spark), at)

    def table(self, name: str) -> Table:
        """The table ``schema.name``, or ``name`` in ``main``."""
        return Table(TableRef.parse(name), self.catalog, self._spark, self.at, self.transaction)

    def sql(
        self,
        text: str,
        args: Mapping[str, Any] | None = None,
        views: Mapping[str, DataFrame] | None = None,
    ) -> DataFrame:
        """Run one SELECT over the lake's tables; see `penstock.lake.queries`.

        ``args`` are the values of ``:name`` markers. ``views`` are DataFrames that the query may
        name like tables.
        """
        return queries.run(self._spark(), text, self, args=args, views=views)

    def transaction(
        self, author: str | None = None, message: str | None = None, extra: str | None = None
    ) -> Transaction:
        """Begin a transaction on the latest snapshot."""
        return Transaction(self.catalog, self._spark, author=author, message=message, extra=extra)

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first."""
        return self.catalog.snapshots()

    def schemas(self, at: At | None = None) -> list[str]:
        return self.catalog.schemas(self.catalog.snapshot(at or self.at).id)

    def tables(self, at: At | None = None) -> list[TableInfo]:
        """The tables at a snapshot, by schema and name."""
        return self.catalog.tables(self.catalog.snapshot(at or self.at).id)

    def close(self) -> None:
        """Close the catalog. The Spark session is the caller's."""
        self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def read(self, wanted: Wanted) -> DataFrame:
        """What a name in a query means: for `penstock.lake.queries`."""
        ref = TableRef(wanted.reference.schema or DEFAULT_SCHEMA, wanted.reference.name)
        at = wanted.at or self.at
        return Table(ref, self.catalog, self._spark, at, self.transaction).to_df()
