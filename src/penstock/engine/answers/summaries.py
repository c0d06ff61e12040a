"""Summarize the slices of models, as `penstock status` shows a project. Without Spark.

The slices of most models are as they were recorded. Their numbers come from one query that groups,
instead of a look at each record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from sqlalchemy import Connection, case, func, select

from penstock.engine.answers.ages import freshness_of
from penstock.engine.answers.status import statuses, unmade_statuses
from penstock.engine.planning.ranges import SliceStates
from penstock.engine.planning.slice_states import KnownSlices
from penstock.engine.planning.state_cache import is_settled
from penstock.engine.results import ModelStatus
from penstock.engine.state.store import State
from penstock.engine.state.tables import NONE_NEEDED, SLICE, UNCOUNTED, to_moment
from penstock.lakes.catalog.snapshots.history import rollbacks
from penstock.model.definition.model import Model
from penstock.model.time.slice import in_time
from penstock.model.values.strategy import strategy_named
from penstock.rendering.columns import read_columns
from penstock.rendering.text import slice_state
from penstock.sql.identifiers import fold
from penstock.states import SliceState

if TYPE_CHECKING:
    from penstock.lakes.catalog.catalog import Catalogs


class StateCount(NamedTuple):
    """The number of slices, or units of time, in a state.

    Attributes:
        state: The state.
        snapshot_id: The snapshot in which another writer changed them.
        number: How many they are.
    """

    state: SliceState
    snapshot_id: int | None
    number: int


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """The slices of a model in numbers.

    Attributes:
        model: The name; None for a table that no model makes any more.
        target: The table.
        strategy: The name of the strategy.
        is_whole: Whether the table has one slice, which is all of it.
        counts: The states, in the order in which they come in time.
        rows: The number of rows; None where it is not recorded of each slice.
        snapshot_id: The last snapshot that made a slice.
        time: When a slice was last made.
        lateness: How many slices are past the freshness of the model, in words.
    """

    model: str | None
    target: str
    strategy: str
    is_whole: bool
    counts: tuple[StateCount, ...]
    rows: int | None
    snapshot_id: int | None
    time: datetime | None
    lateness: str = ""
    columns: ClassVar = read_columns(
        "model=model_name table=target strategy slices=states rows snapshot=snapshot_id "
        "last_made=time"
    )

    @property
    def states(self) -> str:
        """``materialized`` of a whole table; ``12 materialized, 1 failed`` of partitions."""
        states = [(slice_state(count.state, count.snapshot_id), count) for count in self.counts]
        if self.is_whole:
            shown = states[0][0]
        else:
            shown = ", ".join(f"{count.number} {text}" for text, count in states) or "missing"
        return f"{shown}; {self.lateness}" if self.lateness else shown

    @classmethod
    def of_status(cls, status: ModelStatus) -> ModelSummary:
        """Summarize a status.

        Args:
            status: The status of a model.

        Returns:
            The summary. Attempts that left nothing have no part in its snapshot and time.
        """
        counts = Counter[tuple[SliceState, int | None]]()
        for part in status.slices:
            counts[part.state, part.outside_snapshot] += part.intervals
        built = [part for part in status.slices if part.snapshot_id is not None]
        times = (part.time for part in built if part.time is not None)
        return cls(
            status.model,
            status.target,
            status.strategy,
            len(status.slices) == 1 and status.slices[0].slice is None,
            tuple(StateCount(*key, number) for key, number in counts.items()),
            status.rows,
            max((part.snapshot_id or 0 for part in built), default=None),
            max(times, default=None),
            status.lateness,
        )


class _Totals(NamedTuple):
    """Hold what is recorded of the slices of one table."""

    rows: int | None
    snapshot_id: int | None
    time: datetime | None


def summarize(
    knowledge: KnownSlices,
    models: Sequence[Model],
    only: Sequence[Model] | None = None,
) -> tuple[ModelSummary, ...]:
    """Summarize the slices of models.

    Args:
        knowledge: What the catalogs know of slices.
        models: All models of the project.
        only: The models to summarize; None for all.

    Returns:
        A summary for each model. Of all models, also those of tables that none makes any more.
    """
    settings, catalogs = knowledge.settings, knowledge.catalogs
    makers = [m for m in (models if only is None else only) if m.strategy.runs]
    may_settle = [m for m in makers if m.by_time is None and freshness_of(m) is None]
    states = {
        name: settled
        for name, settled in knowledge.states(may_settle).items()
        if is_settled(settled) and settled.of
    }
    totals = _read_totals(catalogs, {m.target.lake for m in makers if m.name in states})
    summaries: dict[str, ModelSummary] = {}
    for model in makers:
        numbers = totals.get((model.target.lake, model.target.qualified))
        if model.name in states and numbers is not None:
            summaries[model.name] = _summary(model, states[model.name], numbers)
    unsettled = [model for model in makers if model.name not in summaries]
    if unsettled:
        for status in statuses(knowledge, models, unsettled):
            summaries[status.model or ""] = ModelSummary.of_status(status)
    ordered = tuple(summaries[model.name] for model in makers)
    if only is not None:
        return ordered
    unmade = unmade_statuses(settings, catalogs, models)
    return (*ordered, *map(ModelSummary.of_status, unmade))


def _summary(model: Model, states: SliceStates, totals: _Totals) -> ModelSummary:
    if len(states.kinds) == 1:
        (state,) = states.kinds
        counts: Mapping[SliceState, int] = {state: len(states)}
    else:
        counts = Counter(states[text] for text in sorted(states, key=in_time(model.partition)))
    return ModelSummary(
        model.name,
        str(model.target),
        model.strategy.name,
        list(states) == [""],
        tuple(StateCount(state, None, number) for state, number in counts.items()),
        *totals,
    )


def _read_totals(catalogs: Catalogs, lakes: Iterable[str]) -> dict[tuple[str, str], _Totals]:
    """Return what is recorded of tables; without those that a rollback took rows of."""
    totals: dict[tuple[str, str], _Totals] = {}
    for lake in lakes:
        catalog = catalogs(lake)
        if catalog is not None:
            in_lake = State(catalog).read(_totals, dict[str, _Totals]())
            totals |= {(lake, target): numbers for target, numbers in in_lake.items()}
    return totals


def _totals(connection: Connection) -> dict[str, _Totals]:
    columns = SLICE.c
    made_in = func.coalesce(columns.made_in, columns.snapshot_id)
    has_rows = made_in != NONE_NEEDED
    query = select(
        columns.target,
        columns.strategy,
        func.sum(columns.row_count),
        func.min(columns.row_count),
        func.max(case((has_rows, made_in))),
        func.max(case((has_rows, columns.published_at))),
    ).group_by(columns.target, columns.strategy)
    rolled_back = {table.name for table in rollbacks(connection).values()}
    totals: dict[str, _Totals] = {}
    for target, strategy, rows, fewest, snapshot_id, time in connection.execute(query):
        schema, _, name = target.partition(".")
        if (fold(schema), fold(name)) in rolled_back:
            continue
        is_counted = fewest != UNCOUNTED and strategy_named(strategy).counts_rows
        moment = None if time is None else to_moment(time)
        part = _Totals(int(rows) if is_counted else None, snapshot_id, moment)
        totals[target] = _add(totals[target], part) if target in totals else part
    return totals


def _add(total: _Totals, more: _Totals) -> _Totals:
    snapshots = [part.snapshot_id for part in (total, more) if part.snapshot_id is not None]
    times = [part.time for part in (total, more) if part.time is not None]
    is_counted = total.rows is not None and more.rows is not None
    rows = (total.rows or 0) + (more.rows or 0) if is_counted else None
    return _Totals(rows, max(snapshots, default=None), max(times, default=None))
