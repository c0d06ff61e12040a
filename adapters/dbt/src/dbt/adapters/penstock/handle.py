"""A connection's handle: statements against the lakes, temporary relations, one transaction.

What dbt does between BEGIN and COMMIT is one transaction of a lake, so a model is one snapshot with
its hooks, its rows and its comments, or nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.penstock import information_schema, texts
from dbt.adapters.penstock.batches import Batch
from dbt.adapters.penstock.lakes import Lakes
from dbt.adapters.penstock.types import answer_columns, described
from penstock.errors import PenstockError, UnsupportedFeature
from penstock.lakes.lake import Lake
from penstock.lakes.statements.dispatch import first_word
from penstock.lakes.transaction import Transaction
from penstock.spark.failures import explained
from penstock.spark.functions import run_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = AdapterLogger("Penstock")

Columns = list[tuple[str, str]]
_COUNTS = "num_affected_rows"
_FOREIGN = "__penstock_lake_"  # before the names of other lakes' tables in a query

_FILES = "__penstock_files_"
_INFORMATION = "__penstock_information_"


@dataclass(frozen=True, slots=True)
class Origin:
    """What a snapshot says of the dbt that made it."""

    author: str = "dbt"
    message: str | None = None
    extra: str | None = None

    def arguments(self) -> dict[str, str | None]:
        """The arguments of `Lake.transaction`."""
        return {"author": self.author, "message": self.message, "extra": self.extra}


@dataclass
class PenstockResponse(AdapterResponse):
    """``snapshot`` is known when the transaction has been committed."""

    snapshot: int | None = None


@dataclass(slots=True)
class Result:
    """The answer of a statement. Rows are computed when they are asked for."""

    frame: Any = None  # a DataFrame, or an answer that has some of its methods
    response: PenstockResponse = field(default_factory=lambda: PenstockResponse(_message="OK"))


class Handle:
    """For one thread. ``views`` are its temporary relations."""

    def __init__(self, lakes: Lakes) -> None:
        self.lakes = lakes
        self.views: dict[str, DataFrame] = {}
        self._begun = False
        self._batch: Batch | None = None
        self._origin = Origin()
        self._transactions: dict[str, Transaction] = {}
        self._responses: list[tuple[str, PenstockResponse]] = []

    def cursor(self) -> Cursor:
        """A cursor as the DB-API has it."""
        return Cursor(self)

    def begin(self, origin: Origin) -> None:
        """Begin a transaction of each lake that the next statements name."""
        self._begun, self._origin = True, origin

    def commit(self) -> None:
        """Publish what was done since `begin`, as one snapshot of each lake."""
        self._begun = False
        transactions, responses = dict(self._transactions), list(self._responses)
        self._transactions.clear()
        self._responses.clear()
        try:
            for name, transaction in transactions.items():
                snapshot = transaction.commit()
                for lake, response in responses:
                    if lake == name and snapshot is not None:
                        _say_snapshot(response, snapshot.id)
        finally:
            self._end_batch()

    def rollback(self) -> None:
        """Undo what was done since `begin`."""
        self._begun = False
        transactions = list(self._transactions.values())
        self._transactions.clear()
        self._responses.clear()
        try:
            for transaction in transactions:
                transaction.rollback()
        finally:
            self._end_batch()

    def close(self) -> None:
        """End the transaction and forget the temporary relations; the lakes stay open."""
        self.rollback()
        self.views.clear()

    def run(self, text: str, args: Mapping[str, Any] | None = None) -> Result:
        """Run a text of one or more statements; the last one's answer."""
        bare = texts.without_comments(text)
        if not bare:
            return Result()
        if (word := texts.boundary(bare)) is not None:
            if word == "begin":
                self._begun = True
            elif word == "commit":
                self.commit()
            else:
                self.rollback()
            return Result()
        if (view := texts.temporary_view(bare)) is not None:
            self.stage(view.name, view.query)
            return Result()
        name, answer = self._answer(bare, args)
        if not texts.writes(bare):
            return Result(answer)
        if texts.is_view(bare) and "notice" in getattr(answer, "columns", ()):
            logger.warning(answer.collect()[0]["notice"])
        response = _response(first_word(bare), answer)
        self._responses.append((name, response))
        if not self._begun:
            self.commit()
        return Result(answer, response)

    def stage(self, name: str, query: str) -> None:
        """Keep the rows of a query as a temporary relation."""
        self.views[name] = self._answer(query, None)[1]

    def begin_batch(self, table: str, rows: str, query: str | None) -> bool:
        """Wait until no other batch writes a table; return whether ``rows`` was computed meanwhile.

        Without a ``query`` nothing is computed before. The batch ends with its transaction.
        """
        self._end_batch()
        batch = Batch(self.lakes.write_lock(table))
        if batch.begins_at_once():
            self._batch = batch
            return False
        is_computed = False
        try:
            if query is not None:
                self.stage(rows, query)
                is_computed = batch.compute(self.views[rows])
            batch.wait()
        except BaseException:
            batch.end()
            raise
        self._batch = batch
        return is_computed

    def _end_batch(self) -> None:
        if self._batch is not None:
            self._batch.end()
            self._batch = None

    def transaction(self, name: str | None = None) -> Transaction:
        """The open transaction of a lake, begun where there is none."""
        lake = self.lakes.lake(name)
        if lake.name not in self._transactions:
            self._transactions[lake.name] = lake.transaction(**self._origin.arguments())
        return self._transactions[lake.name]

    def fence(self, database: str | None, table: str) -> None:
        """Commit only where nobody has changed this table since the transaction began."""
        self.transaction(database).table(table).depend()

    def reader(self, name: str | None = None) -> Lake | Transaction:
        """What reads a lake: its open transaction, which sees what it has done, or the lake."""
        lake = self.lakes.lake(name)
        return self._transactions.get(lake.name, lake)

    def columns(self, lake: str | None, table: str) -> Columns:
        """Return the names and types of the columns of ``schema.name``, in quotes."""
        return described(self.reader(lake).sql(f"DESCRIBE {table}").collect())

    def _answer(self, text: str, args: Mapping[str, Any] | None) -> tuple[str, Any]:
        """Run a text in the lake that it names first, with others' tables as views."""
        text, views = self._with_information(text)
        named = texts.lake_names(text, self.lakes.names)
        lake = self.lakes.lake(named[0].lake if named else None)
        if texts.is_view(text):
            _check_view(lake, text, named)
        text = self._with_foreign(lake, text, named, views)
        text = self._with_files(lake, text, views)
        if self._begun and not lake.catalog.read_only:
            runs: Lake | Transaction = self.transaction(lake.name)
        elif texts.writes(text):
            runs = self.transaction(lake.name)
        else:
            runs = self.reader(lake.name)
        try:
            return lake.name, runs.sql(text, dict(args or {}), views)
        except PenstockError:
            if not self._begun:
                self.rollback()
            raise

    def _with_information(self, text: str) -> tuple[str, dict[str, DataFrame]]:
        """Return the temporary relations of a text, and name the tables of an information schema
        as such.
        """
        views, replacements = dict(self.views), []
        for name in texts.information_names(text):
            lake = self.lakes.lake(name.lake or None)
            view = f"{_INFORMATION}{len(replacements)}"
            views[view] = information_schema.frame(lake, name.rest)
            replacements.append((name, view))
        return texts.replaced(text, replacements), views

    def _with_foreign(
        self,
        lake: Lake,
        text: str,
        named: Sequence[texts.LakeName],
        views: dict[str, DataFrame],
    ) -> str:
        """Add the tables of other lakes to the views, and name them so in the text."""
        replacements = []
        for at, name in enumerate(named):
            if name.lake != lake.name.lower():
                views[f"{_FOREIGN}{at}"] = self.reader(name.lake).sql(f"SELECT * FROM {name.rest}")
                replacements.append((name, f"{_FOREIGN}{at}"))
        return texts.replaced(text, replacements)

    def _with_files(self, lake: Lake, text: str, views: dict[str, DataFrame]) -> str:
        """Add what reads files with options to the views, and name them so in the text."""
        replacements = []
        for at, reads in enumerate(texts.file_reads(text)):
            views[f"{_FILES}{at}"] = run_sql(lake.spark_source(), f"SELECT * FROM {reads.rest}")
            replacements.append((reads, f"{_FILES}{at}"))
        return texts.replaced(text, replacements)


class Cursor:
    """Runs one statement at a time and returns its rows as tuples."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._result = Result()

    @property
    def response(self) -> PenstockResponse:
        """What dbt shows and records of the statement."""
        return self._result.response

    def execute(self, text: str, bindings: Sequence[Any] | None = None) -> None:
        """Run a statement; ``bindings`` are the values of its ``:p0``, ``:p1``, ..."""
        values = {f"p{at}": value for at, value in enumerate(bindings or ())}
        self._result = self._handle.run(text, values)

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """The columns of the answer: names and types, as the DB-API has them."""
        frame = self._result.frame
        if frame is None:
            return None
        if hasattr(frame, "columns") and hasattr(frame, "rows"):  # known without Spark
            pairs = list(frame.dtypes)
        else:
            pairs = answer_columns(frame)
        return [(name, kind, *(None,) * 5) for name, kind in pairs]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows."""
        frame = self._result.frame
        if frame is None:
            return []
        with explained():
            return _values(frame.collect())

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The first rows, of which Spark computes no more than these."""
        frame = self._result.frame
        if frame is None:
            return []
        with explained():
            return _values(frame.limit(size).collect())

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row, or None."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def close(self) -> None:
        """Nothing is held."""


def _check_view(lake: Lake, text: str, named: Sequence[texts.LakeName]) -> None:
    """Raise UnsupportedFeature where a view would read what its lake does not hold."""
    for name in named:
        if name.lake != lake.name.lower():
            raise UnsupportedFeature(
                f"a view of the lake {lake.name} cannot read {name.lake}.{name.rest}, which is in "
                "another lake",
                hint="use materialized='table', or the other lake as the view's database",
            )
    if named and named[0].rest.lower() in {name.rest.lower() for name in named[1:]}:
        raise UnsupportedFeature(
            f"the view {named[0].rest} would read itself",
            hint="for `dbt clone`, let --state name the artifacts of another target",
        )
    if texts.file_reads(text):
        raise UnsupportedFeature(
            "a view cannot read an external model, whose rows are files",
            hint="use materialized='table'",
        )


def _values(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    return [tuple(map(_plain, row)) for row in rows]


def _plain(value: Any) -> Any:
    """A value as agate takes it: rows inside become mappings."""
    return value.asDict(recursive=True) if hasattr(value, "asDict") else value


def _response(word: str, answer: Any) -> PenstockResponse:
    rows = None
    if _COUNTS in getattr(answer, "columns", ()):
        rows = answer.collect()[0][_COUNTS]
    message = word if rows is None else f"{word} {rows}"
    return PenstockResponse(_message=message, code=word, rows_affected=rows)


def _say_snapshot(response: PenstockResponse, snapshot: int) -> None:
    response.snapshot = snapshot
    response._message = f"{response._message}, snapshot {snapshot}"
