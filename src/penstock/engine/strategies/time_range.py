"""time_range: the rows of intervals of time become exactly what the SELECT returned for them.

The query filters its input; its output is filtered here, so that no row is stored which a later run
of its own interval would not replace (seeds/model-kinds.md, "Time column"). What is left out is
said. A row without a time belongs to no interval, and fails the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from penstock.destinations.values import Staged
from penstock.engine.inputs.time_values import TimeValues, time_values
from penstock.engine.strategies.target import Step, WriteTarget, given
from penstock.errors import StepError
from penstock.model.definition.model import Model
from penstock.model.script.declaration import Layout
from penstock.model.time.interval import Intervals, union
from penstock.model.time.time_range import TimeRange
from penstock.spark.functions import as_condition, expr, fn

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from penstock.destinations.destination import StagedTable
    from penstock.destinations.values import Ranges

Counts = Mapping[str, Any]
_SAMPLES = 3
_LONGEST = 300  # characters of a row that is shown


@dataclass(frozen=True, slots=True)
class Options:
    """The time column, in the model's own dialect, and how the table is laid out. ``say`` tells
    people what is worth knowing.
    """

    time_range: TimeRange
    dialect: str
    layout: Layout
    say: Callable[[str], None]

    @classmethod
    def of(cls, model: Model, step: Step) -> Options:
        return cls(given(model.ranges), model.query.dialect, model.layout, step.say)


def stage(table: StagedTable, df: DataFrame, target: WriteTarget[Options]) -> Staged:
    """Raises StepError for a time column that cannot be one, and for rows without a time."""
    options = target.options
    column, unit = given(options.time_range.column), options.time_range.unit
    values = time_values(df, column, unit, options.dialect)
    if values.unused_format:
        options.say(values.unused_format)
    _lay_out(table, values, options)
    intervals = union(target.intervals)
    staged, counts = _replaced(table, df, values.ranges(intervals), values, target)
    if counts["lacking"] or counts["misfits"]:
        raise _without_time(df, values, counts)
    if counts["outside"]:
        options.say(_outside(counts, intervals))
    return staged


def rows_of(
    table: StagedTable, time_range: TimeRange, intervals: Intervals, dialect: str
) -> DataFrame:
    """The rows that the table will have in these intervals."""
    ranges = ranges_of(table.to_df(), time_range, intervals, dialect)
    return table.to_df(ranges.condition.files).where(as_condition(ranges.where))


def rows_in_ranges(
    rows: DataFrame, time_range: TimeRange, intervals: Intervals, dialect: str
) -> DataFrame:
    """Return those of a published table."""
    return rows.where(as_condition(ranges_of(rows, time_range, intervals, dialect).where))


def ranges_of(rows: DataFrame, time_range: TimeRange, intervals: Intervals, dialect: str) -> Ranges:
    """The rows of intervals, by the time column as its type has it."""
    column = given(time_range.column)
    return time_values(rows, column, time_range.unit, dialect).ranges(intervals)


def _lay_out(table: StagedTable, values: TimeValues, options: Options) -> None:
    """Partition the table by its time column, unless the model says how."""
    layout, keys = options.layout, options.layout.partitioned_by
    name = values.column.name.casefold()
    said = any(name in {key.casefold(), _inside(key).casefold()} for key in keys)
    if options.time_range.partition_by_time_column and not said:
        keys = (*keys, *values.partition_keys(options.time_range.unit))
    if keys or layout.is_said:
        table.lay_out(keys, layout.clustered_by)


def _inside(key: str) -> str:
    """The column of ``month(at)``."""
    return key.partition("(")[2].removesuffix(")")


def _replaced(
    table: StagedTable,
    df: DataFrame,
    ranges: Ranges,
    values: TimeValues,
    target: WriteTarget[Options],
) -> tuple[Staged, Counts]:
    """Stage the rows of the intervals, and count the others in the same pass over the query.

    What a plan that Spark finds to be empty would have counted never arrives, and rows that are
    sorted are sampled, and counted, twice: then they are counted on their own.
    """
    from pyspark.sql import Observation

    counting = values.counts(ranges.where)
    observation = None if target.options.layout.clustered_by else Observation()
    watched = df if observation is None else df.observe(observation, *_columns(counting))
    staged = table.replace_ranges(
        watched.where(as_condition(ranges.where)),
        ranges,
        known_fingerprint=target.known_fingerprint,
    )
    if observation is not None and staged.slice_rows:
        return staged, observation.get
    (row,) = df.agg(*_columns(counting)).collect()
    return staged, row.asDict()


def _columns(counting: Mapping[str, str]) -> list[SparkColumn]:

    return [expr(text).alias(name) for name, text in counting.items()]


def _without_time(df: DataFrame, values: TimeValues, counts: Counts) -> StepError:
    """Rows that belong to no interval, with some of them."""
    lacking, misfits = counts["lacking"], counts["misfits"]
    shown = fn.to_json(fn.struct("*"), {"ignoreNullFields": "false"})
    bad = df.where(values.is_bad).select(shown.alias("shown")).limit(_SAMPLES).collect()
    samples = [row["shown"][:_LONGEST] for row in bad]
    name = values.column.name
    if misfits:
        what = f"the time column {name} of {_rows(misfits)} does not fit the format "
        what += f"{values.format}: {counts['misfit']!r}, for one"
        hint = f"fix the query, or say how it is written: ({name}, '%d.%m.%Y')"
    else:
        what = f"the time column {name} is NULL in {_rows(lacking)}, which belong to no interval"
        hint = f"filter them by WHERE {name} IS NOT NULL, or give them a time"
    return StepError(
        f"{what}; such as {'; '.join(samples)}",
        hint=hint,
        data={"rows": misfits or lacking, "samples": samples},
    )


def _outside(counts: Counts, intervals: Intervals) -> str:
    first, last = (_moment(counts[name]) for name in ("first", "last"))
    times = f"at {first}" if first == last else f"from {first} to {last}"
    rows = f"{_rows(counts['outside'])} {'is' if counts['outside'] == 1 else 'are'}"
    asked = ", ".join(map(str, intervals[:_SAMPLES]))
    more = f" and {len(intervals) - _SAMPLES} more" if len(intervals) > _SAMPLES else ""
    return f"{rows} outside {asked}{more} and not stored: {times}"


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def _moment(micros: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return text.removesuffix(" 00:00:00")
