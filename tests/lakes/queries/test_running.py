"""SQL over a lake's tables."""

from __future__ import annotations

import pytest

from penstock.errors import ArgumentError, QueryFailed, SnapshotNotFound, TableNotFound
from penstock.lakes.lake import Lake
from tests.lakes.conftest import Rows, table_of

pytestmark = pytest.mark.spark


@pytest.fixture
def filled(lake: Lake, rows: Rows) -> Lake:
    with lake.transaction() as tx:
        tx.create_schema("s")
        tx.table("orders").append(rows("id INT, v STRING", [(1, "a")]))
        tx.table("s.orders").append(rows("id INT, v STRING", [(7, "s")]))
        tx.table("s.`a b`").append(rows("`x y` INT", [(5,)]))
    lake.table("orders").append(rows("id INT, v STRING", [(2, "b")]))
    return lake


ANSWERS = {
    "SELECT id FROM orders": [(1,), (2,)],
    "SELECT orders.id, main.orders.v FROM main.orders": [(1, "a"), (2, "b")],
    "SELECT o.id FROM s.orders o": [(7,)],
    "SELECT `a b`.`x y` FROM s.`a b`": [(5,)],
    "SELECT id FROM orders AT (VERSION => 1)": [(1,)],
    "SELECT id FROM orders VERSION AS OF 1 AS o WHERE o.id > 0": [(1,)],
    "SELECT a.id FROM orders AT (VERSION => 1) a JOIN orders b ON a.id < b.id": [(1,)],
    "WITH orders AS (SELECT 9 AS id) SELECT id FROM orders": [(9,)],
    "WITH o AS (SELECT * FROM orders) SELECT count(*) FROM o": [(2,)],
    "SELECT '{orders}', '{', id FROM s.orders -- }": [("{orders}", "{", 7)],
    "SELECT 1 AS x": [(1,)],
    "SELECT id FROM orders TABLESAMPLE (100 PERCENT)": [(1,), (2,)],
    "SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY id DESC) = 1": [(2,)],
}


@pytest.mark.parametrize("query", ANSWERS)
def test_answers(filled: Lake, query: str) -> None:
    assert table_of(filled.sql(query)) == ANSWERS[query]


def test_times(filled: Lake) -> None:
    first = filled.snapshots()[1].time
    query = "SELECT id FROM orders TIMESTAMP AS OF :at"
    assert table_of(filled.sql(query, {"at": first})) == [(1,)]
    text = first.strftime("%Y-%m-%d %H:%M:%S.%f")  # in the session's zone, UTC in this test
    assert table_of(filled.sql(f"SELECT id FROM orders AT (TIMESTAMP => '{text}')")) == [(1,)]


def test_arguments_are_values(filled: Lake) -> None:
    query = "SELECT :x AS x, id FROM orders WHERE v = :x OR :n > id ORDER BY id"
    evil = "x' OR '1'='1"
    assert table_of(filled.sql(query, {"x": evil, "n": 2})) == [(evil, 1)]


def test_views_stand_before_tables(filled: Lake, rows: Rows) -> None:
    view = rows("id INT", [(42,)])
    query = "SELECT o.id FROM orders o UNION ALL SELECT id FROM main.orders AT (VERSION => 1)"
    assert table_of(filled.sql(query, views={"Orders": view})) == [(1,), (42,)]


def test_no_views_are_left(filled: Lake) -> None:
    spark = filled.sql("SELECT 1").sparkSession
    before = {t.name for t in spark.catalog.listTables() if t.isTemporary}  # of other tests
    filled.sql("SELECT * FROM orders").collect()
    assert {t.name for t in spark.catalog.listTables() if t.isTemporary} == before


ERRORS = {
    "SELECT\n  nme FROM orders": ("`nme` cannot be resolved", 2, 3),
    "SELECT id\nFROM orders\nWHERE id = = 1": ("PARSE_SYNTAX_ERROR", 3, None),
    "SELECT id FROM orders AT (\nVERSION => 1)\n, x.y(3)": ("UNRESOLV|NOT_FOUND", 3, None),
}


@pytest.mark.parametrize("query", ERRORS)
def test_errors_say_where(filled: Lake, query: str) -> None:
    words, line, column = ERRORS[query]
    with pytest.raises(QueryFailed, match=words) as caught:
        filled.sql(query)
    assert caught.value.data["line"] == line
    assert column is None or caught.value.data["column"] == column
    assert "_pyspark_" not in str(caught.value)
    assert "\n" not in caught.value.message


def test_things_that_are_not_there(filled: Lake) -> None:
    with pytest.raises(TableNotFound, match=r"did you mean main\.orders"):
        filled.sql("SELECT * FROM order_s")
    with pytest.raises(SnapshotNotFound):
        filled.sql("SELECT * FROM orders AT (VERSION => 99)")
    with pytest.raises(ArgumentError, match=":v"):
        filled.sql("SELECT * FROM orders AT (VERSION => :v)")
    with pytest.raises(ArgumentError, match="not a time"):
        filled.sql("SELECT * FROM orders AT (TIMESTAMP => 'soon')")
