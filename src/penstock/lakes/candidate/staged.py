"""Hold what a transaction has staged: schemas, views and macros, and tables whose rows change.

Changes of a table write rows, create the table or add the columns that the rows need, and undo
everything when the call fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.errors import (
    ArgumentError,
    NameTaken,
    NotFound,
    SchemaMismatch,
    SchemaNotFound,
    TableNotFound,
)
from penstock.lakes.candidate.definable import DefinableTable
from penstock.lakes.candidate.state import Candidate
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.commit_context import SchemaEntry, schemas_at
from penstock.lakes.catalog.definitions.stored_sql import load_macros, load_views
from penstock.lakes.format.changes import ChangeSet, NewMacro, NewTable, NewView, TagChanges
from penstock.lakes.format.files import PartitionField, all_rows, live_rows
from penstock.lakes.format.naming import (
    DEFAULT_SCHEMA,
    TableRef,
    directory_name,
    fold,
    names_of,
    new_uuid7,
)
from penstock.lakes.format.objects import COMMENT, SortKey, View
from penstock.lakes.format.partitioning import partition_columns, partition_fields
from penstock.lakes.format.schema import TableSchema, assign_ids, evolve, without_columns
from penstock.lakes.reading.conversions.align import align, growth, typed
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.reading.parquet.footers import remove_directory
from penstock.lakes.snapshot import Snapshot
from penstock.lakes.writing.spark import Written, write
from penstock.sql.identifiers import quote_identifier
from penstock.sql.macros import Macro

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Key = tuple[str, str]


def key_of(ref: TableRef) -> Key:
    return fold(ref.schema), fold(ref.name)


@dataclass(frozen=True, slots=True)
class StagedView:
    """A view as it will be: that of ``base`` under ``name``, or ``new``."""

    schema_name: str
    name: str
    base: View | None = None
    new: NewView | None = None
    tags: TagChanges = field(default_factory=dict)


class StagedNames:
    """Schemas, views and macros of a transaction. For one thread at a time."""

    def __init__(self, catalog: Catalog, base: Snapshot) -> None:
        self._catalog = catalog
        self._base = base
        self._schemas: dict[str, SchemaEntry] | None = None
        self._new_schemas: dict[str, str] = {}
        self._needed_schemas: dict[str, None] = {}
        self._gone_schemas: dict[str, int] = {}
        self._views: dict[Key, StagedView | None] = {}
        self._gone_views: dict[int, None] = {}
        self._macros: dict[tuple[str, str, str], Macro | NewMacro | None] = {}
        self._gone_macros: dict[int, None] = {}

    def clear(self) -> None:
        for names in self._staged():
            names.clear()

    def state(self) -> tuple[dict[Any, Any], ...]:
        """The staged changes, for `restore`."""
        return tuple(dict(names) for names in self._staged())

    def restore(self, state: Sequence[Mapping[Any, Any]]) -> None:
        """Go back to what `state` returned."""
        for names, before in zip(self._staged(), state, strict=True):
            names.clear()
            names.update(before)

    def _staged(self) -> tuple[dict[Any, Any], ...]:
        return (
            *(self._new_schemas, self._needed_schemas, self._gone_schemas),
            *(self._views, self._gone_views, self._macros, self._gone_macros),
        )

    def changes(self) -> ChangeSet:
        """The change set without its tables."""
        views = [view for view in self._views.values() if view is not None]
        old = [view for view in views if view.base is not None]
        return ChangeSet(
            create_schemas=tuple(self._new_schemas.values()),
            needed_schemas=frozenset(self._needed_schemas),
            drop_schemas=tuple(self._gone_schemas.values()),
            create_views=tuple(view.new for view in views if view.new is not None),
            drop_views=tuple(self._gone_views),
            rename_views={
                view.base.id: view.name for view in old if view.base and view.base.name != view.name
            },
            view_tags={view.base.id: view.tags for view in old if view.base and view.tags},
            create_macros=tuple(m for m in self._macros.values() if isinstance(m, NewMacro)),
            drop_macros=tuple(self._gone_macros),
        )

    # Schemas

    def has_schema(self, name: str) -> bool:
        key = fold(name)
        return key in self._new_schemas or (
            key in self._base_schemas() and key not in self._gone_schemas
        )

    def schema_path(self, name: str) -> str:
        """The absolute directory of a schema. Raises SchemaNotFound."""
        self.require_schema(name)
        key = fold(name)
        if key in self._new_schemas:
            return f"{self._catalog.data_path}{directory_name(self._new_schemas[key], new_uuid7())}"
        return self._base_schemas()[key].path

    def require_schema(self, name: str) -> None:
        if not self.has_schema(name):
            known = {schema.name for key, schema in self._base_schemas().items()} | set(
                self._new_schemas.values()
            )
            raise SchemaNotFound(
                f"schema {name!r} does not exist",
                hint=f"CREATE SCHEMA {quote_identifier(name)} makes it (create_schema in Python); "
                f"there are {', '.join(sorted(known))}",
                data={"schema": name},
            )

    def create_schema(self, name: str, *, may_exist: bool) -> None:
        """``may_exist``: others may make it, too, before the transaction commits."""
        if not self.has_schema(name):
            self._new_schemas[fold(name)] = name
            if may_exist:
                self._needed_schemas[fold(name)] = None

    def drop_schema(self, name: str) -> None:
        """Drop a schema, which is empty by now."""
        if fold(name) == DEFAULT_SCHEMA:
            raise ArgumentError(
                "schema main cannot be dropped: DuckDB attaches no lake without it",
                hint="drop its tables and views",
            )
        self._needed_schemas.pop(fold(name), None)
        if self._new_schemas.pop(fold(name), None) is None:
            self._gone_schemas[fold(name)] = self._base_schemas()[fold(name)].id

    def is_of_base(self, name: str) -> bool:
        """Return whether the name still means the schema that the base has under it."""
        return fold(name) not in self._new_schemas and fold(name) not in self._gone_schemas

    def _base_schemas(self) -> Mapping[str, SchemaEntry]:
        if self._schemas is None:
            with self._catalog.reading() as connection:
                self._schemas = schemas_at(connection, self._catalog.data_path, self._base)
        return self._schemas

    # Views

    def view(self, ref: TableRef) -> StagedView | None:
        key = key_of(ref)
        if key not in self._views:
            self._views[key] = self._view_of_base(ref) if self.is_of_base(ref.schema) else None
        return self._views[key]

    def views(self, schema: str) -> list[TableRef]:
        """The views of a schema as they will be after the commit."""
        with self._catalog.reading() as connection:
            at_base = load_views(connection, self._base.id)
        for view in at_base:
            if fold(view.schema_name) == fold(schema):
                self.view(TableRef(view.schema_name, view.name))
        staged = [view for view in self._views.values() if view is not None]
        return [
            TableRef(view.schema_name, view.name)
            for view in staged
            if fold(view.schema_name) == fold(schema)
        ]

    def create_view(self, new: NewView) -> None:
        """Create or replace a view."""
        ref = TableRef(new.schema_name, new.name)
        if self.view(ref) is not None:
            self.drop_view(ref)
        self._views[key_of(ref)] = StagedView(new.schema_name, new.name, new=new)

    def drop_view(self, ref: TableRef) -> None:
        view = self._required(ref)
        if view.base is not None:
            self._gone_views[view.base.id] = None
        self._views[key_of(ref)] = None

    def rename_view(self, ref: TableRef, name: str) -> None:
        view = self._required(ref)
        new = None if view.new is None else replace(view.new, name=name)
        self._views[key_of(ref)] = None
        self._views[fold(ref.schema), fold(name)] = replace(view, name=name, new=new)

    def comment_on_view(self, ref: TableRef, text: str | None) -> None:
        view = self._required(ref)
        if view.new is not None:
            changed = replace(view, new=replace(view.new, comment=text))
        else:
            changed = replace(view, tags={**view.tags, COMMENT: text})
        self._views[key_of(ref)] = changed

    def _required(self, ref: TableRef) -> StagedView:
        view = self.view(ref)
        if view is None:
            raise TableNotFound(
                f"view {ref} does not exist", hint="look at lake.views()", data={"view": str(ref)}
            )
        return view

    def _view_of_base(self, ref: TableRef) -> StagedView | None:
        with self._catalog.reading() as connection:
            named = load_views(connection, self._base.id, [ref.name])
        for view in named:
            if fold(view.schema_name) == fold(ref.schema):
                return StagedView(view.schema_name, view.name, base=view)
        return None

    # Macros: scalar and table macros may share a name

    def macro(self, ref: TableRef, kind: str) -> Macro | NewMacro | None:
        self._load_macros(ref.schema, [ref.name])
        return self._macros.get((*key_of(ref), kind))

    def macros(self, schema: str) -> list[tuple[TableRef, str]]:
        """The macros of a schema with their kinds, as they will be after the commit."""
        self._load_macros(schema, None)
        return [
            (TableRef(macro.schema_name, macro.name), kind)
            for (schema_key, _, kind), macro in self._macros.items()
            if macro is not None and schema_key == fold(schema)
        ]

    def create_macro(self, new: NewMacro) -> None:
        """Create or replace a macro of this kind."""
        ref, kind = TableRef(new.schema_name, new.name), new.forms[0].kind
        if self.macro(ref, kind) is not None:
            self.drop_macro(ref, kind)
        self._macros[*key_of(ref), kind] = new

    def drop_macro(self, ref: TableRef, kind: str) -> None:
        macro = self.macro(ref, kind)
        if macro is None:
            raise NotFound(
                f"{kind} macro {ref} does not exist",
                hint="look at lake.macros()",
                data={"macro": str(ref)},
            )
        if isinstance(macro, Macro):
            self._gone_macros[macro.id] = None
        self._macros[*key_of(ref), kind] = None

    def _load_macros(self, schema: str, names: Sequence[str] | None) -> None:
        if not self.is_of_base(schema):
            return
        with self._catalog.reading() as connection:
            macros = load_macros(connection, self._base.id, names)
        for macro in macros:
            key = (fold(macro.schema_name), fold(macro.name), macro.kind)
            if macro.id not in self._gone_macros and self.is_of_base(macro.schema_name):
                self._macros.setdefault(key, macro)


def taken(kind: str, name: str, by: str) -> NameTaken:
    return NameTaken(
        f"there is a {by} {name} already",
        hint="drop it first, or take another name"
        if by != kind
        else f"write or_replace=True (OR REPLACE) for another {kind} in its place",
        data={by: name},
    )


SliceOf = tuple[str, object]


class StagedTable(DefinableTable):
    """One table inside a transaction whose rows can change; for one thread at a time."""

    _partition_by: Sequence[str] = ()  # of a table that is made, where its maker says nothing else
    _sort_by: tuple[SortKey, ...] = ()

    def lay_out(self, partition_by: Sequence[str], sort_by: Sequence[str]) -> None:
        """Partition and sort what is written from now on by these keys, in the table that there is
        and in one that is made. Files that are there stay as they are.
        """
        self._partition_by, self._sort_by = partition_by, tuple(map(SortKey, sort_by))
        if not self.exists:
            return
        self.set_partitioning(partition_fields(self.schema, partition_by))
        self.set_sorting(self._sort_by)

    def wanted_fields(
        self, schema: TableSchema, partition_by: str | Sequence[str]
    ) -> tuple[PartitionField, ...]:
        """``partition_by``, or what `lay_out` has said, as keys of these columns."""
        return partition_fields(schema, partition_by or self._partition_by)

    def evolve(self, df: DataFrame, *, drop: str | Sequence[str] = ()) -> None:
        """Make the table able to hold ``df``: its new columns are added at the end (NULL in the
        rows there are), types are widened where that loses nothing, columns in ``drop`` go.

        Other snapshots keep their columns. A type that cannot be widened is left for the write to
        refuse; a column that the table is partitioned by stays.
        """
        base = self._candidate.base
        if base is None or self._candidate.create is not None:
            return
        current = without_columns(self.schema, self._droppable(names_of(drop, "drop")))
        wanted = growth(schema_of(typed(df, current)), current)
        if wanted.columns or current != self.schema:
            self.alter(evolve(current, wanted))

    def _droppable(self, names: Sequence[str]) -> list[str]:
        keys = {fold(key.column) for key in self._candidate.partition_by}
        return [name for name in names if fold(name) not in keys]

    def discard(self) -> None:
        """Forget what was staged for this table and remove its files."""
        self._candidate = self._start
        for directory in self._directories:
            remove_directory(directory)
        self._directories.clear()

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Undo what a call staged when it fails."""
        start, candidate, directories = self._start, self._candidate, list(self._directories)
        outermost = self._aside is None
        aside: list[str] = [] if self._aside is None else self._aside
        self._aside, before = aside, len(aside)
        try:
            yield
        except BaseException:
            for directory in (*self._directories, *aside[before:]):
                if directory not in directories:
                    remove_directory(directory)
            self._start, self._candidate, self._directories = start, candidate, directories
            del aside[before:]
            raise
        finally:
            if outermost:
                self._aside = None
                for directory in aside:
                    remove_directory(directory)

    def ensure(self, df: DataFrame, partition_by: str | Sequence[str]) -> None:
        """Create the table with the columns of ``df`` when it is missing."""
        if not self.exists:
            self.create_for(df, partition_by)

    def depend(self, slice_of: SliceOf | None = None, *, mixed: bool = False) -> None:
        """Let the commit fail if another one changes rows of the table, or of a slice, meanwhile.

        What is staged was made from the rows that are there, also where there are none: two that
        fill the same nothing would leave the rows of both. ``mixed``: files hold rows of the slice
        and of others. What this transaction itself created nobody else can change.
        """
        candidate = self._candidate
        if not candidate.reads_base:
            return
        if slice_of is not None:
            name, text = self.slice_key(*slice_of)
            # What others write meanwhile goes by the names that the columns had.
            based = candidate.base_name(self._column(name))
            if based is not None and not mixed:
                slices = (*candidate.replaces, (based, text))
                self._candidate = replace(candidate, replaces=slices)
                return
        self._candidate = replace(candidate, depends_on_rows=True)

    def write_frame(
        self,
        df: DataFrame,
        *,
        slice: tuple[str, object] | None = None,  # noqa: A002 - as in merge
        partitions: int | None = None,
        with_fingerprint: bool = False,
    ) -> Written:
        """Write the rows of a DataFrame, all of one slice where ``slice`` is set, to files that
        belong to no candidate state yet and are removed with what is staged.

        ``partitions`` is the number of partitions that the rows belong to, where it is known.
        """
        target = replace(self.target(slice), partitions=partitions)
        columns = align(df, self.written_schema, table=self._candidate.qualified_name)
        written = write(df, columns, target, with_fingerprint=with_fingerprint)
        self.stage(self._candidate, written.directory)
        return written

    def count_rows(self, slice_of: SliceOf | None = None) -> int:
        """The number of rows of the table, or of a slice, after the commit; files are read only
        where the catalog does not hold the number.
        """
        files = self.files()
        if slice_of is None:
            return all_rows(files)
        whole, maybe = self.split(*slice_of)
        if maybe or files.inlined is not None or files.inlined_deletes is not None:
            return self.slice_df(*slice_of).count()
        return live_rows(whole)

    def create_for(self, df: DataFrame, partition_by: str | Sequence[str]) -> None:
        """Create the table with the columns of ``df``, replacing the one that exists."""
        schema = assign_ids(schema_of(df))
        if not schema.columns:
            raise SchemaMismatch(
                f"{self._candidate.qualified_name} cannot be made of rows without columns",
                hint="select at least one column",
            )
        self._refuse_reserved(schema.names)
        fields = self.wanted_fields(schema, partition_by)
        partition_columns(schema, fields)
        uuid = new_uuid7()
        start = self._candidate
        directory = self._context.schema_path(start.schema_name)
        path = f"{directory}{directory_name(start.name, uuid)}"
        self._candidate = Candidate(
            start.schema_name,
            start.name,
            start.base,
            NewTable(uuid, schema, path, fields, self._sort_by),
        )
