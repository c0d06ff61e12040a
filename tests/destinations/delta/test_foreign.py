"""Tables that delta-spark 4.4 wrote (`tests.delta.make_fixtures`), read through an index: with
deletion vectors, renamed columns, partitions that no path tells, INT96, and fields that were added
inside of columns. With ``last=99`` and all names, by hand, every version is read.

Tests ``destinations/delta/discovery.py`` and ``destinations/delta/lake.py``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from sqlalchemy import text

from penstock.destinations.delta.lake import DeltaLake
from tests.delta.oracles import by_delta_rs, by_duckdb
from tests.delta.test_fixtures import EXPECTED, FIXTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
NAMES = ("grown", "mapped", "vectors")


def opened(root: Path, spark: SparkSession, tmp_path: Path) -> DeltaLake:
    uri = f"ducklake:sqlite:{tmp_path / 'index.sqlite'}"
    return DeltaLake.of_root(str(root), uri, spark=spark)


def snapshots(lake: DeltaLake, name: str) -> Iterator[tuple[str, int]]:
    """Each version of a table, and the snapshot that has its rows."""
    query = (
        "SELECT version, max(snapshot_id) OVER (ORDER BY version) FROM penstock_delta_version "
        f"WHERE table_name = '{name}' ORDER BY version"
    )
    with lake.catalog.reading() as connection:
        for version, snapshot in connection.execute(text(query)):
            yield str(version), snapshot


def differences(lake: DeltaLake, names: Sequence[str], last: int = 2) -> list[str]:
    """The versions whose rows are not those that delta-spark read, all in one job: the ``last``
    ones of each table.
    """
    texts = [
        lake.sql(f"SELECT * FROM others.{name} AT (VERSION => {snapshot})").select(
            fn.lit(f"{name} {version}").alias("at"), fn.to_json(fn.struct("*")).alias("text")
        )
        for name in names
        for version, snapshot in list(snapshots(lake, name))[-last:]
    ]
    found: dict[str, list[str]] = {}
    for row in reduce(DataFrame.unionAll, texts).collect():
        found.setdefault(row["at"], []).append(row["text"])
    expected = {
        f"{name} {at}": EXPECTED[name][at]
        for name in names
        for at in sorted(EXPECTED[name], key=int)[-last:]
    }
    return [at for at, rows in expected.items() if sorted(found.get(at, [])) != rows]


def test_tables_of_another_engine(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    with opened(FIXTURES, spark, tmp_path) as lake:
        assert differences(lake, NAMES) == []


def test_changes_of_rows_name_deletion_vectors(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "root/others/vectors"
    shutil.copytree(FIXTURES / "others/vectors", table)
    with opened(tmp_path / "root", spark, tmp_path) as lake:
        lake.table("others.vectors").delete("id % 3 = 0")
        rows = {tuple(row) for row in lake.sql("SELECT id, p FROM others.vectors").collect()}
        *_, then, _ = (snapshot for _, snapshot in snapshots(lake, "vectors"))
        lake.table("others.vectors").rollback(then)
    whole = by_duckdb(str(table), 3, 'id, "at", p')
    found = by_duckdb(str(table), 4, 'id, "at", p')
    assert found == [row for row in whole if row[0] % 3]
    assert found == by_delta_rs(str(table), 4, 'id, "at", p')
    assert whole == by_duckdb(str(table), 5, 'id, "at", p')
    assert rows == {(id_, part) for id_, _, part in found}
