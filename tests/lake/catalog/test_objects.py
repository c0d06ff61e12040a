"""Views, macros, tags, sort keys, options and files as the catalog has them; without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import TableNotFound
from penstock.lake.lake import Lake
from penstock.lake.objects import Parameter, SortKey
from penstock.lake.snapshot import At
from tests import duck

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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, list[Any]]]:
    duck.required()
    folder: Path = tmp_path_factory.mktemp("objects")
    uri = f"ducklake:sqlite:{folder / 'meta.sqlite'}"
    with duck.attach(uri, folder / "data") as con:
        for statement in SETUP:
            con.execute(statement)
        asked = {
            "options": "SELECT option_name, value, scope, scope_entry FROM lk.options()",
            "files": "FROM ducklake_list_files('lk', 't')",
            "old files": "FROM ducklake_list_files('lk', 't', snapshot_version => 4)",
        }
        found = {name: con.execute(query).fetchall() for name, query in asked.items()}
    return uri, found


@pytest.fixture
def lake(made: tuple[str, Any]) -> Iterator[Lake]:
    with Lake.attach(made[0], read_only=True) as found:
        yield found


def test_views(lake: Lake) -> None:
    v, w = lake.views()
    assert (v.qualified_name, v.dialect, v.aliases) == ("main.v", "duckdb", ('x "y', "b"))
    assert (v.comment, w.comment) == ("the view", None)
    assert v.sql == "SELECT a, b FROM {DUCKLAKE_CATALOG}.main.t"
    assert w.qualified_name == "s.w"


def test_views_at_a_snapshot(lake: Lake) -> None:
    assert lake.views(at=At(4)) == []
    assert [view.comment for view in lake.views(at=At(5))] == [None]


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
    told = lake.table("t").describe()
    assert told.sorted_by == (
        SortKey("a", "duckdb", "DESC", "NULLS_FIRST"),
        SortKey("b", "duckdb", "ASC", "NULLS_LAST"),
    )
    assert (told.comment, told.column_comment("a"), told.column_comment("b")) == (
        None,
        "the key",
        None,
    )
    assert lake.table("t").describe(At(8)).comment == "the table"
    assert lake.table("t").describe(At(6)).tags == {}
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
