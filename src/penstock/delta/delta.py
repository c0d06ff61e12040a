"""A root of Delta tables: ``root/schema/table`` for each, found by listing and named in queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self
from weakref import finalize

from penstock.delta.commit import require_deltalake
from penstock.delta.log_files import find_tables
from penstock.delta.merge import Action, Clause, Kind
from penstock.delta.place import Place
from penstock.delta.table import Table
from penstock.errors import ArgumentError, LakeClosed, TableNotFound, UnsupportedFeature
from penstock.lakes import storage as storages
from penstock.lakes.queries.rewriters import CommitContext, Rows, Wanted
from penstock.lakes.snapshot import LATEST
from penstock.lakes.storage import Storage
from penstock.spark.session import SparkSource, source
from penstock.sql.identifiers import DEFAULT_SCHEMA, TableRef, fold, quote_identifier
from penstock.sql.lake_functions import Arguments
from penstock.sql.tables import Analysis
from penstock.sql.tokens import SqlText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class DeltaNames:
    """Names of a root that SQL calls ``name``; ``place`` gives a table's place."""

    name: str
    place: Callable[[str], Place]

    def read(self, wanted: Wanted) -> Rows:
        """The rows of a table. Raises TableNotFound, SnapshotNotFound, UnsupportedFeature."""
        named = wanted.reference
        if named.catalog is not None and fold(named.catalog) != fold(self.name):
            raise TableNotFound(
                f"{named.catalog} does not exist: this root is called {self.name}",
                hint=f"write {named.schema}.{named.name}",
                data={"table": named.name},
            )
        parts = (named.schema or DEFAULT_SCHEMA, named.name)
        place = self.place(".".join(map(quote_identifier, parts)))
        at = wanted.at or LATEST
        version = place.at(at.version, at.timestamp)
        return Rows(place.read(version, wanted.predicate))

    def functions(self) -> Collection[str]:
        return ()

    def call(self, name: str, before: tuple[str, ...], arguments: Arguments) -> DataFrame:  # noqa: ARG002 - of the protocol
        raise AssertionError(f"{name} is none of functions()")

    def answer(self, analysis: Analysis, context: CommitContext) -> DataFrame | None:  # noqa: ARG002 - of the protocol
        return None

    def expanded(self, text: str) -> SqlText:
        return SqlText(text)


# Methods of a table by the statement that does the same.
_METHODS: Mapping[str, str] = {
    "insert": "append(rows)",
    "update": 'update({"column": "expression"}, "condition")',
    "delete": 'delete("condition")',
    "merge": 'merge(rows, ["key"])',
    "create": "create(rows)",
}


class Delta:
    """The Delta tables below a directory or a URI of S3. Threads may share it::

    delta = Delta.attach("warehouse", spark=spark)
    delta.table("shop.orders").append(df)
    print(delta.tables(), delta.table("shop.orders").to_df(version=0).count())
    """

    def __init__(
        self,
        root: str,
        spark: SparkSource,
        name: str,
        release: Callable[[], None] | None = None,
        listed: dict[str, str] | None = None,
    ) -> None:
        """For `attach`."""
        self.root = root
        self.name = name
        self._spark = spark
        self._listed = listed  # names as they are spelled, by how they are compared
        self._lock = Lock()
        self._closing = None if release is None else finalize(self, release)

    @classmethod
    def attach(
        cls,
        root: str | Path,
        *,
        spark: SparkSession | SparkSource | None = None,
        storage: Storage | Mapping[str, object] | None = None,
        name: str = "delta",
    ) -> Delta:
        """Open the root, which need not exist: ``Delta.attach("s3://bucket/tables")``.

        ``spark`` is a session, or a function that gives one, called when rows are first needed.
        ``storage`` is what the S3 store needs (`penstock.lakes.storage`). Raises EnvironmentMissing
        where the package deltalake is not installed.
        """
        require_deltalake()
        where = _root(root)
        release = storages.hold(where, Storage.of(storage))
        more = partial(storages.spark_settings, where)
        return cls(where, source(spark, more), name, release)

    def __repr__(self) -> str:
        return f"Delta({self.name!r}, {self.root!r})"

    def with_session(self, session: SparkSession) -> Delta:
        """The same root, read and written by another session: ``delta.with_session(spark)``."""
        more = partial(storages.spark_settings, self.root)
        return Delta(self.root, source(session, more), self.name, listed=self._known())

    @staticmethod
    def when(
        kind: Kind,
        action: Action,
        condition: str | None = None,
        assignments: Mapping[str, str] | None = None,
    ) -> Clause:
        """A clause of a merge: ``Delta.when("matched", "delete", "source.cancelled")``.

        ``kind`` is ``matched``, ``not_matched`` or ``not_matched_by_source``; ``action`` is
        ``update``, ``insert`` or ``delete``. Without assignments all columns are set.
        """
        return Clause(kind, action, condition, assignments)

    def tables(self) -> list[str]:
        """The names of the tables, sorted: ``delta.tables()``. They are listed once."""
        return sorted(self._known().values())

    def refresh(self) -> None:
        """List the tables again when they are next asked for: ``delta.refresh()``."""
        with self._lock:
            self._listed = None

    def table(self, name: str) -> Table:
        """A table, ``schema.name`` or ``name`` in ``main``: ``delta.table("shop.orders")``."""
        return Table(self.place(name), self.add)

    def place(self, name: str) -> Place:
        """The place of a table, which need not exist: ``delta.place("shop.orders").uri``.

        A name that differs from that of a table only in letter case is that table's.
        """
        self._check_open()
        ref = TableRef.parse(name)
        for part in (ref.schema, ref.name):
            if "/" in part or part.startswith((".", "_")):
                raise ArgumentError(
                    f"{name!r} is not the name of a Delta table",
                    hint="the parts are directories: without /, and not beginning with . or _",
                )
        spelled = f"{ref.schema}.{ref.name}"
        known = self._listed or {}
        spelled = known.get(fold(spelled), spelled)
        schema, _, table = spelled.partition(".")
        return Place(spelled, f"{self.root}/{schema}/{table}", self._spark)

    def sql(
        self,
        text: str,
        args: Mapping[str, Any] | None = None,
        views: Mapping[str, DataFrame] | None = None,
    ) -> DataFrame:
        """The rows of a SELECT over the tables, and over DataFrames that ``views`` names::

            delta.sql("SELECT * FROM shop.orders VERSION AS OF 0 WHERE id > :least", {"least": 1})

        ``delta.shop.orders`` names a table with the root before it. Rows are changed by methods of
        the table. Raises QueryFailed, UnsupportedFeature and others.
        """
        from penstock.lakes.queries.running import run
        from penstock.sql.tables import analyse

        self._check_open()
        try:
            analyse(text)  # before a session is started for it
        except UnsupportedFeature as error:
            method = _METHODS.get(error.data.get("statement", ""))
            if method is not None:
                error.hint = f'use delta.table("schema.name").{method}'
            raise
        return run(self._spark(), text, DeltaNames(self.name, self.place), args=args, views=views)

    def add(self, name: str) -> None:
        """Note a table that was made: ``delta.add("shop.orders")``."""
        with self._lock:
            if self._listed is not None:
                self._listed[fold(name)] = name

    def close(self) -> None:
        """Let go of the store's settings: ``delta.close()``. The session is the caller's."""
        if self._closing is not None:
            self._closing()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    _closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise LakeClosed(f"{self!r} is closed", hint="attach it again")

    def _known(self) -> dict[str, str]:
        self._check_open()
        with self._lock:
            if self._listed is None:
                self._listed = {fold(name): name for name in find_tables(self.root)}
            return self._listed


def _root(root: str | Path) -> str:
    text = str(root)
    if storages.is_remote(text):
        return text.rstrip("/")
    return str(Path(text).absolute())
