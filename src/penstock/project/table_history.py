"""Compare the rows of tables through time: what differs between two of their states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import ArgumentError
from penstock.project.past_runs import find_run_id, moment_since
from penstock.project.states import list_snapshots
from penstock.states import PUBLISHED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.engine.answers.comparing import Compared, Sides, TableDiff, TableDiffs
    from penstock.engine.answers.row_history import Row, RowVersion
    from penstock.engine.state.records import StepRecord
    from penstock.lakes.catalog.catalog import Catalog
    from penstock.lakes.table import Table
    from penstock.model.definition.model import Model
    from penstock.model.values.asset import TableName
    from penstock.project.context import ProjectContext

Point = int | str | date | datetime  # a snapshot, a time, an age or a run
SAMPLES = 5
_COME = ("insert", "update_postimage")  # in a change feed
_NUMBER = re.compile(r"0|[1-9]\d*")  # the id of a snapshot: ids of runs begin with a zero
DONE = "done"  # the state of a step that has written its slice


def compare_tables(
    context: ProjectContext,
    table: str | None = None,
    other: str | None = None,
    *,
    from_: Point | None = None,
    to: Point | None = None,
    run: str | None = None,
    key: str | Sequence[str] | None = None,
    samples: int = SAMPLES,
) -> TableDiffs:
    """Return what differs in a table between two points, or between two tables.

    A point is a snapshot, a time, an age such as ``24h``, or a run, as which it left the table.

    Args:
        context: The project.
        table: A model or a table.
        other: A second table; both are compared as they are now.
        from_: The first point.
        to: The last point; None for now.
        run: A run, whose changes are returned.
        key: The columns that match rows; None for those of the model, or the ids of rows.
        samples: The largest number of rows of each kind.

    Returns:
        The differences.

    Raises:
        ArgumentError: The arguments do not go together.
        SnapshotNotFound: A point has no snapshot.
        TableNotFound: The table does not exist.
    """
    from penstock.engine.answers.comparing import TableDiffs

    _require_one_question(table, other, from_, to, run)
    how = _How(key, samples)
    if run is not None:
        return TableDiffs(_changed_by(context, run, table, how))
    assert table is not None, "required above"
    name, model = find_table(context, table)
    if other is not None:
        return TableDiffs([_against(context, name, other, model, how)])
    first, last = snapshot_of_point(context, from_, name), snapshot_of_point(context, to, name)
    if first > last:
        raise ArgumentError(
            f"snapshot {first} is later than {last}",
            hint="give the earlier one as --from",
        )
    return TableDiffs([_between(context, name, model, (first, last), how)])


def trace_row(
    context: ProjectContext, table: str, key: str | Mapping[str, object]
) -> tuple[RowVersion, ...]:
    """Return the versions of a row, the first one first.

    Args:
        context: The project.
        table: A model or a table.
        key: The columns of the key with their values; a text is ``id=7,region=eu``.

    Returns:
        The versions, each with its snapshot and the run and the model that wrote it.

    Raises:
        ArgumentError: The key is wrong.
        TableNotFound: The table does not exist.
    """
    from penstock.engine.answers.comparing import key_of
    from penstock.engine.answers.row_history import Image, read_key, versions_of
    from penstock.engine.state.run_history import makers
    from penstock.engine.state.store import State
    from penstock.lakes.reading.feed import CHANGE_TYPE, SNAPSHOT_ID
    from penstock.spark.failures import explained
    from penstock.spark.functions import expr, fn
    from penstock.sql.identifiers import quoted

    name, _ = find_table(context, table)
    asked, rows = read_key(key), _rows_of(context, name)
    columns = key_of(list(asked), rows.schema.names, str(name))
    known = {each.id: each for each in list_snapshots(context, name.lake)}
    first = min(known)
    feed = rows.changes(first, max(known))
    names = feed.columns[3:]

    def of_key(frame: DataFrame) -> DataFrame:
        kinds = dict(frame.dtypes)
        for column, value in zip(columns, asked.values(), strict=True):
            same = fn.lit(value).cast(kinds[column])
            frame = frame.where(expr(quoted(column)).eqNullSafe(same))
        return frame

    catalog = context.catalog_of(name)
    then = catalog.find_table(name.schema, name.table, first) if first else None
    with explained():
        images = [
            Image(
                row[SNAPSHOT_ID],
                row[CHANGE_TYPE] in _COME,
                dict(zip(names, row[3:], strict=True)),
            )
            for row in of_key(feed).collect()
        ]
        old: list[Row] = []  # before the first snapshot that is left
        if then is not None and set(columns) <= set(then.schema.names):
            found = of_key(rows.to_df(version=first)).collect()
            old = [dict.fromkeys(names) | row.asDict(recursive=False) for row in found]
    by = State(catalog).read(partial(makers, target=name.qualified), dict[int, tuple[str, str]]())
    return versions_of(images, known, by, existing=old)


def snapshot_of_point(context: ProjectContext, point: Point | None, table: TableName) -> int:
    """Return the snapshot that a point means; None means now."""
    from penstock.lakes.snapshot import At

    catalog = context.catalog_of(table)
    if point is None:
        return catalog.latest().id
    if isinstance(point, int) or _NUMBER.fullmatch(str(point)):
        return catalog.snapshot(At.of(int(str(point)), None)).id
    moment = _moment(point)
    if moment is not None:
        return catalog.snapshot(At.of(None, moment)).id
    try:
        return _left_by(context, str(point), table)
    except ArgumentError as error:
        if error.message != f"no run {str(point)!r} is recorded":
            raise
        raise ArgumentError(
            f"{str(point)!r} is not a snapshot, time, age or run",
            hint="write a number (penstock snapshots), a time (2026-11-27T22:00Z), a date for its "
            "begin in UTC (2026-11-27), an age (24h) or the id of a run (penstock runs)",
        ) from None


def _left_by(context: ProjectContext, run: str, table: TableName) -> int:
    """The snapshot as which a run left a table. Raises ArgumentError, SnapshotNotFound."""
    from penstock.lakes.snapshot import At

    catalog, run_id = context.catalog_of(table), find_run_id(context, run)
    steps = [step for step in _steps(catalog, run_id) if step.target == table.qualified]
    made = [step.snapshot_id for step in steps if step.state == DONE and step.snapshot_id]
    if made:
        return max(made)
    ended = [step.finished_at for step in steps if step.state in PUBLISHED and step.finished_at]
    if ended:  # what it found was as it would have been made
        return catalog.snapshot(At(timestamp=max(ended))).id
    raise ArgumentError(
        f"run {run_id} made nothing of {table}",
        hint=f"penstock runs show {run_id} says what it made",
    )


def _changed_by(context: ProjectContext, run: str, table: str | None, how: _How) -> list[TableDiff]:
    """Return what a run changed, table by table, in the order in which it came to them."""
    only = None if table is None else find_table(context, table)[0]
    run_id = find_run_id(context, run)
    models = {model.target: model for model in context.models}
    found = []
    for name, snapshots in _written_by(context, run_id).items():
        if only is None or name == only:
            ends, own = (snapshots[0] - 1, snapshots[-1]), replace(how, run=run_id)
            found.append(
                _between(context, name, models.get(name), ends, replace(own, only=snapshots))
            )
    if only is not None and not found:
        raise ArgumentError(
            f"run {run_id} changed nothing of {only}",
            hint=f"penstock runs show {run_id} says what it made",
        )
    return found


def _written_by(context: ProjectContext, run_id: str) -> dict[TableName, list[int]]:
    """The tables that a run has written, each with its snapshots, in order."""
    from penstock.model.values.asset import TableName

    found: dict[TableName, list[int]] = {}
    for lake, catalog in context.existing_catalogs().items():
        for step in _steps(catalog, run_id):
            schema, _, name = step.target.partition(".")
            at = step.snapshot_id if step.state == DONE else None
            if at is not None and name and catalog.find_table(schema, name, at) is not None:
                found.setdefault(TableName(lake, schema, name), []).append(at)
    return {name: sorted(set(snapshots)) for name, snapshots in found.items()}


def _between(
    context: ProjectContext, name: TableName, model: Model | None, ends: tuple[int, int], how: _How
) -> TableDiff:
    """Return what differs in a table between two snapshots."""
    from penstock.engine.answers.comparing import Sides, TableDiff, added_and_dropped
    from penstock.lakes.reading.scan import ROW_ID

    table, catalog, (first, last) = _rows_of(context, name), context.catalog_of(name), ends
    names = (f"{name} at snapshot {first}", f"{name} at snapshot {last}")
    now = table.info(version=last)
    then = catalog.find_table(name.schema, name.table, first) or now
    if then.id == now.id:
        images = table.images(first, last, how.only)
        sides = Sides(images.before, images.after, names, ROW_ID)
    else:  # another table of that name, whose rows have other ids
        sides = Sides(table.to_df(version=first), table.to_df(version=last), names)
    changes, by = _differences(context, sides, model, how)
    added, dropped = added_and_dropped(then.schema.names, now.schema.names)
    return TableDiff(str(name), None, first, last, how.run, by, changes, added, dropped)


def _against(
    context: ProjectContext, name: TableName, other: str, model: Model | None, how: _How
) -> TableDiff:
    """Return what differs from one table to another."""
    from penstock.engine.answers.comparing import Sides, TableDiff, added_and_dropped

    second, _ = find_table(context, other)
    before, after = _rows_of(context, name).to_df(), _rows_of(context, second).to_df()
    sides = Sides(before, after, (str(name), str(second)))
    if not sides.common:
        raise ArgumentError(
            f"{name} and {second} have no column in common", hint="nothing can be compared"
        )
    changes, by = _differences(context, sides, model, how)
    added, dropped = added_and_dropped(*sides.columns)
    return TableDiff(str(name), str(second), None, None, None, by, changes, added, dropped)


def _differences(
    context: ProjectContext, sides: Sides, model: Model | None, how: _How
) -> tuple[Compared, tuple[str, ...]]:
    from penstock.engine.answers.comparing import compare_sides, key_of, key_of_model
    from penstock.sql.identifiers import fold

    if how.key is not None:
        for columns, table in zip(sides.columns, sides.names, strict=True):
            key_of(how.key, columns, table)  # which names the table that lacks a column
        return compare_sides(sides, key_of(how.key, sides.common), how.samples, sure=True)
    column = "" if model is None else context.settings.lakes[model.target.lake].partition_column
    known, by = set(map(fold, sides.common)), key_of_model(model, column)
    usable = by if all(fold(name) in known for name in by) else ()
    return compare_sides(sides, key_of(usable, sides.common), how.samples, sure=False)


def _rows_of(context: ProjectContext, name: TableName) -> Table:
    from penstock.engine.inputs.pinned_tables import table_name

    context.catalog_of(name)
    return context.lake(name.lake).table(table_name(name))


def find_table(context: ProjectContext, text: str) -> tuple[TableName, Model | None]:
    """The table that a name means, and the model that makes it. Raises ArgumentError."""
    from penstock.model.definition.graph import Naming
    from penstock.model.values.asset import Names, UnknownName
    from penstock.sql.identifiers import dotted

    naming = Naming(context.models)
    model = naming.one(text)
    if model is not None:
        if not model.target.is_table:
            raise ArgumentError(
                f"{model.name} makes files and no table", hint=f"they are {model.target}"
            )
        return model.target, model
    try:
        names = Names(
            tuple(context.settings.lakes), context.settings.default_lake, moved=context.loaded.moved
        )
        name = names.resolve(tuple(dotted(text)))
    except UnknownName as error:
        raise ArgumentError(str(error), hint=error.hint) from None
    catalog = context.catalog(name.lake)
    if catalog is None or not catalog.find_table(name.schema, name.table, catalog.latest().id):
        raise ArgumentError(f"there is no model or table {text!r}", hint=naming.unknown(text).hint)
    return name, None


@dataclass(frozen=True, slots=True)
class _How:
    """The way in which rows are matched, and of which run's snapshots changes count."""

    key: str | Sequence[str] | None
    samples: int
    run: str | None = None
    only: Sequence[int] | None = None


def _steps(catalog: Catalog, run_id: str) -> Sequence[StepRecord]:
    """The steps of a run in a lake."""
    from penstock.engine.state import run_history
    from penstock.engine.state.store import State

    own = State(catalog).read(partial(run_history.recorded, run_id=run_id), None)
    return () if own is None else own.steps


def _require_one_question(
    table: str | None, other: str | None, from_: Point | None, to: Point | None, run: str | None
) -> None:
    """Raise ArgumentError for what does not go together, and for too little."""
    ranged: Mapping[str, Point | None] = {"--from": from_, "--to": to}
    given = [name for name, value in ranged.items() if value is not None]
    if run is not None and (given or other is not None):
        said = given[0] if given else "a second table"
        raise ArgumentError(f"--run has no use for {said}", hint="leave out one of the two")
    if run is None and table is None:
        raise ArgumentError("there is no table to compare", hint="name a table, or --run RUN")
    if other is not None and given:
        raise ArgumentError(
            f"two tables are compared as they are now, without {given[0]}",
            hint="compare one table between two snapshots, or two tables",
        )
    if run is None and other is None and from_ is None:
        raise ArgumentError(
            "there is no point to compare with",
            hint="give --from SNAPSHOT, a time, an age (24h) or a run; or --run RUN",
        )


def _moment(point: str | date | datetime) -> datetime | None:
    """The time that a point is, None where it is a run."""
    from penstock.lakes.snapshot import moment
    from penstock.settings.quantities import is_duration

    if isinstance(point, str) and is_duration(point):
        return moment_since(point)
    try:
        return moment(point)
    except ArgumentError:
        return None
