"""CREATE VIEW: which views DuckDB can read, with the rows that Spark reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.lakes.lake import Lake
from tests import duck

pytestmark = pytest.mark.spark

TABLE = (
    "CREATE TABLE t (id INT, cents BIGINT, name VARCHAR, day DATE, ts TIMESTAMP, x DOUBLE, "
    "f BOOLEAN)",
    "INSERT INTO t VALUES "
    "(1, 1250, ' Ada ', DATE '2026-01-31', TIMESTAMP_NTZ '2026-01-31 23:59:59.5', 1.5, true), "
    "(-7, -99, '\u00e9', DATE '2024-02-29', TIMESTAMP_NTZ '2024-02-29 00:00:00', -0.25, false), "
    "(0, NULL, '', NULL, NULL, NULL, NULL)",
)
FORMS = (
    "cents / 100",
    "cents / nullif(id, 0)",
    "x / 4",
    "id % 3",
    "cast(id as string)",
    "cast(day as string)",
    "cast(ts as string)",
    "cast(f as string)",
    "cast(f as int)",
    "cast(id as bigint)",
    "cast(cents as decimal(18, 2))",
    "cast(cents as double)",
    "cast(ts as date)",
    "cast(day as timestamp_ntz)",
    "cast(date_trunc('month', ts) as date)",
    "cast(date_trunc('week', day) as date)",
    "cast(date_trunc('hour', ts) as timestamp_ntz)",
    "year(day)",
    "quarter(ts)",
    "month(day)",
    "length(name)",
    "length(trim(name))",
    "trim(name)",
    "date_add(day, 3)",
    "datediff(day, date '2024-01-01')",
    "datediff(ts, day)",
    "timestampadd(month, 1, ts)",
    "timestampadd(hour, -5, cast(day as timestamp_ntz))",
    "concat(name, '-', cast(id as string))",
    "concat('it''s ', name)",
    "if(f, id, cents)",
    "md5(coalesce(cast(id as string), '') || '-' || coalesce(cast(cents as string), '_'))",
)
OTHERS = ("upper(name)", "cast(x as string)", "cents / id", "cast(x as int)")


def test_forms_of_spark_are_stored_for_duckdb(tmp_path: Path, spark: SparkSession) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    columns = ", ".join(f"{form} AS c{place}" for place, form in enumerate(FORMS))
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        for statement in TABLE:
            lake.sql(statement)
        lake.sql(f"CREATE VIEW v AS SELECT id, {columns} FROM t")
        by_spark = lake.sql(f"SELECT id, {columns} FROM t ORDER BY id").collect()
        by_view = lake.sql("SELECT * FROM v ORDER BY id").collect()
        (view,) = lake.views()
    assert view.dialect == "duckdb"
    with duck.attach(uri, str(tmp_path / "data")) as con:
        by_duckdb = con.execute("SELECT * FROM v ORDER BY id").fetchall()
    assert [tuple(row) for row in by_view] == [tuple(row) for row in by_spark]
    for place, form in enumerate(FORMS, 1):
        assert [row[place] for row in by_duckdb] == [row[place] for row in by_spark], form


def test_a_view_that_duckdb_cannot_read_is_reported(tmp_path: Path, spark: SparkSession) -> None:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(tmp_path / "data"), spark=spark) as lake:
        lake.sql(TABLE[0])
        for form in OTHERS:
            (row,) = lake.sql(f"CREATE OR REPLACE VIEW v AS SELECT {form} AS c FROM t").collect()
            assert "DuckDB cannot read main.v" in row["notice"], form
        assert lake.sql("CREATE OR REPLACE VIEW v AS SELECT id FROM t").collect() == []
