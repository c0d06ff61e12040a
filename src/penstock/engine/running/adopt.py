"""Record the rows of a table that no run has written as what runs of its model made.

Nothing of the table changes and no snapshot is made: its slices, or its intervals, are recorded as
they are, so that runs continue behind them. Rows that a model's strategy could not have made are
refused (keys that are NULL or shared, versions that overlap, slices with names that cannot be).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sqlalchemy.exc import IntegrityError

from penstock.engine.inputs.pinned_tables import table_name
from penstock.engine.inputs.time_values import time_values
from penstock.engine.planning.schema_change import difference, fit_columns
from penstock.engine.planning.stages import Refuse, Stage, TableFacts, lost_rows, other_slices
from penstock.engine.results import Adopted, AdoptedSlice
from penstock.engine.running.redefinition import facts_of, refuse_keys, refuse_no_history
from penstock.engine.state import reading
from penstock.engine.state.records import (
    WHOLE,
    Publication,
    RunRecord,
    SliceRecord,
    StepRecord,
    column_infos,
    this_process,
)
from penstock.engine.state.store import State, StepRecords, finish_run, insert_run, now, start_step
from penstock.engine.strategies.time_range import rows_of
from penstock.errors import ArgumentError, PartitionError, SchemaMismatch, TableNotFound
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, interval_of, minus
from penstock.model.time.moments import read_end
from penstock.model.time.partition import TIME_KINDS, bounds, validate
from penstock.model.time.slice import shown
from penstock.model.values.strategy import Output
from penstock.settings.environment_tables import Environment
from penstock.sql.identifiers import fold, quoted
from penstock.sql.tokens import unsubstituted
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.destinations.destination import Destination, StagedTable
    from penstock.destinations.values import TableSchema

_REFUSED: Mapping[Output, tuple[str, str]] = {
    Output.VIEW: ("is a view, which has no rows of its own", "write kind FULL to keep rows"),
    Output.NOTHING: ("is EMBEDDED and makes no table", "adopt the models that read it"),
    Output.FILES: ("writes files and no table", "run it: it writes its files again"),
    Output.STATEMENTS: (
        "is manual: its statements alone know which rows are there",
        "run it: what its statements find in the table is up to them",
    ),
}
_SHOWN = 3
# Of the model's query, for a slice; None where only a run shows them.
Columns = Callable[[str | None], Sequence[str] | None]


@dataclass(frozen=True, slots=True)
class _Adoption:
    """One call. ``column`` carries the values of slices; ``until`` is an end, not included."""

    model: Model
    table: StagedTable
    facts: TableFacts
    records: Sequence[SliceRecord]
    column: str
    until: datetime | None
    now: datetime
    environment: Environment | None = None

    @property
    def known(self) -> list[SliceRecord]:
        """Return what is recorded of this table; others are of one that was dropped."""
        return [each for each in self.records if each.snapshot_id >= self.facts.made_in]

    def refuse(self, stage: Stage | None) -> None:
        """Raise DefinitionChanged for a table that the next run would refuse."""
        if isinstance(stage, Refuse):
            raise stage.error(self.model)


def adopt(
    lake: Destination,
    model: Model,
    columns: Columns,
    *,
    column: str,
    until: str | None = None,
    dry_run: bool = False,
    environment: Environment | None = None,
) -> Adopted:
    """Record what ``model`` has in its table, up to and including ``until``.

    ``columns`` are those of the model's query, for the value of a slice. Raises ArgumentError,
    TableNotFound, SchemaMismatch, DefinitionChanged and StepError, and records nothing then.
    """
    _refuse_kind(model)
    moment = _end(model, until)
    state = State(lake.catalog)
    target = model.target.qualified
    tx = lake.transaction()
    try:
        if tx.kind_of(table_name(model.target)) != "table":
            raise TableNotFound(
                f"there is no table {model.target} to adopt",
                hint=f"run the model, which makes it: penstock run {model.name}",
            )
        table = tx.table(table_name(model.target))
        if not table.count_rows():
            raise ArgumentError(
                f"{model.target} has no rows, so there is nothing to adopt",
                hint=f"run the model: penstock run {model.name}",
            )
        records = state.slices(target)
        facts = facts_of(table, "table", column, state, target)
        asked = _Adoption(model, table, facts, records, column, moment, now(), environment)
        asked.refuse(other_slices(model, facts, asked.known))
        slices = _slices(asked)
        _require_fit(asked, columns, slices[0].slice)
        snapshot_id, schema = tx.base.id, table.schema
        first = bool(records) and not asked.known
    finally:
        tx.rollback()
    if not dry_run:
        _record(state, asked, slices, schema, snapshot_id, first=first)
    notices = tuple(_notices(model))
    found = tuple(AdoptedSlice(shown(each.slice or ""), each.rows) for each in slices)
    return Adopted(model.name, str(model.target), found, snapshot_id, notices)


def _refuse_kind(model: Model) -> None:
    refused = _REFUSED.get(model.strategy.output)
    if refused is None and model.reads_changes and model.strategy.only_adds:
        refused = (
            "appends what changed in its input, and its rows do not say up to where they have it",
            "run it with --full-refresh, or give it another table",
        )
    if refused is not None:
        problem, hint = refused
        raise ArgumentError(f"{model.name} {problem}", hint=hint, location=model.place("target"))


def _end(model: Model, until: str | None) -> datetime | None:
    if until is None:
        return None
    if model.by_time is None and (
        model.partition is None or model.partition.kind not in TIME_KINDS
    ):
        raise ArgumentError(
            f"{model.name} has no slices of time, so it cannot be adopted until {until}",
            hint=f"leave out --until: penstock adopt {model.name}",
        )
    try:
        return read_end(until, now())
    except (ValueError, OverflowError):
        raise ArgumentError(
            f"{until!r} is not a moment", hint="write a date, such as --until 2024-01-31"
        ) from None


def _slices(asked: _Adoption) -> list[AdoptedSlice]:
    """Return what is to be recorded; ``slice`` is its text for state. Raises ArgumentError."""
    model = asked.model
    if model.by_time is not None:
        return _intervals(asked)
    if model.partition is not None:
        return _parts(asked)
    if asked.known:
        raise _known_already(model, asked.known)
    _require_rows(asked)
    return [AdoptedSlice(WHOLE, asked.table.count_rows())]


def _require_rows(asked: _Adoption) -> None:
    """Raise DefinitionChanged for rows that the model's strategy cannot continue."""
    model = asked.model
    asked.refuse(lost_rows(model, asked.facts, None, None))
    if model.history is not None:
        refuse_no_history(model, None, asked.table)
    elif model.strategy.merges:
        refuse_keys(model, None, asked.table, None)


def _parts(asked: _Adoption) -> list[AdoptedSlice]:
    from pyspark.sql import functions as fn

    model, spec = asked.model, asked.model.partition
    assert spec is not None, "asked of partitioned models"
    rows = asked.table.to_df()  # which starts Spark, where nothing has: a column needs it
    groups = rows.groupBy(fn.col(quoted(asked.column)).alias("value")).count().collect()
    counts = {row["value"]: row["count"] for row in groups}
    wrong = [value for value in counts if not _is_value(model, value)]
    if wrong:
        listed = ", ".join("NULL" if value is None else repr(value) for value in wrong[:_SHOWN])
        raise ArgumentError(
            f"the column {asked.column} of {model.target} holds {listed}, which is no slice of "
            f"`partitioned {model.slicing}`",
            hint=f"correct it: UPDATE {model.target.qualified} SET {asked.column} = ...",
        )
    known = {record.slice for record in asked.known}
    early = {
        value: count
        for value, count in counts.items()
        if asked.until is None or bounds(spec, value)[0] < asked.until
    }
    if not early:
        raise ArgumentError(
            f"{model.target} has no slice that begins before {asked.until}",
            hint=f"its first is {min(counts)}: give a later --until",
        )
    new = sorted(early.keys() - known)
    if not new:
        raise _known_already(model, asked.known)
    if model.strategy.merges:
        _require_rows(asked)
    return [AdoptedSlice(value, early[value]) for value in new]


def _is_value(model: Model, value: str | None) -> bool:
    assert model.partition is not None, "asked of partitioned models"
    try:
        validate(model.partition, value or "")
    except PartitionError:
        return False
    return value is not None


def _intervals(asked: _Adoption) -> list[AdoptedSlice]:
    """From the model's start, or its first row, up to ``until`` or its last row."""
    model, by_time = asked.model, asked.model.by_time
    assert by_time is not None, "asked of models by time"
    over = by_time.unit.floor(asked.now)  # the interval that is not over is the next run's
    start, end = by_time.start(asked.now), asked.until
    if by_time.column is not None:
        first, last = _span(asked)
        start = (
            by_time.unit.floor(first) if start is None else min(start, by_time.unit.floor(first))
        )
        end = by_time.unit.next(by_time.unit.floor(last)) if end is None else end
    else:
        _require_rows(asked)
    if start is None or end is None:
        what = "--until DATE" if end is None else "the property `start`"
        raise ArgumentError(
            f"the rows of {model.name} do not say which intervals they are of",
            hint=f"say it: add {what}",
        )
    end = min(by_time.unit.floor(end), over)
    if end <= start:
        raise ArgumentError(
            f"no {by_time.unit} of {model.name} ends between {start:%Y-%m-%d %H:%M} and "
            f"{min(end, over):%Y-%m-%d %H:%M}",
            hint="give a later --until",
        )
    recorded = [each for each in (interval_of(r.slice) for r in asked.known) if each is not None]
    new = minus((Interval(start, end),), recorded)
    if not new:
        raise _known_already(model, asked.known)
    return [AdoptedSlice(each.text, _rows_in(asked, each)) for each in new]


def _span(asked: _Adoption) -> tuple[datetime, datetime]:
    """The times of the first and the last row. Raises StepError, ArgumentError."""
    model, time_range = asked.model, asked.model.time_range
    assert time_range is not None, "asked of models by time"
    assert time_range.column is not None, "asked of models by time"
    df = asked.table.to_df()
    values = time_values(df, time_range.column, time_range.unit, model.query.dialect)
    moment = values.moment
    wanted = (
        f"min({moment}) AS first",
        f"max({moment}) AS last",
        f"count_if({values.is_bad}) AS bad",
    )
    (row,) = df.selectExpr(*map(unsubstituted, wanted)).collect()
    if row["bad"] or row["first"] is None:
        raise ArgumentError(
            f"{row['bad']:,} rows of {model.target} have no time in {time_range.column.name}",
            hint="correct or delete them: a row without a time belongs to no interval",
        )
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + timedelta(microseconds=row["first"]), epoch + timedelta(microseconds=row["last"])


def _rows_in(asked: _Adoption, interval: Interval) -> int:
    ranges, dialect = asked.model.ranges, asked.model.query.dialect
    if ranges is None:
        return asked.table.count_rows()
    return rows_of(asked.table, ranges, (interval,), dialect).count()


def _require_fit(asked: _Adoption, columns: Columns, slice_: str | None) -> None:
    """Raise SchemaMismatch for columns that the next run would refuse too."""
    model, table = asked.model, asked.table
    if not model.keeps_columns:
        return
    managed = [asked.column] if model.partition is not None else []
    managed += list(model.history.managed) if model.history is not None else []
    made = columns(slice_ if model.partition is not None else None)
    if made is None:
        return
    try:
        fit_columns(
            difference(made, table.schema.names, managed),
            model.schema_change,
            model.target.qualified,
            merges=model.strategy.merges,
        )
    except SchemaMismatch as error:
        error.location = error.location or model.place("target")
        raise


def _known_already(model: Model, known: Sequence[SliceRecord]) -> ArgumentError:
    last = max(known, key=lambda each: each.published_at)
    return ArgumentError(
        f"runs have recorded what is in {model.target}: there is nothing to adopt",
        hint=f"penstock status {model.name} shows it; the last was at "
        f"{last.published_at:%Y-%m-%d %H:%M}",
    )


def _notices(model: Model) -> Iterable[str]:
    if model.replaces_table:
        yield "the next run replaces these rows with what the query returns"


def _record(
    state: State,
    asked: _Adoption,
    slices: Sequence[AdoptedSlice],
    schema: TableSchema,
    snapshot_id: int,
    *,
    first: bool,
) -> None:
    """Raises ArgumentError where another command has recorded slices since they were looked at."""
    model, run_id = asked.model, new_uuid7()
    infos = column_infos(schema, {fold(n): t for n, t in model.about.column_descriptions})
    made = tuple(
        replace(
            Publication.of(model, run_id, each.slice or WHOLE),
            rows=each.rows,
            columns=infos,
            reason="adopted",
            first=first and not number,
            made_before=snapshot_id,
        )
        for number, each in enumerate(slices)
    )
    known = frozenset((each.slice, each.run_id) for each in asked.records)
    run = RunRecord(run_id, "running", None, {}, now(), this_process(), "adopt")
    run = replace(run, environment=asked.environment)
    records = _Records(model, run, known, StepRecords(made, snapshot_id))
    state.prepare()
    try:
        state.write(records.write)
    except IntegrityError:
        raise _overtaken(model) from None


@dataclass(frozen=True, slots=True)
class _Records:
    """A run whose steps made nothing new; ``known`` are the slices, with their runs, that were
    recorded when the rows were looked at.
    """

    model: Model
    run: RunRecord
    known: frozenset[tuple[str, str]]
    steps: StepRecords

    def write(self, connection: Connection) -> None:
        """Raises ArgumentError."""
        target, run_id = self.model.target.qualified, self.run.run_id
        there = {(each.slice, each.run_id) for each in reading.slices(connection, target)}
        if there != self.known:
            raise _overtaken(self.model)
        insert_run(connection, self.run)
        for what in self.steps.published:
            step = StepRecord(run_id, what.step, target, what.slice, "running", self.run.started_at)
            start_step(connection, step)
        self.steps.write(connection)
        finish_run(connection, run_id, "done", now())


def _overtaken(model: Model) -> ArgumentError:
    return ArgumentError(
        f"another command has recorded slices of {model.target} meanwhile",
        hint=f"look at them, penstock status {model.name}, and adopt what is left",
    )
