"""Hold what every operation of a project needs: its settings, its models and its connections."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.engine.session.cache import CacheFile, columns, lineages, query_facts, slice_states
from penstock.engine.session.cache import edges as edge_cache
from penstock.engine.session.connections import Connections
from penstock.errors import LakeError, TableNotFound
from penstock.events import EventSink, ignore
from penstock.model.definition.by_model import ByModel
from penstock.model.definition.external import External
from penstock.model.definition.graph import (
    Graph,
    check_graph,
    fingerprint_models,
    makers_by_table,
    named,
)
from penstock.model.definition.model import Model
from penstock.model.project.loader import Loaded
from penstock.model.values.strategy import Output
from penstock.settings.config import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from penstock.engine.planning.slice_states import KnownSlices
    from penstock.engine.planning.state_cache import StateCache
    from penstock.engine.session.own_models import OwnModels
    from penstock.engine.state.store import State
    from penstock.lakes.catalog.catalog import Catalog, Catalogs
    from penstock.lakes.lake import Lake
    from penstock.model.lineage.models import ProjectLineage, Schemas
    from penstock.model.slicing.needs import Edge
    from penstock.model.slicing.query_facts import QueryFacts
    from penstock.model.slicing.table_reads import TableRead
    from penstock.model.values.asset import TableName


V = TypeVar("V")
_MANY = 50  # models whose edges are remembered across processes, and derived one by one


@dataclass(frozen=True, eq=False)
class ProjectContext:
    """A project as an operation sees it. Threads may share one.

    A context never changes. What it derives of the models is computed once and kept, so an
    operation that needs other models, as of an environment with tables of its own, takes another
    context.

    Attributes:
        settings: The settings of the project in its environment.
        loaded: The models, and the tables of others that are declared.
        connections: The Spark session and the lakes; contexts of one project share them.
        own_models: The models of an environment that has tables of its own; None elsewhere.
        sink: Receives the event that Spark starts, unless an operation has a sink of its own.
    """

    settings: Settings
    loaded: Loaded
    connections: Connections
    own_models: OwnModels | None = None
    sink: EventSink = ignore

    @classmethod
    def of(
        cls,
        settings: Settings,
        loaded: Loaded,
        connections: Connections,
        sink: EventSink = ignore,
    ) -> ProjectContext:
        """Return the context of a project, with the environment's own tables that exist.

        Args:
            settings: The settings of the project.
            loaded: The models as they are without a suffix.
            connections: The Spark session and the lakes.
            sink: Receives the event that Spark starts.

        Returns:
            The context.

        Raises:
            ModelError: A schema with the environment's suffix is another model's.
        """
        if settings.own_tables is None:
            return cls(settings, loaded, connections, sink=sink)
        from penstock.engine.session.own_models import OwnModels

        own_models = OwnModels.of(connections, loaded, settings.own_tables)
        return cls(settings, own_models.with_own(), connections, own_models, sink)

    def with_own(self, names: Collection[str] = ()) -> ProjectContext:
        """Return the context in which the environment has tables of its own for these models.

        Args:
            names: Models whose tables the environment is to have, beside those that exist. All
                other tables are read where another environment built them.

        Returns:
            Another context, or this one where nothing differs.
        """
        if self.own_models is None:
            return self
        loaded = self.own_models.with_own(names)
        return self if loaded is self.loaded else replace(self, loaded=loaded)

    # --- models

    @property
    def models(self) -> tuple[Model, ...]:
        """Return the models of the project."""
        return self.loaded.models

    @property
    def externals(self) -> tuple[External, ...]:
        """Return the declared tables that no model of the project builds."""
        return self.loaded.externals

    @cached_property
    def by_name(self) -> Mapping[str, Model]:
        """Return the models by their names."""
        return {model.name: model for model in self.models}

    def model(self, name: str) -> Model:
        """Return a model.

        Args:
            name: The model as users may call it.

        Returns:
            The model.

        Raises:
            ArgumentError: No model has this name; the hint has the nearest one.
            LakeClosed: The project is closed.
        """
        self.connections.check_open()
        return named(self.models, name)

    def require_own(self, table: TableName) -> None:
        """Refuse a table that another environment built.

        Args:
            table: The table to change.

        Raises:
            ArgumentError: Another environment built the table.
        """
        if self.settings.own_tables is not None:
            from penstock.model.definition.own_tables import require_own

            require_own(table, self.settings.own_tables.suffix, self.settings.environment)

    @cached_property
    def graph(self) -> Graph:
        """Return which model reads which."""
        return Graph.of(self.models)

    @cached_property
    def edges(self) -> Mapping[str, tuple[Edge, ...]]:
        """Return which slices of what it reads each model needs, by its name.

        Each is derived when it is asked for; `save_facts` keeps them.
        """
        if not any(model.inputs for model in self.models):
            return {}
        from penstock.model.slicing.needs import edge_finder

        lakes = self.settings.lakes
        partition_columns = {name: lake.partition_column for name, lake in lakes.items()}
        column = partition_columns.__getitem__
        find_edges = edge_finder(self.makers, column, self.facts.windows, self._time_zone)
        cache = self._edges_file
        if cache is None or self._has_wrong_graph:  # `check` reports what is wrong
            return self._derive_by_model(find_edges)
        # Late: few models have their edges found as soon.
        from penstock.model.project.edge_cache import remember_edges

        def recall_edges(models: Sequence[Model]) -> Mapping[str, tuple[Edge, ...]]:
            return remember_edges(models, self.by_name, self.fingerprints, cache, find_edges)

        return ByModel(self.models, recall_edges)

    def _derive_by_model(
        self, derive: Callable[[Sequence[Model]], Mapping[str, V]]
    ) -> Mapping[str, V]:
        """Return values of models, derived when they are asked for.

        Those of a small project are derived at once: what a run learns of its queries saves the
        next command more than this one takes.
        """
        return ByModel(self.models, derive) if self.has_many_models else derive(self.models)

    @property
    def has_many_models(self) -> bool:
        """Return whether values of few models are derived much faster than those of all."""
        return len(self.models) >= _MANY

    @cached_property
    def makers(self) -> Mapping[str, Model]:
        """Return the models by the tables that they make.

        Returns:
            The models, by `table_key`.
        """
        return makers_by_table(self.models)

    @property
    def _has_wrong_graph(self) -> bool:
        is_checked = self.own_models is None and not self.loaded.errors
        return not is_checked and bool(check_graph(self.models))

    @cached_property
    def fingerprints(self) -> Mapping[str, str]:
        """Return the fingerprints of models, with the settings that their states depend on.

        Returns:
            The fingerprints, by the names of models.
        """
        lakes, spark = self.settings.lakes, self.settings.spark
        columns = sorted((name, lake.partition_column) for name, lake in lakes.items())
        meaning = sorted(spark.meaning.items())
        settings = (self.settings.environment, columns, self._time_zone, meaning)
        return fingerprint_models(self.models, self.graph, settings)

    @property
    def _time_zone(self) -> str:
        return str(self.settings.spark.conf.get("spark.sql.session.timeZone", "UTC"))

    @cached_property
    def _edges_file(self) -> CacheFile[bytes] | None:
        return edge_cache(self.settings) if self.has_many_models else None

    @cached_property
    def _facts_file(self) -> CacheFile[Any] | None:
        return query_facts(self.settings)

    @cached_property
    def facts(self) -> QueryFacts:
        """Return what plans ask of queries, kept across processes."""
        from penstock.model.slicing.query_facts import QueryFacts

        return QueryFacts({} if self._facts_file is None else self._facts_file)

    @cached_property
    def _states_file(self) -> CacheFile[Any] | None:
        return slice_states(self.settings)

    def save_facts(self) -> None:
        """Write the facts, the edges and the states that are new to their files."""
        for file in (self._facts_file, self._edges_file, self._states_file):
            if file is not None:
                file.save()

    def _state_cache(self, *, is_of_all: bool) -> StateCache | None:
        from penstock.destinations.capabilities import KINDS
        from penstock.engine.planning.state_cache import Dependencies, StateCache

        if self._states_file is None:
            return None
        kinds = {name: KINDS[lake.kind] for name, lake in self.settings.lakes.items()}
        lasting = frozenset(name for name, kind in kinds.items() if kind.has_lasting_snapshots)
        reads = Dependencies(self.edges, self.table_reads, self.views_read)
        return StateCache(self._states_file, self.fingerprints, reads, lasting, is_of_all)

    @cached_property
    def table_reads(self) -> Mapping[str, tuple[TableRead, ...]]:
        """Return the tables whose changes of rows put slices of each model behind."""
        if not any(model.inputs for model in self.models):
            return {}
        from penstock.model.slicing.table_reads import table_reads_of

        def find_reads(models: Sequence[Model]) -> Mapping[str, tuple[TableRead, ...]]:
            return table_reads_of(models, self.facts.windows, self.makers)

        return self._derive_by_model(find_reads)

    @cached_property
    def views_read(self) -> Mapping[str, tuple[Model, ...]]:
        """Return the VIEW models that each model reads."""
        if not any(model.strategy.output is Output.VIEW for model in self.models):
            return {}
        from penstock.model.slicing.undated import views_read

        return self._derive_by_model(lambda models: views_read(models, self.makers))

    def lineage(
        self, names: Collection[str] | None = None, *, lakes: bool = True
    ) -> tuple[ProjectLineage, Schemas]:
        """Return the columns of models and of the tables that they read.

        Args:
            names: The models; None for all. Of a few the lakes are asked for the tables that these
                name.
            lakes: Ask the lakes for the columns of tables that no model builds.

        Returns:
            The lineage, and the columns that are known beside it.
        """
        from penstock.engine.answers.lineage import schemas
        from penstock.model.lineage.models import project_lineage

        cache = lineages(self.settings) if lakes else columns(self.settings)
        catalogs: Catalogs = self.catalog if lakes else lambda _: None
        ordered = self.graph.ordered(self.models)
        models = ordered if names is None else [one for one in ordered if one.name in names]
        macros, some = self.connections.macros, None if names is None else models
        known_columns = schemas(self.settings, catalogs, macros, self.externals, some)
        lineage = project_lineage(models, known_columns, cache)
        if cache is not None:
            cache.save()
        return lineage, known_columns

    # --- lakes

    def catalog(self, lake: str) -> Catalog | None:
        """Return the catalog of a lake; None where no run has built it yet."""
        return self.connections.catalog(lake)

    def existing_catalogs(self) -> dict[str, Catalog]:
        """Return the catalogs that exist, by the names of their lakes.

        Raises:
            LakeClosed: The project is closed.
        """
        self.connections.check_open()
        catalogs = ((name, self.catalog(name)) for name in self.settings.lakes)
        return {name: catalog for name, catalog in catalogs if catalog is not None}

    def catalog_of(self, table: TableName) -> Catalog:
        """Return the catalog of a table.

        Raises:
            TableNotFound: The lake of the table does not exist yet.
        """
        catalog = self.catalog(table.lake)
        if catalog is None:
            raise TableNotFound(f"lake {table.lake} does not exist yet", hint="nothing has run")
        return catalog

    def state_of(self, model: Model) -> State | None:
        """Return the records of a model's lake; None where no run has built it yet."""
        from penstock.engine.state.store import State

        catalog = self.catalog(model.target.lake)
        return None if catalog is None else State(catalog)

    def lake(self, name: str, *, new_catalog: bool = False) -> Lake:
        """Return a lake of the settings, which is created where it does not exist.

        Args:
            name: The name of the lake in the settings.
            new_catalog: Create a catalog beside the files of a lake that has lost its own.

        Returns:
            The lake.

        Raises:
            CatalogVanished: There is no catalog beside the files of a lake.
        """
        return self.connections.lake(name, self.session, new_catalog=new_catalog)

    def lakes(self, names: Sequence[str], *, new_catalog: bool = False) -> Any:
        """Return the destinations of a plan by their names."""
        return self.connections.lakes(names, self.session, new_catalog=new_catalog)

    def session(self, sink: EventSink | None = None) -> SparkSession:
        """Return the Spark session, which starts where there is none.

        Args:
            sink: Receives the event that Spark starts; None for the context's own.

        Returns:
            The session.
        """
        return self.connections.session(sink or self.sink)

    def slices(
        self, *, behind: bool = True, late: bool = True, is_of_all: bool = True
    ) -> KnownSlices:
        """Return what the catalogs know of slices, asked when it is needed.

        Args:
            behind: Compare slices with what they were built from.
            late: Slices with late rows are to be rebuilt.
            is_of_all: All models are asked for; it is quicker for a few without.

        Returns:
            The knowledge; all its answers are of one moment.
        """
        from penstock.engine.planning.slice_states import KnownSlices

        if not behind:
            return KnownSlices(self.settings, self.catalog)
        return KnownSlices(
            self.settings,
            self.catalog,
            self.edges,
            lambda: self.table_reads,
            late,
            views=lambda: self.views_read,
            files=True,
            cache=self._state_cache(is_of_all=is_of_all),
        )

    def latest_snapshots(self) -> dict[str, int]:
        """Return the latest snapshots of the lakes that can be read; 0 for a lake to be built."""
        latest = {}
        for lake in dict.fromkeys(model.target.lake for model in self.models):
            with suppress(LakeError):  # a run reports that it cannot be read
                catalog = self.catalog(lake)
                latest[lake] = 0 if catalog is None else catalog.latest().id
        return latest
