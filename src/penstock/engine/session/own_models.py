"""The models of an environment with tables of its own (`environment_tables`).

A model's table is the environment's own where that exists, or where a run is asked to make it; the
tables of all others are read where another environment made them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from penstock.engine.planning.plan import Plan
from penstock.engine.planning.selection import States
from penstock.engine.planning.slices import RunRequest
from penstock.engine.session.connections import Connections
from penstock.errors import ArgumentError, LakeError
from penstock.model.definition.graph import Graph, table_key
from penstock.model.definition.model import Model
from penstock.model.definition.own_tables import mixed, moved_tables, require_free, why_shared
from penstock.model.project.loader import Loaded
from penstock.settings.environment_tables import OwnTables
from penstock.sql.identifiers import fold


@dataclass
class OwnModels:
    """``base`` are the models as they are without a suffix."""

    connections: Connections
    base: Loaded
    settings: OwnTables
    _loaded: dict[frozenset[str], Loaded] = field(default_factory=dict)

    @classmethod
    def of(cls, connections: Connections, base: Loaded, settings: OwnTables) -> OwnModels:
        """Raises ModelError where a schema with the suffix is another model's."""
        require_free(base.models, settings.suffix)
        return cls(connections, base, settings)

    @cached_property
    def by_name(self) -> dict[str, Model]:
        return {model.name: model for model in self.base.models}

    @cached_property
    def graph(self) -> Graph:
        return Graph.of(self.base.models)

    def existing(self) -> frozenset[str]:
        """The models whose own table, or view, is there; all where no other tables are read."""
        able = {model.name: model for model in self.base.models if why_shared(model) is None}
        if self.settings.reads is None:
            return frozenset(able)
        there = {
            name
            for lake in dict.fromkeys(model.target.lake for model in able.values())
            for name in self._tables(lake)
        }
        suffix = fold(self.settings.suffix)
        keys = {
            name: (m.target.lake, f"{fold(m.target.schema)}{suffix}.{fold(m.target.table)}")
            for name, m in able.items()
        }
        return frozenset(name for name, key in keys.items() if key in there)

    def _tables(self, lake: str) -> set[tuple[str, str]]:
        """The tables and views of a lake, folded; none where it cannot be read."""
        with suppress(LakeError):
            catalog = self.connections.catalog(lake)
            if catalog is not None:
                latest = catalog.latest().id
                tables = [f"{each.schema_name}.{each.name}" for each in catalog.tables(latest)]
                return {(lake, fold(name)) for name in (*tables, *catalog.views(latest))}
        return set()

    def with_own(self, names: Collection[str] = ()) -> Loaded:
        """Return the models, those of ``names`` and the existing ones as the environment's own."""
        able = {name for name in names if why_shared(self.by_name[name]) is None}
        own = self.existing() | able
        if own not in self._loaded:
            self._loaded[own] = self._load(own)
        return self._loaded[own]

    def _load(self, own: frozenset[str]) -> Loaded:
        made = [m for m in self.base.models if m.name in own or not m.strategy.runs]
        moved = moved_tables(made, self.settings.suffix)
        loaded = self.connections.load_models(moved)
        models = mixed(self.base.models, loaded.models, own)
        return replace(self.base, models=models, moved=moved)

    def read_elsewhere(self, plan: Plan, models: Mapping[str, Model]) -> Iterator[str]:
        """Yield which inputs of a plan's steps are tables of another environment."""
        inputs = dict.fromkeys(
            plan.makers.get(table_key(table))
            for step in plan.steps
            if not step.skipped
            for table in step.model.inputs
        )
        found = [name for name in inputs if name is not None and not models[name].own]
        if found:
            said = ", ".join(f"{models[name].target}" for name in sorted(found))
            yield f"read from environment {self.settings.reads}: {said}"

    def selected(self, request: RunRequest, states: States) -> tuple[frozenset[str], RunRequest]:
        """Return the models that a request makes, and the request with their names.

        Raises ArgumentError for one that is named and cannot have a table of its own.
        """
        found = request.selection.of(self.by_name, self.graph, states)
        runs = {name for name in found.names if self.by_name[name].strategy.runs}
        shared = {name: why for name in runs if (why := why_shared(self.by_name[name]))}
        for name in sorted(shared):
            if name in request.select:
                raise ArgumentError(
                    f"{name} cannot have a table of this environment's own: {shared[name]}",
                    hint="run it in the environment that it is of",
                )
        able = frozenset(runs - set(shared))
        if not able or not (request.selection or shared):
            return able, request
        return able, replace(request, select=tuple(sorted(able)), to=())
