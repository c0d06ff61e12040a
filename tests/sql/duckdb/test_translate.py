"""Queries written for DuckDB give DuckDB's rows on Spark, or are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.spark.failures import explain, explained
from penstock.sql.duckdb.text import unnamed
from penstock.sql.duckdb.translate import in_duckdb, translate
from tests.lakes.answers import Answer, of_duckdb, of_spark
from tests.sql.duckdb.queries import ITEMS, QUERIES, REFUSED, REFUSED_BY_TYPE, TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def expected() -> dict[str, Answer]:
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        for name, (columns, rows) in TABLES.items():
            con.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            con.execute(f"INSERT INTO {name} VALUES {rows}")
        return {query: of_duckdb(con, query) for query in QUERIES}


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    """The tables as Spark's, by the types that the lake gives them."""
    made: dict[str, DataFrame] = {}
    with duckdb.connect() as con:
        for name, (columns, rows) in TABLES.items():
            con.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            con.execute(f"INSERT INTO {name} VALUES {rows}")
            schema = ", ".join(_spark_column(column) for column in columns)
            made[name] = spark.createDataFrame(con.table(name).fetchall(), schema)
    return made


def _spark_column(column: str) -> str:
    name, kind = column.split(" ", 1)
    spark = {
        "VARCHAR": "STRING", "TIMESTAMP": "TIMESTAMP_NTZ", "INTEGER[]": "ARRAY<INT>",
        "STRUCT(p INTEGER, q VARCHAR)": "STRUCT<p: INT, q: STRING>",
    }  # fmt: skip
    return f"{name} {spark.get(kind, kind)}"


@pytest.fixture(scope="module")
def read(spark: SparkSession, tables: dict[str, DataFrame]) -> dict[str, Answer | Exception]:
    frames: dict[str, DataFrame] = {}
    failed: dict[str, Answer | Exception] = {}
    for name, df in tables.items():
        df.createOrReplaceTempView(name)
    for query in QUERIES:
        try:
            frames[query] = spark.sql(translate(query))
            frames[query].schema  # noqa: B018 - the analysis, which may fail
        except Exception as error:  # shown by the test of the query
            failed[query] = error
            frames.pop(query, None)
    return failed | of_spark(spark, frames)


@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_the_same_rows(expected: dict[str, Answer], read: dict[str, Any], query: str) -> None:
    answer = read[query]
    assert isinstance(answer, Answer), answer
    assert list(answer.kinds.values()) == list(expected[query].kinds.values())
    assert answer.rows == expected[query].rows


@pytest.mark.parametrize("item", ITEMS)
def test_columns_are_named_as_in_duckdb(item: str) -> None:
    with duckdb.connect() as con:
        for name, (columns, _) in TABLES.items():
            con.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        ((name, *_),) = con.execute(f"SELECT {item} FROM t").description
    assert unnamed(item) == name


@pytest.mark.parametrize("item", ["a", "t.a", "*", "t.*", "st.p", "a AS b", "a b", "b: a + 1"])
def test_columns_that_have_a_name(item: str) -> None:
    assert unnamed(item) is None


@pytest.mark.parametrize(("query", "reason"), REFUSED.items())
def test_refused_with_the_place(query: str, reason: str) -> None:
    marked = query.replace("§", "")
    with pytest.raises(UnsupportedFeature) as caught:
        translate(marked)
    assert reason in caught.value.message
    assert caught.value.data["start"] == query.index("§")


@pytest.mark.parametrize("text", ["1D", "2f", "0x1p3"])
def test_texts_that_are_numbers_to_spark_alone(spark: SparkSession, text: str) -> None:
    query = f"SELECT x::DOUBLE AS c FROM (SELECT '{text}' AS x UNION ALL SELECT '1.5') t"
    with pytest.raises(QueryFailed, match="Could not convert string"), explained():
        spark.sql(translate(query)).collect()


@pytest.mark.spark
@pytest.mark.parametrize(("query", "reason"), REFUSED_BY_TYPE.items())
def test_refused_by_type(
    spark: SparkSession, read: dict[str, Any], query: str, reason: str
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever Spark raises is explained
        spark.sql(translate(query)).schema  # noqa: B018
    refusal = explain(caught.value)
    assert isinstance(refusal, UnsupportedFeature)
    assert reason in refusal.message


# Which of Spark's queries are stored as DuckDB's.
IN_DUCKDB = {
    "SELECT id, count(*) AS n FROM people WHERE id IN (1, 2) GROUP BY id": (
        "SELECT id, COUNT(*) AS n FROM people WHERE id IN (1, 2) GROUP BY id"
    ),
    "SELECT upper(name) AS n FROM people": None,  # letters beyond ASCII differ
    "SELECT `a b` FROM s.t AT (VERSION => 3)": 'SELECT "a b" FROM s.t AT (VERSION => 3)',
    "SELECT id / n AS h FROM t": None,  # DuckDB divides by zero, Spark fails
    "SELECT transform(l, x -> x + 1) AS l FROM t": (
        "SELECT LIST_TRANSFORM(l, LAMBDA x : x + 1) AS l FROM t"
    ),
    "SELECT nobody_knows(a) FROM t": None,
    "SELECT a < b AS k FROM t JOIN u ON t.x >= u.y": (
        "SELECT a < b AS k FROM t JOIN u ON t.x >= u.y"
    ),
    "SELECT id FROM t WHERE (a < b) = f AND NOT a >= b": (
        "SELECT id FROM t WHERE (a < b) = f AND NOT a >= b"
    ),
    "SELECT a FROM t LATERAL VIEW explode(l) AS x": None,
    "SELECT FROM WHERE": None,
    "SELECT a FROM t ORDER BY 1": "SELECT a FROM t ORDER BY 1 NULLS FIRST",
    "SELECT a FROM t UNION SELECT b FROM u": "SELECT a FROM t UNION SELECT b FROM u",
}


@pytest.mark.parametrize("text", IN_DUCKDB)
def test_views_are_stored_in_duckdbs_sql_where_it_comes_back(text: str) -> None:
    counterpart = in_duckdb(text)
    assert (None if counterpart is None else counterpart.text) == IN_DUCKDB[text]
