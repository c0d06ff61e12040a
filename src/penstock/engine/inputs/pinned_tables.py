"""The tables that a step and its tests read: each at one snapshot, whoever commits meanwhile.

A model that reads its own table has a beginning: until the table is made, it reads as empty.

Its columns are those that the query makes, but their types may depend on the types of the table.
They are inferred by analysing the query over a table whose columns are all
NULL, then over one with the columns of the outcome, until the outcome stays the same. A type that
this does not settle is declared: ``-- column name TYPE``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from penstock.destinations.values import At, Rows, Table, TableSchema
from penstock.errors import Location, PenstockError, QueryFailed, SchemaNotFound, TableNotFound
from penstock.lakes.queries.resolver import Resolver
from penstock.lakes.reading.conversions.spark_types import spark_type
from penstock.lazy import exp, pa
from penstock.model.definition.graph import Makers, table_key
from penstock.model.definition.model import Model
from penstock.model.script.constants import Bindings
from penstock.model.script.sources import FunctionSource, QuerySource, TableSource
from penstock.model.values.asset import TableName
from penstock.sql.identifiers import DEFAULT_SCHEMA, TableRef, fold, quote_identifier
from penstock.sql.lake_functions import Arguments
from penstock.sql.literals import text_literal
from penstock.sql.tables import analyse
from penstock.sql.text import Predicate, Unreadable
from penstock.sql.types import spark_type as to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from penstock.destinations.destination import Destination, StagedTable
    from penstock.destinations.values import Snapshot


@dataclass(frozen=True, slots=True)
class Readable:
    """Rows of a table in one state.

    ``types`` are its columns with their types in Spark's SQL; ``rows`` takes the file filter of
    its reader; ``collected`` gives some columns as Arrow tables, read on the driver without Spark,
    or ``None`` where the rows are not small or not simple to read.
    """

    types: Mapping[str, str]
    rows: Callable[[Predicate | None], Rows]
    collected: Callable[[Sequence[str]], pa.Table | None]


def types_of(schema: TableSchema) -> dict[str, str]:
    return {name: kind.simpleString() for name, kind in spark_types(schema).items()}


def spark_types(schema: TableSchema) -> dict[str, DataType]:
    """Return the types of columns as Spark's own."""
    return {column.name: spark_type(column) for column in schema.columns}


def candidate_of(table: StagedTable, slice_: tuple[str, str] | None = None) -> Readable:
    """Return what the table will be, or a slice of it."""
    return Readable(
        types_of(table.schema),
        lambda file_filter: (
            table.rows(file_filter) if slice_ is None else Rows(table.slice_df(*slice_))
        ),
        lambda names: table.few_rows(names, slice_),
    )


def table_name(table: TableName) -> str:
    """The table's name within its lake, quoted."""
    return f"{quote_identifier(table.schema)}.{quote_identifier(table.table)}"


def slice_as_table(table: TableName, slice_: tuple[str, str] | None) -> str:
    """The table, or its slice, in the FROM of a query over the project."""
    parts = (table.lake, table.schema, table.table)
    name = ".".join(quote_identifier(part, mark="`") for part in parts)
    if slice_ is None:
        return name
    column, value = slice_
    return (
        f"(SELECT * FROM {name} WHERE {quote_identifier(column, mark='`')} = {text_literal(value)})"
    )


_Key = tuple[str, str, str]
_CacheKey = tuple[_Key, Predicate | None]  # a table and its file filter


def _key(table: TableName) -> _Key:
    return fold(table.lake), fold(table.schema), fold(table.table)


def _rows_of(state: Readable) -> Callable[[Predicate | None], DataFrame]:
    return lambda file_filter: state.rows(file_filter).df


@dataclass(frozen=True, slots=True)
class Pins:
    """The tables of all lakes at one moment: each lake at the snapshot in ``versions``.

    ``candidates`` are tables that are read in another state than the pinned one: a step's own
    table, for its tests. ``makers`` are the models that make tables. Reads are cached: for one
    session, and for one thread at a time.
    """

    lakes: Mapping[str, Destination]
    versions: Mapping[str, int]
    candidates: Mapping[_Key, Readable] = field(default_factory=dict)
    makers: Makers = field(default_factory=dict)
    _read: dict[_CacheKey, Rows] = field(default_factory=dict, compare=False, repr=False)

    def showing(self, table: TableName, state: Readable) -> Pins:
        """These pins, with ``table`` in this state."""
        return replace(self, candidates={**self.candidates, _key(table): state})

    def require(self, table: TableName, at: Mapping[str, Any]) -> Table | None:
        """The table, at a snapshot or as pinned; ``None`` for a view. Starts no Spark.

        Raises NotFound.
        """
        point = At(**at) if at else At(self.versions[table.lake])
        with self._naming_the_maker(table):
            names = self.lakes[table.lake].names_at(point)
            return names.require(TableRef(table.schema, table.table))

    def readable(self, table: TableName) -> Readable:
        """Raises NotFound."""
        candidate = self.candidates.get(_key(table))
        if candidate is not None:
            return candidate
        version = self.versions[table.lake]
        in_lake = self.lakes[table.lake].table(table_name(table))
        with self._naming_the_maker(table):
            try:
                types = types_of(in_lake.info(version).schema)
            except TableNotFound:  # unless it is a view
                df = in_lake.to_df(version=version)
                return Readable(dict(df.dtypes), lambda _: Rows(df), lambda _: None)
        return Readable(
            types,
            lambda file_filter: self.read(table, file_filter),
            lambda names: in_lake.few_rows(names, version=version),
        )

    def read(self, table: TableName, file_filter: Predicate | None = None) -> Rows:
        """The table's rows; files that the filter excludes are pruned."""
        candidate = self.candidates.get(_key(table))
        if candidate is not None:
            return candidate.rows(file_filter)
        # Not the texts of the filter: they are for `explain` only.
        key = (_key(table), file_filter and replace(file_filter, used=(), unused=()))
        if key not in self._read:  # a step's tests read much of what its query reads
            with self._naming_the_maker(table):
                self._read[key] = self._rows(table, file_filter)
        return self._read[key]

    def _rows(self, table: TableName, file_filter: Predicate | None) -> Rows:
        version = self.versions[table.lake]
        in_lake = self.lakes[table.lake].table(table_name(table))
        try:
            return in_lake.rows_at(version, file_filter)
        except TableNotFound:  # unless it is a view
            return Rows(in_lake.to_df(version=version))

    def read_at(
        self, table: TableName, at: Mapping[str, Any], file_filter: Predicate | None = None
    ) -> Rows:
        in_lake = self.lakes[table.lake].table(table_name(table))
        return Rows(in_lake.to_df(**at, predicate=file_filter))

    @contextmanager
    def _naming_the_maker(self, table: TableName) -> Iterator[None]:
        """A table that is missing because its model never ran does not have a misspelt name."""
        try:
            yield
        except (SchemaNotFound, TableNotFound) as error:
            maker = self.makers.get(table_key(table))
            if maker is not None:
                error.hint = f"run it first: penstock run --select +{maker}"
            raise

    def names(self, lake: str, schema: str, called: frozenset[str]) -> Resolver:
        """Resolve names in the pinned snapshot of a lake, candidates before its tables; names
        without a schema are looked up in ``schema``, then in ``main``.
        """
        names = self.lakes[lake].names_at(At(self.versions[lake]), schema)
        states = {
            (schema, table): _rows_of(state)
            for (of, schema, table), state in self.candidates.items()
            if of == fold(lake)
        }
        return replace(names, lakes=names.lakes | called, states=states)

    def call(self, source: FunctionSource, bindings: Bindings) -> Rows:
        """The rows of a table function of a lake, as the lake was at its pinned snapshot."""
        names = self.names(source.lake, source.schema, frozenset())
        positional = tuple(value.evaluate(bindings) for value in source.positional)
        named = {name: value.evaluate(bindings) for name, value in source.named}
        before = () if fold(source.schema) == DEFAULT_SCHEMA else (source.schema,)
        return Rows(names.call(source.function, before, Arguments(positional, named)))


def pin(lakes: Mapping[str, Destination], model: Model, base: Snapshot, makers: Makers) -> Pins:
    """Return what a step reads, as it is when the step starts: its own lake at its transaction's
    base.
    """
    own = model.target.lake
    others = set(model.lakes) - {own}
    latest = {name: lakes[name].catalog.latest().id for name in others}
    return Pins(lakes, {own: base.id, **latest}, makers=makers)


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
            column.name: (to_spark_type(column.type, column.dialect), column.location)
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
        """Check that the query makes the columns that the table was assumed to have."""
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
