"""Statements in DuckDB's dialect leave the tables that they leave in DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import QueryFailed
from penstock.lakes.lake import Lake
from tests import duck

pytestmark = pytest.mark.spark

STATEMENTS = r"""
CREATE TABLE t (id BIGINT, v VARCHAR)
INSERT INTO t SELECT i, 'v' || i::VARCHAR FROM range(10) t(i)
CREATE TABLE p AS FROM '{folder}/x.parquet'
CREATE TABLE few AS SELECT x.id, "name" FROM '{folder}/x.parquet' AS x WHERE id > 2
INSERT INTO t ("v", id) VALUES ('a\b', 100), (E'tab\there', 101), ($$it's$$, 1 + 101)
INSERT INTO t VALUES (103, upper('x')), (len('abc') + 100, NULL)
UPDATE t SET v = v || '!' WHERE id % 2 = 0 AND v NOT LIKE 'a%'
UPDATE t AS k SET v = k.v || p.name FROM p WHERE p.id = k.id
DELETE FROM t WHERE id >= 103
DELETE FROM t USING p WHERE p.id = t.id AND p.name = 'n' || 3::VARCHAR
DELETE FROM t WHERE list_contains([101, 102], id)
CREATE TABLE n (s STRUCT(a INTEGER, b VARCHAR), l INTEGER[])
INSERT INTO n VALUES ({{'a': 1, 'b': 'x'}}, [1, 2, 3])
INSERT INTO n SELECT {{'a': i, 'b': 'k' || i}}, [i, i + 1] FROM range(2) r(i)
UPDATE n SET l = list_concat(l, [9]) WHERE s.a = 1 AND l[1] = 1
CREATE TABLE ts (i INTEGER, m TIMESTAMP)
INSERT INTO ts SELECT i::INTEGER, '2024-01-01'::TIMESTAMP + interval (i::INTEGER) hours FROM range(3) r(i)
UPDATE ts SET m = m + INTERVAL 1 DAY WHERE i = 1
MERGE INTO t USING (SELECT i AS id, 'm' || i AS v FROM range(8, 12) r(i)) s ON t.id = s.id WHEN MATCHED AND s.v <> 'm' || 8 THEN UPDATE SET v = s.v || '-' || t.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v || '?')
MERGE INTO t USING p s ON t.id = s.id WHEN MATCHED AND t.id < 2 THEN DELETE
WITH q AS (SELECT i AS id FROM range(3) r(i)) INSERT INTO t SELECT id + 1000, 'w' FROM q
CREATE MACRO plus(a, b) AS a + b * 2
UPDATE t SET id = plus(id, 1) WHERE id > 1000
CREATE VIEW w AS SELECT id, length(v) AS n FROM t WHERE v ILIKE '%M%'
"""  # noqa: E501 - a statement a line

WRITTEN = ("t", "p", "few", "n", "ts", "w")


def test_statements(lake: Lake, tmp_path: Path) -> None:
    with duck.connect() as connection:
        path = tmp_path / "x.parquet"
        query = "SELECT i AS id, 'n' || i AS name FROM range(5) t(i)"
        connection.execute(f"COPY ({query}) TO '{path}'")
        for statement in STATEMENTS.format(folder=tmp_path).strip().splitlines():
            connection.execute(statement)
            lake.sql(statement, dialect="duckdb")
        for table in WRITTEN:
            theirs = connection.execute(f"FROM {table}").fetchall()
            ours = [shown(tuple(row)) for row in lake.sql(f"FROM {table}").collect()]
            assert sorted(map(repr, ours)) == sorted(map(repr, map(shown, theirs))), table


def shown(value: Any) -> Any:
    """Rows and structs as DuckDB's client has them."""
    if hasattr(value, "asDict"):
        return {name: shown(item) for name, item in value.asDict().items()}
    if isinstance(value, list | tuple):
        return type(value)(map(shown, value))
    return value


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        ("DELETE FROM t WHERE\n  upper(nix) = 'A' AND id = 1", "2:9"),
        ("INSERT INTO t SELECT 1 AS id,\n  nix FROM t", "2:3"),
        ("UPDATE t SET v = v || nix WHERE id = 1", "1:23"),
    ],
)
def test_errors_of_spark_have_a_place(lake: Lake, statement: str, where: str) -> None:
    lake.sql("CREATE TABLE t (id BIGINT, v VARCHAR)")
    with pytest.raises(QueryFailed, match=f", at line {where}(\n|$)"):
        lake.sql(statement, dialect="duckdb")
