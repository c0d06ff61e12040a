"""Resolve the names in a query: tables, views and macros of a lake at a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.errors import QueryFailed, TableNotFound, UnsupportedFeature
from penstock.lakes.candidate.staged import StagedView
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.definitions.stored_sql import load_macros, load_views
from penstock.lakes.format import naming
from penstock.lakes.format.changes import NewMacro
from penstock.lakes.format.files import Table as TableInfo
from penstock.lakes.format.naming import DEFAULT_SCHEMA, LAKES, TableRef, fold, quote_identifier
from penstock.lakes.format.objects import View
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.queries import running as queries
from penstock.lakes.queries import sparkless, table_functions, travel, views
from penstock.lakes.queries.rewriters import CommitContext, Rows, Wanted, point, referred
from penstock.lakes.reading import hidden
from penstock.lakes.snapshot import At, Snapshot
from penstock.lakes.table import Table
from penstock.lakes.transaction import Transaction
from penstock.lazy import exp
from penstock.spark.session import SparkSource, session_zone
from penstock.sql import identifiers, lake_functions, literals, tables
from penstock.sql.lake_functions import Arguments
from penstock.sql.macro_calls import book_of, expand
from penstock.sql.macros import Book, Macro
from penstock.sql.missing import missing_functions, no_function
from penstock.sql.tables import Analysis, Reference
from penstock.sql.text import Predicate, Unreadable
from penstock.sql.tokens import SqlText
from penstock.sql.trust import harmless_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves names at one snapshot, ``at``.

    ``path`` are the schemas of names without one, in order: a view's own first, then ``main``, as
    in DuckDB after ``USE``. ``inside`` are the views being read, outermost first.
    """

    catalog: Catalog
    spark: SparkSource
    at: At
    begin: Callable[[], Transaction]
    path: tuple[str, ...] = (DEFAULT_SCHEMA,)
    inside: tuple[View, ...] = ()
    lakes: frozenset[str] = LAKES  # what the lake is called, folded
    has_no_calls: bool = False  # of macros: the text was DuckDB's SQL, with macros expanded already
    transaction: Transaction | None = None  # reads that name no snapshot see its changes
    _seen: dict[At, Snapshot] = field(default_factory=dict)  # one query sees one latest snapshot
    # Tables in another state, for reads that name no snapshot, by folded (schema, name).
    states: Mapping[tuple[str, str], Callable[[Predicate | None], DataFrame]] = field(
        default_factory=dict
    )
    # One DataFrame for reads that are the same: Spark then exchanges their rows once.
    _reads: dict[tuple[object, ...], Rows] = field(default_factory=dict)

    def read(self, wanted: Wanted) -> Rows:
        """The rows of a table or view. Raises TableNotFound, SchemaNotFound, SnapshotNotFound."""
        reference = wanted.reference
        self._refuse_other(reference)
        snapshot = self.snapshot(wanted.at or self.at)
        schemas = self._schemas(reference, snapshot)
        for schema in schemas:
            ref = TableRef(schema, reference.name)
            state = self.states.get((fold(schema), fold(reference.name)))
            if wanted.at is None and state is not None:
                return Rows(state(wanted.predicate))
            if wanted.at is None and self._changing is not None:
                staged = self._staged(ref, self._changing, snapshot, wanted)
                if staged is not None:
                    return staged
                continue
            if self.catalog.find_table(ref.schema, ref.name, snapshot.id) is not None:
                return self._table(ref, snapshot, wanted)
            view = self.find_view(ref, snapshot)
            if view is not None:
                return Rows(self.view(view, snapshot))
        missing = TableRef(schemas[0], reference.name)
        self.catalog.table(missing.schema, missing.name, snapshot.id)
        raise TableNotFound(
            f"table {missing} no longer exists",
            hint="the transaction dropped or renamed it",
            data={"schema": missing.schema, "table": missing.name},
        )

    def require(self, ref: TableRef) -> TableInfo | None:
        """The table of this name; ``None`` where it is a view, or changed by the transaction.

        Raises TableNotFound, SchemaNotFound, SnapshotNotFound.
        """
        if self._changing is not None and self._changing.kind_of(_quoted(ref)) is not None:
            return None
        snapshot = self.snapshot(self.at)
        if self._changing is None:
            table = self.catalog.known_table(ref.schema, ref.name, snapshot)
            if table is not None or self.find_view(ref, snapshot) is not None:
                return table
        return self.catalog.table(ref.schema, ref.name, snapshot.id)

    def require_names(
        self,
        query: queries.ReadQuery,
        args: Mapping[str, object],
        local: Collection[str],
        *,
        functions: bool = False,
    ) -> None:
        """Raise NotFound for missing tables and versions that a query names, ArgumentError for
        arguments of table functions, and with ``functions`` QueryFailed for names of functions that
        are certainly misspelt.

        Values that only Spark can compute are not checked.
        """
        analysis = query.analysis
        if isinstance(analysis, Unreadable):
            return
        named = set(map(fold, local))
        for table in analysis.tables:
            is_local = table.schema is None and fold(table.name) in named
            if is_local or (table.travel is not None and not table.travel.is_version):
                continue
            with referred(table, analysis):
                at = self.at if table.travel is None else travel.point(table.travel, args, "UTC")
                self.find(table, self.snapshot(at))
        for call in lake_functions.calls_of(analysis, self.functions()):
            lake_functions.require_arguments(call.name, len(call.positional), call.named)
        missing = next(missing_functions(analysis.tree), None) if functions else None
        if missing is not None:
            data = {"reference": missing.name, "reference_at": missing.start}
            raise no_function(missing, data)

    @property
    def _changing(self) -> Transaction | None:
        """The transaction whose changes are visible to reads that name no snapshot."""
        transaction = self.transaction
        return (
            transaction if transaction is not None and self.at == At(transaction.base.id) else None
        )

    def _staged(
        self, ref: TableRef, transaction: Transaction, snapshot: Snapshot, wanted: Wanted
    ) -> Rows | None:
        """The rows of a table or view in the transaction; ``None`` where it does not exist."""
        name = _quoted(ref)
        table = transaction.table(name)
        if table.exists:
            changed = table.candidate.change() is not None
            if not changed:
                return self._table(ref, snapshot, wanted)
            lacking = _hidden(wanted, table.schema)
            return Rows(table.to_df(), refused=hidden.refusals(lacking, str(ref)))
        view = transaction.view(name)
        return None if view is None else Rows(self.view(_view_of(view), snapshot))

    def _table(self, ref: TableRef, snapshot: Snapshot, wanted: Wanted) -> Rows:
        table = Table(ref, self.catalog, self.spark, At(snapshot.id), self.begin)
        lacking = _hidden(wanted, table.schema) if wanted.hidden else wanted.hidden
        names = lacking.intersection(hidden.COLUMNS)
        asked = None if wanted.predicate is None else wanted.predicate.condition
        key = (ref, snapshot.id, names, asked)
        if key not in self._reads:
            df = table.to_df(hidden=names, predicate=wanted.predicate)
            self._reads[key] = Rows(df, names)
        read = self._reads[key]
        refused = hidden.refusals(lacking - names)
        return replace(read, refused=refused) if refused else read

    def functions(self) -> Collection[str]:
        return identifiers.NAMES

    def call(self, name: str, before: tuple[str, ...], arguments: Arguments) -> DataFrame:
        """The rows of a table function; its qualifier is the lake or a schema."""
        snapshot = self.snapshot(self.at)
        known = self.catalog.schemas(snapshot.id) if before else ()
        schema = naming.schema_in_lake(before, self.lakes, known)
        if schema is None:
            raise self._another_lake(".".join(before), f"lake.{name}(...)")
        if (
            name.startswith(identifiers.PREFIX)
            and fold(str(arguments.one(0, "lake"))) not in self.lakes
        ):
            raise self._another_lake(str(arguments.one(0, "lake")), f"{name}('lake', ...)")
        where = schema[0] if schema else self.path[0]
        spark = self.spark()
        place = table_functions.Place(spark, self.catalog, snapshot, where, session_zone(spark))
        return table_functions.call(name, place, arguments)

    def _another_lake(self, name: str, right: str) -> QueryFailed:
        return QueryFailed(
            f"{name} is not this lake, which is called {naming.called(self.lakes)}",
            hint=f"write {right}",
        )

    def answer(self, analysis: Analysis, context: CommitContext) -> DataFrame | None:
        """Counts and extremes of a whole table, where the catalog knows them exactly."""
        reference = analysis.tables[0] if len(analysis.tables) == 1 else None
        asked = (
            None if reference is None else sparkless.read_aggregates(analysis.tree, reference.node)
        )
        if (
            reference is None
            or asked is None
            or (reference.schema is None and fold(reference.name) in context.views)
        ):
            return None
        if self._changing is not None and reference.travel is None:
            return None
        with referred(reference, analysis):
            snapshot = self.snapshot(point(reference, context) or self.at)
            table = self.find(reference, snapshot)
        if table is None:
            return None
        return sparkless.answer_from_catalog(context.spark, self.catalog, table, snapshot.id, asked)

    def find(self, reference: Reference, snapshot: Snapshot) -> TableInfo | None:
        """The table that a reference means; ``None`` where it means a view.

        Raises TableNotFound, SchemaNotFound.
        """
        self._refuse_other(reference)
        schemas = self._schemas(reference, snapshot)
        for schema in schemas:
            table = self.catalog.find_table(schema, reference.name, snapshot.id)
            if table is not None:
                return table
            if self.find_view(TableRef(schema, reference.name), snapshot) is not None:
                return None
        return self.catalog.table(schemas[0], reference.name, snapshot.id)

    def _schemas(self, reference: Reference, snapshot: Snapshot) -> tuple[str, ...]:
        """The schemas in which a name is looked up: ``lake.t`` is in the current schema unless a
        schema has the lake's name.
        """
        if reference.schema is None:
            return self.path
        if reference.catalog is None and fold(reference.schema) in self.lakes:
            if self._changing is not None:
                known = self._changing.has_schema(reference.schema)
            else:
                known = fold(reference.schema) in map(fold, self.catalog.schemas(snapshot.id))
            return (reference.schema,) if known else self.path
        return (reference.schema,)

    def _refuse_other(self, reference: Reference) -> None:
        if reference.catalog is None or fold(reference.catalog) in self.lakes:
            return
        raise QueryFailed(
            f"{reference.catalog}.{reference.schema}.{reference.name} names a catalog, "
            f"{reference.catalog!r}, which is not this lake",
            hint=f"the lake is called {naming.called(self.lakes)}: write schema.table, or "
            "give the other's rows as a DataFrame of views=",
        )

    def snapshot(self, at: At) -> Snapshot:
        if at not in self._seen:
            self._seen[at] = self.catalog.snapshot(at)
        return self._seen[at]

    def read_view(self, ref: TableRef, snapshot: Snapshot) -> DataFrame | None:
        """The rows of the view of this name, if there is one."""
        view = self.find_view(ref, snapshot)
        return None if view is None else self.view(view, snapshot)

    def find_view(self, ref: TableRef, snapshot: Snapshot) -> View | None:
        with self.catalog.reading() as connection:
            loaded = load_views(connection, snapshot.id, [ref.name])
        names = (fold(ref.schema), fold(ref.name))
        return next((v for v in loaded if (fold(v.schema_name), fold(v.name)) == names), None)

    def view(self, view: View, snapshot: Snapshot) -> DataFrame:
        """The rows of a view, its tables as they were at the snapshot."""
        key = (view.id, fold(view.qualified_name))
        if any((outer.id, fold(outer.qualified_name)) == key for outer in self.inside):
            chain = " → ".join(v.qualified_name for v in (*self.inside, view))
            raise QueryFailed(f"the view {view.qualified_name} reads itself: {chain}")
        schemas = dict.fromkeys((view.schema_name, *self.path, DEFAULT_SCHEMA))
        inner = replace(
            self,
            at=At(snapshot.id),
            path=tuple(schemas),
            inside=(*self.inside, view),
            has_no_calls=False,
        )
        try:
            text = views.spark_text(view, inner.book(view.sql, view.dialect))
            inner = replace(inner, has_no_calls=view.dialect == "duckdb")
            df = queries.run(self.spark(), text, inner)
        except QueryFailed as problem:
            start = f"in the view {view.qualified_name}: "
            message = start + problem.cause.removeprefix(start)
            # Without places: they are in the view's text, not in the query's.
            data = {k: v for k, v in problem.data.items() if k not in {"line", "column"}}
            raise QueryFailed(message, hint=problem.hint, data=data) from problem
        except UnsupportedFeature as problem:
            if "view" in problem.data or "refused" in problem.data:
                raise
            raise views.unreadable(view, problem.message) from problem
        _check_types(view, df)
        return df.toDF(*views.column_names(view, df.columns))

    def expand(self, text: str) -> str:
        """The text of `expanded`."""
        return self.expanded(text).text

    def expanded(self, text: str) -> SqlText:
        """A query with its macros expanded, and DuckDB's own syntax in Spark's SQL."""
        source = SqlText(text)
        without = expand(source, self._book(source))
        source = tables.in_full(source if without == text else SqlText(without))
        if self.inside:
            what = f"the view {self.inside[-1].qualified_name}"
            source = SqlText(harmless_query(source.text, what, self._is_function))
        return literals.in_spark(source)

    def translated(
        self,
        text: str,
        *,
        expression: bool = False,
        frames: Mapping[str, DataFrame] | None = None,
    ) -> str:
        """A query (or ``expression``) of DuckDB's in Spark's SQL, its macros expanded.

        ``frames`` stand before tables of their names.

        Raises UnsupportedFeature for what cannot be translated, with its place in ``text`` as
        ``data["start"]``; QueryFailed likewise for what is not SQL.
        """
        book = self.book(text, "duckdb")
        given = {fold(name): df for name, df in (frames or {}).items()}

        def columns(table: exp.Table) -> Sequence[str] | None:
            frame = None if table.db else given.get(fold(table.name))
            return self._columns_of(table) if frame is None else frame.columns

        return views.translated(text, book, expression=expression, columns=columns)

    def _columns_of(self, table: exp.Table) -> list[str] | None:
        """The columns of a table of the lake, as it is without time travel or a transaction."""
        ours = not table.catalog or fold(table.catalog) in self.lakes
        if not ours or not table.name or table.args.get("when") or self._changing is not None:
            return None
        reference = Reference(0, 0, table.db or None, table.name, None, aliased=False)
        snapshot = self.snapshot(self.at)
        if table.catalog:
            reference = replace(reference, catalog=table.catalog)
        for schema in self._schemas(reference, snapshot):
            found = self.catalog.known_table(schema, table.name, snapshot)
            if found is not None:
                return [column.name for column in found.schema.columns]
        return None

    def _is_function(self, _: str | None, name: str) -> bool:
        return name in self.functions()

    def _macros(self, names: Sequence[str]) -> list[Macro]:
        """The macros of these names, as the transaction leaves them."""
        snapshot = self.snapshot(self.at)
        with self.catalog.reading() as connection:
            macros = load_macros(connection, snapshot.id, names)
        if self._changing is None:
            return macros
        schemas = {
            fold(schema): schema for schema in (*self.path, *(m.schema_name for m in macros))
        }
        refs = [TableRef(schema, name) for schema in schemas.values() for name in names]
        staged = [macro for ref in refs for macro in self._changing.macros(_quoted(ref))]
        return [
            Macro(-1, macro.schema_name, macro.name, macro.forms, -1)
            if isinstance(macro, NewMacro)
            else macro
            for macro in staged
        ]

    def book(self, text: str, dialect: str = "spark") -> Book:
        """The macros that a text may call, and those that they call."""
        return self._book(SqlText(text, dialect))

    def _book(self, source: SqlText) -> Book:
        empty = Book((), self.path, lakes=self.lakes)
        return empty if self.has_no_calls else book_of(source, self._macros, empty)


def _hidden(wanted: Wanted, schema: TableSchema) -> frozenset[str]:
    """The wanted hidden columns that are no columns, nor fields of one called as the table is."""
    reference = wanted.reference
    alias = None if reference.node is None else reference.node.alias
    column = schema.find(alias or reference.name)
    fields = {fold(child.name) for child in column.children} if column is not None else set()
    return hidden.lacking(wanted.hidden, schema) - fields


def _quoted(ref: TableRef) -> str:
    return f"{quote_identifier(ref.schema)}.{quote_identifier(ref.name)}"


def _view_of(staged: StagedView) -> View:
    """The view of a transaction, new or renamed or unchanged, as a `View` to read."""
    if staged.new is None:
        assert staged.base is not None
        return replace(staged.base, schema_name=staged.schema_name, name=staged.name)
    new = staged.new
    return View(-1, staged.schema_name, staged.name, new.dialect, new.sql, new.aliases, -1)


def _check_types(view: View, df: DataFrame) -> None:
    """Refuse views with an INTERVAL: neither of Spark's two interval types is DuckDB's."""
    if view.dialect != "duckdb":
        return
    for struct_field in df.schema.fields:
        if "interval" in struct_field.dataType.simpleString():
            raise UnsupportedFeature(
                f"the view {view.qualified_name} cannot be read: "
                f"{struct_field.name} is an interval",
                hint="read it with DuckDB",
            )
