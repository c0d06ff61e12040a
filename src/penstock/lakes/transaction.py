"""A transaction over several tables: stage changes, read the candidate state, publish at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Connection

from penstock.errors import (
    ArgumentError,
    CatalogError,
    CommitError,
    CommitUnknown,
    NameTaken,
    ReadOnlyLake,
    TableNotFound,
)
from penstock.lakes.candidate.staged import Key, StagedNames, StagedView, key_of, taken
from penstock.lakes.candidate.state import Staged
from penstock.lakes.candidate.table import Context
from penstock.lakes.catalog import reads
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.commits.commit import OnCommit
from penstock.lakes.format.changes import (
    ChangeSet,
    Compaction,
    NewMacro,
    NewView,
    Uncommitted,
    check_together,
    fits,
)
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.naming import TableRef, fold, names_of, quote_identifier
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.limits import LIMITS, Limits
from penstock.lakes.snapshot import Snapshot
from penstock.lakes.staging import TransactionTable
from penstock.spark.session import SparkSource
from penstock.sql.macros import Macro, MacroForm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Staged", "Transaction", "TransactionTable"]

RunsSql = Callable[
    ["Transaction", str, "Mapping[str, Any] | None", "Mapping[str, DataFrame] | None", str],
    "DataFrame",
]


class Transaction:
    """Changes of a lake that are published together, on top of the snapshot ``base``.

    As a context manager it commits on a clean exit and rolls back on an error. Threads must not
    share its tables, but may have transactions of their own. Names are ``schema.name``, or ``name``
    in ``main``; its own creations, renames and drops are visible at once::

        with lake.transaction(author="ada") as tx:
            tx.table("orders").append([{"id": 9, "customer": "ada"}])
            tx.create_view("adas", "SELECT * FROM orders WHERE customer = 'ada'")
    """

    def __init__(
        self,
        catalog: Catalog,
        spark: SparkSource,
        *,
        author: str | None = None,
        message: str | None = None,
        extra: str | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        if catalog.read_only:
            raise ReadOnlyLake(
                "the lake is attached read-only", hint="attach it without read_only to write"
            )
        self.base, options = catalog.beginning()
        self._catalog = catalog
        self._info = {"author": author, "message": message, "extra": extra}
        self._on_commit: list[OnCommit] = []
        self._options: list[Callable[[Connection], None]] = []
        self._tables: dict[Key, TransactionTable] = {}
        self._nameless: list[TransactionTable] = []  # dropped, and the name is another's by now
        self._compactions: list[Uncommitted] = []
        self._names = StagedNames(catalog, self.base)
        self._outcome_open = False
        self.runs_sql: RunsSql | None = None  # set by the lake that began it
        path = self._names.schema_path
        self._context = Context(catalog, spark, self.base, path, options, limits)

    def table(self, name: str) -> TransactionTable:
        """A table, existing or to be created: ``tx.table("orders").delete("id = 2")``."""
        return self._table(TableRef.parse(name))

    def kind_of(self, name: str) -> str | None:
        """``table``, ``view`` or, for a free name, ``None``: ``tx.kind_of("orders")``."""
        ref = TableRef.parse(name)
        if self._table(ref).exists:
            return "table"
        return "view" if self._names.view(ref) is not None else None

    def view(self, name: str) -> StagedView | None:
        """The view of this name as it will be: ``tx.view("adas")``."""
        return self._names.view(TableRef.parse(name))

    def names_in(self, schema: str) -> list[tuple[str, str]]:
        """Names in a schema, with ``table`` or ``view``: ``tx.names_in("main")``."""
        names = [(table.candidate.name, "table") for table in self._tables_in(schema)]
        names += [(ref.name, "view") for ref in self._names.views(schema)]
        return sorted(names)

    def macros(self, name: str) -> list[Macro | NewMacro]:
        """The macros of this name, scalar and of tables: ``tx.macros("discount")``."""
        ref = TableRef.parse(name)
        macros = (self._names.macro(ref, kind) for kind in ("scalar", "table"))
        return [macro for macro in macros if macro is not None]

    def has_schema(self, name: str) -> bool:
        """Return whether the schema exists in the transaction: ``tx.has_schema("shop")``."""
        return self._names.has_schema(name)

    def create_schema(self, name: str, *, if_not_exists: bool = True) -> None:
        """``tx.create_schema("shop")``. Raises NameTaken for one that exists, unless it may.

        One that may exist may also be made by another transaction before this one commits.
        """
        if not if_not_exists and self._names.has_schema(name):
            raise NameTaken(
                f"there is a schema {name!r} already",
                hint="leave it, or take another name",
                data={"schema": name},
            )
        self._names.create_schema(name, may_exist=if_not_exists)

    def drop_schema(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """``tx.drop_schema("shop")``: with ``cascade`` also a schema that is not empty."""
        if if_exists and not self._names.has_schema(name):
            return
        self._names.require_schema(name)
        tables, views = self._tables_in(name), self._names.views(name)
        macros = self._names.macros(name)
        if not cascade and (tables or views or macros):
            inside = [table.candidate.qualified_name for table in tables]
            inside += [str(ref) for ref in views]
            inside += [str(ref) for ref, _ in macros]
            raise ArgumentError(
                f"schema {name!r} is not empty: {', '.join(sorted(inside)[:10])}",
                hint="drop these first, or drop it with cascade",
                data={"schema": name, "entries": inside},
            )
        for table in tables:
            table.drop()
        for ref in views:
            self._names.drop_view(ref)
        for ref, kind in macros:
            self._names.drop_macro(ref, kind)
        self._names.drop_schema(name)

    def create_table(
        self,
        name: str,
        schema: TableSchema,
        *,
        partition_by: Sequence[PartitionField] = (),
        sort_by: Sequence[SortKey] = (),
        comment: str | None = None,
        column_comments: Mapping[str, str] | None = None,
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> TransactionTable:
        """Create an empty table: ``tx.create_table("copies", tx.table("orders").schema)``.

        Raises NameTaken, SchemaNotFound, SchemaMismatch.
        """
        ref = TableRef.parse(name)
        table = self._table(ref)
        self._names.require_schema(ref.schema)
        if table.exists and if_not_exists:
            return table
        self._check_free(ref, "table", or_replace=or_replace)
        table.create(
            schema,
            partition_by=partition_by,
            sort_by=sort_by,
            comment=comment,
            column_comments=column_comments,
        )
        return table

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """``tx.drop_table("orders")``. Raises TableNotFound unless it may be missing."""
        ref = TableRef.parse(name)
        if self._required("table", ref, if_exists=if_exists):
            self._table(ref).drop()

    def rename_table(self, name: str, new: str) -> None:
        """Rename a table within its schema: ``tx.rename_table("orders", "sales")``."""
        ref = TableRef.parse(name)
        self._required("table", ref)
        wanted = TableRef(ref.schema, new)
        table = self._table(ref)
        if key_of(wanted) != key_of(ref):
            self._check_free(wanted, "table")
        table.take_name(new)
        del self._tables[key_of(ref)]
        before = self._tables.get(key_of(wanted))
        if before is not None and before is not table:
            self._nameless.append(before)
        self._tables[key_of(wanted)] = table

    def create_view(
        self,
        name: str,
        sql: str,
        *,
        dialect: str = "duckdb",
        columns: str | Sequence[str] = (),
        or_replace: bool = False,
        if_not_exists: bool = False,
        comment: str | None = None,
    ) -> None:
        """Create a view: ``tx.create_view("ids", "SELECT id FROM orders", columns="number")``.

        ``columns`` name its first columns; ``dialect`` is that of the SELECT.
        """
        ref = TableRef.parse(name)
        self._names.require_schema(ref.schema)
        if if_not_exists and self._names.view(ref) is not None:
            return
        self._check_free(ref, "view", or_replace=or_replace)
        names = names_of(columns, "columns")
        self._names.create_view(NewView(ref.schema, ref.name, sql, dialect, names, comment=comment))

    def drop_view(self, name: str, *, if_exists: bool = False) -> None:
        """``tx.drop_view("ids", if_exists=True)``."""
        ref = TableRef.parse(name)
        if self._required("view", ref, if_exists=if_exists):
            self._names.drop_view(ref)

    def rename_view(self, name: str, new: str) -> None:
        """Rename a view within its schema: ``tx.rename_view("ids", "numbers")``."""
        ref = TableRef.parse(name)
        self._required("view", ref)
        if fold(new) != fold(ref.name):
            self._check_free(TableRef(ref.schema, new), "view")
        self._names.rename_view(ref, new)

    def create_macro(
        self,
        name: str,
        forms: Sequence[MacroForm],
        *,
        or_replace: bool = False,
        if_not_exists: bool = False,
    ) -> None:
        """Create a macro with its overloads; in SQL ``tx.sql("CREATE MACRO half(x) AS x / 2")``."""
        ref = TableRef.parse(name)
        kinds = {form.kind for form in forms}
        if len(kinds) != 1:
            raise ArgumentError(
                f"macro {ref} needs forms of one kind", hint="scalar, or table, at least one"
            )
        self._names.require_schema(ref.schema)
        if self._names.macro(ref, kinds.pop()) is not None:
            if if_not_exists:
                return
            if not or_replace:
                raise taken("macro", str(ref), "macro")
        self._names.create_macro(NewMacro(ref.schema, ref.name, tuple(forms)))

    def drop_macro(self, name: str, *, kind: str | None = None, if_exists: bool = False) -> None:
        """``tx.drop_macro("half", if_exists=True)``: a scalar macro goes first, as in DuckDB."""
        ref = TableRef.parse(name)
        kinds = ("scalar", "table") if kind is None else (kind,)
        match = next((kind for kind in kinds if self._names.macro(ref, kind) is not None), None)
        if match is None and if_exists:
            return
        self._names.drop_macro(ref, match or kinds[0])

    def comment_on_table(self, name: str, text: str | None) -> None:
        """``tx.comment_on_table("orders", "by the till")``; ``None`` removes the comment."""
        ref = TableRef.parse(name)
        self._required("table", ref)
        self._table(ref).comment(text)

    def comment_on_column(self, name: str, column: str, text: str | None) -> None:
        """``tx.comment_on_column("orders", "id", "of the till")``."""
        ref = TableRef.parse(name)
        self._required("table", ref)
        self._table(ref).comment(text, column)

    def comment_on_view(self, name: str, text: str | None) -> None:
        """``tx.comment_on_view("ids", "of open orders")``."""
        ref = TableRef.parse(name)
        self._required("view", ref)
        self._names.comment_on_view(ref, text)

    def describe(
        self, author: str | None = None, message: str | None = None, extra: str | None = None
    ) -> None:
        """Set the snapshot's author and message: ``tx.describe(author="ada", message="late")``."""
        info = {"author": author, "message": message, "extra": extra}
        self._info |= {key: value for key, value in info.items() if value is not None}

    def sql(
        self,
        text: str,
        args: Mapping[str, Any] | None = None,
        views: Mapping[str, DataFrame] | None = None,
        *,
        dialect: str = "spark",
    ) -> DataFrame:
        """As `Lake.sql`, inside the transaction: ``tx.sql("DROP TABLE IF EXISTS visits")``."""
        if self.runs_sql is None:
            raise ArgumentError(
                "this transaction was not begun by a lake", hint="use lake.transaction()"
            )
        return self.runs_sql(self, text, args, views, dialect)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """``with tx.all_or_nothing(): ...``: an error inside undoes what the block staged."""
        tables, nameless = dict(self._tables), list(self._nameless)
        compactions = list(self._compactions)
        names, info = self._names.state(), dict(self._info)
        known = (*tables.values(), *nameless)
        with ExitStack() as each:
            for table in known:
                each.enter_context(table.all_or_nothing())
            try:
                yield
                if self._compactions:
                    check_together(self._changes())
            except BaseException:
                for table in (*self._tables.values(), *self._nameless):
                    if table not in known:
                        table.discard()
                for staged in self._compactions[len(compactions) :]:
                    staged.discard()
                self._compactions = compactions
                self._tables, self._nameless, self._info = tables, nameless, info
                self._names.restore(names)
                raise

    def on_commit(self, write: OnCommit) -> None:
        """Run a function in the commit's transaction: ``tx.on_commit(lambda c, id: print(id))``.

        It gets the connection and the id of the snapshot.
        """
        self._on_commit.append(write)

    def compact(self, compactions: Sequence[Compaction], discard: Callable[[], None]) -> None:
        """For maintenance, as in ``tx.sql("CALL lake.flush_inlined_data()")``.

        Compactions of the snapshot ``base`` are published; ``discard`` removes their files.
        """
        self._compactions += [Uncommitted(compaction, discard) for compaction in compactions]
        check_together(replace(self._changes(), compactions=self._compacted()))

    def set_option(self, write: Callable[[Connection], None]) -> None:
        """For ``tx.sql("CALL lake.set_option(...)")``: written at the commit, with no snapshot."""
        self._options.append(write)

    @property
    def has_changes(self) -> bool:
        """Return whether anything is staged: ``tx.has_changes``."""
        return bool(self._changes() or self._options)

    def commit(self) -> Snapshot | None:
        """Publish what was staged: ``tx.commit()``; ``None`` when nothing was staged.

        ``on_commit`` does not run then. When the commit did not land, the staged files are removed:
        CommitConflict, RetriesExhausted, CatalogLocked. CommitUnknown does not remove them.
        """
        changes, options = self._changes(), list(self._options)
        if not changes:
            self.rollback()
            if options:
                with self._catalog.writing() as connection:
                    for write in options:
                        write(connection)
            return None
        on_commit = [*self._on_commit, *(_at_commit(write) for write in options)]
        # If this call ends without an answer (Ctrl-C, a fault), the commit may have landed: then
        # its files must stay, even when the caller rolls back.
        self._outcome_open = True
        try:
            snapshot = self._catalog.commit(self.base, changes, **self._info, on_commit=on_commit)
        except CommitUnknown:
            raise
        except (CommitError, CatalogError, ReadOnlyLake):
            self._outcome_open = False
            self.rollback()
            raise
        self._outcome_open = False
        for staged in self._compactions:
            if not fits(staged.compaction, changes.tables):
                staged.discard()
        self._clear()
        return snapshot

    def rollback(self) -> None:
        """Discard everything staged and remove its files: ``tx.rollback()``.

        After a commit with an unknown outcome the files stay: they may belong to the table by now.
        """
        if not self._outcome_open:
            for table in (*self._tables.values(), *self._nameless):
                table.discard()
            for staged in self._compactions:
                staged.discard()
        self._clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.commit()
        elif not isinstance(error, CommitUnknown):
            self.rollback()

    def _clear(self) -> None:
        self._options.clear()
        self._tables.clear()
        self._nameless.clear()
        self._compactions.clear()
        self._names.clear()

    def _table(self, ref: TableRef) -> TransactionTable:
        key = key_of(ref)
        if key not in self._tables:
            table = TransactionTable(self._context, ref.schema, ref.name)
            base = table.candidate.base
            known = [other.candidate.base for other in (*self._tables.values(), *self._nameless)]
            if base is not None and any(other and other.id == base.id for other in known):
                table.forget_base()  # it has another name by now
            table.renaming = self.rename_table
            self._tables[key] = table
        return self._tables[key]

    def _tables_in(self, schema: str) -> list[TransactionTable]:
        if self._names.is_of_base(schema):
            with self._catalog.reading() as connection:
                rows = reads.table_names(connection, self.base.id)
            for row in rows:
                if fold(row.schema_name) == fold(schema) and row.parent_schema_id is None:
                    self._table(TableRef(row.schema_name, row.table_name))
        tables = self._tables.items()
        return [table for (of, _), table in tables if of == fold(schema) and table.exists]

    def _check_free(self, ref: TableRef, kind: str, *, or_replace: bool = False) -> None:
        existing = self.kind_of(_quoted(ref))
        if existing is not None and not (or_replace and existing == kind):
            raise taken(kind, str(ref), existing)

    def _required(self, kind: str, ref: TableRef, *, if_exists: bool = False) -> bool:
        """Return whether an object of this kind exists. Raises TableNotFound unless it may be
        missing.
        """
        existing = self.kind_of(_quoted(ref))
        if existing == kind:
            return True
        if existing is None and if_exists:
            return False
        if existing is None and kind == "table" and self._names.is_of_base(ref.schema):
            self._catalog.table(ref.schema, ref.name, self.base.id)  # says what may be meant
        raise TableNotFound(
            f"{kind} {ref} does not exist" + (f": it is a {existing}" if existing else ""),
            hint=f"it is dropped by DROP {existing.upper()}, altered by ALTER {existing.upper()}"
            if existing
            else f"SHOW TABLES lists what there is; DROP {kind.upper()} IF EXISTS needs none",
            data={"schema": ref.schema, kind: ref.name},
        )

    def _changes(self) -> ChangeSet:
        staged = (*self._nameless, *self._tables.values())
        changes = (table.candidate.change() for table in staged)
        tables = tuple(change for change in changes if change is not None)
        return replace(
            self._names.changes(),
            tables=tables,
            compactions=tuple(each for each in self._compacted() if fits(each, tables)),
        )

    def _compacted(self) -> tuple[Compaction, ...]:
        return tuple(staged.compaction for staged in self._compactions)


def _at_commit(write: Callable[[Connection], None]) -> OnCommit:
    return lambda connection, _: write(connection)


def _quoted(ref: TableRef) -> str:
    return f"{quote_identifier(ref.schema)}.{quote_identifier(ref.name)}"
