"""A catalog is not trusted with code: views, macros and sort keys that another wrote."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.objects import SortKey
from penstock.lakes.lake import Lake
from penstock.sql.macros import MacroForm
from tests.lakes.conftest import Rows, table_of

pytestmark = pytest.mark.spark

CODE = "reflect('java.lang.System', 'getProperty', 'user.name')"
VIEWS = [
    (f"SELECT {CODE} AS a", "spark"),
    ("SELECT TRANSFORM(a) USING 'echo' AS (x) FROM t", "spark"),
    ("SELECT * FROM text.`/etc/hostname`", "spark"),
    ('SELECT * FROM text."/etc/hostname"', "duckdb"),
    ("FROM VALUES (1) AS v(a) INSERT OVERWRITE DIRECTORY '/none' SELECT a", "spark"),
]


@pytest.fixture
def filled(lake: Lake, rows: Rows) -> Lake:
    lake.table("t").append(rows("a INT", [(1,)]))
    return lake


@pytest.mark.parametrize(("sql", "dialect"), VIEWS)
def test_views_run_no_code(filled: Lake, sql: str, dialect: str) -> None:
    with filled.transaction() as transaction:
        transaction.create_view("v", sql, dialect=dialect)
        transaction.create_view("over", "SELECT * FROM (SELECT * FROM v)", dialect="spark")
    reads: tuple[Callable[[], object], ...] = (
        lambda: filled.table("v").to_df(),
        lambda: filled.sql("SELECT * FROM over"),
    )
    for read in reads:
        with pytest.raises(UnsupportedFeature, match=r"the view main\.v .* SQL of a catalog may"):
            read()


def test_the_users_own_query_may(filled: Lake) -> None:
    assert filled.sql(f"SELECT {CODE} AS a").collect()[0].a
    with pytest.raises(UnsupportedFeature, match=r"the view main\.w calls reflect"):
        filled.sql(f"CREATE VIEW w AS SELECT {CODE} AS a")


def test_macros_run_no_code(filled: Lake) -> None:
    with filled.transaction() as transaction:
        transaction.create_macro("m", [MacroForm("scalar", "spark", f"x || {CODE}", ())])
        transaction.create_macro(
            "f", [MacroForm("table", "duckdb", 'SELECT * FROM text."/etc/hostname"', ())]
        )
    for text in ("SELECT m()", "SELECT * FROM f()"):
        with pytest.raises(UnsupportedFeature, match=r"the macro main\.. "):
            filled.sql(text)


def test_sort_keys_run_no_code(filled: Lake, rows: Rows) -> None:
    with filled.transaction() as transaction:
        transaction.table("t").set_sorting([SortKey(f"a || {CODE}", "spark")])
    with pytest.raises(UnsupportedFeature, match=r"the sort key .* calls reflect"):
        filled.table("t").append(rows("a INT", [(2,)]))
    assert table_of(filled.table("t").to_df()) == [(1,)]
