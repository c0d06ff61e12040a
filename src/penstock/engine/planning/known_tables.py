"""Read from the catalogs what the stages of a plan follow from: the tables of its models, and the
columns of their queries. Starts no Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.planning.plan import Plan, PlannedStep
from penstock.engine.planning.stages import (
    FULL_REFRESH,
    RESTATEMENT,
    DropTable,
    Place,
    Refuse,
    Stage,
    TableFacts,
    column_stage,
    table_stages,
)
from penstock.engine.state import reading
from penstock.engine.state.reading import SlicesAlike
from penstock.engine.state.records import SliceRecord
from penstock.engine.state.store import State
from penstock.lakes.catalog.definitions.stored_sql import load_views
from penstock.lakes.format.files import all_rows
from penstock.model.definition.model import Model
from penstock.model.query.query import Query
from penstock.model.time.slice import Part
from penstock.model.values.strategy import Output
from penstock.settings.config import Settings
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from penstock.lakes.catalog.catalog import Catalog
    from penstock.lakes.format.files import Table
    from penstock.lakes.snapshot import Snapshot

_FEW = 20  # tables that are looked up one by one


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of models' queries. ``selected`` returns those of a model, None where they are
    not known; ``follow`` whether they are others when those of a table that it reads are.
    """

    selected: Callable[[Model], Sequence[str] | None]
    follow: Callable[[Query], bool]


@dataclass(frozen=True, slots=True)
class _Lake:
    """A catalog at its latest snapshot: ``tables`` and ``views`` by folded schema and name;
    ``slices`` are the records of the first slices of steps, by target and text, ``groups`` of all.
    """

    catalog: Catalog
    latest: Snapshot
    column: str
    tables: Mapping[tuple[str, str], Table | None]
    views: frozenset[tuple[str, str]]
    slices: Mapping[tuple[str, str], SliceRecord]
    groups: Mapping[str, Sequence[SlicesAlike]]

    @classmethod
    def read(cls, catalog: Catalog, column: str, steps: Sequence[PlannedStep]) -> _Lake:
        """By a few queries: a project has thousands of models."""
        latest, targets = catalog.latest(), [step.model.target for step in steps]
        if len(targets) > _FEW:
            every = catalog.tables(latest.id)
            tables = {_key(table.schema_name, table.name): table for table in every}
        else:
            names = [(target.schema, target.table) for target in targets]
            found = ((_key(*name), catalog.known_table(*name, latest)) for name in names)
            tables = {key: table for key, table in found if table is not None}
        others = [each.table for each in targets if _key(each.schema, each.table) not in tables]
        with catalog.reading() as connection:
            views = load_views(connection, latest.id, others) if others else []
        with State(catalog).reading() as state:
            of = [target.qualified for target in targets]
            first = {step.slices[0].text for step in steps}
            slices = [] if state is None else reading.slices_named(state, of, first)
            groups = {} if state is None else reading.slices_alike(state, of)
        return cls(
            catalog,
            latest,
            column,
            tables,
            frozenset(_key(view.schema_name, view.name) for view in views),
            {(record.target, record.slice): record for record in slices},
            groups,
        )

    def facts(self, model: Model, known: SliceRecord | None) -> TableFacts:
        target = model.target
        key, groups = _key(target.schema, target.table), self.groups.get(target.qualified, ())

        def records(unless: str | None) -> Sequence[SliceRecord]:
            if all(each.slicing is not None and each.slicing == unless for each in groups):
                return ()
            return State(self.catalog).slices(target.qualified, unless=unless)

        table = self.tables.get(key)
        if table is None:
            return TableFacts("view" if key in self.views else None, records=records)
        return TableFacts(
            "table",
            columns=tuple(table.schema.names),
            managed=self.column,
            made_in=table.begin_snapshot,
            count=partial(self._count, table, known),
            records=records,
            is_recorded=lambda since: max((each.last for each in groups), default=-1) >= since,
        )

    def has_one_definition(self, model: Model) -> bool:
        """Return whether all slices of its table were made by the model as it is."""
        groups = self.groups.get(model.target.qualified, ())
        return {each.definition_hash for each in groups} == {model.definition_hash}

    def _count(self, table: Table, known: SliceRecord | None, place: Place | None) -> int:
        if place is None:
            return all_rows(self.catalog.files(table, self.latest.id))
        return 0 if known is None else known.rows or 0  # files need not tell slices apart


def _key(schema: str, name: str) -> tuple[str, str]:
    return fold(schema), fold(name)


@dataclass(frozen=True, slots=True)
class KnownTables:
    """The lakes that are there, by name."""

    lakes: Mapping[str, _Lake]
    columns: Columns

    @classmethod
    def read(
        cls,
        settings: Settings,
        catalogs: Callable[[str], Catalog | None],
        plan: Plan,
        columns: Columns,
    ) -> KnownTables:
        """Raises LakeError."""
        by_lake: dict[str, list[PlannedStep]] = defaultdict(list)
        for step in filter(_writes, plan.steps):
            by_lake[step.model.target.lake].append(step)
        lakes: dict[str, _Lake] = {}
        for name, steps in by_lake.items():
            catalog = catalogs(name)
            if catalog is not None:
                lakes[name] = _Lake.read(catalog, settings.lakes[name].partition_column, steps)
        return cls(lakes, columns)

    def staged(self, plan: Plan) -> Plan:
        """The plan with the stages of its steps."""
        steps = tuple(replace(step, stages=self._stages(step)) for step in plan.steps)
        return replace(plan, steps=steps)

    def _stages(self, step: PlannedStep) -> tuple[Stage, ...]:
        model, lake = step.model, self.lakes.get(step.model.target.lake)
        if lake is None or not _writes(step):
            return ()
        first = step.slices[0]
        known = lake.slices.get((model.target.qualified, first.text))
        facts = lake.facts(model, known)
        place = (lake.column, first.value) if isinstance(first, Part) else None
        rebuild = (RESTATEMENT if step.again else FULL_REFRESH) if step.anew else None
        stages = table_stages(model, facts, known, place=place, rebuild=rebuild)
        if any(isinstance(stage, DropTable | Refuse) for stage in stages):
            return stages
        same = lake.has_one_definition(model) or (
            known is not None and known.definition_hash == model.definition_hash
        )
        altered = self._altered(model, facts, same=same)
        return stages if altered is None else (*stages, altered)

    def _altered(self, model: Model, facts: TableFacts, *, same: bool) -> Stage | None:
        """Decide what becomes of the columns of a table that stays. A query that has not changed
        has the same, unless it selects all of a table.
        """
        if not facts.is_table or model.replaces_table:
            return None
        if model.strategy.output is not Output.TABLE:
            return None
        if same and not (model.reads and self.columns.follow(model.query)):
            return None
        selected = self.columns.selected(model)
        return None if selected is None else column_stage(model, selected, facts)


def _writes(step: PlannedStep) -> bool:
    """Return whether a step gets as far as to a table."""
    return bool(step.slices) and step.model.target.is_table and not (step.skipped or step.blocked)
