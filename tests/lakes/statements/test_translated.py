"""Statements of DuckDB's dialect that need no Spark: literals, and what is refused where.

Tests ``lakes/statements/dispatch.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ArgumentError, PenstockError
from penstock.lakes.lake import Lake
from penstock.lakes.statements.dispatch import is_statement
from penstock.sql.text import place


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake.attach(f"ducklake:sqlite:{tmp_path}/meta.sqlite", data_path=f"{tmp_path}/data")
    lake.sql('CREATE TABLE t (id BIGINT, "a b" VARCHAR)', dialect="duckdb")
    return lake


def test_rows_written_out(lake: Lake) -> None:
    statement = r"""INSERT INTO t ("a b", id) VALUES ('\', 1), (E'\x41', :two)"""
    (row,) = lake.sql(statement, {"two": 2}, dialect="duckdb").collect()
    assert row["num_inserted_rows"] == 2
    with lake.catalog.reading() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM ducklake_inlined_data_1_1").fetchall()
    assert sorted(tuple(row)[-2:] for row in rows) == [(1, "\\"), (2, "A")]


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("DELETE FROM t\nWHERE id > 1 AND hash(id) = 3", "2:18"),
        ("UPDATE t SET id = 1, id = hash(id)", "1:27"),
        ("INSERT INTO t VALUES (1, 'a'),\n  (2, hash(3))", "2:7"),
        ("INSERT INTO t SELECT id, hash(id) FROM t", "1:26"),
        ("WITH q AS (SELECT hash(1) AS h) DELETE FROM t WHERE id = 1", "1:19"),
        ("CREATE TABLE u AS FROM 'u.csv'", "1:24"),
        ("DELETE FROM t WHERE id >", "1:24"),
        ("DELETE t", "1:8"),
        ("ALTER TABLE t DROP COLUMN nix", "1:27"),
    ],
)
def test_what_is_refused_has_its_place(lake: Lake, statement: str, place: str) -> None:
    with pytest.raises(PenstockError, match=f", at line {place}(\n|$)"):
        lake.sql(statement, dialect="duckdb")


@pytest.mark.parametrize(
    ("statement", "wrong"),
    [
        ("DELETE FROM t WHERE twice(id) = 2 AND\n twice(1) = 2 AND hash(id) = 3", "hash"),
        ("CREATE TABLE u AS SELECT twice(id), twice(1), hash(id) FROM t", "hash"),
        ("UPDATE t SET id = twice(2) + twice(hash(id))", "twice(hash"),  # the whole call
        ("INSERT INTO t SELECT twice(id), 'a' || FROM t", "||"),
    ],
)
def test_a_place_after_a_macro_that_stands_for_more(lake: Lake, statement: str, wrong: str) -> None:
    lake.sql("CREATE MACRO twice(a) AS a + a + 0 * a", dialect="duckdb")
    line, column = place(statement, statement.index(wrong))
    with pytest.raises(PenstockError, match=f", at line {line}:{column}(\n|$)"):
        lake.sql(statement, dialect="duckdb")


def test_dialects(lake: Lake) -> None:
    with pytest.raises(ArgumentError, match="dialect 'mysql' does not exist"):
        lake.sql("SELECT 1", dialect="mysql")
    assert is_statement(r"SELECT '\'; DELETE FROM t", "duckdb")
    assert not is_statement("FROM t SELECT id", "duckdb")
