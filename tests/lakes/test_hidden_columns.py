"""Hidden columns in SQL, as DuckDB answers the same text, and where Penstock refuses them.

Tests ``lakes/reading/hidden.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import ArgumentError, QueryFailed, UnsupportedFeature
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.answers import Answer, of_duckdb, of_spark
from tests.lakes.conftest import table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SETUP = (
    "CREATE TABLE m (a INTEGER)",  # 1; its two files are merged below
    "INSERT INTO m SELECT i FROM range(12) r(i)",
    "INSERT INTO m SELECT i + 20 FROM range(12) r(i)",
    "CALL ducklake_merge_adjacent_files('lk')",
    "CREATE TABLE t (a INTEGER, b VARCHAR)",  # 5
    "INSERT INTO t SELECT i, 'x' || i FROM range(12) r(i)",
    "INSERT INTO t VALUES (100, 'in'), (101, 'in')",
    "ALTER TABLE t ADD COLUMN c INTEGER",
    "UPDATE t SET c = 5 WHERE a IN (3, 100)",
    "DELETE FROM t WHERE a = 4",  # 10
    "CREATE TABLE own (snapshot_id INTEGER, filename VARCHAR)",
    "INSERT INTO own VALUES (1, 'f')",
    "CREATE VIEW v AS SELECT snapshot_id AS s, filename AS f FROM t",
)
ALL = "rowid, snapshot_id, filename, file_row_number"
QUERIES = (
    f"SELECT {ALL}, a FROM t",
    f"SELECT {ALL}, a FROM t AT (VERSION => 7)",
    f"SELECT {ALL}, a FROM m",
    f"SELECT {ALL}, a FROM m AT (VERSION => 2)",
    "SELECT *, filename FROM t WHERE filename LIKE '%.parquet' AND snapshot_id > 2",
    "SELECT t.* FROM t WHERE t.FileName LIKE 'ducklake_inlined%'",
    "SELECT snapshot_id, count(*) AS n FROM t GROUP BY snapshot_id",
    "SELECT substr(filename, 1, 8) AS filename, count(*) AS n FROM t GROUP BY filename",
    "SELECT x.snapshot_id, y.file_row_number FROM t x JOIN m y USING (a)",
    "SELECT a FROM t WHERE snapshot_id = (SELECT max(snapshot_id) FROM t)",
    "SELECT t.snapshot_id, c.snapshot_id AS s FROM t, table_changes('m', 2, 2) c",
    "WITH c AS (SELECT 7 AS s) SELECT snapshot_id, s FROM c, t",
    "SELECT snapshot_id, filename FROM own",
    "SELECT max(s), min(f), count(*) FROM v",
    "SELECT a FROM t ORDER BY filename DESC, file_row_number LIMIT 3",
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Answer]]:
    duck.required()
    folder = tmp_path_factory.mktemp("hidden")
    uri = f"ducklake:sqlite:{folder / 'meta.sqlite'}"
    with duck.attach(uri, folder / "data", inline=10) as con:
        for statement in SETUP:
            con.execute(statement)
        by_query = {query: of_duckdb(con, query) for query in QUERIES}
    return uri, by_query


@pytest.fixture(scope="module")
def read_only(answers: tuple[str, dict[str, Answer]], spark: SparkSession) -> Iterator[Lake]:
    with Lake.attach(answers[0], spark=spark, read_only=True, name="lk") as attached:
        yield attached


def test_as_duckdb_answers(
    answers: tuple[str, dict[str, Answer]], read_only: Lake, spark: SparkSession
) -> None:
    frames = {
        (query, dialect): read_only.sql(query, dialect=dialect)
        for query, dialect in zip(QUERIES, ("spark", "duckdb") * len(QUERIES), strict=False)
    }
    read = of_spark(spark, {str(key): df for key, df in frames.items()})
    assert {key[0]: read[str(key)].rows for key in frames} == {
        query: answer.rows for query, answer in answers[1].items()
    }


ERRORS = {
    "SELECT file_index FROM t": (UnsupportedFeature, "file_index is not supported"),
    "SELECT filename FROM v": (QueryFailed, "filename"),
    "SELECT snapshot_id FROM t x JOIN m y USING (a)": (QueryFailed, "ambiguous"),
    "SELECT filename, count(t.*) FROM t": (UnsupportedFeature, "filename beside a [*]"),
}


@pytest.mark.parametrize("query", ERRORS)
def test_errors(read_only: Lake, query: str) -> None:
    kind, words = ERRORS[query]
    with pytest.raises(kind, match=words):
        read_only.sql(query)


# What DuckDB calls ambiguous: the real column is meant, as it was before.
REAL = (
    "SELECT snapshot_id FROM t, (SELECT 7 AS snapshot_id) c",
    "SELECT snapshot_id FROM t JOIN own ON true",
    "SELECT snapshot_id FROM own WHERE EXISTS (SELECT 1 FROM t WHERE snapshot_id = 1)",
    "SELECT filename FROM t, d",
)


def test_a_real_column_comes_first(read_only: Lake, spark: SparkSession) -> None:
    views = {"d": spark.sql("SELECT 1 AS filename")}
    values = {str(read_only.sql(q, views=views).first()[0]) for q in REAL}  # type: ignore[index]
    assert values == {"7", "1"}


def test_frames_of_a_table(read_only: Lake) -> None:
    table = read_only.table("t")
    df = table.to_df(row_ids=True, hidden=["filename", "SNAPSHOT_ID"], where="snapshot_id = 9")
    assert df.columns == ["a", "b", "c", "rowid", "snapshot_id", "filename"]
    assert [row["a"] for row in df.collect()] == [3, 100]
    assert read_only.table("own").to_df(hidden=["filename"]).columns == ["snapshot_id", "filename"]
    with pytest.raises(ArgumentError, match="'file_index' is not a hidden column"):
        table.to_df(hidden=["file_index"])


def test_changes_by_hidden_columns(lake: Lake, tmp_path: Path) -> None:
    lake.sql("CREATE TABLE t (a INTEGER, b BIGINT, c VARCHAR)")
    lake.table("t").append([{"a": n, "b": 0, "c": "x"} for n in range(12)])
    lake.table("t").append([{"a": n, "b": 0, "c": "y"} for n in (20, 21)])
    lake.sql("UPDATE t SET b = snapshot_id * 100 + file_row_number WHERE file_row_number > 10")
    lake.sql("DELETE FROM t WHERE t.filename LIKE '%.parquet' AND file_row_number BETWEEN 3 AND 7")
    lake.sql("DELETE FROM t USING (SELECT 2 AS s, 9 AS n) d WHERE t.snapshot_id = s AND t.a = n")
    read = lake.sql("SELECT b, sort_array(collect_list(a)) FROM t GROUP BY b")
    assert table_of(read) == [(0, [0, 1, 2, 8, 10]), (211, [11]), (312, [20]), (313, [21])]


def test_in_a_transaction_that_changed_the_table(lake: Lake) -> None:
    lake.sql("CREATE TABLE t (a INTEGER)")
    lake.sql("INSERT INTO t VALUES (1), (2)")
    lake.sql("BEGIN")
    assert table_of(lake.sql("SELECT snapshot_id FROM t")) == [(2,), (2,)]
    lake.sql("DELETE FROM t WHERE a = 1")
    for statement in (
        "SELECT filename FROM t",
        "DELETE FROM t WHERE snapshot_id = 2",
        "DELETE FROM t WHERE t.snapshot_id IN (SELECT 2)",
    ):
        with pytest.raises(UnsupportedFeature, match="after COMMIT only"):
            lake.sql(statement)
    assert table_of(lake.sql("SELECT snapshot_id FROM t AT (VERSION => 2)")) == [(2,), (2,)]
    lake.sql("ROLLBACK")
