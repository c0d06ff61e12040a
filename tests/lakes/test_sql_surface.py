"""Row ids, macros and table functions in SQL, as DuckDB answers the same text.

Tests ``lakes/queries/table_functions.py``, ``lakes/queries/rewriters.py``,
``lakes/queries/resolver.py``.

Tests ``lakes/statements/assignments.py`` (macros in expressions).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import ArgumentError, QueryFailed, TableNotFound, UnsupportedFeature
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.answers import Answer, of_duckdb, of_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SETUP = (
    "CREATE SCHEMA s",
    "CREATE TABLE t (a INTEGER, v VARCHAR)",
    "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, NULL)",
    "CREATE TABLE s.t (z INTEGER)",
    "INSERT INTO s.t VALUES (100), (200)",
    "CREATE TABLE own (rowid_ INTEGER, w INTEGER)",
    "UPDATE t SET v = 'yy' WHERE a = 2",
    "DELETE FROM t WHERE a = 1",
    "CREATE MACRO plus(x, y := 10) AS x + y",
    "CREATE MACRO arity(x) AS x, (x, y) AS x * 100 + y",
    "CREATE MACRO upper(x) AS 'mine ' || x",
    "CREATE MACRO s.upper(x) AS 'of s ' || x",
    "CREATE MACRO nested(x) AS plus(x) * plus(x, y := 1)",
    "CREATE MACRO rows_of(n, m := 2) AS TABLE SELECT a * m AS b FROM t WHERE a > n",
    "CREATE MACRO total() AS (SELECT sum(a) FROM t)",
    "CREATE MACRO word(d := 'it''s') AS d",
    "CREATE MACRO ratio(x, y) AS x / y",
    "CREATE MACRO odd(x) AS hash(x)",
    "CREATE TABLE lists (l INTEGER[])",
    "INSERT INTO lists VALUES ([5, 6, 7]), ([8])",
    "CREATE MACRO pick(l, n) AS l[n]",
    "CREATE MACRO second(l) AS pick(l, 2)",
    "CREATE VIEW v AS SELECT * FROM t",
)

QUERIES = (
    "SELECT rowid, * FROM t",
    "SELECT * FROM t WHERE rowid = 2",
    "SELECT t.rowid, t.*, o.rowid FROM t, s.t AS o",
    "SELECT *, o.rowid AS r FROM t, s.t o WHERE t.rowid > 0",
    "SELECT count(*), count(rowid), max(ROWID) FROM t",
    "SELECT main.t.rowid FROM main.t",
    "WITH c AS (SELECT rowid AS r, * FROM t) SELECT * FROM c",
    "SELECT a FROM t ORDER BY rowid LIMIT 1",
    "SELECT a, (SELECT max(z) FROM s.t WHERE s.t.rowid < t.rowid) AS m FROM t",
    "SELECT rowid, a FROM t AT (VERSION => 3)",
    "SELECT plus(1), plus(a), plus(a, 2), plus(a, y := 3), plus(y := 4, x := a) FROM t",
    "SELECT PLUS(a + 1) * 2, arity(a), arity(a, 5), nested(a - 1), main.plus(a) FROM t",
    "SELECT upper(v), s.upper(v), lower('UP'), word(), word('x') FROM t",
    "SELECT total(), a FROM t WHERE plus(a) > 12",
    "SELECT b FROM rows_of(1)",
    "SELECT q.b FROM rows_of(0, m := 5) q WHERE q.b > 10",
    "SELECT c FROM rows_of(0) AS q(c)",
    "SELECT ratio(a, 2) FROM t",
    "SELECT ratio(a - 1, a - 1 - 1) AS r FROM t",
    "SELECT pick(l, 1), pick(l, 3), pick(l, -1), second(l) FROM lists",
    "SELECT * FROM table_changes('t', 3, 8)",
    "SELECT change_type, count(*) FROM lk.table_changes('t', 0, 8) GROUP BY change_type",
    "SELECT c.a FROM ducklake_table_changes('lk', 'main', 't', 7, 8) c WHERE c.rowid >= 0",
    "SELECT * FROM table_insertions('t', 3, 8)",
    "SELECT * FROM lk.table_deletions('t', 3, 8)",
    "SELECT snapshot_id, schema_version FROM snapshots()",
    "SELECT snapshot_id, changes['tables_created'], changes['views_created'] FROM snapshots()",
    "SELECT catalog_type, data_path FROM lk.settings()",
    "SELECT * FROM current_snapshot()",
    "SELECT option_name, value, scope, scope_entry FROM lk.options()",
    "SELECT table_name, table_id, file_count, delete_file_count FROM lk.table_info()",
    "SELECT * FROM ducklake_list_files('lk', 't')",
    "SELECT data_file FROM ducklake_list_files('lk', 't', schema => 's')",
    "SELECT count(*) FROM ducklake_list_files('lk', 't', snapshot_version => 3)",
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Answer]]:
    duck.required()
    folder = tmp_path_factory.mktemp("surface")
    uri = f"ducklake:sqlite:{folder / 'meta.sqlite'}"
    with duck.attach(uri, folder / "data") as con:
        for statement in SETUP:
            con.execute(statement)
        by_query = {query: of_duckdb(con, query) for query in QUERIES}
    return uri, by_query


@pytest.fixture(scope="module")
def lake(answers: tuple[str, Any], spark: SparkSession) -> Iterator[Lake]:
    with Lake.attach(answers[0], spark=spark, read_only=True, name="lk") as attached:
        yield attached


@pytest.fixture(scope="module")
def read(lake: Lake, spark: SparkSession) -> dict[str, Answer]:
    return of_spark(spark, {query: lake.sql(query) for query in QUERIES})


@pytest.mark.parametrize("query", QUERIES)
def test_as_duckdb_answers(
    answers: tuple[str, dict[str, Answer]], read: dict[str, Answer], query: str
) -> None:
    assert read[query].rows == answers[1][query].rows  # columns without a name are Spark's


ERRORS = {
    "SELECT plus()": (QueryFailed, r"do not fit the macro main\.plus"),
    "SELECT plus(1, z := 2)": (QueryFailed, r"do not fit"),
    "SELECT odd(a) FROM t": (UnsupportedFeature, r"macro main\.odd: the function hash"),
    "SELECT rowid FROM v": (QueryFailed, r"rowid"),
    "SELECT * FROM table_changes('t')": (ArgumentError, r"from is missing"),
    "SELECT * FROM table_changes('nope', 1, 2)": (TableNotFound, r"nope"),
    "SELECT * FROM table_changes('t', :start, 2)": (ArgumentError, r":start"),
}


@pytest.mark.parametrize("query", ERRORS)
def test_errors(lake: Lake, query: str) -> None:
    kind, words = ERRORS[query]
    with pytest.raises(kind, match=words):
        lake.sql(query)


def test_lines_of_a_text_with_macros(lake: Lake) -> None:
    with pytest.raises(QueryFailed) as caught:
        lake.sql("SELECT plus(\n  a\n),\n  nme\nFROM t")
    assert caught.value.data["line"] == 4


def test_bounds_by_argument_and_time(lake: Lake) -> None:
    first, last = lake.snapshots()[3], lake.snapshots()[8]
    query = "SELECT count(*) FROM table_changes('t', :a, :b)"
    by_version = lake.sql(query, {"a": 3, "b": 8}).collect()
    assert lake.sql(query, {"a": first.time, "b": last.time}).collect() == by_version
