"""The tables that a step and its tests read: each at one snapshot, whoever commits meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.destinations.values import At, Rows, Table, TableSchema
from penstock.errors import SchemaNotFound, TableNotFound
from penstock.lake.queries.resolver import Resolver
from penstock.lake.reading.conversions.spark_types import spark_type
from penstock.lazy import pa
from penstock.model.definition.graph import Makers, table_key
from penstock.model.definition.model import Model
from penstock.model.script.constants import Bindings
from penstock.model.script.sources import FunctionSource
from penstock.model.values.asset import TableName
from penstock.sql.identifiers import DEFAULT_SCHEMA, TableRef, fold, quote_identifier
from penstock.sql.lake_functions import Arguments
from penstock.sql.literals import text_literal
from penstock.sql.text import Predicate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
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
