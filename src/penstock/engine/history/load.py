"""The rows of one load of a history, with what tells their versions apart.

A load has one row for each key, the state of its source; with ``updated_at`` it may have several,
which are versions one after the other.

Tell whether a load is the one before: then it changes nothing, whenever it is loaded again.

Loads are the same that have the same rows, as far as versions depend on them: keys, times and
tracked columns. They are compared by the lake's fingerprint of unchanged tables, so two loads that
differ are taken for the same with a probability of 2**-64. It is computed from the rows that are
loaded, in the job that reads them, as a query need not give the same rows twice. The load before
is known by the records of the history.

Moments in the type of a table's validity columns: TIMESTAMP in UTC, TIMESTAMPTZ or DATE.

A column without a zone is read as UTC, one with a zone is an instant (history.md); the session's
time zone has no part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from penstock.destinations.catalog import Catalog
from penstock.destinations.values import Snapshot, TableSchema
from penstock.engine.state.records import SliceRecord
from penstock.errors import ColumnNotFound, MergeKeyError, SchemaMismatch
from penstock.lakes.reading.conversions.spark_types import schema_of
from penstock.lakes.writing import fingerprint
from penstock.model.definition.model import Model
from penstock.model.values.history import History
from penstock.spark.functions import expr, fn
from penstock.spark.session import session_zone
from penstock.sql.identifiers import fold, nearest, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Observation, WindowSpec


#: what a column of moments may be, as Spark's simple strings
KINDS = ("timestamp_ntz", "timestamp", "date")
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - without a zone, as the columns are


def literal(moment: datetime, kind: str) -> SparkColumn:
    """An aware moment as a column of this type."""

    return expr(literal_text(moment, kind))


def literal_text(moment: datetime, kind: str) -> str:
    """An aware moment as a literal of this type in Spark's SQL."""
    text = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    if kind == "date":
        return f"DATE '{text[:10]}'"
    return f"TIMESTAMP '{text}Z'" if kind == "timestamp" else f"TIMESTAMP_NTZ '{text}'"


def converted(value: SparkColumn, kind: str, to: str, zone: str) -> SparkColumn:
    """A column of moments as another type of moments; ``zone`` is the session's."""
    if kind == to:
        return value
    if kind == "timestamp":
        naive = value.cast("timestamp_ntz") if zone == "UTC" else _in_utc(value)
        return naive if to == "timestamp_ntz" else naive.cast("date")
    if to == "timestamp":
        naive = value.cast("timestamp_ntz")
        return naive.cast("timestamp") if zone == "UTC" else _instant(naive)
    return value.cast(to)


def _in_utc(value: SparkColumn) -> SparkColumn:
    """An instant as the clocks of UTC show it: a cast would show those of the session's zone."""
    seconds = (fn.unix_micros(value).cast("decimal(20,0)") / 1_000_000).cast("decimal(18,6)")
    zero = fn.lit(0)
    since = fn.make_dt_interval(zero, zero, zero, seconds)
    return fn.lit(str(_EPOCH)).cast("timestamp_ntz") + since


def _instant(value: SparkColumn) -> SparkColumn:
    """The instant at which the clocks of UTC show this."""
    return fn.concat(value.cast("string"), fn.lit("Z")).cast("timestamp")


@dataclass(frozen=True, slots=True)
class Watch:
    """An observer of the rows of a load as they are read; nothing where Spark cannot hash them."""

    observation: Observation | None = None

    def text(self) -> str | None:
        """The fingerprint, to be asked for once rows of the load have been seen: of a load that
        Spark finds to be empty nothing ever arrives."""
        return None if self.observation is None else fingerprint.text(self.observation.get)


def fingerprint_of(load: Load, rules: Rules) -> str | None:
    """The fingerprint of a load on its own, which reads it once."""
    schema = _schema(load, rules)
    return None if schema is None else fingerprint.of(load.rows, schema)


def watched(load: Load, rules: Rules) -> tuple[Load, Watch]:
    """The load with something that sees its rows."""
    from pyspark.sql import Observation

    schema = _schema(load, rules)
    if schema is None:
        return load, Watch()
    observation = Observation()
    rows = load.rows.observe(observation, *fingerprint.aggregates(schema))
    return replace(load, rows=rows), Watch(observation)


def _schema(load: Load, rules: Rules) -> TableSchema | None:
    updated = rules.history.updated_at
    time = [name for name in load.columns if updated and fold(name) == fold(updated)]
    names = dict.fromkeys([*rules.key_columns, *time, *load.tracked])
    schema = schema_of(load.rows.select(*map(quoted, names)))
    return schema if fingerprint.can_tell(schema) else None


def last_load(records: Iterable[SliceRecord]) -> SliceRecord | None:
    """The record of what was loaded last into a table, of whatever interval."""
    return max(records, key=lambda each: each.snapshot_id, default=None)


def may_repeat(model: Model, last: SliceRecord, catalog: Catalog, base: Snapshot) -> bool:
    """Return whether the next load may be the one before: to look costs reading it once more, and
    is in vain after a table of the same lake that it reads has changed.
    """
    if last.strategy != model.strategy.name or last.definition_hash != model.definition_hash:
        return False
    inputs = (
        catalog.known_table(table.schema, table.table, base)
        for table in model.reads
        if table.lake == model.target.lake
    )
    return not any(
        table is not None and catalog.changed_since(table, last.snapshot_id) for table in inputs
    )


KEY = "_penstock_key_"
AT = "_penstock_at"  # updated_at as a moment of the validity columns' type
ORDER = "_penstock_order"  # updated_at as it is
LOADED = "_penstock_loaded"  # true for a row of the load
ALONE = "_penstock_alone"  # the only row of its key
LAST = "_penstock_last"  # the newest row of its key
NO_KEY, NO_TIME, AGAIN = "_penstock_no_key", "_penstock_no_time", "_penstock_again"
_SAMPLES = 20


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a history: ``keys`` are expressions of Spark's SQL over the columns, by their
    names in the script; ``now`` is the execution time (aware); ``first`` says that there is no
    table yet.
    """

    table: str
    history: History
    keys: tuple[tuple[str, str], ...]
    now: datetime
    first: bool

    @property
    def key_columns(self) -> list[str]:
        """The names of the keys in a load and among versions."""
        return [f"{KEY}{number}" for number in range(len(self.keys))]

    @property
    def kind(self) -> str:
        """The type of the validity columns, as Spark's simple string."""
        return self.history.time_type.lower()

    @property
    def present(self) -> SparkColumn:
        return literal(self.now, self.kind)

    def window(self) -> WindowSpec:
        """The rows of one key, oldest first."""
        from pyspark.sql import Window

        keys = self.key_columns
        order = [ORDER] if self.history.updated_at else keys
        return Window.partitionBy(*keys).orderBy(*order)


@dataclass(frozen=True, slots=True)
class Load:
    """``rows`` are those of the SELECT with their keys and times, and when they are `marked` with
    the other columns above; ``columns`` are the SELECT's, and ``tracked`` those of them whose
    change opens a version."""

    rows: DataFrame
    columns: tuple[str, ...]
    tracked: tuple[str, ...]


def load_of(df: DataFrame, rules: Rules) -> Load:
    """Raises SchemaMismatch, ColumnNotFound for what the columns of ``df`` cannot be used for."""
    tracked = _tracked(df, rules)
    rows = with_keys(df, rules).withColumn(LOADED, fn.lit(True))
    if rules.history.updated_at is not None:
        at = _column(df, rules.history.updated_at, "updated_at_name")
        kind = _moment_kind(df, at)
        order = fn.col(quoted(at))
        zone = session_zone(df.sparkSession)
        rows = rows.withColumns({ORDER: order, AT: converted(order, kind, rules.kind, zone)})
    return Load(rows, tuple(df.columns), tracked)


def marked(load: Load, rules: Rules, *, once: bool = False) -> Load:
    """The load with what is to be known of each row among those of its key. ``once``: keys without
    times are taken to come once each, which spares a window over all rows."""
    window = rules.window()
    null_key = reduce(lambda a, b: a | b, (fn.col(key).isNull() for key in rules.key_columns))
    again = fn.lit(False) if once else fn.row_number().over(window) > 1
    alone, last, no_time = fn.lit(True), fn.lit(True), fn.lit(False)
    if rules.history.updated_at is not None:
        before, after = fn.lag(ORDER).over(window), fn.lead(ORDER).over(window)
        numbered = fn.row_number().over(window) > 1
        again, no_time = numbered & before.eqNullSafe(fn.col(ORDER)), fn.col(ORDER).isNull()
        alone, last = ~numbered & after.isNull(), after.isNull()
    marks = {ALONE: alone, LAST: last, NO_KEY: null_key, NO_TIME: no_time, AGAIN: again}
    return replace(load, rows=load.rows.withColumns(marks))


def with_keys(df: DataFrame, rules: Rules) -> DataFrame:
    """``df`` with its keys."""

    for name, text in rules.keys:
        if text == quoted(name):
            _column(df, name, "key")
    pairs = zip(rules.key_columns, rules.keys, strict=True)
    return df.withColumns({column: expr(text) for column, (_, text) in pairs})


def bad(rows: DataFrame, rules: Rules) -> MergeKeyError:
    """The error of rows that no version can be made of, with counts and samples."""
    names = [name for name, _ in rules.keys]
    keys = [fn.col(k).alias(n) for k, n in zip(rules.key_columns, names, strict=True)]
    if rules.history.updated_at is not None:
        keys.append(fn.col(ORDER).cast("string").alias(rules.history.updated_at))
    (counts,) = rows.agg(
        *(fn.count_if(fn.col(mark)).alias(mark) for mark in (NO_KEY, NO_TIME, AGAIN))
    ).collect()
    nulls, times, again = counts[NO_KEY], counts[NO_TIME], counts[AGAIN]
    wrong = rows.where(fn.col(NO_KEY) | fn.col(NO_TIME) | fn.col(AGAIN)).select(*keys)
    shown = [row.asDict(recursive=True) for row in wrong.distinct().limit(_SAMPLES).collect()]
    key = ", ".join(names)
    parts = [f"{nulls:,} rows with a NULL in the key ({key})"] if nulls else []
    parts += [f"{times:,} rows with a NULL in {rules.history.updated_at}"] if times else []
    if again:
        what = f"{key}, {rules.history.updated_at}" if rules.history.updated_at else key
        parts.append(f"{again:,} rows that repeat another's ({what})")
    return MergeKeyError(
        f"{rules.table} cannot keep the history of what the SELECT returned: {' and '.join(parts)}",
        hint=f"for example {_shown(shown)}; select one row for each of them",
        data={"null_count": nulls + times, "duplicate_count": again, "samples": shown},
    )


def _shown(samples: Sequence[dict[str, Any]]) -> str:
    return "; ".join(
        ", ".join(f"{k} = {'NULL' if v is None else v}" for k, v in sample.items())
        for sample in samples[:3]
    )


def _tracked(df: DataFrame, rules: Rules) -> tuple[str, ...]:
    """The columns to compare: those of ``track``, else all but the keys (and the time by which
    versions are told apart)."""
    history = rules.history
    if history.track:
        return tuple(_column(df, name, "tracked column") for name in history.track)
    left_out = {fold(name) for name, _ in rules.keys}
    if history.by_time and history.updated_at:
        left_out.add(fold(history.updated_at))
    return tuple(name for name in df.columns if fold(name) not in left_out)


def _column(df: DataFrame, name: str, what: str) -> str:
    found = next((column for column in df.columns if fold(column) == fold(name)), None)
    if found is None:
        near = nearest(name, df.columns)
        raise ColumnNotFound(
            f"the SELECT has no column {name}, the {what} of the history",
            hint=f"did you mean {near}?" if near else f"its columns are {', '.join(df.columns)}",
            data={"column": name},
        )
    return found


def _moment_kind(df: DataFrame, name: str) -> str:
    kind = dict(df.dtypes)[name]
    if kind not in KINDS:
        raise SchemaMismatch(
            f"{name} tells when a row was updated, and is {kind}: no date and no timestamp",
            hint=f"cast it in the SELECT: CAST({name} AS TIMESTAMP) AS {name}",
            data={"column": name, "type": kind},
        )
    return kind


def comparable(name: str, kind: str) -> SparkColumn:
    """A column, of a type by Spark's simple string, as something that Spark compares: maps and
    variants it does not."""
    value = fn.col(quoted(name))
    if "map<" in kind or "variant" in kind:
        return fn.to_json(fn.struct(value), {"ignoreNullFields": "false"})
    return value
