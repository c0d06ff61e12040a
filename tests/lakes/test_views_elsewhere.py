"""Views and macros in the other kinds of catalogs, and of a lake of format 0.3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.lakes.lake import Lake
from tests import duck, duckdb_process
from tests.duckdb_process import DuckDBProcess
from tests.lakes.catalog.conftest import postgres_server
from tests.lakes.differential import places
from tests.lakes.differential.places import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["postgres_server"]

pytestmark = pytest.mark.spark

TABLE = "CREATE TABLE t (a INTEGER, l VARCHAR[])"
ROWS = "INSERT INTO t VALUES (1, ['x', 'y']), (2, NULL)"
VIEW = "CREATE VIEW v AS SELECT a / 2 AS h, len(l) AS n, l[1] AS first FROM t WHERE a < 9"
MACRO = "CREATE MACRO twice(x) AS x * 2"


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    duck.required()
    kind = request.param
    server = request.getfixturevalue("postgres_server") if kind == "postgres" else None
    made = places.make(kind, tmp_path / kind, server)
    yield made
    places.drop(made)


def test_in_other_databases(home: Home, spark: SparkSession) -> None:
    with duck.attach(home.uri, home.data_path.rstrip("/")) as con:
        for statement in (TABLE, ROWS, VIEW, MACRO):
            con.execute(statement)
    with Lake.attach(home.uri, spark=spark, read_only=True) as lake:
        rows = lake.sql("SELECT n, first, twice(h) AS d FROM v AT (VERSION => 4)").collect()
        assert sorted(rows, key=str) == [(2, "x", 1.0), (None, None, 2.0)]


def test_of_0_3(tmp_path: Path, spark: SparkSession) -> None:
    reason = duckdb_process.why_not("1.4.4")
    if reason is not None:
        pytest.skip(reason)
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    process = DuckDBProcess("1.4.4")
    try:
        process.renew()
        attach = f"ATTACH '{uri}' AS lk (DATA_PATH '{tmp_path}/data/')"
        for statement in (attach, "USE lk", TABLE, ROWS, VIEW):
            process.execute(statement)
    finally:
        process.close()
    with Lake.attach(uri, spark=spark, read_only=True) as lake:
        rows = lake.sql("SELECT * FROM v").collect()
        assert sorted(rows, key=str) == [(0.5, 2, "x"), (1.0, None, None)]
