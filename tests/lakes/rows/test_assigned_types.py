"""A value and NULL, assigned to a column of each type in both dialects, as DuckDB reads them.

Tests ``lakes/rows/spark_finder.py`` (assigned values in the types of the table).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.lakes.lake import Lake
from tests import duck

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = "2026-01-02 03:04:05"
UUID = "0195c1a0-0000-7000-8000-000000000001"
# By DuckDB's type: a value in Spark's SQL, and how DuckDB shows that.
TYPES = {
    "BOOLEAN": ("true", "true"),
    "TINYINT": ("1", "1"),
    "SMALLINT": ("1", "1"),
    "INTEGER": ("1", "1"),
    "BIGINT": ("1", "1"),
    "FLOAT": ("1.5", "1.5"),
    "DOUBLE": ("1.5", "1.5"),
    "DECIMAL(10,2)": ("1.25", "1.25"),
    "VARCHAR": ("'a'", "a"),
    "BLOB": ("X'6162'", "ab"),
    "DATE": ("DATE '2026-01-02'", "2026-01-02"),
    "TIMESTAMP": (f"TIMESTAMP_NTZ '{DAY}'", DAY),
    "TIMESTAMPTZ": (f"TIMESTAMP '{DAY} UTC'", f"{DAY}+00"),
    "UBIGINT": ("1", "1"),
    "JSON": ("'{}'", "{}"),
    "UUID": (f"'{UUID}'", UUID),
    "TIMESTAMP_S": (f"TIMESTAMP_NTZ '{DAY}'", DAY),
    "TIMESTAMP_MS": (f"TIMESTAMP_NTZ '{DAY}'", DAY),
    "INTEGER[]": ("array(1, 2)", "[1, 2]"),
    "STRUCT(x INTEGER)": ("named_struct('x', 1)", "{'x': 1}"),
    "MAP(VARCHAR, INTEGER)": ("map('a', 1)", "{a=1}"),
}


@pytest.mark.spark
def test_every_type_takes_every_assignment(tmp_path: Path, spark: SparkSession) -> None:
    uri, columns = f"ducklake:sqlite:{tmp_path}/m.sqlite", [f"c{at}" for at in range(len(TYPES))]
    listed = ", ".join(f"{c} {kind}" for c, kind in zip(columns, TYPES, strict=True))
    values = {c: value for c, (value, _) in zip(columns, TYPES.values(), strict=True)}
    shown = tuple(text for _, text in TYPES.values())
    nothing = (None,) * len(columns)
    with Lake.attach(uri, data_path=f"{tmp_path}/data", spark=spark) as lake:
        lake.sql(f"CREATE TABLE t (k INTEGER, {listed})", dialect="duckdb")
        lake.sql("INSERT INTO t (k) VALUES (1), (2)")

        def row() -> tuple[object, ...]:
            texts = ", ".join(f"{column}::VARCHAR" for column in columns)
            (found,) = duck.rows(uri, f"SELECT {texts} FROM t WHERE k = 1")
            return found

        sets = ", ".join(f"{column} = {value}" for column, value in values.items())
        nulls = ", ".join(f"{column} = NULL" for column in columns)
        lake.sql(f"UPDATE t SET {sets} WHERE k = 1")
        assert row() == shown
        lake.sql(f"UPDATE t SET {nulls} WHERE k = 1", dialect="duckdb")
        assert row() == nothing
        lake.table("t").update(values, "k = 1")
        assert row() == shown
        lake.table("t").update(dict.fromkeys(columns), "k = 1")
        assert row() == nothing
