"""What the catalogs know of the slices of some models: all that planning a range asks for.

Only states, by two queries a lake: a project has hundreds of thousands of slices.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.cascade import Past, rebuilds
from penstock.engine.intervals import Event, Painted
from penstock.engine.ranges import FAILED, MATERIALIZED, RUNNING, STALE, States
from penstock.engine.state import reading
from penstock.engine.state.records import ProcessId, is_gone
from penstock.engine.state.rolled_back import Undone, undone
from penstock.engine.state.store import State
from penstock.engine.state.tables import to_moment
from penstock.lake.catalog.snapshots.rollbacks import rollbacks
from penstock.model.interval import interval_of
from penstock.model.model import Model
from penstock.model.slice import Part

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.catalog.catalog import Catalog

Catalogs = Callable[[str], "Catalog | None"]  # by a lake's name; None: no run has made it


def states_of(
    catalogs: Catalogs,
    models: Sequence[Model],
    is_gone: Callable[[ProcessId], bool] = is_gone,
) -> Mapping[str, States]:
    """The states of slices that are there or were tried, by the names of models.

    A slice has failed where the last attempt at it failed, was cancelled or killed, or was skipped
    as something above it had failed. A table that is gone has no slices.
    """
    by_lake: dict[str, list[Model]] = defaultdict(list)
    for model in models:
        by_lake[model.target.lake].append(model)
    found: dict[str, States] = {}
    for lake, of_lake in by_lake.items():
        catalog = catalogs(lake)
        if catalog is not None:
            found |= _of_lake(catalog, of_lake, is_gone)
    return {model.name: found.get(model.name, {}) for model in models}


def _of_lake(
    catalog: Catalog, models: Sequence[Model], is_gone: Callable[[ProcessId], bool]
) -> dict[str, States]:
    targets = [model.target.qualified for model in models]

    def ask(connection: Connection) -> dict[str, States]:
        alive = {run.run_id for run in reading.running(connection) if not is_gone(run.process)}
        made = reading.definitions(connection, targets)
        tried = reading.last_outcomes(connection, targets)
        rolled_back = rollbacks(connection)
        return {
            model.name: _states(
                model,
                made.get(model.target.qualified, {}),
                tried.get(model.target.qualified, {}),
                alive,
                undone(connection, model.target.qualified, rolled_back),
            )
            for model in models
        }

    known: dict[str, States] = State(catalog).read(ask, {})
    there = {model.name: _is_there(catalog, model) for model in models}
    return {name: states for name, states in known.items() if there[name]}


def _is_there(catalog: Catalog, model: Model) -> bool:
    target, latest = model.target, catalog.latest()
    if not target.is_table:
        return True  # a step sees itself whether its files are in their places
    if catalog.known_table(target.schema, target.table, latest) is not None:
        return True
    return (
        model.partition is None and model.by_time is None
    )  # a view, for one; what is missing is seen when it is read


def _states(
    model: Model,
    made: Mapping[str, tuple[str, str, str | None]],
    tried: Mapping[str, tuple[str, str]],
    alive: set[str],
    lost: Undone,
) -> States:
    states: dict[str, str] = {value: STALE for value, _ in lost.there if value in lost.gone}
    for value, (_, definition, slicing) in made.items():
        if value in lost.gone or (slicing is not None and slicing != model.slicing):
            continue  # of rows that were rolled back, or of another `partitioned` line
        same = model.forward_only or definition == model.definition_hash
        states[value] = MATERIALIZED if same else STALE
    for value, (state, run_id) in tried.items():
        if state == "running" and run_id in alive:
            states[value] = RUNNING
        elif value not in made or made[value][0] != run_id:
            states[value] = FAILED  # unless that very run has published it after all
    return states


def intervals_of(
    catalogs: Catalogs,
    models: Sequence[Model],
    is_gone: Callable[[ProcessId], bool] = is_gone,
) -> Mapping[str, Painted]:
    """What became of the intervals of models by time, by their names; of no table that is gone.

    They may have been made in other batches each time.
    """
    found: dict[str, Painted] = {}
    for model in models:
        catalog = catalogs(model.target.lake)
        if catalog is not None and _is_there(catalog, model):
            ask = partial(painted, model=model, is_gone=is_gone)
            found[model.name] = State(catalog).read(ask, Painted())
    return found


def pasts_of(catalogs: Catalogs, models: Sequence[Model]) -> Mapping[str, Past]:
    """When the tables of models, and their slices, were made, by the names of models."""
    found: dict[str, Past] = {}
    for model in models:
        catalog = catalogs(model.target.lake)
        if catalog is not None and _is_there(catalog, model):
            found[model.name] = State(catalog).read(partial(_past, model=model), Past())
    return found


def _past(connection: Connection, model: Model) -> Past:
    target = model.target.qualified
    if model.by_time is not None and not rebuilds(model):
        return Past(painted=painted(connection, model))
    parts: tuple[tuple[Part, datetime], ...] = ()
    if model.partition is not None:
        records = reading.moments(connection, target)
        made = (each for each in records if each.state is None)
        parts = tuple(
            (Part(each.value), to_moment(each.at))
            for each in made
            if each.slicing in (None, model.slicing)
        )
    built = reading.built(connection, target)
    return Past(None if built is None else to_moment(built), parts=parts)


def painted(
    connection: Connection,
    model: Model,
    is_gone: Callable[[ProcessId], bool] = is_gone,
) -> Painted:
    alive = {run.run_id for run in reading.running(connection) if not is_gone(run.process)}
    records = reading.moments(connection, model.target.qualified)
    lost = undone(connection, model.target.qualified, rollbacks(connection))
    left = (each for each in records if each.state is not None or each.value not in lost.gone)
    events = (
        *(Event(at, each, STALE) for value, at in lost.there if (each := interval_of(value))),
        *(_event(each, model, alive) for each in left),
    )
    return Painted.of(event for event in events if event is not None)


def _event(record: reading.Recorded, model: Model, alive: set[str]) -> Event | None:
    interval = interval_of(record.value)
    if interval is None:
        return None
    if record.state is not None:
        state = RUNNING if record.state == "running" and record.run_id in alive else FAILED
        return Event(record.at, interval, state)
    if record.slicing is not None and record.slicing != model.slicing:
        return None
    same = model.forward_only or record.definition == model.definition_hash
    return Event(record.at, interval, MATERIALIZED if same else STALE)
