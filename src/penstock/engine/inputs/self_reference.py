"""A model that reads its own table has a beginning: until the table is made, it reads as empty.

Its columns are those that the query makes, but their types may depend on the types of the table.
They are inferred by analysing the query over a table whose columns are all
NULL, then over one with the columns of the outcome, until the outcome stays the same. A type that
this does not settle is declared: ``-- column name TYPE``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from penstock.errors import Location, PenstockError, QueryFailed
from penstock.lazy import exp
from penstock.model.definition.model import Model
from penstock.model.script.sources import QuerySource, TableSource
from penstock.model.values.asset import TableName
from penstock.sql.identifiers import fold
from penstock.sql.tables import analyse
from penstock.sql.text import Unreadable
from penstock.sql.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_ROUNDS = 6  # a type that has not settled by then grows with each, as decimals do
_ADVICE = "declare its columns: `-- column name BIGINT`, or `columns (name BIGINT, ...)` in MODEL"
# Conditions of Spark that are caused by columns of a wrong type, or by missing ones.
_GUESSED = ("UNRESOLVED_", "NUM_COLUMNS_MISMATCH", "DATATYPE_MISMATCH", "INVALID_EXTRACT")

Types = Mapping[str, "DataType"]


@dataclass(frozen=True, slots=True)
class Beginning:
    """``table`` before it is there. ``declared`` are its columns' types in Spark's SQL, and where
    each is declared; ``managed`` is the column that holds its partition."""

    table: TableName
    declared: Mapping[str, tuple[str, Location]]
    managed: str | None

    @classmethod
    def of(cls, model: Model, partition_column: str) -> Beginning:
        declared = {
            column.name: (spark_type(column.type, column.dialect), column.location)
            for column in (*model.columns, *model.column_types)
        }
        return cls(model.target, declared, partition_column if model.partition else None)

    def source_in(self, sources: tuple[QuerySource, ...]) -> TableSource | None:
        """The source that is this table, as it is now."""
        own = fold(str(self.table))
        tables = (s for s in sources if isinstance(s, TableSource) and s.at is None)
        return next((source for source in tables if fold(str(source.table)) == own), None)

    def query(
        self,
        sql: str,
        view: str,
        session: SparkSession,
        put: Callable[[str, DataFrame], None],
        run: Callable[[], DataFrame],
    ) -> DataFrame:
        """Return what ``run`` returns for the query ``sql`` once ``view`` is the empty table.

        Raises QueryFailed where the columns cannot be inferred.
        """
        columns = self._start(sql, view)
        made: Types = {}
        for number in range(_ROUNDS):
            put(view, _empty(session, columns))
            try:
                df = run()
            except QueryFailed as error:
                if number == 0 and str(error.data.get("condition")).startswith(_GUESSED):
                    error.hint = f"{self.table} does not exist yet; {_ADVICE}"
                raise
            made = {field.name: field.dataType for field in df.schema.fields}
            following = self._complete(made)
            if _texts(columns) == _texts(following):
                self._check(made)
                return df
            columns = following
        raise self._unsettled(made)

    def _start(self, sql: str, view: str) -> Types:
        from pyspark.sql.types import NullType

        return self._complete(dict.fromkeys(_names(sql, view), NullType()))

    def _complete(self, columns: Types) -> Types:
        """``columns`` with the declared types, and with the partition's column."""
        from pyspark.sql.types import DataType, StringType

        complete = dict(columns)
        names = {fold(name): name for name in columns}
        for name, (type_, _) in self.declared.items():
            complete[names.get(fold(name), name)] = DataType.fromDDL(type_)
        return complete | ({self.managed: StringType()} if self.managed else {})

    def _check(self, made: Types) -> None:
        """That the query makes the columns that the table was assumed to have."""
        from pyspark.sql.types import DataType, NullType

        kinds = {fold(name): kind.simpleString() for name, kind in made.items()}
        for name, (type_, location) in self.declared.items():
            kind = kinds.get(fold(name))
            if kind is None:
                message = f"column {name} is declared, and the query does not make it"
                raise QueryFailed(message, hint=f"it makes {', '.join(made)}", location=location)
            if kind != DataType.fromDDL(type_).simpleString():
                message = f"column {name} is declared {type_}, and the query makes it {kind}"
                hint = "declare that, or cast the column in the query"
                raise QueryFailed(message, hint=hint, location=location)
        unknown = [name for name, kind in made.items() if isinstance(kind, NullType)]
        if unknown or not made:
            raise self._unsettled(unknown)

    def _unsettled(self, names: Iterable[str]) -> QueryFailed:
        listed = ", ".join(names) or "its columns"
        return QueryFailed(
            f"the query reads the table that it makes, so the type of {listed} is not known "
            "before the first run",
            hint=_ADVICE,
        )


def _empty(session: SparkSession, columns: Types) -> DataFrame:
    from pyspark.sql.types import StructField, StructType

    return session.createDataFrame([], StructType([StructField(*item) for item in columns.items()]))


def _texts(columns: Types) -> list[tuple[str, str]]:
    return [(name, kind.simpleString()) for name, kind in columns.items()]


def _names(sql: str, view: str) -> list[str]:
    """The columns that the query makes, or, where it selects a star, those it reads of ``view``."""
    try:
        tree = analyse(sql).tree
        named = _selected(tree)
        return named or list(dict.fromkeys(_read(tree, view)))
    except (Unreadable, PenstockError, SqlglotError):
        return []


def _selected(tree: exp.Expr) -> list[str]:
    """The names of the SELECT list; none where it has a star. A union may name them on a side."""
    query = tree.unnest()
    if isinstance(query, exp.SetOperation):
        return _selected(query.left) or _selected(query.right)
    if not isinstance(query, exp.Select) or query.is_star:
        return []
    return [name for name in query.named_selects if name]


def _read(tree: exp.Expr, view: str) -> Iterator[str]:
    for scope in traverse_scope(tree):
        own = {
            alias
            for alias, source in scope.sources.items()  # those of semi joins too
            if isinstance(source, exp.Table) and source.name == view
        }
        alone = own.issuperset(scope.selected_sources)
        for column in scope.columns:
            if column.table in own or (alone and not column.table):
                yield column.name
        for join in scope.expression.args.get("joins") or [] if own else []:
            yield from (name.name for name in join.args.get("using") or [])
