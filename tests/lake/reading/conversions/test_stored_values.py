"""Values of files as those of columns: rounded as DuckDB rounds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from penstock.lake.reading.conversions.stored_values import INFINITE, moment, rounded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIMES = [
    "2024-03-31 02:30:00.5",  # no such in Paris
    "2000-01-01 00:00:00.499999",
    "1969-12-31 23:59:59.5",
    "1969-12-31 23:59:59.500001",
    "1969-12-31 23:59:59.9995",
    "1881-05-05 05:05:05.5005",
    "0001-01-01 00:00:00",
]


def _by_duckdb(kind: str) -> list[str]:
    with duckdb.connect() as connection:
        query = f"SELECT t::TIMESTAMP::{kind}::VARCHAR FROM unnest({TIMES}) x(t)"
        return [text for (text,) in connection.execute(query).fetchall()]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "America/New_York"])
def test_halves_go_away_from_1970(spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.createDataFrame([(text,) for text in TIMES], "text STRING")
        value = frame["text"].cast("timestamp_ntz")
        found = frame.select(
            rounded(value, 1_000_000).cast("string").alias("s"),
            rounded(value, 1000).cast("string").alias("ms"),
        ).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    assert [row["s"] for row in found] == _by_duckdb("TIMESTAMP_S")
    assert [row["ms"] for row in found] == _by_duckdb("TIMESTAMP_MS")


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_infinite_ones_stay(spark: SparkSession, zone: str) -> None:
    from pyspark.sql import functions as fn

    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.createDataFrame([(INFINITE,), (-INFINITE,), (None,)], "count LONG")
        value = moment(frame["count"])
        same = rounded(value, 1_000_000).eqNullSafe(value)
        assert [row[0] for row in frame.select(same).collect()] == [True] * 3
        nothing = frame.where("count IS NULL").select(fn.isnull(rounded(value, 1000)))
        assert [row[0] for row in nothing.collect()] == [True]
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
