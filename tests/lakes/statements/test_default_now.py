"""``DEFAULT now()``: rows that do not give the column have the time of their transaction."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.errors import UnsupportedFeature
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.conftest import Rows

TABLE = "CREATE TABLE t (a INT, seen TIMESTAMPTZ DEFAULT now())"


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Lake]:
    """Without Spark."""
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with Lake.attach(uri, data_path=f"{tmp_path}/d", name="lk") as attached:
        yield attached


def is_recent(at: datetime) -> bool:
    return abs(datetime.now(UTC) - at) < timedelta(minutes=5)


def test_without_spark_and_read_by_duckdb(plain: Lake, tmp_path: Path) -> None:
    plain.sql(TABLE)
    plain.sql("INSERT INTO t (a) VALUES (1), (2)")
    plain.sql("INSERT INTO t VALUES (3, DEFAULT), (4, NULL)")
    plain.table("t").append([{"a": 5}])
    plain.close()
    with duck.attach(f"ducklake:sqlite:{tmp_path}/m.sqlite") as con:
        con.execute("INSERT INTO t (a) VALUES (6)")  # the default is one that DuckDB evaluates
        times = dict(con.execute("SELECT a, seen FROM t").fetchall())
    assert times.pop(4) is None
    assert times[1] == times[2]
    assert all(map(is_recent, times.values()))


def test_made_by_duckdb(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with duck.attach(uri, tmp_path / "d") as con:
        con.execute(TABLE)
    with Lake.attach(uri) as lake:
        lake.sql("INSERT INTO t (a) VALUES (1)")
        rows = lake.table("t").few_rows(["seen"], lake.snapshots()[-1].id)
    assert rows is not None
    (at,) = rows["seen"].to_pylist()
    assert is_recent(at)


def test_constants(plain: Lake, tmp_path: Path) -> None:
    """Expressions of constants are evaluated by both."""
    plain.sql("CREATE TABLE c (a INT, b VARCHAR DEFAULT 'x' || 'y', d DOUBLE DEFAULT -(2 * 3))")
    plain.sql("ALTER TABLE c ALTER a SET DEFAULT 7 - 4", dialect="duckdb")
    plain.sql("INSERT INTO c (d) VALUES (1.5); INSERT INTO c VALUES (5, DEFAULT, DEFAULT)")
    plain.table("c").append([{"a": 6}])
    plain.close()
    with duck.attach(f"ducklake:sqlite:{tmp_path}/m.sqlite") as con:
        con.execute("INSERT INTO c (d) VALUES (9)")
        found = con.execute("SELECT * FROM c ORDER BY a, d").fetchall()
    assert found == [(3, "xy", 1.5), (3, "xy", 9.0), (5, "xy", -6.0), (6, "xy", -6.0)]


def test_other_expressions_are_refused(plain: Lake) -> None:
    plain.sql("CREATE TABLE u (a INT, b VARCHAR DEFAULT now(), c DOUBLE DEFAULT random())")
    for text in ("INSERT INTO u (a, b) VALUES (1, 'x')", "INSERT INTO u (a, c) VALUES (1, 1.5)"):
        with pytest.raises(UnsupportedFeature, match="which only DuckDB evaluates"):
            plain.sql(text)


@pytest.mark.spark
def test_rows_of_spark(lake: Lake, rows: Rows) -> None:
    lake.sql("CREATE TABLE t (a INT, seen TIMESTAMPTZ DEFAULT now(), b TIMESTAMP DEFAULT now())")
    with lake.transaction() as transaction:
        transaction.table("t").append(rows("a INT", [(1,)]))
        transaction.sql("INSERT INTO t (a) SELECT 2")
    lake.table("t").merge(rows("a INT", [(1,), (3,)]), "a")
    lake.sql("UPDATE t SET seen = DEFAULT WHERE a = 2")
    df = lake.sql("SELECT a, b, seen = CAST(b AS TIMESTAMP) AS same FROM t ORDER BY a")
    first, second, third = df.collect()
    assert (first.same, second.same, third.same) == (True, False, True)
    assert first.b == second.b < third.b
    assert lake.sql("SELECT * FROM t WHERE seen < now() - INTERVAL 5 MINUTES").collect() == []
