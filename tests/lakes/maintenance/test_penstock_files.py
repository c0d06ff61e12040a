"""Files that Spark wrote, without ids inside lists and with UUIDs as text, merged with others.

Tests ``lakes/maintenance/arrow_columns.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.lakes.lake import Lake
from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import play, seen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = (
    "CREATE TABLE t(i INT, u UUID, q STRUCT(x INT, y VARCHAR)[], m MAP(VARCHAR, DOUBLE), "
    "ts TIMESTAMP, b UTINYINT, p VARCHAR)"
)
ROW = (
    "INSERT INTO t VALUES ({0}, uuid(), [{{'x': {0}, 'y': 'a'}}, NULL], MAP {{'k': {0}}}, "
    "'2026-01-01', {0}, 'a b')"
)
VALUES = """
SELECT {0} AS i, '00000000-0000-0000-0000-00000000000{0}' AS u,
       array(named_struct('x', {0}, 'y', 'b'), NULL) AS q, map('k', CAST('NaN' AS DOUBLE)) AS m,
       TIMESTAMP_NTZ '2026-01-01 00:00:00' AS ts, CAST({0} AS SMALLINT) AS b, 'a b' AS p
"""


@pytest.mark.spark
def test_merged_with_those_of_duckdb(place: Place, spark: SparkSession) -> None:
    play(place, [TABLE, "ALTER TABLE t SET PARTITIONED BY (p)", ROW.format(1)])
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        for number in (2, 3):
            lake.table("t").append(spark.sql(VALUES.format(number)))
    play(place, [ROW.format(4), "UPDATE t SET b = 9 WHERE i = 3"])
    before = seen(place)
    last = max(key for key in before if isinstance(key, int))
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        ours = lake.table("t").to_df(row_ids=True).orderBy("i").collect()
        merged = lake.merge_adjacent_files()
        assert sum(row.files_processed for row in merged) >= 4
        assert str(lake.table("t").to_df(row_ids=True).orderBy("i").collect()) == str(ours)
    assert seen(place, last) == before
