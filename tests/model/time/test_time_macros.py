from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import ArgumentError
from penstock.model.query.query import Query, ScriptKind, read_query
from penstock.model.script.arguments import bind
from penstock.model.time.interval import Interval
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.time_macros import TIMES, argument_of, as_written, value_of
from penstock.model.values.asset import Names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1)))
LAST = datetime(2026, 1, 1, 23, 59, 59, 999_999, tzinfo=UTC)
#: kinds.md, "macro variables": the end is the last microsecond of the interval
VALUES = {
    "start_dt": DAY.start,
    "start_dtntz": datetime(2026, 1, 1),  # noqa: DTZ001 - without a zone on purpose
    "start_date": date(2026, 1, 1),
    "start_ds": "2026-01-01",
    "start_ts": "2026-01-01 00:00:00",
    "start_tstz": "2026-01-01 00:00:00+00:00",
    "start_hour": 0,
    "start_epoch": 1767225600.0,
    "start_millis": 1767225600000,
    "end_dt": LAST,
    "end_dtntz": LAST.replace(tzinfo=None),
    "end_date": date(2026, 1, 1),
    "end_ds": "2026-01-01",
    "end_ts": "2026-01-01 23:59:59.999999",
    "end_tstz": "2026-01-01 23:59:59.999999+00:00",
    "end_hour": 23,
    "end_epoch": 1767311999.999999,
    "end_millis": 1767311999999,
    "execution_dt": NOW.astimezone(UTC),
    "execution_dtntz": datetime(2026, 1, 2, 2, 4, 5),  # noqa: DTZ001 - without a zone on purpose
    "execution_date": date(2026, 1, 2),
    "execution_ds": "2026-01-02",
    "execution_ts": "2026-01-02 02:04:05",
    "execution_tstz": "2026-01-02 02:04:05+00:00",
    "execution_hour": 2,
    "execution_epoch": 1767319445.0,
    "execution_millis": 1767319445000,
}


def query(
    text: str,
    dialect: str = "spark",
    *,
    partition: PartitionSpec | None = None,
    by_time: bool = False,
) -> Query:
    found, findings = read_query(
        text,
        Path("m.sql"),
        names=Names(("main",)),
        dialect=dialect,
        kind=ScriptKind(partition=partition, by_time=by_time),
    )
    assert found is not None, findings
    return found


def test_there_are_27_values() -> None:
    assert set(VALUES) == TIMES
    assert {name: value_of(argument_of(name), DAY, NOW) for name in VALUES} == VALUES


def test_they_are_bound_and_never_pasted() -> None:
    read = query("SELECT @start_ds AS a, @{end_dt} AS b, @START_DS AS c WHERE x < @execution_date")
    assert read.uses_interval
    rendered = read.render({})
    assert "2026" not in rendered.sql
    assert [argument.name for argument in read.arguments] == [
        argument_of(name) for name in ("end_dt", "execution_date", "start_ds")
    ]
    bound = bind(read.arguments, {}, interval=DAY, now=NOW)
    assert bound == {name: VALUES[name.removeprefix("penstock_at_")] for name in bound}


def test_a_run_without_an_interval_has_no_start() -> None:
    read = query("SELECT @start_ds AS a")
    with pytest.raises(ArgumentError, match="@start_ds has no value"):
        bind(read.arguments, {}, now=NOW)
    only = query("SELECT @execution_ds AS a")
    assert not only.uses_interval
    assert list(bind(only.arguments, {}, now=NOW).values()) == ["2026-01-02"]


def test_a_partition_is_an_interval() -> None:
    spec = PartitionSpec("daily", tz="America/New_York")
    read = query("SELECT @start_tstz AS a, @end_tstz AS b", partition=spec)
    bound = bind(read.arguments, {}, partition="2026-01-01", spec=spec, now=NOW)
    assert bound[argument_of("start_tstz")] == "2026-01-01 05:00:00+00:00"
    assert bound[argument_of("end_tstz")] == "2026-01-02 04:59:59.999999+00:00"


def test_bounds_of_a_model_by_time_are_half_open() -> None:
    read = query("SELECT $partition_start AS a, $partition_end AS b", by_time=True)
    assert list(bind(read.arguments, {}, interval=DAY, now=NOW).values()) == [DAY.start, DAY.end]


@pytest.mark.spark
@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_spark_sees_values_of_their_types(spark: SparkSession, dialect: str) -> None:
    from penstock.model.script.constants import Bindings

    read = query("SELECT " + ", ".join(f"@{name} AS {name}" for name in VALUES), dialect)
    rendered = read.render({})
    bindings = Bindings(arguments=bind(read.arguments, {}, interval=DAY, now=NOW))
    df = spark.sql(rendered.sql, args=rendered.args(bindings))
    kinds = dict(df.dtypes)
    assert [kinds[f"start_{unit}"] for unit in ("dt", "dtntz", "date", "ds", "hour", "epoch")] == [
        *("timestamp", "timestamp_ntz", "date", "string", "int", "double"),
    ]
    inside = "CAST(1767311999.5 AS DOUBLE) BETWEEN start_epoch AND end_epoch AS inside"
    (row,) = df.selectExpr("unix_micros(end_dt) AS at", "end_dtntz", "end_millis", inside).collect()
    assert tuple(row) == (1767311999999999, VALUES["end_dtntz"], VALUES["end_millis"], True)


def test_the_name_of_an_argument_is_shown_as_the_macro_that_was_written() -> None:
    assert as_written(argument_of("start_ds")) == "@start_ds"
    assert as_written("penstock_at_noon") == "penstock_at_noon"
