"""Values of files as those of columns: rounded as DuckDB rounds them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.lakes.format.schema import Column
from penstock.lakes.reading.conversions.spark_types import INFINITE, moment, reads_itself, rounded
from penstock.lakes.reading.parquet.footers import layout_of

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
        rows = frame.select(
            rounded(value, 1_000_000).cast("string").alias("s"),
            rounded(value, 1000).cast("string").alias("ms"),
        ).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    assert [row["s"] for row in rows] == _by_duckdb("TIMESTAMP_S")
    assert [row["ms"] for row in rows] == _by_duckdb("TIMESTAMP_MS")


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


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        *(("int8", "int64"), ("uint8", "int16"), ("uint32", "int64"), ("float32", "float64")),
        *(("int64", "uint32"), ("decimal(20,0)", "uint64"), ("float64", "int128")),
        *(("decimal(4,1)", "decimal(9,3)"), ("int96", "timestamp"), ("varchar", "uuid")),
        *(("time", "time"), ("interval", "interval"), ("blob", "geometry")),
    ],
)
def test_read_by_itself(kind: str, table: str) -> None:
    assert reads_itself(kind, table)


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        *(("uint32", "uint64"), ("boolean", "int32"), ("int32", "float64"), ("date", "timestamp")),
        *(("decimal(9,3)", "decimal(9,1)"), ("decimal(9,1)", "decimal(9,3)"), ("int64", "int32")),
        *(("milliseconds", "timestamp_ms"), ("timestamp", "timestamptz"), ("time", "int64")),
    ],
)
def test_turned_or_refused(kind: str, table: str) -> None:
    assert not reads_itself(kind, table)


@pytest.mark.parametrize(
    ("begin", "types"),
    [
        (2, set()),
        (3, {"int8", "int16", "int64"}),
        (5, {"int16", "int64"}),
        (8, {"int16", "int64"}),
        (9, {"int64"}),
        (None, {"int64"}),
    ],
)
def test_types_that_a_file_may_hold(begin: int | None, types: set[str]) -> None:
    column = Column("c", "int64", 1, versions=((3, "int8"), (5, "int16"), (9, "int64")))
    assert column.types_since(begin) == types


def test_a_column_of_no_catalog_has_its_type() -> None:
    assert Column("c", "int64").types_since(1) == {"int64"}


def test_a_layout_has_ids_and_paths_at_any_depth(tmp_path: Path) -> None:
    def field(name: str, number: int, kind: pa.DataType) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    inner = pa.struct([field("A", 3, pa.uint16())])
    schema = pa.schema(
        [
            field("L", 1, pa.list_(field("item", 2, inner))),
            field("m", 4, pa.map_(pa.string(), field("value", 5, pa.timestamp("ms")))),
            pa.field("d", pa.decimal128(9, 2)),
        ]
    )
    pq.write_table(schema.empty_table(), tmp_path / "f.parquet")
    layout = layout_of(pq.read_metadata(tmp_path / "f.parquet"))
    assert dict(layout.by_path) == {
        ("l",): "nested",
        ("l", "list"): "nested",
        ("l", "list", "a"): "uint16",
        ("m",): "nested",
        ("m", "key"): "varchar",
        ("m", "value"): "milliseconds",
        ("d",): "decimal(9,2)",
    }
    assert {n: layout.by_id[n] for n in (1, 2, 3, 5)} == {
        1: "nested",
        2: "nested",
        3: "uint16",
        5: "milliseconds",
    }
