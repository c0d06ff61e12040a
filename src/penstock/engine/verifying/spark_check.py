"""``check --spark``: Spark analyses every query against the schemas that are known; none runs.

A table is known by the query of the model that makes it, or by its lake. What is not known is said.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.destinations.values import Rows
from penstock.engine.history.current import managed_fields
from penstock.engine.inputs.declared_columns import cast_to
from penstock.engine.inputs.pinned_tables import Beginning, Pins, Readable
from penstock.engine.inputs.resolve import Reader, Resolved, Views, query_start, resolve
from penstock.engine.inputs.time_values import time_values
from penstock.engine.running.writing import undescribable
from penstock.engine.session.spark import lakes_for, session_for
from penstock.engine.verifying.column_check import missing_columns
from penstock.errors import Diagnostic, NotFound, PenstockError, QueryFailed
from penstock.model.definition.external import External
from penstock.model.definition.graph import made_by, makers_of, table_key
from penstock.model.definition.model import Model
from penstock.model.query.query import Query
from penstock.model.script import arguments
from penstock.model.script.arguments import Argument
from penstock.model.script.constants import Bindings
from penstock.model.script.file_uris import depends_on_values, partition_of_a_file
from penstock.model.time.interval import UNITS
from penstock.model.values.asset import TableName
from penstock.model.values.data_test import columns_of
from penstock.settings.config import Settings
from penstock.spark.session import is_connect
from penstock.sql.identifiers import fold, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from penstock.destinations.destination import Destination


class _Unknown(Exception):
    """Something that a query reads has no schema yet."""


def check_queries(
    models: Sequence[Model],
    session: SparkSession,
    lakes: Mapping[str, Destination],
    settings: Settings,
    externals: Sequence[External] = (),
) -> tuple[Diagnostic, ...]:
    """Findings about the queries of ``models``, given in the order of their graph, by file.

    ``lakes`` are the lakes that exist. Reads no rows but those from which the types of files are
    inferred.
    """
    versions = {name: lake.catalog.latest().id for name, lake in lakes.items()}
    checker = _Checker(session, settings, Pins(lakes, versions, makers=makers_of(models)))
    checker.describe(externals)
    findings = [finding for model in models for finding in checker.check(model)]
    return tuple(sorted(findings, key=lambda f: (str(f.location.path), f.location.line or 0)))


@dataclass(slots=True)
class _Checker:
    """``pins`` show the tables of the models that were analysed, whose keys are ``made``."""

    session: SparkSession
    settings: Settings
    pins: Pins
    made: set[str] = field(default_factory=set)

    def describe(self, externals: Sequence[External]) -> None:
        """Let tables that are not there have the columns of their EXTERNAL models."""
        for external in externals:
            if not external.columns or self._columns(external.table) is not None:
                continue
            columns = (f"{quoted(c.name)} {c.type}" for c in external.columns)
            empty = self.session.createDataFrame([], ", ".join(columns))
            self.pins = self.pins.showing(external.table, _empty(empty))
            self.made.add(table_key(external.table))

    def check(self, model: Model) -> Iterator[Diagnostic]:
        if model.python is not None:
            message = "not analysed: Python makes its rows, whose columns a run shows"
            yield Diagnostic("warning", message, model.python.place, None, "not-analysed")
            return
        if model.query.manual:
            message = "not analysed: a manual script is statements, which only a run can try"
            yield Diagnostic("warning", message, query_start(model.query), None, "not-analysed")
            return
        session = session_for(model.query, self.session)
        with Views(session, keep=is_connect(session)) as views:
            resolved = yield from self._query(model, model.query, session, views)
            if resolved is None:
                return
            try:
                df = cast_to(resolved.df, model.columns)
            except QueryFailed as error:
                place = error.location or model.place("columns")
                yield Diagnostic("error", error.message, place, error.hint, "column")
                return
            yield from _time_column(model, df)
            made = self._made(model, df)
            yield from missing_columns(model, df.columns, made.types)
            yield from self._tests(model, made.types)
            for table in made_by(model):
                self.pins = self.pins.showing(table, made)
                self.made.add(table_key(table))
            if wrong := undescribable(model, made.types):
                place = model.place("column_descriptions")
                yield Diagnostic("warning", wrong, place, "is the name right?", "column")
            for script in model.test_scripts:
                yield from self._query(model, script.query, session, views)

    def _query(
        self, model: Model, query: Query, session: SparkSession, views: Views
    ) -> Generator[Diagnostic, None, Resolved | None]:
        """The query as Spark reads it; None, and a finding, where that cannot be."""
        try:
            resolved = self._resolve(model, query, session, views)
            for said in resolved.asof:
                yield Diagnostic("warning", said.message, said.location, None, "asof-join")
            return resolved
        except (_Unknown, NotFound) as error:
            place = getattr(error, "location", None) or query_start(query)
            message = f"not analysed: {getattr(error, 'message', error)}"
            yield Diagnostic("warning", message, place, None, "not-analysed")
        except PenstockError as error:
            place = error.location or query_start(query)
            yield Diagnostic("error", error.message, place, error.hint, "spark")
        return None

    def _resolve(self, model: Model, query: Query, session: SparkSession, views: Views) -> Resolved:
        partition = None
        for source in query.files:
            if depends_on_values(source.path):
                partition = partition_of_a_file(source.path, self.settings.root)
                if partition is None:
                    raise _Unknown(f"which file {source.function} reads depends on the run")
        own = query is model.query and self._columns(model.target) is None
        for table in query.reads:
            known = table_key(table) in self.made or self._columns(table) is not None
            if not known and not (own and table_key(table) == table_key(model.target)):
                if table_key(table) in self.pins.makers:
                    raise _Unknown(f"the columns of {table} are not known before its first run")
                raise _Unknown(f"no model makes {table}, and its lake does not have it")
        column = self.settings.lakes[model.target.lake].partition_column
        reader = Reader(self._pins(session), session, views, self.settings.root)
        beginning = Beginning.of(model, column) if own else None
        return resolve(query, trial_bindings(model, query, partition), reader, beginning=beginning)

    def _pins(self, session: SparkSession) -> Pins:
        """The tables for a query with settings of its own."""
        if session is self.session:
            return self.pins
        lakes = lakes_for(session, self.pins.lakes)
        return Pins(lakes, self.pins.versions, self.pins.candidates)

    def _tests(self, model: Model, types: Mapping[str, str]) -> Iterator[Diagnostic]:
        """Data tests that rows of these columns cannot have, by their bounds and conditions."""
        from penstock.engine.checks.run import verify_tests as verify

        made = set(map(fold, types))
        for test, place in model.placed_tests:
            if not made.issuperset(map(fold, columns_of(test))):
                continue  # which `missing_columns` reports
            try:
                verify(test, place, types, self.session, model.query.dialect)
            except PenstockError as error:
                where = error.location or place
                yield Diagnostic("error", error.message, where, error.hint, "data-test")

    def _made(self, model: Model, df: DataFrame) -> Readable:
        """The table once the model has run: what it has and the query lacks stays where the model
        says so, and is an error of its step elsewhere.
        """
        from pyspark.sql.types import StringType, StructField, StructType

        fields = {fold(f.name): f for f in df.schema.fields}
        if model.history is not None:
            fields |= {fold(f.name): f for f in managed_fields(model.history)}
        if model.partition is not None:
            managed = self.settings.lakes[model.target.lake].partition_column
            fields[fold(managed)] = StructField(managed, StringType())
        if model.keeps_columns:
            own = {fold(f.name): f for f in self._columns(model.target) or ()}
            stays = own if model.keeps_removed_columns else own.keys() & fields.keys()
            fields |= {name: own[name] for name in stays}
        empty = self.session.createDataFrame([], StructType(list(fields.values())))
        return _empty(empty)

    def _columns(self, table: TableName) -> Sequence[StructField] | None:
        """The columns that the lake's table has now; ``None`` where there is none."""
        if table.lake not in self.pins.lakes:
            return None
        try:
            return list(Pins(self.pins.lakes, self.pins.versions).read(table).df.schema.fields)
        except NotFound:
            return None


def _empty(df: DataFrame) -> Readable:
    """A table without rows."""
    return Readable(dict(df.dtypes), lambda _: Rows(df), lambda _: None)


def trial_bindings(model: Model, query: Query, partition: str | None) -> Bindings:
    """Values of the right types: which ones does not matter but to the files that are read."""
    spec, by_time, now = model.partition, model.by_time, datetime.now(UTC)
    if spec is not None and partition is None:
        partition = now.strftime(spec.pattern or "value")
    texts = {a.name: _example(a) for a in query.arguments if a.default is None and not a.automatic}
    bound = arguments.bind(
        query.arguments,
        texts,
        partition=partition,
        spec=spec,
        interval=(by_time.unit if by_time else UNITS["day"]).at(now),
        now=now,
    )
    return Bindings(partition, bound)


def _example(argument: Argument) -> str:
    return argument.kind.example


def _time_column(model: Model, df: DataFrame) -> Iterator[Diagnostic]:
    """A time column that cannot be one, or whose format is not used."""
    by_time = model.time_range
    if by_time is None or by_time.column is None:
        return
    column, place = by_time.column, model.place("time_column")
    if not column.by_expression and fold(column.name) not in map(fold, df.columns):
        return  # which `missing_columns` reports
    try:
        unused = time_values(df, column, by_time.unit, model.query.dialect).unused_format
    except PenstockError as error:
        yield Diagnostic("error", error.message, error.location or place, error.hint, "column")
        return
    if unused:
        yield Diagnostic("warning", unused, place, "remove the format", "time-format")
