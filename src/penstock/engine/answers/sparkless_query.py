"""Queries of small published tables, answered by Arrow on the driver; others fall back to Spark,
whose first rows are collected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.engine.results import QueryResult
from penstock.errors import ArgumentError, PenstockError
from penstock.model.definition.model import Model
from penstock.model.time.interval import Intervals
from penstock.model.time.moments import read_range
from penstock.model.values.asset import DEFAULT_SCHEMA, Names, TableName, UnknownName
from penstock.model.values.strategy import Output
from penstock.settings.config import Settings
from penstock.sql.dialect import DUCKDB, SPARK, normalized
from penstock.sql.identifiers import TableRef
from penstock.sql.plain_select import PlainSelect, plain_select

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lakes.catalog.catalog import Catalogs


@dataclass(frozen=True, slots=True)
class SmallReads:
    """``limit`` is how many rows are shown, at most; ``moved`` are tables that are elsewhere."""

    settings: Settings
    catalogs: Catalogs
    limit: int
    moved: Mapping[str, TableName] = field(default_factory=dict)

    def query(self, text: str, lake: str | None, dialect: str = SPARK) -> QueryResult | None:
        """The rows of a query over the project's tables, or over those of one lake.

        ``None`` where Spark has to answer, or to report an error.
        """
        is_duckdb = dialect == DUCKDB
        select = _plain_duckdb(text) if is_duckdb else plain_select(normalized(text, SPARK))
        if select is None:
            return None
        try:
            table = self._table(select.table, lake)
        except UnknownName:
            return None
        return self._answer(table, select)

    def table(self, table: TableName, slice_: str | None) -> QueryResult | None:
        """The rows of a published table, or of its slice of this value."""
        column = self.settings.lakes[table.lake].partition_column
        place = None if slice_ is None else (column, slice_)
        return self._answer(table, PlainSelect((table.table,)), place)

    def _table(self, parts: tuple[str, ...], lake: str | None) -> TableName:
        names = Names(tuple(self.settings.lakes), self.settings.default_lake, moved=self.moved)
        if lake is None:
            return names.resolve(parts)
        if len(parts) > 1 and names.lake(parts[0]) is not None:
            raise UnknownName(parts[0], "Lake.sql knows what it means")
        return replace(names, use=(lake, DEFAULT_SCHEMA)).resolve(parts)

    def _answer(
        self, table: TableName, select: PlainSelect, place: tuple[str, str] | None = None
    ) -> QueryResult | None:
        master = self.settings.spark.master
        if master is not None and not master.startswith("local"):
            return None  # a session would have settings besides those of penstock.toml and ours
        catalog = self.catalogs(table.lake)
        if catalog is None:
            return None
        from penstock.lakes.queries import sparkless  # loads Arrow

        asked = self.limit + 1 if select.limit is None else min(select.limit, self.limit + 1)
        answer = sparkless.read_small_table(
            catalog,
            TableRef(table.schema, table.table),
            replace(select, limit=asked),
            self.settings.spark.conf,
            slice_=place,
        )
        if answer is None:
            return None
        return QueryResult(
            answer.columns, tuple(answer.rows[: self.limit]), len(answer.rows) > self.limit
        )


def _plain_duckdb(text: str) -> PlainSelect | None:
    """Return a plain SELECT of DuckDB's dialect, its condition in Spark's SQL."""
    select = plain_select(text, DUCKDB)
    if select is None or select.where is None:
        return select
    # Late: the translator is large.
    from penstock.sql.duckdb.translate import translate

    try:
        return replace(select, where=translate(select.where, expression=True))
    except PenstockError:  # which Spark's way reports
        return None


def require_published(model: Model, catalogs: Catalogs) -> None:
    """Raise ArgumentError where there is no table of the model's yet."""
    catalog, target = catalogs(model.target.lake), model.target
    if model.strategy.output is Output.FILES:
        raise ArgumentError(f"{model.name} makes files and no table", hint=f"they are {target}")
    if catalog is None or not catalog.known_table(target.schema, target.table, catalog.latest()):
        raise ArgumentError(
            f"{model.name} has published no table yet: there is no {target}",
            hint=f"run it first: penstock run --select {model.name}",
        )


def rows_by_time(model: Model, moment: str) -> Intervals:
    """The intervals of a model by time that a moment, or a date, is in. Raises ArgumentError where
    the rows of its table are not those of intervals."""
    by_time = model.by_time
    assert by_time is not None, "asked of others"
    if by_time.column is None:
        raise ArgumentError(
            f"{model.name} reads by intervals, and the rows of its table belong to none",
            hint=f"leave out --partition: penstock preview {model.name} --table",
        )
    return by_time.whole((read_range(moment, moment, datetime.now(UTC)),))


def collected(
    frame: DataFrame,
    limit: int,
    placed: Callable[[PenstockError], PenstockError] | None = None,
) -> QueryResult:
    """The first rows of a DataFrame. One more is asked for, to know whether there are more.

    Raises QueryFailed: most errors of Spark are raised only now. ``placed`` adds their place in
    the script.
    """
    from penstock.spark.failures import explained

    try:
        with explained():
            rows = [tuple(row) for row in frame.limit(limit + 1).collect()]
            columns = tuple((name, kind) for name, kind in frame.dtypes)
    except PenstockError as error:
        if placed is None:
            raise
        raise placed(error) from error.__cause__
    return QueryResult(columns, tuple(rows[:limit]), len(rows) > limit)
