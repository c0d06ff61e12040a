"""Work on a lake that is the same over any kind of session; as a program, over Spark Connect.

    python -m tests.lakes.connect_process FOLDER

One process holds one kind of session, so the test runs this beside its own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock import Lake
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MERGE = """
MERGE INTO t USING (SELECT id, 'merged' AS name FROM t WHERE id < 6 UNION ALL SELECT 1000, 'new') s
ON t.id = s.id
WHEN MATCHED AND s.id < 2 THEN DELETE
WHEN MATCHED THEN UPDATE SET name = s.name
WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)
"""
_READS = (
    "SELECT count(*), min(id), max(id) FROM t AT (VERSION => 2)",
    "SELECT rowid, id, name, CAST(d AS STRING), s.a, size(s.b) FROM t ORDER BY id",
    "SELECT snapshot_id, rowid, change_type, id, name FROM table_changes('t', 2, 6) ORDER BY ALL",
    "SELECT nothing FROM t",
)


def work(spark: SparkSession, folder: Path) -> list[object]:
    """What each of the reads gives, as JSON has it, after every kind of write."""
    uri = f"ducklake:sqlite:{folder / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=str(folder / "data"), spark=spark) as lake:
        lake.sql(
            "CREATE TABLE t (id BIGINT, name VARCHAR, d DATE, s STRUCT(a BIGINT, b VARCHAR[])) "
            "PARTITIONED BY (d)"
        )
        rows = spark.range(60).selectExpr(
            "id",
            "concat('n', id) AS name",
            "date_add(DATE'2026-01-01', CAST(id % 3 AS INT)) AS d",
            "named_struct('a', id, 'b', array('x', NULL)) AS s",
        )
        table = lake.table("t")
        table.append(rows)
        table.append([{"id": 500, "name": "inlined", "d": None, "s": None}])
        lake.sql("DELETE FROM t WHERE id % 10 = 3")
        lake.sql("UPDATE t SET name = upper(name) WHERE id % 10 = 4")
        lake.sql(_MERGE)
        table.merge(rows.where("id < 20"), keys=["id"])
        return [_answer(lake, query) for query in _READS]


def _answer(lake: Lake, query: str) -> object:
    try:
        return [list(row) for row in lake.sql(query).collect()]
    except PenstockError as error:
        return [type(error).__name__, str(error)]


def main() -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote("local[1]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    folder = Path(sys.argv[1])
    (folder / "answers.json").write_text(json.dumps(work(spark, folder)))
    spark.stop()


if __name__ == "__main__":
    main()
