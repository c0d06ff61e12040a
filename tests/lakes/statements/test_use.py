"""USE, and ``lake.table`` in two parts. The names are compared with DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import PenstockError, QueryFailed, TableNotFound
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.conftest import table_of

SETUP = (
    "CREATE TABLE t (a INT)",
    "INSERT INTO lk.t VALUES (1)",
    "CREATE SCHEMA s",
    "CREATE TABLE s.u (x INT)",
    "USE s",
    "INSERT INTO u VALUES (2)",
    "CREATE TABLE v (z INT)",
    "INSERT INTO lk.v VALUES (3)",
    "USE lk",
    "INSERT INTO t VALUES (4)",
    "USE lk.s",
    "INSERT INTO t VALUES (5)",
    "CREATE VIEW w AS SELECT lk.u.x FROM lk.u",
    "CREATE VIEW main.w2 AS SELECT x, a FROM u, t",
)


COLUMNS = [("main", "t", "a"), ("s", "u", "x"), ("s", "v", "z")]


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Lake]:
    """Without Spark."""
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with Lake.attach(uri, data_path=f"{tmp_path}/d", name="lk") as attached:
        yield attached


def test_as_in_duckdb(plain: Lake, tmp_path: Path) -> None:
    with duck.attach(f"ducklake:sqlite:{tmp_path}/duck.sqlite", tmp_path / "duck") as con:
        for statement in SETUP[:-2]:
            con.execute(statement)
            plain.sql(statement)
        names = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lk'"
        tables = sorted(con.execute(names).fetchall())
        counts = [con.execute(f"SELECT count(*) FROM {s}.{t}").fetchall()[0][0] for s, t in tables]
    mine = sorted((table.schema_name, table.name) for table in plain.tables())
    assert mine == tables == [("main", "t"), ("s", "u"), ("s", "v")]
    rows = [plain.table(f"{s}.{t}").few_rows([c], plain.snapshots()[-1].id) for s, t, c in COLUMNS]
    assert [table.num_rows for table in rows if table is not None] == counts == [3, 1, 1]


@pytest.mark.parametrize("text", ["USE nosuch", "USE other.s", "USE lk.nosuch"])
def test_no_such_schema(plain: Lake, text: str) -> None:
    with pytest.raises(QueryFailed, match=r"nosuch|other"):
        plain.sql(text)


def test_a_schema_goes_before_the_lake(plain: Lake) -> None:
    plain.sql("CREATE TABLE t (a INT); CREATE SCHEMA lk.lk")
    with pytest.raises(PenstockError, match=r"table lk\.t does not exist"):
        plain.sql("DROP TABLE lk.t")
    plain.sql("DROP SCHEMA lk.lk")
    plain.sql("DROP TABLE lk.t")


@pytest.mark.spark
def test_queries_and_views(lake: Lake) -> None:
    for statement in SETUP:
        lake.sql(statement.replace("lk", "lake"))
    rows = lake.sql("SELECT lake.u.x, (SELECT max(a) FROM t) AS m FROM lake.u")
    assert table_of(rows) == [(2, 5)]
    lake.sql("USE lake")
    assert table_of(lake.sql("SELECT * FROM s.w")) == [(2,)]
    assert len(lake.sql("SELECT x, a FROM lake.w2").collect()) == 3
    with pytest.raises(TableNotFound, match=r"at line 1:21"):
        lake.sql("SELECT missing FROM missing")
