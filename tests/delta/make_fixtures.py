"""Write the tables of ``fixtures/others`` with delta-spark, which writes what Penstock does not.

It needs an environment of its own, as that library does not run on the Spark that Penstock needs:

    python -m venv /tmp/delta && /tmp/delta/bin/pip install pyspark==4.2.0
    /tmp/delta/bin/python tests/delta/make_fixtures.py tests/delta/fixtures

``expected.json`` beside them has the rows of each table at each version, as delta-spark reads them.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"

TYPES = """
    CREATE TABLE {t} (b BOOLEAN, i1 TINYINT, i2 SMALLINT, i4 INT, i8 BIGINT, f4 FLOAT, f8 DOUBLE,
        d DECIMAL(10,2), big DECIMAL(38,10), s STRING, raw BINARY, day DATE, at TIMESTAMP,
        clock TIMESTAMP_NTZ, list ARRAY<INT>, pairs MAP<STRING,BIGINT>,
        rec STRUCT<x: INT, y: STRUCT<z: STRING>>) USING delta LOCATION '{p}'
"""
ROW = """
    INSERT INTO {t} VALUES (true, 1, 2, 3, 4, 1.5, 2.5, 12.34, 1234567890123456789.0123456789,
        'é "x"', X'00FF', DATE'2026-01-02', TIMESTAMP'2026-01-02 03:04:05.678901',
        TIMESTAMP_NTZ'1969-12-31 23:59:59.999999', array(1, NULL, 3), map('a', 1, 'b', NULL),
        struct(7, struct('deep')))
"""

TABLES: dict[str, tuple[str, ...]] = {
    "types": (
        TYPES,
        ROW,
        "INSERT INTO {t} VALUES (" + ", ".join(["NULL"] * 17) + ")",
    ),
    "partitioned": (
        "CREATE TABLE {t} (id INT, name STRING, day DATE, n INT) USING delta "
        "PARTITIONED BY (day, name) LOCATION '{p}'",
        "INSERT INTO {t} VALUES (1, 'a/b c=%', DATE'2026-01-01', 1), (2, NULL, NULL, 2), "
        "(3, 'é:x', DATE'2026-01-02', 3), (4, '__HIVE', DATE'2026-01-01', 4)",
        "DELETE FROM {t} WHERE day = DATE'2026-01-02'",
        "INSERT INTO {t} VALUES (5, 'a/b c=%', DATE'2026-01-01', 5)",
    ),
    "deletion_vectors": (
        "CREATE TABLE {t} (id INT, v STRING) USING delta LOCATION '{p}' "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT /*+ REPARTITION(1) */ CAST(id AS INT), concat('v', id) "
        "FROM range(200)",
        "DELETE FROM {t} WHERE id % 7 = 0",
        "DELETE FROM {t} WHERE id BETWEEN 20 AND 30",
        "UPDATE {t} SET v = 'changed' WHERE id = 50",
        "MERGE INTO {t} USING (SELECT 51 AS id, 'm' AS v UNION ALL SELECT 1000, 'new') s "
        "ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    ),
    "mapped_names": (
        "CREATE TABLE {t} (id INT, `old name` STRING, gone INT, day STRING) USING delta "
        "PARTITIONED BY (day) LOCATION '{p}' TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} VALUES (1, 'a', 1, 'x'), (2, 'b', 2, 'x'), (3, 'c', 3, 'y')",
        "ALTER TABLE {t} RENAME COLUMN `old name` TO name",
        "ALTER TABLE {t} DROP COLUMN gone",
        "ALTER TABLE {t} ADD COLUMN gone STRING",
        "ALTER TABLE {t} RENAME COLUMN day TO part",
        "INSERT INTO {t} (id, name, gone, part) VALUES (4, 'd', 'again', 'y')",
        "DELETE FROM {t} WHERE id = 1",
    ),
    "checkpoint_v2": (
        "CREATE TABLE {t} (id INT) USING delta LOCATION '{p}' TBLPROPERTIES ("
        "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2')",
        *(f"INSERT INTO {{t}} VALUES ({n})" for n in range(5)),
    ),
    "checkpoint": (
        "CREATE TABLE {t} (id INT, part INT) USING delta PARTITIONED BY (part) LOCATION '{p}' "
        "TBLPROPERTIES ('delta.checkpointInterval' = '3')",
        *(f"INSERT INTO {{t}} VALUES ({n}, {n % 2})" for n in range(5)),
        "DELETE FROM {t} WHERE id = 2",
    ),
    "grown": (
        "CREATE TABLE {t} (id INT, rec STRUCT<x: INT>) USING delta LOCATION '{p}'",
        "INSERT INTO {t} VALUES (1, struct(1))",
        "ALTER TABLE {t} ADD COLUMNS (note STRING FIRST, rec.y STRING)",
        "INSERT INTO {t} VALUES ('n', 2, struct(2, 'y'))",
    ),
    "vectors": (
        "CREATE TABLE {t} (id BIGINT, p STRING, name STRING, at TIMESTAMP, n STRUCT<x: INT>) "
        "USING delta LOCATION '{p}' PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT id, element_at(array('a b', 'c/%+', NULL), CAST(id % 3 + 1 AS INT))"
        ", concat('n', id), TIMESTAMP '2026-05-01 10:00:00.123456', named_struct('x', id) "
        "FROM range(0, 30, 1, 1)",
        "DELETE FROM {t} WHERE id % 4 = 1",
        "UPDATE {t} SET name = 'new' WHERE id IN (2, 3)",
    ),
    "mapped": (
        "CREATE TABLE {t} (id BIGINT, q STRING, old STRING, n STRUCT<x: INT, y: STRING>) "
        "USING delta LOCATION '{p}' PARTITIONED BY (q) TBLPROPERTIES ("
        "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT id, IF(id % 2 = 0, 'even', NULL), concat('n', id), "
        "named_struct('x', id, 'y', 'z') FROM range(0, 8, 1, 1)",
        "ALTER TABLE {t} RENAME COLUMN q TO p",
        "ALTER TABLE {t} RENAME COLUMN old TO name",
        "ALTER TABLE {t} RENAME COLUMN n.x TO renamed",
        "DELETE FROM {t} WHERE id = 4",
        "INSERT INTO {t} VALUES (100, 'odd', 'later', named_struct('renamed', 5, 'y', NULL))",
    ),
    "checkpoints": (
        "CREATE TABLE {t} (id BIGINT, p STRING, name STRING, at TIMESTAMP_NTZ) USING delta "
        "LOCATION '{p}' TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', "
        "'delta.checkpointInterval' = '2', 'delta.enableDeletionVectors' = 'true')",
        *(
            f"INSERT INTO {{t}} SELECT id, 'p', 'n', TIMESTAMP_NTZ '2026-05-01 10:00:00' "
            f"FROM range({at}, {at + 10}, 1, 1)"
            for at in (0, 10)
        ),
        "DELETE FROM {t} WHERE id IN (3, 15)",
        "DELETE FROM {t} WHERE id = 4",
    ),
    "in_commit_times": (
        "CREATE TABLE {t} (id INT) USING delta LOCATION '{p}' "
        "TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "INSERT INTO {t} VALUES (1)",
    ),
    "clustered": (
        "CREATE TABLE {t} (id INT, k INT) USING delta CLUSTER BY (k) LOCATION '{p}'",
        "INSERT INTO {t} VALUES (1, 1), (2, 2)",
    ),
    "constraint": (
        "CREATE TABLE {t} (id INT NOT NULL) USING delta LOCATION '{p}'",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
        "INSERT INTO {t} VALUES (1)",
    ),
    "generated": (
        "CREATE TABLE {t} (at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) "
        "USING delta LOCATION '{p}'",
        "INSERT INTO {t} (at) VALUES (TIMESTAMP'2026-01-02 03:04:05')",
    ),
    "change_feed": (
        "CREATE TABLE {t} (id INT) USING delta LOCATION '{p}' "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        "INSERT INTO {t} VALUES (1), (2)",
        "DELETE FROM {t} WHERE id = 1",
    ),
    "append_only": (
        "CREATE TABLE {t} (id INT) USING delta LOCATION '{p}' "
        "TBLPROPERTIES ('delta.appendOnly' = 'true')",
        "INSERT INTO {t} VALUES (1)",
    ),
    "mapped_ids": (
        "CREATE TABLE {t} (id INT) USING delta LOCATION '{p}' "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
        "INSERT INTO {t} VALUES (1)",
    ),
    "row_tracking": (
        "CREATE TABLE {t} (id INT) USING delta LOCATION '{p}' "
        "TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        "INSERT INTO {t} VALUES (1)",
    ),
    "widened": (
        "CREATE TABLE {t} (id INT) USING delta LOCATION '{p}' "
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
        "INSERT INTO {t} VALUES (1)",
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "INSERT INTO {t} VALUES (3000000000)",
    ),
    "variant": (
        "CREATE TABLE {t} (id INT, v VARIANT) USING delta LOCATION '{p}'",
        "INSERT INTO {t} SELECT 1, parse_json('{{\"a\": 1}}')",
    ),
}


def session() -> SparkSession:
    """Start Spark with delta-spark."""
    return (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", PACKAGE)
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )


def main(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    spark = session()
    expected: dict[str, dict[str, list[str]]] = {}
    for name, statements in TABLES.items():
        path = (target / "others" / name).absolute()
        for statement in statements:
            spark.sql(statement.format(t=f"{name}_t", p=path))
        logs = path.glob("_delta_log/*.json")
        versions = sorted(int(log.stem) for log in logs if log.stem.isdigit())
        expected[name] = {}
        for version in versions:
            rows = spark.read.format("delta").option("versionAsOf", version).load(str(path))
            texts = rows.selectExpr("to_json(struct(*)) AS text").collect()
            expected[name][str(version)] = sorted(row["text"] for row in texts)
        spark.sql(f"DROP TABLE {name}_t")
    for path in [*target.rglob("*.crc"), *target.rglob("_SUCCESS")]:
        path.unlink()
    tables = ",\n".join(f'"{name}": {json.dumps(rows)}' for name, rows in sorted(expected.items()))
    (target / "expected.json").write_text(f"{{\n{tables}\n}}\n", encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
