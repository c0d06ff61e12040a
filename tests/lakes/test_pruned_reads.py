"""Reads with conditions: the files that they leave out, and the same rows as without leaving out.

Which files Spark is given shows in `DataFrame.inputFiles`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.lakes.lake import Lake
from tests.lakes.conftest import table_of

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("pruned")
    uri, data = f"ducklake:sqlite:{folder / 'meta.sqlite'}", str(folder / "data")
    with Lake.attach(uri, data_path=data, spark=spark) as lake:
        for low in (0, 10, 100):
            some = [(low, f"v{low}"), (low + 5, None)]
            lake.table("t").append(spark.createDataFrame(some, "k INT, v STRING").coalesce(1))
        for pair in ([(0, "zero"), (5, "five")], [(10, None), (99, "none")]):
            lake.table("u").append(spark.createDataFrame(pair, "k INT, w STRING").coalesce(1))
        yield lake


def files(df: DataFrame) -> int:
    return len(df.inputFiles())


def test_where_of_a_table(filled: Lake) -> None:
    table = filled.table("t")
    assert files(table.to_df()) == 3
    some = table.to_df(where="k > 9 AND k < 16")
    assert (files(some), table_of(some)) == (1, [(10, "v10"), (15, None)])
    none = table.to_df(where="k > 1000")
    assert (files(none), none.count()) == (0, 0)
    assert table_of(table.to_df(version=1, where="k >= 0 and v is null")) == [(5, None)]


@pytest.mark.parametrize(
    ("query", "count", "answer"),
    [
        ("SELECT k FROM t WHERE k = 15", 1, [(15,)]),
        ("SELECT t.k FROM t WHERE t.k = '15'", 1, [(15,)]),
        ("SELECT main.t.k FROM main.t WHERE main.t.k = 15", 1, [(15,)]),
        ("SELECT x.k FROM t AS x WHERE x.k IN (15, 100)", 2, [(100,), (15,)]),
        ("WITH c AS (SELECT * FROM t WHERE k = 15) SELECT k FROM c WHERE k > 0", 1, [(15,)]),
        ("SELECT k FROM t WHERE k = :k", 1, [(15,)]),
        ("SELECT k FROM t AT (VERSION => 2) WHERE k > 9", 1, [(10,), (15,)]),
        ("SELECT t.k FROM t JOIN u ON t.k = u.k AND u.w = 'five'", 4, [(5,)]),
        ("SELECT t.k, w FROM t JOIN u USING (k) WHERE t.k < 9 AND u.w > 'a'", 3, None),
        ("SELECT count(*) FROM t LEFT JOIN u ON t.k = u.k WHERE u.w IS NULL", 5, [(4,)]),
        ("SELECT count(*) FROM t LEFT JOIN u ON t.k = u.k AND u.k > 98", 4, [(6,)]),
        ("SELECT count(*) FROM t LEFT JOIN u ON t.k = u.k AND t.k > 98", 5, [(6,)]),
        ("SELECT count(*) FROM t LEFT JOIN u ON t.k = u.k WHERE u.k > 98", 4, [(0,)]),
        ("SELECT count(*) FROM t FULL JOIN u ON t.k = u.k WHERE u.k < 3", 4, [(1,)]),
        ("SELECT count(*) FROM t LEFT ANTI JOIN u ON t.k = u.k AND t.k < 6", 5, [(4,)]),
        ("SELECT count(*) FROM t LEFT ANTI JOIN u ON t.k = u.k AND u.k < 6", 4, [(4,)]),
        ("SELECT count(*) FROM t LEFT SEMI JOIN u ON t.k = u.k AND t.k < 6", 3, [(2,)]),
        ("FROM t |> LIMIT 6 |> WHERE k = 15 |> SELECT k", 3, [(15,)]),
        (
            "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w = 'zero')",
            4,
            None,
        ),
    ],
)
def test_queries(filled: Lake, query: str, count: int, answer: list[tuple[object, ...]]) -> None:
    args = {"k": 15} if ":k" in query else None
    df = filled.sql(query, args=args)
    assert files(df) == count
    if answer is not None:
        assert table_of(df) == answer


def test_paths_are_local_whatever_the_default_file_system(
    filled: Lake, spark: SparkSession
) -> None:
    elsewhere = spark.newSession()
    elsewhere.conf.set("fs.defaultFS", "hdfs://nowhere.invalid:1/")
    with Lake.attach(filled.catalog.uri, spark=elsewhere) as lake:
        assert lake.table("t").to_df(where="k > 14").count() == 3


def test_reads_that_are_the_same_are_one(
    filled: Lake, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    filled.table("many").append(spark.range(80).repartition(40))
    spark.conf.set("spark.sql.adaptive.enabled", "true")  # else the plan shows one of both
    counted = "SELECT id % 7 AS k, count(*) AS n FROM many GROUP BY ALL"
    df = filled.sql(f"SELECT k FROM ({counted}) a JOIN ({counted}) b USING (k)")
    assert (files(df), df.count()) == (40, 7)
    df.explain()
    folders = re.findall(r"file:([\w/.-]+/penstock-files-\w+)", capsys.readouterr().out)
    assert (len(folders), len(set(folders))) == (2, 1)  # Spark knows a list by its folder
    assert not Path(folders[0]).exists()
