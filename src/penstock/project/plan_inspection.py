"""Plan what runs of a project would make, by its models and what the catalogs know of their slices.

`Inspection` and `Project` are built on it: it has the graph of the models and their lakes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from penstock.engine.session.cache import CacheFile, columns, lineages, query_facts
from penstock.engine.session.connections import Connections
from penstock.errors import LakeError
from penstock.events import EventSink, ignore
from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model
from penstock.model.definition.naming import named
from penstock.model.project.loader import Loaded
from penstock.model.values.strategy import Output
from penstock.notebook import count, line, listed, table
from penstock.settings.config import Settings

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import SparkSession

    from penstock.engine.planning.estimates import Estimate
    from penstock.engine.planning.freshness import OldTable
    from penstock.engine.planning.make_plan import Planner
    from penstock.engine.planning.plan import Known, Plan
    from penstock.engine.planning.reasons import Held
    from penstock.engine.planning.run_arguments import Ends, Fired, Positional
    from penstock.engine.planning.slice_reason import DefinitionChange
    from penstock.engine.planning.slice_states import KnownSlices
    from penstock.engine.planning.slices import Partition, RunRequest
    from penstock.engine.session.own_models import OwnModels
    from penstock.engine.state.records import InputRead
    from penstock.engine.state.store import State
    from penstock.engine.verifying.reference_check import MissingColumn
    from penstock.lake.catalog.catalog import Catalog, Catalogs
    from penstock.lake.lake import Lake
    from penstock.model.lineage.models import ProjectLineage, Schemas
    from penstock.model.script.constants import Bindings
    from penstock.model.slicing.needs import Edge
    from penstock.model.slicing.query_facts import QueryFacts
    from penstock.model.slicing.table_reads import TableRead
    from penstock.model.values.asset import TableName


T = TypeVar("T")


def _remembering(
    ask: Callable[[Sequence[Model]], Mapping[str, T]],
) -> Callable[[Sequence[Model]], Mapping[str, T]]:
    """Ask of each model once: all answers of one plan are of one moment."""
    known: dict[str, T] = {}

    def answer(models: Sequence[Model]) -> Mapping[str, T]:
        new = [model for model in models if model.name not in known]
        if new:
            known.update(ask(new))
        return {model.name: known[model.name] for model in models if model.name in known}

    return answer


class PlanInspection:
    """A project that is open: its models, its lakes, and the plans of its runs."""

    def __init__(self, settings: Settings, loaded: Loaded, connections: Connections) -> None:
        """For `load`."""
        self.settings = settings
        self._own_models: OwnModels | None = None
        if settings.own_tables is not None:
            from penstock.engine.session.own_models import OwnModels

            self._own_models = OwnModels.of(connections, loaded, settings.own_tables)
            loaded = self._own_models.with_own()
        self.models = loaded.models
        self.externals = loaded.externals
        self._loaded = loaded
        self.on_event: EventSink = ignore  # hears that Spark starts, where reading rows needs it
        self._connections = connections

    def __repr__(self) -> str:
        models = count(len(self.models), "model")
        return line(self, repr(self.settings.name), models, str(self.settings.root))

    def _repr_html_(self) -> str:
        # a notebook asks, a command never

        rows = [
            (
                each.name,
                each.target,
                each.strategy.name,
                listed([str(table) for table in each.reads]),
            )
            for each in self.models
        ]
        headings = ("model", "table", "strategy", "reads")
        return table(headings, rows, note=f"{self.settings.name}, in {self.settings.root}")

    def _make_own(self, names: Collection[str] = ()) -> None:
        """Let the environment make tables of its own for these models, if it has some at all.

        Those that it does not have, and that are not named, are read where another one made them.
        """
        if self._own_models is None:
            return
        loaded = self._own_models.with_own(names)
        if loaded is self._loaded:
            return
        self.models, self._loaded = loaded.models, loaded
        for derived in ("graph", "edges", "_table_reads", "_views_read"):
            self.__dict__.pop(derived, None)

    def _in_state(self, word: str) -> set[str]:
        """The models of which a slice is in a state."""
        raise NotImplementedError("`Inspection` asks for the states of all")

    def _owned(self, request: RunRequest) -> RunRequest:
        """The request, when the models that it makes are the environment's own."""
        if self._own_models is None:
            return request
        self._make_own()
        names, request = self._own_models.selected(request, self._in_state)
        self._make_own(names)
        return request

    def _require_own(self, table: TableName) -> None:
        """Raise ArgumentError for a table that another environment made."""
        if self.settings.own_tables is not None:
            from penstock.model.definition.own_tables import require_own

            require_own(table, self.settings.own_tables.suffix, self.settings.environment)

    @cached_property
    def graph(self) -> Graph:
        """Return which model reads which: ``project.graph.order()`` has each
        after what it reads.
        """
        return Graph.of(self.models)

    @cached_property
    def edges(self) -> Mapping[str, tuple[Edge, ...]]:
        """Return which slices of what it reads each model needs, by its name:
        ``project.edges["orders"]``.
        """
        if not any(model.inputs for model in self.models):
            return {}
        from penstock.model.slicing.needs import edges_of

        lakes, facts = self.settings.lakes, self._facts
        zone = str(self.settings.spark.conf.get("spark.sql.session.timeZone", "UTC"))
        columns = {name: lake.partition_column for name, lake in lakes.items()}
        found = edges_of(self.models, columns.__getitem__, facts.windows, zone)
        self._save_facts()
        return found

    @cached_property
    def _known_facts(self) -> CacheFile[Any] | None:
        return query_facts(self.settings)

    @cached_property
    def _facts(self) -> QueryFacts:
        from penstock.model.slicing.query_facts import QueryFacts

        return QueryFacts({} if self._known_facts is None else self._known_facts)

    def _save_facts(self) -> None:
        if self._known_facts is not None:
            self._known_facts.save()

    @cached_property
    def _table_reads(self) -> Mapping[str, tuple[TableRead, ...]]:
        """Return the tables whose changes of rows put slices of each model behind."""
        if not any(model.inputs for model in self.models):
            return {}
        from penstock.model.slicing.table_reads import table_reads_of

        return table_reads_of(self.models, self._facts.windows)

    @cached_property
    def _views_read(self) -> Mapping[str, tuple[Model, ...]]:
        """Return the VIEW models that each model reads."""
        if not any(model.strategy.output is Output.VIEW for model in self.models):
            return {}
        from penstock.model.slicing.undated import views_read

        return views_read(self.models)

    def plan(
        self,
        *models: Positional,
        partition: Partition | None = None,
        select: str | Sequence[str] | None = None,
        exclude: str | Sequence[str] | None = None,
        args: Mapping[str, object] | None = None,
        fire_time: Fired | None = None,
        payload: Mapping[str, Any] | None = None,
        trigger: str = "manual",
        full_refresh: bool = False,
        from_: Partition | None = None,
        to: Ends = None,
        all_: bool = False,
        upstream: bool = False,
        allow_missing: bool = False,
        behind: bool | None = None,
        changed: bool = False,
        force: bool = False,
    ) -> Plan:
        """Return what `run` would do: ``project.plan("orders").steps``.

        The ``stages`` of a step say what becomes of its table first, where that is dropped or
        altered, or the step refused, its ``ranges`` why its slices are made, and the ``changes`` of
        the plan what changed definitions touch. Reads the catalogs, and starts no Spark. Raises
        ArgumentError, PartitionError.
        """
        request = self._request(
            *models,
            partition=partition,
            select=select,
            exclude=exclude,
            args=args,
            fire_time=fire_time,
            payload=payload,
            trigger=trigger,
            full_refresh=full_refresh,
            from_=from_,
            to=to,
            all_=all_,
            upstream=upstream,
            allow_missing=allow_missing,
            behind=behind,
            changed=changed,
            force=force,
        )
        return self._told(request)

    def estimates(self, plan: Plan) -> Mapping[str, Estimate]:
        """Return what the steps of a `plan` will take, by past runs:
        ``project.estimates(project.plan())["orders"].seconds``.
        """
        from penstock.engine.planning.estimates import estimates

        return estimates(plan, self._catalog)

    def _told(self, request: RunRequest) -> Plan:
        """The plan of a request, with what it does to tables and why it makes each slice."""
        from penstock.engine.planning.plan_notices import doubts_of
        from penstock.engine.planning.reasons import with_reasons

        known, snapshots = self._plan_known(request, restates=request.changed), self._moments()
        plan = self._planned(request, known=known)
        plan = replace(plan, notices=(*plan.notices, *doubts_of(plan)))
        with suppress(LakeError):  # which the stages of its steps say
            plan = with_reasons(plan, known, self._held(plan), snapshots)
            plan = replace(plan, changes=tuple(self._changes(plan, known)))
        staged = self._with_references(self._staged(self._with_files(plan)))
        self._save_facts()
        return staged

    def _with_references(self, plan: Plan) -> Plan:
        """The plan where steps fail that name columns which the models above no longer return."""
        missing = self._missing_references(plan)
        if not missing:
            return plan
        from penstock.engine.verifying.reference_check import refuse_readers

        return refuse_readers(plan, missing)

    def _missing_references(self, plan: Plan) -> list[MissingColumn]:
        """Return the columns that no upstream model returns; none if a catalog cannot be read."""
        models = [step.model for step in plan.steps if step.slices and not step.skipped]
        if not any(model.names_tables for model in models):
            return []
        from penstock.engine.verifying.reference_check import missing_references

        try:
            lineage, known = self._lineage()
        except LakeError:
            return []
        return list(missing_references(models, self.models, lineage, known.tables))

    def _with_files(self, plan: Plan) -> Plan:
        """The plan with the files that its slices read as they are now."""
        steps = [each for each in plan.steps if each.model.query.files and not each.skipped]
        if not steps:
            return plan
        from penstock.engine.planning.files_read import files_of_slices
        from penstock.engine.planning.slices import bindings_of

        files: dict[str, Sequence[InputRead]] = {}
        for step in steps:
            given = (bindings_of(step.model, s, plan.args, plan.request) for s in step.slices)
            files[step.name] = files_of_slices(step.model, given, self.settings.root)
        return replace(plan, seen=replace(plan.seen, files=files))

    def _changes(self, plan: Plan, known: Known) -> Iterator[DefinitionChange]:
        """Return what changes of definitions touch, of the models of a plan and below them."""
        from penstock.engine.planning.changed_tests import changes_of_tests
        from penstock.engine.planning.reasons import stale_slices

        models = [step.model for step in plan.steps]
        yield from changes_of_tests(models, self._state_of)
        stale = stale_slices(models, known)
        if not stale:
            return
        from penstock.engine.planning.changed import changes_of

        request = replace(plan.request, range=None, partition=None, full_refresh=False)
        request = replace(request, changed=True, upstream=False)
        for change in changes_of(
            models,
            stale,
            lambda name: self._planned(replace(request, select=(name,)), known=known),
        ):
            yield self._compared(change, known)

    def _state_of(self, model: Model) -> State | None:
        from penstock.engine.state.store import State

        catalog = self._catalog(model.target.lake)
        return None if catalog is None else State(catalog)

    def _compared(self, change: DefinitionChange, known: Known) -> DefinitionChange:
        """A change with what differs between the definitions, where that is recorded."""
        from penstock.engine.planning.definition_diff import definition_diff
        from penstock.engine.planning.reasons import settings_changed
        from penstock.engine.state.definitions import last_other

        model = self.model(change.model)
        settings = settings_changed(model, known)
        if settings is not None:
            said = "; ".join(settings).split("; ")
            names = dict.fromkeys(each.partition(":")[0] for each in said)
            return replace(change, parts=tuple(names), diff=settings)
        state = self._state_of(model)
        old: Mapping[str, str] | None = None
        if state is not None:
            ask = partial(last_other, target=model.target.qualified, than=model.definition_hash)
            old = state.read(ask, None)
        if old is None:
            return change
        diff = definition_diff(old, model.definition_parts)
        return replace(change, parts=diff.parts, diff=diff.lines)

    def save_plan(self, plan: Plan, path: str | Path) -> None:
        """Write a `plan` to a file, for `run`: ``project.save_plan(project.plan(), "today.json")``.

        Raises ArgumentError where the file cannot be written.
        """
        from penstock.engine.planning.saved_plan import SavedPlan, write

        write(Path(path), SavedPlan.of(plan, self.settings.name).to_json(plan))

    def _unmoved(self, plan: Plan | str | Path) -> Plan:
        """The plan of the request of a saved one, as it is now. Raises PlanMoved where it differs,
        and ArgumentError for a file that is not a plan of this project.
        """
        from penstock.engine.planning.plan import Plan as Planned
        from penstock.engine.planning.saved_plan import Now, SavedPlan, moved, read, require_unmoved

        name = self.settings.name
        saved = SavedPlan.of(plan, name) if isinstance(plan, Planned) else read(Path(plan), name)
        told = self._told(saved.request)
        what = "the plan" if isinstance(plan, Planned) else str(plan)
        models = {model.name: model for model in self.models}
        now = Now(models, self._runs_now, self._rows_changed)
        require_unmoved(moved(saved, SavedPlan.of(told, name), now), what)
        return told

    def _runs_now(self, model: Model) -> Mapping[str, str]:
        known = self._known()
        of = known.states if model.by_time is None else known.intervals
        return of([model])[model.name].runs

    def _rows_changed(self, table: TableName, since: int) -> bool:
        """Return whether rows of a table changed after a snapshot."""
        from penstock.engine.planning.table_changes import rows_changed

        catalog = self._catalog(table.lake)
        return catalog is not None and rows_changed(catalog, table, since)

    def _moments(self) -> dict[str, tuple[int, str]]:
        """The latest snapshots of the lakes that can be read, with their times."""
        found = {}
        for lake in dict.fromkeys(model.target.lake for model in self.models):
            with suppress(LakeError):  # a run says that it cannot be read
                catalog = self._catalog(lake)
                if catalog is not None:
                    latest = catalog.latest()
                    found[lake] = (latest.id, latest.time.isoformat())
        return found

    def _held(self, plan: Plan) -> Held:
        """Return who holds slices of a model, of the runs that go on now."""
        from penstock.engine.state.store import holders_of

        lakes = dict.fromkeys(step.model.target.lake for step in plan.steps if step.slices)
        catalogs = ((lake, self._catalog(lake)) for lake in lakes)
        known = {lake: holders_of(catalog) for lake, catalog in catalogs if catalog is not None}

        def held(model: Model, texts: Sequence[str]) -> Mapping[str, str]:
            ask = known.get(model.target.lake)
            of = {} if ask is None else ask(model.target.qualified, texts)
            return {text: str(holding) for text, holding in of.items()}

        return held

    def _request(self, *models: Positional, **options: Any) -> RunRequest:
        """The request of a run: ``options`` are those of `RunOptions`."""
        from penstock.engine.planning.run_arguments import RunOptions

        return self._owned(RunOptions(**options).request(models, self.models))

    def _planned(
        self,
        request: RunRequest,
        planner: Planner | None = None,
        known: Known | None = None,
    ) -> Plan:
        self._connections.check_open()
        from penstock.engine.planning.make_plan import make_plan

        by_name = {model.name: model for model in self.models}
        restates = planner is not None or request.changed
        known = known or self._plan_known(request, restates=restates)
        if request.changed and request.range is None:
            from penstock.engine.planning.changed import of_changed, only_touched

            plan = only_touched(make_plan(by_name, self.graph, request, known, of_changed))
        else:
            plan = make_plan(by_name, self.graph, request, known, planner)
        if self._own_models is not None:
            notices = (*plan.notices, *self._own_models.read_elsewhere(plan, by_name))
            plan = replace(plan, notices=notices)
        return plan

    def _plan_of(self, model: Model, **options: Any) -> Plan:
        """Return the plan of one model, whether or not its slices are up to date."""
        return self._planned(self._request(model.name, force=True, **options))

    def _plan_known(self, request: RunRequest, *, restates: bool = False) -> Known:
        """Return what a plan asks of the catalogs: all its answers are of one moment."""
        self._connections.check_open()
        from penstock.destinations.capabilities import KINDS
        from penstock.engine.planning.made_from import made_from
        from penstock.engine.planning.plan import Known

        restates = restates or any(model.auto_restatement for model in self.models)
        slices = self._known(behind=request.behind, late=request.late)
        return Known(
            _remembering(slices.states),
            _remembering(slices.intervals),
            _remembering(slices.pasts),
            self._snapshots() if restates or request.full_refresh else {},
            {name: KINDS[lake.kind] for name, lake in self.settings.lakes.items()},
            self.edges,
            self._views_read if request.behind else {},
            partial(made_from, slices) if request.behind else None,
            partial(_same_files, self.settings.root),
            self._facts.why_apart,
            self._old_tables,
        )

    def _old_tables(self, now: datetime) -> Mapping[str, Sequence[OldTable]]:
        """Return the tables of others that are too old at a moment, by the models that read them;
        none of a catalog that cannot be read: a run says so."""
        if not any(external.fresh for external in self.externals):
            return {}
        from penstock.engine.planning.freshness import old_tables
        from penstock.engine.planning.table_changes import last_change
        from penstock.model.slicing.table_reads import unmade_reads

        with suppress(LakeError):
            return old_tables(
                self.externals,
                unmade_reads(self.models),
                lambda table: last_change(self._catalog(table.lake), table),
                now,
            )
        return {}

    def _snapshots(self) -> dict[str, int]:
        """The latest snapshots of the lakes that can be read; 0 of those that are not there."""
        found = {}
        for lake in dict.fromkeys(model.target.lake for model in self.models):
            with suppress(LakeError):  # a run says that it cannot be read
                catalog = self._catalog(lake)
                found[lake] = 0 if catalog is None else catalog.latest().id
        return found

    def _staged(self, plan: Plan) -> Plan:
        """The plan with what its steps do to tables; with a notice where that is not known."""
        from penstock.engine.planning.known_tables import Columns, KnownTables

        # Tables that this run does not make have the columns that they have now.
        names = {step.name for step in plan.steps if not step.skipped}
        names |= {model.name for model in self.models if not model.strategy.runs}
        selected = partial(_selected, cache(lambda: self._lineage(names)[0]))
        try:
            columns = Columns(selected, self._facts.selects_all)
            tables = KnownTables.read(self.settings, self._catalog, plan, columns)
            return tables.staged(plan)
        except LakeError as error:
            said = f"what the run drops or alters is not known: {error.message}"
            return replace(plan, notices=(*plan.notices, said))

    def _known(self, *, behind: bool = True, late: bool = True) -> KnownSlices:
        from penstock.engine.planning.slice_states import KnownSlices

        if not behind:
            return KnownSlices(self.settings, self._catalog)
        return KnownSlices(
            self.settings,
            self._catalog,
            self.edges,
            lambda: self._table_reads,
            late,
            views=lambda: self._views_read,
            files=True,
        )

    def _lineage(
        self, names: Collection[str] | None = None, *, lakes: bool = True
    ) -> tuple[ProjectLineage, Schemas]:
        """The columns of all models, or of these alone, and of the tables and views that the lakes
        have; without ``lakes`` as far as they are known without asking those."""
        from penstock.engine.answers.lineage import schemas
        from penstock.model.lineage.models import project_lineage

        cache = lineages(self.settings) if lakes else columns(self.settings)
        catalogs: Catalogs = self._catalog if lakes else lambda _: None
        known = schemas(self.settings, catalogs, self._connections.macros, self.externals)
        ordered = self.graph.ordered(self.models)
        models = ordered if names is None else [each for each in ordered if each.name in names]
        found = project_lineage(models, known, cache)
        if cache is not None and names is None:
            cache.save()
        return found, known

    def model(self, name: str) -> Model:
        """One model: ``project.model("orders").target``. Raises ArgumentError with the nearest."""
        self._connections.check_open()
        return named(self.models, name)

    def lake(self, name: str, *, new_catalog: bool = False) -> Lake:
        """A lake of penstock.toml, made when it is new: ``project.lake("main").tables()``.

        Raises CatalogVanished where there is no catalog beside the files of a lake: with
        ``new_catalog`` it is made there all the same.
        """
        return self._connections.lake(name, self._session, new_catalog=new_catalog)

    def close(self) -> None:
        """Close the catalogs: after ``project.close()`` every call raises LakeClosed.

        A Spark session stays open: the next project uses it.
        """
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _session(self, sink: EventSink | None = None) -> SparkSession:
        return self._connections.session(sink or self.on_event)

    def _catalog(self, lake: str) -> Catalog | None:
        return self._connections.catalog(lake)


def _same_files(
    root: Path, model: Model, bindings: Bindings, recorded: Sequence[InputRead]
) -> bool:
    # Late: only models that read files need it.
    from penstock.engine.planning.files_read import are_same

    return are_same(model, bindings, root, recorded)


def _selected(lineage: Callable[[], ProjectLineage], model: Model) -> list[str] | None:
    """The columns of a model's query, where they are known without Spark."""
    from penstock.model.lineage.values import SLICE, VALIDITY

    known = lineage().of(model.target)
    if known is None or not known.complete:
        return None
    return [each.name for each in known.columns if each.origin not in (SLICE, VALIDITY)]
