"""Read with delta-spark the tables that `tests.destinations.delta.marked --keep` left, and go on.

It needs an environment of its own, as `make_fixtures` does:

    /tmp/delta/bin/python -m tests.delta.by_delta_spark DIRECTORY

Each version has to have the rows that are beside the table. Then delta-spark marks a row, purges
what is marked and optimizes, which check the statistics and vectors that are there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.delta.make_fixtures import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHANGES = (
    "DELETE FROM {t} WHERE id = {id}",
    "UPDATE {t} SET v = 5 WHERE k IS NULL",
    "REORG TABLE {t} APPLY (PURGE)",
    "OPTIMIZE {t}",
)


def read(spark: SparkSession, table: Path, version: int | None = None) -> list[list[Any]]:
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    rows = reader.load(str(table)).select("id", "k", "p", "v").collect()
    return sorted(map(list, rows), key=repr)


def check(spark: SparkSession, table: Path) -> int:
    """Return the number of versions. Raises AssertionError."""
    expected = json.loads(table.with_name(f"{table.name}.json").read_text(encoding="utf-8"))
    for version, rows in expected.items():
        found = read(spark, table, int(version))
        assert found == sorted(rows, key=repr), f"{table} version {version}: {found}"
    rows = expected[max(expected, key=int)]
    name = f"delta.`{table}`"
    gone = rows[0][0] if rows else -1
    for change in CHANGES:
        spark.sql(change.format(t=name, id=gone))
    left = [[*row[:3], 5.0 if row[1] is None else row[3]] for row in rows if row[0] != gone]
    assert read(spark, table) == sorted(left, key=repr), f"{table} after changes"
    return len(expected)


def main(folder: Path) -> None:
    spark = session()
    for place in sorted(folder.glob("*.json")):
        print(place.stem, check(spark, place.with_suffix("").absolute()), "versions", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
