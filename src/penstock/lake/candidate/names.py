"""Schemas, views and macros inside a transaction: those at its base with what it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import ArgumentError, NameTaken, NotFound, SchemaNotFound, TableNotFound
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.definitions.macros import load_macros
from penstock.lake.catalog.definitions.views import load_views
from penstock.lake.catalog.work import SchemaEntry, schemas_at
from penstock.lake.format.changes import ChangeSet, NewMacro, NewView, TagChanges
from penstock.lake.format.naming import DEFAULT_SCHEMA, TableRef, directory_name, fold, new_uuid7
from penstock.lake.format.objects import COMMENT, View
from penstock.lake.snapshot import Snapshot
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
    """Not for several threads at once."""

    def __init__(self, catalog: Catalog, base: Snapshot) -> None:
        self._catalog = catalog
        self._base = base
        self._schemas: dict[str, SchemaEntry] | None = None
        self._new_schemas: dict[str, str] = {}
        self._gone_schemas: dict[str, int] = {}
        self._views: dict[Key, StagedView | None] = {}
        self._gone_views: dict[int, None] = {}
        self._macros: dict[tuple[str, str, str], Macro | NewMacro | None] = {}
        self._gone_macros: dict[int, None] = {}

    def clear(self) -> None:
        for one in self._staged():
            one.clear()

    def state(self) -> tuple[dict[Any, Any], ...]:
        """All that is staged, for `restore`."""
        return tuple(dict(one) for one in self._staged())

    def restore(self, state: Sequence[Mapping[Any, Any]]) -> None:
        """As it was at that `state`."""
        for one, before in zip(self._staged(), state, strict=True):
            one.clear()
            one.update(before)

    def _staged(self) -> tuple[dict[Any, Any], ...]:
        return (
            *(self._new_schemas, self._gone_schemas, self._views, self._gone_views),
            *(self._macros, self._gone_macros),
        )

    def changes(self) -> ChangeSet:
        """All of a change set but its tables."""
        views = [view for view in self._views.values() if view is not None]
        old = [view for view in views if view.base is not None]
        return ChangeSet(
            create_schemas=tuple(self._new_schemas.values()),
            drop_schemas=tuple(self._gone_schemas.values()),
            create_views=tuple(view.new for view in views if view.new is not None),
            drop_views=tuple(self._gone_views),
            rename_views={
                one.base.id: one.name for one in old if one.base and one.base.name != one.name
            },
            view_tags={one.base.id: one.tags for one in old if one.base and one.tags},
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
            known = {one.name for key, one in self._base_schemas().items()} | set(
                self._new_schemas.values()
            )
            raise SchemaNotFound(
                f"there is no schema {name!r}",
                hint=f"create it (Transaction.create_schema); there are {', '.join(sorted(known))}",
                data={"schema": name},
            )

    def create_schema(self, name: str) -> None:
        if not self.has_schema(name):
            self._new_schemas[fold(name)] = name

    def drop_schema(self, name: str) -> None:
        """Take away a schema; what is in it is gone by now."""
        if fold(name) == DEFAULT_SCHEMA:
            raise ArgumentError(
                "schema main cannot be dropped: DuckDB attaches no lake without it",
                hint="drop its tables and views",
            )
        if self._new_schemas.pop(fold(name), None) is None:
            self._gone_schemas[fold(name)] = self._base_schemas()[fold(name)].id

    def is_of_base(self, name: str) -> bool:
        """Whether what the base has in the schema of this name is still what the name means."""
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
        """Of one schema, as they will be."""
        with self._catalog.reading() as connection:
            at_base = load_views(connection, self._base.id)
        for one in at_base:
            if fold(one.schema_name) == fold(schema):
                self.view(TableRef(one.schema_name, one.name))
        staged = [view for view in self._views.values() if view is not None]
        return [
            TableRef(one.schema_name, one.name)
            for one in staged
            if fold(one.schema_name) == fold(schema)
        ]

    def create_view(self, new: NewView) -> None:
        """A view in place of that of its name, if any."""
        ref = TableRef(new.schema_name, new.name)
        if self.view(ref) is not None:
            self.drop_view(ref)
        self._views[key_of(ref)] = StagedView(new.schema_name, new.name, new=new)

    def drop_view(self, ref: TableRef) -> None:
        found = self._required(ref)
        if found.base is not None:
            self._gone_views[found.base.id] = None
        self._views[key_of(ref)] = None

    def rename_view(self, ref: TableRef, name: str) -> None:
        found = self._required(ref)
        new = None if found.new is None else replace(found.new, name=name)
        self._views[key_of(ref)] = None
        self._views[fold(ref.schema), fold(name)] = replace(found, name=name, new=new)

    def comment_on_view(self, ref: TableRef, text: str | None) -> None:
        found = self._required(ref)
        if found.new is not None:
            changed = replace(found, new=replace(found.new, comment=text))
        else:
            changed = replace(found, tags={**found.tags, COMMENT: text})
        self._views[key_of(ref)] = changed

    def _required(self, ref: TableRef) -> StagedView:
        found = self.view(ref)
        if found is None:
            raise TableNotFound(
                f"there is no view {ref}", hint="look at lake.views()", data={"view": str(ref)}
            )
        return found

    def _view_of_base(self, ref: TableRef) -> StagedView | None:
        with self._catalog.reading() as connection:
            named = load_views(connection, self._base.id, [ref.name])
        for one in named:
            if fold(one.schema_name) == fold(ref.schema):
                return StagedView(one.schema_name, one.name, base=one)
        return None

    # Macros: scalar and table macros may share a name

    def macro(self, ref: TableRef, kind: str) -> Macro | NewMacro | None:
        self._load_macros(ref.schema, [ref.name])
        return self._macros.get((*key_of(ref), kind))

    def macros(self, schema: str) -> list[tuple[TableRef, str]]:
        """Of one schema, with their kinds, as they will be."""
        self._load_macros(schema, None)
        return [
            (TableRef(one.schema_name, one.name), kind)
            for (its, _, kind), one in self._macros.items()
            if one is not None and its == fold(schema)
        ]

    def create_macro(self, new: NewMacro) -> None:
        """A macro in place of that of its name and kind, if any."""
        ref, kind = TableRef(new.schema_name, new.name), new.forms[0].kind
        if self.macro(ref, kind) is not None:
            self.drop_macro(ref, kind)
        self._macros[*key_of(ref), kind] = new

    def drop_macro(self, ref: TableRef, kind: str) -> None:
        found = self.macro(ref, kind)
        if found is None:
            raise NotFound(
                f"there is no {kind} macro {ref}",
                hint="look at lake.macros()",
                data={"macro": str(ref)},
            )
        if isinstance(found, Macro):
            self._gone_macros[found.id] = None
        self._macros[*key_of(ref), kind] = None

    def _load_macros(self, schema: str, names: Sequence[str] | None) -> None:
        if not self.is_of_base(schema):
            return
        with self._catalog.reading() as connection:
            found = load_macros(connection, self._base.id, names)
        for one in found:
            key = (fold(one.schema_name), fold(one.name), one.kind)
            if one.id not in self._gone_macros and self.is_of_base(one.schema_name):
                self._macros.setdefault(key, one)


def taken(kind: str, name: str, by: str) -> NameTaken:
    return NameTaken(
        f"there is a {by} {name} already",
        hint="drop it first, or take another name"
        if by != kind
        else f"write or_replace=True (OR REPLACE) for another {kind} in its place",
        data={by: name},
    )
