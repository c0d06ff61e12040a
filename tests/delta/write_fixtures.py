"""Write the tables of `fixtures` with delta-spark, in an environment of its own.

    pip install pyspark==4.2.0
    python tests/delta/write_fixtures.py DIRECTORY [TABLE ...]

It needs the network for delta-spark's jars. The rows of each version are beside the tables, as
delta-spark reads them.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

JARS = "io.delta:delta-spark_4.2_2.13:4.4.0"
ROWS = "id, p, name"
TABLES = {
    "vectors": [
        "CREATE TABLE {t} (id BIGINT, p STRING, name STRING, at TIMESTAMP, n STRUCT<x: INT>) "
        "USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT id, element_at(array('a b', 'c/%+', NULL), CAST(id % 3 + 1 AS INT))"
        ", concat('n', id), TIMESTAMP '2026-05-01 10:00:00.123456', named_struct('x', id) "
        "FROM range(0, 30, 1, 1)",
        "DELETE FROM {t} WHERE id % 4 = 1",
        "UPDATE {t} SET name = 'new' WHERE id IN (2, 3)",
    ],
    "mapped": [
        "CREATE TABLE {t} (id BIGINT, q STRING, old STRING, n STRUCT<x: INT, y: STRING>) "
        "USING delta PARTITIONED BY (q) TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT id, IF(id % 2 = 0, 'even', NULL), concat('n', id), "
        "named_struct('x', id, 'y', 'z') FROM range(0, 8, 1, 1)",
        "ALTER TABLE {t} RENAME COLUMN q TO p",
        "ALTER TABLE {t} RENAME COLUMN old TO name",
        "ALTER TABLE {t} RENAME COLUMN n.x TO renamed",
        "DELETE FROM {t} WHERE id = 4",
        "INSERT INTO {t} VALUES (100, 'odd', 'later', named_struct('renamed', 5, 'y', NULL))",
    ],
    "checkpoints": [
        "CREATE TABLE {t} (id BIGINT, p STRING, name STRING, at TIMESTAMP_NTZ) USING delta "
        "TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2', "
        "'delta.enableDeletionVectors' = 'true')",
        *(
            f"INSERT INTO {{t}} SELECT id, 'p', 'n', TIMESTAMP_NTZ '2026-05-01 10:00:00' "
            f"FROM range({at}, {at + 10}, 1, 1)"
            for at in (0, 10)
        ),
        "DELETE FROM {t} WHERE id IN (3, 15)",
        "DELETE FROM {t} WHERE id = 4",
    ],
}


def main(folder: Path, names: list[str]) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", JARS)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    for name in names or TABLES:
        statements = TABLES[name]
        place = folder / "lake" / name
        shutil.rmtree(place, ignore_errors=True)
        table = f"delta.`{place.absolute()}`"
        for statement in statements:
            spark.sql(statement.format(t=table))
        versions = {}
        for version in range(len(statements)):
            frame = spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}")
            versions[version] = sorted(
                row.asJson for row in frame.selectExpr("to_json(struct(*)) AS asJson").collect()
            )
        (folder / f"{name}.json").write_text(json.dumps(versions, indent=1) + "\n")
        for path in [*place.rglob("*.crc"), *place.rglob("_SUCCESS")]:
            path.unlink()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
