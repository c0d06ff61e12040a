"""The context of a statement (lake, open transaction, arguments, DataFrames), and its answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import LakeError, NotFound, PenstockError, UnsupportedFeature
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.definitions.stored_sql import load_macros
from penstock.lakes.format.naming import DEFAULT_SCHEMA, LAKES, TableRef, fold, quote_identifier
from penstock.lakes.queries import running as queries
from penstock.lakes.queries.rewriters import View
from penstock.lakes.snapshot import At
from penstock.lakes.transaction import Transaction
from penstock.spark.session import SparkSource, may_start, session_zone, starts_plain
from penstock.sql.statement import TableName
from penstock.sql.text import Composed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from penstock.lakes.queries.resolver import Resolver


_FAILED = "a statement of the transaction failed; ROLLBACK ends it and undoes its changes"


class Current(threading.local):
    """The transaction that BEGIN opened in this thread, and whether a statement of it failed."""

    def __init__(self) -> None:
        super().__init__()
        self.transaction: Transaction | None = None
        self.failed = False
        self.schema = DEFAULT_SCHEMA  # of names without one: that of USE
        self.passed = False  # the transaction belongs to a Transaction object, which ends it

    def clear(self) -> None:
        self.transaction, self.failed = None, False


@dataclass(frozen=True, slots=True)
class Session:
    """For one call of `Lake.sql`. ``names`` says what names mean, inside a transaction if any."""

    catalog: Catalog
    spark: SparkSource
    at: At
    begin: Callable[[], Transaction]
    names: Callable[[Transaction | None], Resolver]
    current: Current
    args: Mapping[str, Any] = field(default_factory=dict)
    views: Mapping[str, DataFrame] | None = None
    dialect: str = "spark"  # of the text: `translated` makes Spark's of it
    lakes: frozenset[str] = LAKES  # what the lake is called, folded

    @property
    def spark_source(self) -> SparkSource:
        """For maintenance, which needs a session only for large files."""
        return self.spark

    @property
    def transaction(self) -> Transaction | None:
        """The open transaction. Raises LakeError when a statement of it failed."""
        if self.current.failed:
            raise LakeError("the transaction has failed", hint="ROLLBACK ends it")
        return self.current.transaction

    @property
    def open_transaction(self) -> Transaction | None:
        """For maintenance, which compacts within it."""
        return self.transaction

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """The open transaction, or one of the statement's own, which commits at the end."""
        transaction = self.transaction
        if transaction is None:
            own = self.begin()
            try:
                yield own
            except BaseException:
                own.rollback()
                raise
            own.commit()
            return
        try:
            with transaction.all_or_nothing():
                yield transaction
        except BaseException as error:
            # A Transaction object continues with what other statements did, and one of BEGIN where
            # there are none, or where DuckDB's binder would have refused the statement.
            refused = isinstance(error, NotFound | UnsupportedFeature)
            if self.current.passed or refused or not transaction.has_changes:
                raise
            self.current.failed = True
            if isinstance(error, PenstockError):
                error.hint = f"{error.hint}; {_FAILED}" if error.hint else _FAILED
            raise

    def query(self, text: str, views: Mapping[str, View] | None = None) -> DataFrame:
        """The rows of a SELECT, in the transaction if one is open."""
        named = {**(self.views or {}), **(views or {})}
        names = self.names(self.transaction)
        asked = queries.read_query(text, names)
        self._require_names(asked, names, named)
        return queries.run(self.spark(), asked, names, args=self.args, views=named)

    def require_names(self, text: Composed, known: Collection[str] = ()) -> None:
        """Raise what a SELECT made of parts of a statement certainly raises, before Spark starts.

        ``known`` are names of its tables besides those of the lake.
        """
        if not self._may_start:
            return
        with text.places():
            names = self.names(self.transaction)
            asked = queries.read_query(text.text, names)
            self._require_names(asked, names, {*known, *(self.views or {})})

    @property
    def _may_start(self) -> bool:
        """Return whether Spark may still have to start, so that it is worth to look before."""
        return may_start(self.spark) and self.current.transaction is None

    def _require_names(
        self, asked: queries.ReadQuery, names: Resolver, known: Collection[str]
    ) -> None:
        if self._may_start:
            names.require_names(asked, self.args, known, functions=starts_plain(self.spark))

    def asked(self, text: Composed, views: Mapping[str, View]) -> DataFrame:
        """The rows of a SELECT made of parts of a statement, in which errors get their place."""
        with text.places():
            return self.query(text.text, views)

    def macro_names(self) -> set[str]:
        """``main.f`` of every macro, folded."""
        with self.catalog.reading() as connection:
            macros = load_macros(connection, self.snapshot_id())
        return {fold(macro.qualified_name) for macro in macros}

    def zone(self) -> str:
        """The zone of times without one; UTC while there is no session."""
        return session_zone(self.spark())

    def has_schema(self, name: str) -> bool:
        """Return whether the schema exists in the transaction."""
        if self.current.transaction is not None:
            return self.current.transaction.has_schema(name)
        return fold(name) in map(fold, self.catalog.schemas(self.snapshot_id()))

    def ref(self, table: TableName, *, new: bool = False) -> TableRef:
        """The table that a name means, or for ``new`` will mean once it is created.

        The lake's name before it is ignored, unless a schema has that name.
        """
        before = table.before
        if before and (fold(before[0]) not in self.lakes or self.has_schema(before[0])):
            return TableRef(before[0], table.name)
        schema = self.current.schema if new else self.schema_with(table.name)
        return TableRef(schema, table.name)

    def schema_with(self, name: str) -> str:
        """The schema of a table or view that is named without one: the current one, or ``main``."""
        current = self.current.schema
        if fold(current) != DEFAULT_SCHEMA:
            names = self.names(self.transaction)
            for schema in (current, DEFAULT_SCHEMA):
                with suppress(NotFound):
                    names.require(TableRef(schema, name))
                    return schema
        return current

    def snapshot_id(self) -> int:
        """The snapshot for reads: the transaction's, or the one that the lake is attached at."""
        transaction = self.transaction
        return self.catalog.snapshot(self.at).id if transaction is None else transaction.base.id


def name_of(ref: TableRef) -> str:
    """The name as `Transaction` expects it, in quotes."""
    return f"{quote_identifier(ref.schema)}.{quote_identifier(ref.name)}"


COUNTS = (
    *("num_affected_rows", "num_updated_rows"),
    *("num_deleted_rows", "num_inserted_rows"),
)


_SHOWN = 20  # rows of a repr


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """Rows instead of a DataFrame, as most uses of a result need no Spark.

    For everything else a DataFrame is created at the first use. ``types`` are Spark's names.
    """

    columns: list[str]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    spark: SparkSource

    def to_df(self) -> DataFrame:
        """The same as a DataFrame of the session."""
        pairs = zip(self.columns, self.types, strict=True)
        schema = ", ".join(f"`{name}` {kind}" for name, kind in pairs)
        if not schema:
            from pyspark.sql.types import StructType

            return self.spark().createDataFrame([], StructType([]))
        return self.spark().createDataFrame(list(self.rows), schema)

    def collect(self) -> list[Row]:
        from pyspark.sql import Row

        make = Row(*self.columns)
        return [make(*row) if self.columns else Row() for row in self.rows]

    def first(self) -> Row | None:
        rows = self.collect()
        return rows[0] if rows else None

    def count(self) -> int:
        return len(self.rows)

    def limit(self, number: int) -> Answer:
        return Answer(self.columns, self.types, self.rows[:number], self.spark)

    def toLocalIterator(self) -> Iterator[Row]:  # noqa: N802 - as a DataFrame has it
        return iter(self.collect())

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return list(zip(self.columns, (kind.lower() for kind in self.types), strict=True))

    def __repr__(self) -> str:
        shown = (dict(zip(self.columns, row, strict=True)) for row in self.rows[:_SHOWN])
        more = ", ..." if len(self.rows) > _SHOWN else ""
        return f"[{', '.join(map(repr, shown))}{more}]"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what notebooks ask for before they show it starts no Spark
            raise AttributeError(name)
        return getattr(self.to_df(), name)

    def __getitem__(self, item: Any) -> Any:
        return self.to_df()[item]


def nothing(spark: SparkSource) -> Answer:
    """The answer of a statement without rows."""
    return Answer([], (), (), spark)


def counts(spark: SparkSource, *, updated: int = 0, deleted: int = 0, inserted: int = 0) -> Answer:
    """The rows that a statement changed, as Delta names them."""
    row = (updated + deleted + inserted, updated, deleted, inserted)
    return Answer(list(COUNTS), ("long",) * 4, (row,), spark)


def table(spark: SparkSource, columns: str, rows: Sequence[tuple[Any, ...]]) -> Answer:
    """Rows under columns written as in ``name STRING, count LONG``."""
    pairs = [column.strip().split(" ", 1) for column in columns.split(",")]
    names, types = [pair[0] for pair in pairs], tuple(pair[1].lower() for pair in pairs)
    return Answer(names, types, tuple(rows), spark)
