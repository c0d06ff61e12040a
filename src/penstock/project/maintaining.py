"""Change tables beside runs: drop them, roll them back, and change what is recorded of them.

Roll tables of models back to what they were, with the slices that are recorded of them.

Nothing that was there is lost: each table gets a new snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError, TableNotFound
from penstock.events import EventSink, Notice
from penstock.model.definition.graph import table_key
from penstock.project.querying import preview_model
from penstock.project.table_history import Point, find_table, snapshot_of_point
from penstock.rendering.text import count, line
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from penstock.destinations.catalog import Catalog
    from penstock.engine.answers.read_later import Reader
    from penstock.engine.results import Adopted, Dropped
    from penstock.engine.running.prune import Pruned
    from penstock.lakes.catalog.catalog import Catalog as LakeCatalog
    from penstock.model.definition.model import Model
    from penstock.model.values.asset import TableName
    from penstock.project.context import ProjectContext


def adopt_rows(
    context: ProjectContext, model: str, until: str | None = None, *, dry_run: bool = False
) -> Adopted:
    """Record the rows that others have put into a model's table as built by its runs.

    Nothing of the table changes.

    Args:
        context: The project.
        model: The model.
        until: The last slice to adopt; None for that of the last row.
        dry_run: Record nothing.

    Returns:
        The slices.

    Raises:
        ArgumentError: The model has no such slices.
        DefinitionChanged: The columns are not those of the query.
        SchemaMismatch: The types are not those of the query.
        TableNotFound: The table does not exist.
    """
    from penstock.engine.running.adopt import adopt

    made = context.model(model)
    context.require_own(made.target)
    lake = made.target.lake
    if context.catalog(lake) is None:
        raise TableNotFound(f"lake {lake} does not exist yet", hint="nothing has run")

    def columns(value: str | None) -> Sequence[str] | None:
        if made.python is not None:  # only a run shows what Python makes
            return None
        return preview_model(context, made.name, value).columns

    column = context.settings.lakes[lake].partition_column
    return adopt(
        context.lake(lake),
        made,
        columns,
        column=column,
        until=until,
        dry_run=dry_run,
        environment=context.settings.runs_in,
    )


def drop_table(context: ProjectContext, model: str, slice: str | None = None) -> Dropped:  # noqa: A002 - what it is
    """Drop the table of a model, or a slice, as a new snapshot.

    Args:
        context: The project.
        model: A model, or a model or table that the project no longer has.
        slice: A slice as a status shows it; None for the whole table.

    Returns:
        What was dropped.

    Raises:
        ArgumentError: The slice does not exist.
        TableNotFound: The table does not exist.
    """
    from penstock.engine.running.drop import drop, forget_files, unmade_target

    made: Model | None = None
    try:
        made = context.model(model)
        target = made.target
    except ArgumentError:
        gone = unmade_target(model, context.settings.lakes, context.catalog)
        if gone is None or any(table_key(gone) == table_key(m.target) for m in context.models):
            raise
        target = gone
    context.require_own(target)
    if context.catalog(target.lake) is None:
        raise TableNotFound(f"lake {target.lake} does not exist yet", hint="nothing has run")
    if made is not None and made.python is not None and not target.is_table:
        return forget_files(context.lake(target.lake), target, made.python.writes, slice)
    column = context.settings.lakes[target.lake].partition_column
    return drop(context.lake(target.lake), target, slice, column, made)


def prune_records(context: ProjectContext, *, dry_run: bool = False) -> Pruned:
    """Remove old records and logs of runs, as the settings say. The latest of each slice stays.

    Args:
        context: The project.
        dry_run: Remove nothing.

    Returns:
        What was removed, and what could not be.
    """
    from penstock.engine.running.prune import prune

    known: Mapping[str, Catalog] = context.existing_catalogs()
    if not dry_run:
        known = {name: context.lake(name).catalog for name in known}
    return prune(known, context.settings.retention, dry_run=dry_run)


@dataclass(frozen=True, slots=True)
class RolledBackTable:
    """A table that is as it was at the snapshot ``to``; ``snapshot`` is the new one, None where
    nothing differs, and of a dry run.

    ``rows_before`` and ``rows`` are those before and after, None where they are not known.
    ``slices_missing`` are recorded slices whose rows end, ``slices_back`` those that earlier runs
    made and whose rows come back.
    """

    model: str | None
    table: str
    to: int
    snapshot: int | None
    differs: bool
    rows_before: int | None = None
    rows: int | None = None
    columns_changed: bool = False
    slices_missing: tuple[str, ...] = ()
    slices_back: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rollback:
    """The result of `Project.rollback`: tables in their order, and ``behind``, who has read what
    was taken back and stays as it is.
    """

    tables: tuple[RolledBackTable, ...]
    behind: tuple[Reader, ...]
    dry_run: bool = False

    def __repr__(self) -> str:
        tables = count(len(self.tables), "table")
        return line(self, tables, f"{len(self.behind)} behind", "dry run" if self.dry_run else "")


@dataclass(frozen=True, slots=True)
class _Go:
    """Options of a rollback: write nothing, and wait for runs that hold a table."""

    dry_run: bool
    wait: bool


def _notice(sink: EventSink, message: str) -> None:
    sink(Notice(message))


def roll_back(
    context: ProjectContext,
    model: str,
    to: Point,
    *,
    downstream: bool = False,
    dry_run: bool = False,
    wait: bool = True,
) -> Rollback:
    """Make the table of a model what it was at a point.

    Args:
        context: The project.
        model: A model or a table.
        to: A snapshot, a time, an age such as ``24h``, or a run, as which it left the table.
        downstream: Roll the tables of all models that read it back to the same moment.
        dry_run: Change nothing.
        wait: Wait for a run that is building some of a table.

    Returns:
        The tables, and the readers that are behind.

    Raises:
        ArgumentError: The model has no rows of its own.
        CommitConflict: A run holds a table, and ``wait`` is false.
        SnapshotNotFound: The point has no snapshot.
        TableNotFound: The table does not exist.
    """
    name, made = find_table(context, model)
    context.require_own(name)
    if made is not None and not made.strategy.counts_rows:
        raise ArgumentError(
            f"{made.name} has no rows of its own", hint="roll back the tables that it reads"
        )
    first = snapshot_of_point(context, to, name)
    go = _Go(dry_run, wait)
    tables = [_rolled_back(context, name, made, first, go)]
    behind: list[Reader] = []
    for reader in _readers(context, made, name):
        found = _behind(context, reader, (name, first))
        reason = None
        if downstream:
            then = _same_moment(context, first, name, reader.target)
            reason = _why_not(context, reader, then)
            if reason is None and then is not None:
                tables.append(_rolled_back(context, reader.target, reader, then, go))
                continue
        if found is not None:
            behind.append(replace(found, reason=reason))
    return Rollback(tuple(tables), tuple(behind), dry_run)


def _readers(context: ProjectContext, model: Model | None, name: TableName) -> Sequence[Model]:
    """The models that read a table, and those that read them, in order, but no views."""
    by_name = {each.name: each for each in context.models}
    if model is not None:
        below = set(context.graph.downstream(model.name))
    else:
        direct = [each.name for each in context.models if name in each.inputs]
        below = {n for each in direct for n in (each, *context.graph.downstream(each))}
    ordered = [by_name[each] for each in context.graph.order() if each in below]
    runs = (each for each in ordered if each.strategy.counts_rows and each.strategy.runs)
    return [each for each in runs if each.own]


def _behind(context: ProjectContext, reader: Model, of: tuple[TableName, int]) -> Reader | None:
    from penstock.engine.answers.read_later import read_later

    catalog = context.catalog(reader.target.lake)
    return None if catalog is None else read_later(reader, catalog, *of)


def _same_moment(context: ProjectContext, at: int, of: TableName, name: TableName) -> int | None:
    """The snapshot of the lake of ``name`` at the time of one of another lake."""
    from penstock.lakes.snapshot import At

    if of.lake == name.lake:
        return at
    catalog = context.catalog(name.lake)
    if catalog is None:
        return None
    time = context.catalog_of(of).snapshot(At(at)).time
    return catalog.snapshot(At(timestamp=time)).id


def _why_not(context: ProjectContext, reader: Model, then: int | None) -> str | None:
    """Return why a table cannot be what it was at a snapshot: there was none, or another."""
    name = reader.target
    catalog = context.catalog(name.lake)
    if catalog is None or then is None:
        return "nothing has run"
    tables = [catalog.find_table(name.schema, name.table, at)
              for at in (then, catalog.latest().id)]  # fmt: skip
    if tables[1] is None:
        return "it has no table"
    if tables[0] is None or tables[0].id != tables[1].id:
        return "its table was made since"
    return None


def _rolled_back(
    context: ProjectContext, name: TableName, model: Model | None, to: int, go: _Go
) -> RolledBackTable:
    with _claimed(context, name, go):
        return _gone_back(context, name, model, to, dry_run=go.dry_run)


@contextmanager
def _claimed(context: ProjectContext, name: TableName, go: _Go) -> Iterator[None]:
    """Keep runs from making slices of a table meanwhile, where any run has been."""
    from penstock.engine.state.claims import Asked, Claims, whole_table
    from penstock.engine.state.records import WHOLE
    from penstock.engine.state.store import State

    state = State(context.catalog_of(name))
    if go.dry_run or not state.read(lambda _: True, otherwise=False):
        yield
        return
    state = State(context.lake(name.lake).catalog)
    state.prepare()
    asked = Asked(name.lake, name.qualified, (WHOLE,), new_uuid7())
    say = partial(_notice, context.sink)
    with Claims(waits=go.wait) as claims, whole_table(state, asked, claims, say):
        yield


def _gone_back(
    context: ProjectContext, name: TableName, model: Model | None, to: int, *, dry_run: bool
) -> RolledBackTable:
    from penstock.lakes.format.naming import TableRef
    from penstock.lakes.recovery.rollback import rollback

    known = context.catalog_of(name)
    now = known.latest().id
    gone, there = _undone(known, name, to)
    before, after = (known.count_rows(name.schema, name.table, at) for at in (now, to))
    catalog = known if dry_run else context.lake(name.lake).catalog
    done = rollback(
        catalog,
        TableRef(name.schema, name.table),
        to,
        author="penstock",
        message=f"rollback {name} to snapshot {to}",
        dry_run=dry_run,
    )
    return RolledBackTable(
        None if model is None else model.name,
        str(name),
        done.to,
        None if done.snapshot is None else done.snapshot.id,
        done.differs,
        rows_before=before,
        rows=after,
        columns_changed=done.columns_changed,
        slices_missing=gone if done.differs else (),
        slices_back=there if done.differs else (),
    )


def _undone(
    catalog: LakeCatalog, name: TableName, to: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The slices whose rows end, and those of earlier runs whose rows are there again."""
    from penstock.engine.state import reading
    from penstock.engine.state.other_writers import would_undo
    from penstock.engine.state.records import SliceRecord
    from penstock.engine.state.store import State
    from penstock.model.time.slice import shown

    latest = catalog.latest().id
    table = catalog.find_table(name.schema, name.table, latest)
    state = State(catalog)
    records = state.read(partial(reading.slices, target=name.qualified), list[SliceRecord]())
    if table is None:
        return (), ()
    ask = partial(
        would_undo,
        target=name.qualified,
        records=records,
        table=(table.id, latest + 1),
        to=to,
    )
    undone = state.read(ask, None)
    if undone is None:
        return (), ()
    again = (each.slice for each in undone.there if each.slice in undone.gone)
    back = {*again, *(each.slice for each in undone.back)}
    return (
        tuple(shown(text) or "whole table" for text in sorted(undone.gone - back)),
        tuple(shown(text) or "whole table" for text in sorted(back)),
    )
