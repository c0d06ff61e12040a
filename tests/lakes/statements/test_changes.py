"""Statements that change rows: rows, the order of their ids and counts as DuckDB has them.

The numbers themselves hang on what is kept in the catalog and what in files, which differs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.statements import twins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MAKE = (
    "CREATE TABLE t (a INT, b VARCHAR, c DOUBLE DEFAULT 1.5)",
    "CREATE TABLE n (l INT[], s STRUCT(x INT, y VARCHAR), m MAP(VARCHAR, INT), d DATE, "
    "ts TIMESTAMP, dec DECIMAL(5,2), bo BOOLEAN)",
    "CREATE TABLE f (k INT, s STRUCT(a INT, b STRUCT(c DOUBLE)), l DECIMAL(6,2)[])",
    "INSERT INTO t VALUES (1, 'one', 0.5), (2, 'two', DEFAULT), (3, NULL, NULL)",
    "INSERT INTO n VALUES ([1, NULL], {'x': 1, 'y': 'q'}, MAP {'k': 1}, '2020-01-31', "
    "'2020-01-31 01:02:03.5', 1.005, 't'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
)
# A statement, and how many rows DuckDB counts.
CHANGES = {
    "INSERT INTO t (b, a) SELECT concat(b, '!'), a + 10 FROM t WHERE a < 3 ORDER BY a": 2,
    "INSERT INTO t BY NAME SELECT 'named' AS b, 20 AS a": 1,
    "INSERT INTO t (a) VALUES ('30'), (1.5), (2.5), (true)": 4,
    "INSERT INTO t DEFAULT VALUES": 1,
    "UPDATE t SET b = 'upd', a = a + 100 WHERE a BETWEEN 2 AND 3": 4,
    "UPDATE t SET c = s.v FROM (SELECT 20 AS k, 9.25 AS v) s WHERE t.a = s.k": 1,
    "UPDATE t AS q SET (b, c) = ('tuple', 0) WHERE q.a = 12": 1,
    "UPDATE t SET b = (SELECT max(d.bo) FROM n d) WHERE a = 30": 1,
    "DELETE FROM t USING (SELECT 11 AS k) x WHERE x.k = t.a": 1,
    "DELETE FROM t WHERE a IS NULL": 1,
    "DELETE FROM t WHERE a = 12345": 0,
    "MERGE INTO t USING (SELECT 20 AS a, 'm' AS b) s USING (a) WHEN MATCHED AND s.b = 'm' "
    "THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT (a, b) VALUES (s.a, s.b)": 1,
    "MERGE INTO t USING (SELECT 77 AS a, 'x' AS b) s ON t.a = s.a "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT BY NAME": 1,
    "WITH x AS (SELECT 50 AS k), y AS (SELECT k + 1 AS k FROM x) "
    "INSERT INTO t (a) WITH z AS (SELECT k FROM y UNION ALL SELECT k FROM x) SELECT k FROM z": 2,
    "INSERT INTO t (a) WITH x AS (SELECT 52 AS k) SELECT k FROM x": 1,
    "WITH x AS (SELECT 50 AS k) UPDATE t SET b = 'with', c = (SELECT max(k) FROM x) FROM x "
    "WHERE t.a = x.k": 1,
    "WITH x AS (SELECT 51 AS a, 'merged' AS b) MERGE INTO t USING x USING (a) "
    "WHEN MATCHED THEN UPDATE SET b = x.b": 1,
    "WITH t AS (SELECT 53 AS k) INSERT INTO t (a) SELECT k FROM t": 1,
    "WITH RECURSIVE x AS (SELECT 52 AS k UNION ALL SELECT k + 1 FROM x WHERE k < 53) "
    "DELETE FROM t WHERE a IN (SELECT k FROM x)": 2,
    "MERGE INTO t USING (SELECT 50 AS a UNION ALL SELECT 500) s "
    "ON t.a = s.a AND t.a IN (SELECT x.a FROM t x) "
    "WHEN MATCHED AND t.a > (SELECT min(x.a) FROM t x) "
    "THEN UPDATE SET b = (SELECT concat(max(x.a), '!') FROM t x WHERE x.a < 40), c = 0.5 "
    "WHEN NOT MATCHED THEN INSERT (a, c) VALUES (1.5, (SELECT count(*) FROM n))": 2,
    "INSERT INTO t VALUES (1 + (SELECT max(a) FROM t), 'sub', 2.5), (7, (SELECT NULL), (3))": 2,
    "WITH x AS (SELECT 60 AS k) INSERT INTO t (b, a) VALUES ('under', (SELECT k FROM x)), "
    "((SELECT max(x.b) FROM t x WHERE x.b IN ('sub', 'one')), 61)": 2,
    "INSERT INTO f (k) VALUES ((SELECT 40 + count(*) FROM n WHERE dec IS NULL))": 1,
    "CREATE TABLE made (x, y) AS SELECT a, b FROM t WHERE a > 20": -1,
    "UPDATE made SET y = 'z'": -1,
    "INSERT INTO f SELECT 1, named_struct('a', 2.5, 'b', named_struct('c', 1.5)), array(1.005)": 1,
    "INSERT INTO f (k) VALUES (2), (3)": 2,
    "UPDATE f SET s.b.c = 0.25, f.s.a = '7' WHERE k < 3": 2,
    "MERGE INTO f USING (SELECT 3 AS k) q ON f.k = q.k WHEN MATCHED THEN UPDATE SET s.b.c = q.k": 1,
}
# As DuckDB writes what only Spark's SQL has.
DUCKDB = {
    "INSERT INTO f SELECT 1, named_struct('a', 2.5, 'b', named_struct('c', 1.5)), array(1.005)": (
        "INSERT INTO f SELECT 1, {'a': 2.5, 'b': {'c': 1.5}}, [1.005]"
    ),
    "UPDATE f SET s.b.c = 0.25, f.s.a = '7' WHERE k < 3": (
        "UPDATE f SET s = {'a': 7, 'b': {'c': 0.25}} WHERE k < 3"
    ),
    "MERGE INTO f USING (SELECT 3 AS k) q ON f.k = q.k WHEN MATCHED THEN UPDATE SET s.b.c = q.k": (
        "UPDATE f SET s = {'a': NULL, 'b': {'c': 3}} WHERE k = 3"
    ),
}
ORDERED = (
    "SELECT row_number() OVER (ORDER BY rowid) AS place, * FROM t ORDER BY ALL",
    "SELECT rowid, * FROM n ORDER BY ALL",
    "SELECT x, y FROM made ORDER BY ALL",
    "SELECT * FROM f ORDER BY ALL",
)


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> tuple[Path, Path, dict[str, int]]:
    duck.required()
    folder = tmp_path_factory.mktemp("changes")
    twins.by_duckdb(folder / "duckdb", (*MAKE, *(DUCKDB.get(text, text) for text in CHANGES)))
    ours = folder / "penstock"
    twins.by_penstock(ours, MAKE)  # without a session, which literals do not need
    counts: dict[str, int] = {}
    with Lake.attach(twins.uri(ours), spark=spark) as lake:
        for statement in CHANGES:
            row: Any = lake.sql(statement).first()
            counts[statement] = row.num_affected_rows
    return ours, folder / "duckdb", counts


@pytest.mark.parametrize("query", ORDERED)
def test_rows_and_their_ids(pair: tuple[Path, Path, dict[str, int]], query: str) -> None:
    ours, theirs, _ = pair
    assert twins.rows(ours, query) == twins.rows(theirs, query)


def test_counts(pair: tuple[Path, Path, dict[str, int]]) -> None:
    wanted = {text: count for text, count in CHANGES.items() if count >= 0}
    assert {text: pair[2][text] for text in wanted} == wanted
