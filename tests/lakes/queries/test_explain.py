"""What `Lake.explain` says of a query."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from penstock.errors import QueryFailed, TableNotFound
from penstock.lakes.lake import Lake
from tests.lakes.conftest import Rows

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("explained")
    with Lake.attach(f"ducklake:sqlite:{folder / 'meta.sqlite'}", spark=spark) as lake:
        for low in (0, 10, 100):
            pair = [(low, f"v{low}"), (low + 5, None)]
            df = spark.createDataFrame(pair, "k INT, v STRING")
            lake.table("t").append(df.repartitionByRange(2, "k"))
        yield lake


def test_files_and_bytes_of_how_many(filled: Lake) -> None:
    explained = filled.explain("SELECT * FROM t WHERE k > :low AND length(v) > 2", {"low": 99})
    (table,) = explained.tables
    assert (table.name, table.snapshot, table.files, table.of_files) == ("main.t", 3, 2, 6)
    assert 0 < table.bytes < table.of_bytes
    assert (table.rows, table.used, table.unused) == (2, ("k > :low",), ("LENGTH(v) > 2",))
    text = str(explained)
    assert "files: 2 of 6" in text
    assert "chosen by: k > :low" in text
    assert "not used to choose: LENGTH(v) > 2" in text


def test_each_reference_by_itself(filled: Lake, rows: Rows) -> None:
    views = {"given": rows("k INT", [(1,)])}
    query = "SELECT * FROM t AT (VERSION => 1) a JOIN t b ON a.k = b.k AND b.k = 5 JOIN given USING"
    explained = filled.explain(f"{query} (k)", views=views)
    assert [(table.kind, table.snapshot, table.of_files) for table in explained.tables] == [
        ("table", 1, 2),
        ("table", 3, 6),
        ("given", None, 0),
    ]


def test_answered_by_the_catalog(filled: Lake) -> None:
    (table,) = filled.explain("SELECT COUNT(*) FROM t").tables
    assert (table.answered, table.files, table.of_files) == (True, 0, 6)


def test_sparks_plan(filled: Lake) -> None:
    assert filled.explain("SELECT k FROM t").plan is None
    assert "Scan parquet" in str(filled.explain("SELECT k FROM t", plan=True))


def test_wrong_queries(filled: Lake) -> None:
    with pytest.raises(TableNotFound):
        filled.explain("SELECT * FROM nobody")
    with pytest.raises(QueryFailed):
        filled.explain("SELECT * FROM")
