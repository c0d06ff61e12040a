"""Schemas, views and macros inside a transaction: those at its base with what it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import ArgumentError, NameTaken, NotFound, SchemaNotFound, TableNotFound
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.commit_context import SchemaEntry, schemas_at
from penstock.lake.catalog.definitions.macros import load_macros
from penstock.lake.catalog.definitions.views import load_views
from penstock.lake.format.changes import ChangeSet, NewMacro, NewView, TagChanges
from penstock.lake.format.naming import DEFAULT_SCHEMA, TableRef, directory_name, fold, new_uuid7
from penstock.lake.format.objects import COMMENT, View
from penstock.lake.snapshot import Snapshot
from penstock.sql.identifiers import quote_identifier
from penstock.sql.macros import Macro

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
