"""Views, macros, tags, sort keys, options and files as the catalog has them; without Spark.

Tests ``lakes/catalog/definitions/stored_sql.py``, ``lakes/catalog/definitions/tags.py``,
``lakes/catalog/definitions/stored_sql.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event, text

from penstock.errors import TableNotFound
from penstock.lakes.format.objects import SortKey
from penstock.lakes.lake import Lake
from penstock.lakes.queries.resolver import Resolver
from penstock.lakes.snapshot import At
from penstock.sql.macros import Parameter
from penstock.sql.tables import analyse
from tests import duck, duckdb_process
from tests.duckdb_process import DuckDBProcess
from tests.lakes.catalog import staging
from tests.lakes.differential import places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETUP = (
    "CREATE SCHEMA s",
    "CREATE TABLE t (a INTEGER, b VARCHAR)",
    "CREATE TABLE s.u (k BIGINT)",
    "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
    """CREATE VIEW v("x ""y", b) AS SELECT a, b FROM lk.main.t""",
    "CREATE VIEW s.w AS SELECT * FROM range(3)",
    "COMMENT ON TABLE t IS 'the table'",
    "COMMENT ON COLUMN t.a IS 'the key'",
    "COMMENT ON VIEW v IS 'the view'",
    "CREATE MACRO f(x, y := 5) AS x * y",
    "CREATE MACRO s.g(x) AS x, (x, y) AS x + y",
    "CREATE MACRO tab(n) AS TABLE SELECT a FROM t WHERE a > n",
    "ALTER TABLE t SET SORTED BY (a DESC NULLS FIRST, b)",
    "ALTER TABLE s.u SET PARTITIONED BY (bucket(4, k))",
    "CALL lk.set_option('target_file_size', '10MB', schema => 's')",
    "CALL lk.set_option('target_file_size', '20MB', table_name => 't')",
    "DELETE FROM t WHERE a = 1",
    "COMMENT ON TABLE t IS NULL",
)


@pytest.fixture(
    scope="module",
    params=["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.postgres)],
)
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, dict[str, list[Any]]]]:
    duck.required()
    kind = request.param
    server = request.getfixturevalue("postgres_server") if kind == "postgres" else None
    home = places.make(kind, tmp_path_factory.mktemp("objects") / kind, server)
    with duck.attach(home.uri, home.data_path.rstrip("/")) as con:
        for statement in SETUP:
            con.execute(statement)
        asked = {
            "options": "SELECT option_name, value, scope, scope_entry FROM lk.options()",
            "files": "FROM ducklake_list_files('lk', 't')",
            "old files": "FROM ducklake_list_files('lk', 't', snapshot_version => 4)",
        }
        answers = {name: con.execute(query).fetchall() for name, query in asked.items()}
    yield home.uri, answers
    places.drop(home)


@pytest.fixture
def lake(made: tuple[str, Any]) -> Iterator[Lake]:
    with Lake.attach(made[0], read_only=True) as attached:
        yield attached


def test_views(lake: Lake) -> None:
    v, w = lake.views()
    assert (v.qualified_name, v.dialect, v.aliases) == ("main.v", "duckdb", ('x "y', "b"))
    assert (v.comment, w.comment) == ("the view", None)
    assert v.sql == "SELECT a, b FROM {DUCKLAKE_CATALOG}.main.t"
    assert w.qualified_name == "s.w"


def test_a_view_is_what_a_wrong_name_may_have_meant(lake: Lake) -> None:
    with pytest.raises(TableNotFound) as caught:
        lake.catalog.table("s", "ww", lake.snapshots()[-1].id)
    assert caught.value.hint == "did you mean s.w?"


def test_views_at_a_snapshot(lake: Lake) -> None:
    assert lake.views(version=4) == []
    assert [view.comment for view in lake.views(version=5)] == [None]


def test_macros(lake: Lake) -> None:
    f, tab, g = lake.macros()
    assert (f.kind, tab.kind, g.qualified_name) == ("scalar", "table", "s.g")
    (form,) = f.forms
    assert form.parameters == (
        Parameter("x"),
        Parameter("y", None, "5", "int32"),
    )
    assert [len(form.parameters) for form in g.forms] == [1, 2]


def test_what_is_said_of_a_table(lake: Lake) -> None:
    description = lake.table("t").describe()
    assert description.sorted_by == (
        SortKey("a", "duckdb", "DESC", "NULLS_FIRST"),
        SortKey("b", "duckdb", "ASC", "NULLS_LAST"),
    )
    assert (
        description.comment,
        description.column_comment("a"),
        description.column_comment("b"),
    ) == (
        None,
        "the key",
        None,
    )
    assert lake.table("t").describe(version=8).comment == "the table"
    assert lake.table("t").describe(version=6).tags == {}
    assert [str(f.transform) for f in lake.table("s.u").info().partition_by] == ["bucket(4)"]


def test_options(made: tuple[str, dict[str, list[Any]]], lake: Lake) -> None:
    ours = [(o.name, o.value, o.scope, o.entry) for o in lake.options()]
    assert sorted(ours, key=str) == sorted(made[1]["options"], key=str)


def test_files(made: tuple[str, dict[str, list[Any]]], lake: Lake) -> None:
    from dataclasses import astuple

    assert [astuple(file) for file in lake.list_files("t")] == made[1]["files"]
    assert [astuple(file) for file in lake.list_files("t", version=4)] == made[1]["old files"]
    with pytest.raises(TableNotFound):
        lake.list_files("nope")


OLD = (
    "CREATE TABLE t (a INTEGER)",
    "INSERT INTO t VALUES (1), (2)",
    "CREATE VIEW v AS SELECT a FROM t",
    "COMMENT ON TABLE t IS 'the table'",
    "COMMENT ON COLUMN t.a IS 'the key'",
    "COMMENT ON VIEW v IS 'the view'",
    "CALL lk.set_option('target_file_size', '20MB', table_name => 't')",
)


def test_what_0_3_has(tmp_path: Path) -> None:
    """No macros and sort keys are there; the rest is where it is today."""
    reason = duckdb_process.why_not("1.4.4")
    if reason is not None:
        pytest.skip(reason)
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    process = DuckDBProcess("1.4.4")
    try:
        process.renew()
        for statement in (f"ATTACH '{uri}' AS lk (DATA_PATH '{tmp_path}/data/')", "USE lk", *OLD):
            process.execute(statement)
        options = process.rows("SELECT option_name, value, scope, scope_entry FROM lk.options()")
        files = process.rows("SELECT data_file FROM ducklake_list_files('lk', 't')")
    finally:
        process.close()
    with Lake.attach(uri, read_only=True) as lake:
        assert [(v.sql, v.comment) for v in lake.views()] == [("SELECT a FROM t", "the view")]
        description = lake.table("t").describe()
        assert (description.comment, description.column_comment("a")) == ("the table", "the key")
        assert (description.sorted_by, lake.macros()) == ((), [])
        ours = [(o.name, o.value, o.scope, o.entry) for o in lake.options()]
        assert sorted(ours, key=str) == sorted(options, key=str)
        assert [(file.data_file,) for file in lake.list_files("t")] == files


def test_one_table_of_many_is_found_by_its_name(tmp_path: Path) -> None:
    """Queries and the number of their rows are the same with 10,000 other tables."""
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=f"{tmp_path}/data/") as lake:
        new = staging.create(lake.catalog, "wanted", staging.columns(id="int64"))
        alone = asked(lake)
        with lake.catalog.writing() as connection:
            connection.execute(text(MANY), {"snapshot": new.id})
        assert len(lake.tables()) == 10_001
        assert asked(lake) == alone
        assert len(alone) < 20


MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) "
    "INSERT INTO ducklake_table SELECT 1000 + i, 'uuid' || i, :snapshot, NULL, 0, 't' || i, "
    "'t' || i || '/', 1 FROM n"
)


def asked(lake: Lake) -> list[int]:
    """How many rows each statement gives of one query over one table, until Spark is needed."""
    catalog, said = lake.catalog, list[tuple[str, Any]]()

    def note(_c: object, _k: object, statement: str, parameters: object, *_rest: object) -> None:
        said.append((statement, parameters))

    event.listen(catalog._engine, "before_cursor_execute", note)
    snapshot = catalog.latest()
    names = Resolver(catalog, no_spark, At(snapshot.id), lake.transaction)
    analysis = analyse("SELECT wanted.id, f(1) FROM wanted")
    table = names.find(analysis.tables[0], names.snapshot(At(snapshot.id)))
    assert table is not None
    catalog.files(table, snapshot.id)
    names.expand(analysis.text)
    event.remove(catalog._engine, "before_cursor_execute", note)
    with catalog.reading() as connection:
        run = connection.exec_driver_sql
        return [
            len(run(*call).fetchall()) for call in said if call[0].startswith(("SELECT", "WITH"))
        ]


def no_spark() -> SparkSession:
    raise AssertionError("Spark is not needed")
