"""Queries that write nothing: a model's SELECT, or one from the command line.

Names that mean nothing, and what a query would read, are found in the catalogs, without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from penstock.destinations.values import At, Table
from penstock.engine.inputs.declared_columns import cast_to
from penstock.engine.inputs.pinned_tables import Beginning, Pins, table_name
from penstock.engine.inputs.resolve import (
    Reader,
    Resolved,
    Views,
    analysed,
    called,
    moment,
    predicates,
    quoted,
    render,
    resolve,
)
from penstock.engine.planning.plan import Plan, PlannedStep
from penstock.engine.session.connections import Connections
from penstock.engine.session.spark import lakes_for, session_for
from penstock.engine.strategies.time_range import rows_in_ranges
from penstock.errors import (
    ArgumentError,
    ColumnNotFound,
    Diagnostic,
    InputError,
    LakeError,
    ModelError,
    PartitionError,
    PenstockError,
    QueryFailed,
)
from penstock.lakes.queries.explain import Explanation, TableRead, read_of
from penstock.model.definition.graph import Makers, makers_of
from penstock.model.definition.model import Model
from penstock.model.macros.macro_libraries import Libraries
from penstock.model.macros.script_macros import ScriptMacros
from penstock.model.project.loader import Loaded
from penstock.model.query.query import Query, read_query
from penstock.model.query.render import trial_names
from penstock.model.script.constants import Bindings
from penstock.model.script.sources import FileSource, FunctionSource, TableSource
from penstock.model.time.interval import Intervals
from penstock.model.values.asset import Names, TableName
from penstock.settings.config import Settings
from penstock.spark.functions import fn
from penstock.spark.session import is_connect
from penstock.sql.dialect import name_hint
from penstock.sql.identifiers import did_you_mean, fold, quote_identifier
from penstock.sql.lake_functions import require_arguments
from penstock.sql.missing import missing_columns, missing_functions, no_function
from penstock.sql.tables import analyse
from penstock.sql.text import Predicate, Unreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.destinations.destination import Destination
    from penstock.lakes.catalog.catalog import Catalog


Attach = Callable[[str], "Destination"]
_ZONE = "spark.sql.session.timeZone"
_NAME = Path("query")  # where errors of a query without a file are placed
_SELECT_ONLY = (
    "ask with one SELECT (WITH, FROM, VALUES and TABLE will do); a model's run writes tables"
)
_HINTS = {
    "duckdb-form": 'ask with --dialect duckdb (in Python: dialect="duckdb")',
    "script-writes": _SELECT_ONLY,
    "script-no-select": _SELECT_ONLY,
    "unreadable-query": "correct it; it is read as Spark's SQL",
}


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries over the lakes of a project as they are now, in which ``makers`` make the tables
    and macros of ``libraries`` can be called; ``moved`` are tables that are elsewhere.

    ``start`` gives the session. Names that mean nothing raise NotFound, before Spark starts where
    the catalogs tell.
    """

    connections: Connections
    start: Callable[[], SparkSession]
    makers: Makers
    libraries: Libraries = field(default_factory=Libraries)
    moved: Mapping[str, TableName] = field(default_factory=dict)

    @classmethod
    def of(
        cls, connections: Connections, start: Callable[[], SparkSession], loaded: Loaded
    ) -> Queries:
        """Return those of a project's models and libraries."""
        return cls(connections, start, makers_of(loaded.models), loaded.libraries, loaded.moved)

    def preview(self, plan: Plan) -> Resolved:
        """Return what the SELECT of the plan's one step returns at this moment."""
        (step,) = plan.steps
        step = newest_interval(plan, step)
        if reason := step.blocked or step.skipped:
            hint = "ask for a later slice with --partition" if step.skipped else None
            raise PartitionError(f"{step.name}: {reason}", hint=hint)
        if step.model.python is not None:
            raise ArgumentError(
                f"{step.name} is a step in Python: only a run runs its code",
                hint=f"its table: penstock preview {step.name} --table",
            )
        if step.model.query.manual:
            raise ArgumentError(
                f"{step.name} is manual: it has statements, and no query to preview",
                hint=f"its table: penstock preview {step.name} --table",
            )
        column = self._settings.lakes[step.model.target.lake].partition_column
        beginning = Beginning.of(step.model, column)
        resolved = self._read(step.model.query, step.bindings, beginning=beginning)
        return replace(resolved, df=cast_to(resolved.df, step.model.columns))

    def of_model(self, model: Model) -> Resolved:
        """Return what the query of a model returns that needs no values."""
        return self._read(model.query, Bindings())

    def query(self, text: str, args: Mapping[str, Any], dialect: str) -> Resolved:
        """A SELECT with tables named as in a script; ``args`` are bound to its ``:name`` markers.

        Raises ModelError for a text that cannot be run.
        """
        return self._read(self._parsed(text, dialect), Bindings(), args)

    def explain(self, text: str, args: Mapping[str, Any], dialect: str) -> Explanation:
        """Return what `query` would read. Starts no Spark. Raises ModelError."""
        parsed = self._parsed(text, dialect)
        set_by_query = {setting.name: setting.value for setting in parsed.settings}
        zone = set_by_query.get(_ZONE, self._settings.spark.conf.get(_ZONE, "UTC"))
        return explain(parsed, _newest(parsed, self._attach, self.makers), args, zone)

    def published(self, table: TableName, slice_: str | None) -> DataFrame:
        """The rows of a published table, or of its slice of this value."""
        rows = self._attach(table.lake).table(table_name(table)).to_df()
        if slice_ is None:
            return rows
        column = self._settings.lakes[table.lake].partition_column
        return rows.where(fn.col(quote_identifier(column, mark="`")) == slice_)

    def in_intervals(self, model: Model, intervals: Intervals) -> DataFrame:
        """The rows of the published table of a model by time, in these intervals."""
        by_time = model.time_range
        assert by_time is not None, "asked of others"
        rows = self.published(model.target, None)
        return rows_in_ranges(rows, by_time, intervals, model.query.dialect)

    @property
    def _settings(self) -> Settings:
        return self.connections.settings

    def _attach(self, lake: str) -> Destination:
        return self.connections.lake(lake, self.start)

    def _parsed(self, text: str, dialect: str) -> Query:
        lakes = tuple(self._settings.lakes)
        names = Names(
            lakes, self._settings.default_lake, macros=self.connections.macros, moved=self.moved
        )
        macros = ScriptMacros(libraries=self.libraries)
        parsed, findings = read_query(text, _NAME, names=names, dialect=dialect, macros=macros)
        if parsed is None:
            raise ModelError([_for_query(finding) for finding in findings])
        return parsed

    def _read(
        self,
        parsed: Query,
        bindings: Bindings,
        args: Mapping[str, Any] = MappingProxyType({}),
        beginning: Beginning | None = None,
    ) -> Resolved:
        self.connections.drop_dead_session()
        starts_plain = self.connections.starts_plain()
        pins = _newest(parsed, self._attach, self.makers)
        own = beginning.source_in(parsed.sources) if beginning else None
        if own and _is_there(own.table, pins):
            beginning, own = None, None
        tables = require_tables(parsed, bindings, pins, own)
        # A session that is there may have variables, which look like columns.
        if not self.connections.has_session:
            require_columns(parsed, tables)
        if starts_plain:
            require_functions(parsed, pins)
        common = self.start()
        session = session_for(parsed, common)
        if session is not common:
            pins = replace(pins, lakes=lakes_for(session, pins.lakes))
        with Views(session, keep=is_connect(session)) as views:
            try:
                reader = Reader(pins, session, views, self._settings.root)
                return resolve(parsed, bindings, reader, args=args, beginning=beginning)
            except QueryFailed as error:
                raise _as_input(error) from error.__cause__


def newest_interval(plan: Plan, step: PlannedStep) -> PlannedStep:
    """The step; of a model by time all of whose intervals are made, with the last one."""
    by_time = step.model.by_time
    if by_time is None or not step.skipped:
        return step
    expected = by_time.expected(plan.request.fire_time.astimezone(UTC))
    if not expected:
        return step
    last = by_time.unit.at(expected[-1].last)
    return replace(plan.narrowed(step, (last,)), skipped=None)


def _newest(parsed: Query, attach: Attach, makers: Makers) -> Pins:
    """Pin every lake at its latest snapshot."""
    lakes = {name: attach(name) for name in parsed.lakes}
    versions = {name: lake.catalog.latest().id for name, lake in lakes.items()}
    return Pins(lakes, versions, makers=makers)


def _is_there(table: TableName, pins: Pins) -> bool:
    catalog = pins.lakes[table.lake].catalog
    newest = catalog.snapshot(At(pins.versions[table.lake]))
    return catalog.known_table(table.schema, table.table, newest) is not None


def _for_query(finding: Diagnostic) -> Diagnostic:
    """A finding worded for a query instead of a script."""
    message = finding.message.replace("a managed script", "a query").replace("script", "query")
    return replace(finding, message=message, hint=_HINTS.get(finding.rule, finding.hint))


def _as_input(error: QueryFailed) -> QueryFailed:
    """Return what Spark's analysis refuses is wrong input: nothing has run yet.

    SQLSTATE class 42 is "syntax error or access rule violation".
    """
    state = getattr(error.__cause__, "getSqlState", lambda: None)()
    if (state or "").startswith("42"):
        error.exit_code = InputError.exit_code
    return error


def explain(query: Query, pins: Pins, args: Mapping[str, Any], zone: str) -> Explanation:
    """For each source of the query, in the order of its text, what would be read.

    ``zone`` is the time zone that the query will run in. Raises NotFound, ArgumentError.
    """
    tables = require_tables(query, Bindings(), pins)
    require_columns(query, tables)
    names = trial_names(query.sources)
    rendered = query.render(quoted(names))
    filters = predicates(analysed(rendered), names, {**args, **rendered.args(Bindings())}, zone)
    reads: list[TableRead] = []
    for source in query.sources:
        if isinstance(source, TableSource):
            reads.append(_read(source, tables.get(source), pins, filters.get(source)))
        else:
            kind = "file" if isinstance(source, FileSource) else "function"
            reads.append(TableRead(called(source, Bindings()), kind))
    return Explanation(tuple(reads))


def _read(
    source: TableSource, table: Table | None, pins: Pins, file_filter: Predicate | None
) -> TableRead:
    name = str(source.table)
    if table is None:
        return TableRead(name, "view")
    lake = source.table.lake
    at = At(pins.versions[lake]) if source.at is None else At(**moment(source.at, Bindings()))
    catalog = cast("Catalog", pins.lakes[lake].catalog)  # the files of a lake are what is shown
    return replace(read_of(catalog, table, catalog.snapshot(at).id, file_filter), name=name)


def require_tables(
    query: Query, bindings: Bindings, pins: Pins, own: TableSource | None = None
) -> dict[TableSource, Table]:
    """The tables that the query reads, without views and ``own``, which is not made yet.

    Raises NotFound and ArgumentError, at their places, for tables and snapshots that are not there.
    """
    tables: dict[TableSource, Table] = {}
    for source in query.sources:
        try:
            if isinstance(source, FunctionSource):
                named = [name for name, _ in source.named]
                require_arguments(source.function, len(source.positional), named)
            if not isinstance(source, TableSource) or source == own:
                continue
            at = {} if source.at is None else moment(source.at, bindings)
            table = pins.require(source.table, at)
        except (ArgumentError, LakeError) as error:
            error.location = error.location or source.location
            raise
        if table is not None:
            tables[source] = table
    return tables


def require_functions(query: Query, pins: Pins) -> None:
    """Raise QueryFailed, at its place, for the name of a function that is certainly misspelt."""
    if query.dialect != "spark":  # its translator knows each function
        return
    rendered, macros = render(query, quoted(trial_names(query.sources)), pins)
    try:
        tree = analyse(rendered.sql).tree
    except (Unreadable, PenstockError):
        return
    book = () if macros is None else macros.book(rendered.sql).macros
    missing = next(missing_functions(tree, {fold(macro.name) for macro in book}), None)
    if missing is not None:
        before = rendered.sql[: missing.start]
        error = no_function(missing)
        error.location = rendered.locate(
            before.count("\n") + 1, missing.start - (before.rfind("\n") + 1)
        )
        raise error


def require_columns(query: Query, tables: dict[TableSource, Table]) -> None:
    """Raise ColumnNotFound, at its place, for a name that is certainly a misspelt column.

    Spark says so of many more, which may be variables, parameters or fields.
    """
    names = trial_names(query.sources)
    rendered = query.render(quoted(names))
    try:
        tree = analyse(rendered.sql).tree
    except (Unreadable, PenstockError):
        return
    by_name = {fold(names[source]): table for source, table in tables.items()}
    known = {name: table.schema.names for name, table in by_name.items()}
    missing = min(missing_columns(tree, known), key=lambda missing: missing.start, default=None)
    if missing is None:
        return
    where = " or ".join(by_name[fold(name)].qualified_name for name in missing.tables)
    before = rendered.sql[: missing.start]
    error = ColumnNotFound(
        f"column {missing.name!r} does not exist in {where}",
        hint=did_you_mean(missing.name, missing.columns, "columns"),
        data={"column": missing.name},
    )
    error.hint = name_hint(error, rendered.source.quoted) or error.hint
    error.location = rendered.locate(
        before.count("\n") + 1, missing.start - (before.rfind("\n") + 1)
    )
    raise error
