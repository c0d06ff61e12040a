"""`Table.alter`: what DuckDB sees of it. The rules of each change are tested with `alter`."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import ArgumentError, ColumnNotFound
from penstock.lakes.format.objects import SortKey
from penstock.lakes.lake import Lake
from tests import duck


@pytest.fixture
def lake(tmp_path: object) -> Lake:
    uri = f"ducklake:sqlite:{tmp_path}/m.sqlite"
    with duck.attach(uri, f"{tmp_path}/data") as con:
        con.execute("CREATE TABLE t(k INT, s STRUCT(x INT))")
        con.execute("INSERT INTO t VALUES (1, {'x': 1})")
    return Lake.attach(uri)


def test_columns(lake: Lake) -> None:
    change = lake.table("t").alter
    change.add_column("n", "bigint", default="7")
    change.add_column("s.y", "string")
    change.rename_column("n", "m")
    change.set_type("k", "bigint")
    change.set_default("m", "8")
    change.set_not_null("k")
    assert change.drop_column("nope", if_exists=True) is None
    assert duck.rows(lake.catalog.uri, "FROM t") == [(1, {"x": 1, "y": None}, 7)]
    with pytest.raises(duckdb.Error, match="NOT NULL"):
        duck.rows(lake.catalog.uri, "INSERT INTO t(m) VALUES (1)")
    change.drop_not_null("k")
    change.drop_column("s")
    assert lake.table("t").schema.names == ("k", "m")


def test_layout_names_and_comments(lake: Lake) -> None:
    change = lake.table("t").alter
    change.partition_by("bucket(4, k)", "k")
    change.sort_by(SortKey("k", direction="DESC"))
    change.comment("what it is")
    change.comment("a key", "k")
    described = lake.table("t").describe()
    assert (described.comment, described.column_comment("k")) == ("what it is", "a key")
    assert [field.transform for field in lake.table("t").info().partition_by] == [
        "bucket(4)",
        "identity",
    ]
    change.rename("u")
    assert [table.name for table in lake.tables()] == ["u"]
    lake.table("u").alter.drop()
    assert lake.tables() == []


def test_refused(lake: Lake) -> None:
    change = lake.table("t").alter
    before = lake.catalog.latest().id
    with pytest.raises(ColumnNotFound):
        change.rename_column("nope", "a")
    with pytest.raises(ArgumentError, match="is not a partition transform"):
        change.partition_by("week(k)")
    assert lake.catalog.latest().id == before


NO_CHANGES = (
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS k INT",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS s.x INT",
    "ALTER TABLE t DROP COLUMN IF EXISTS nope",
    "ALTER TABLE t DROP COLUMN IF EXISTS s.nope",
    "ALTER TABLE t SET PARTITIONED BY (K)",
    "ALTER TABLE t SET SORTED BY (k)",
    "ALTER TABLE u RESET PARTITIONED BY",
    "ALTER TABLE u RESET SORTED BY",
)


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_what_changes_nothing_makes_no_snapshot(lake: Lake, dialect: str) -> None:
    """A script that begins with such lines excludes nobody who inserts meanwhile."""
    lake.sql("CREATE TABLE u (k INT)")
    change, other = lake.table("t").alter, lake.table("u").alter
    change.partition_by("k")
    change.sort_by("k")
    before = lake.catalog.latest().id
    insert = lake.transaction()
    insert.sql("INSERT INTO t (k) VALUES (2)")
    for statement in NO_CHANGES:
        lake.sql(statement, dialect=dialect)
    assert change.add_column("k", "int", if_not_exists=True) is None
    assert (change.partition_by("K"), change.sort_by("k")) == (None, None)
    assert (other.partition_by(), other.sort_by()) == (None, None)
    assert lake.catalog.latest().id == before
    insert.commit()
    assert lake.catalog.latest().id == before + 1


def test_a_column_that_is_there_keeps_its_comment(lake: Lake) -> None:
    lake.sql("ALTER TABLE t ADD COLUMN IF NOT EXISTS k INT COMMENT 'another'")
    assert lake.table("t").describe().column_comment("k") is None


def test_to_a_table_of_the_same_transaction(tmp_path: Path) -> None:
    uri, file, more = (
        f"ducklake:sqlite:{tmp_path}/m",
        tmp_path / "a.parquet",
        tmp_path / "b.parquet",
    )
    pq.write_table(pa.table({"a": [1, 2], "s": ["x", "y"]}), file)
    pq.write_table(pa.table({"a": [3], "s": ["z"], "k": [5]}), more)
    with Lake.attach(uri, data_path=f"{tmp_path}/d") as lake:
        lake.sql("CREATE TABLE t (a BIGINT, s VARCHAR); INSERT INTO t VALUES (0, 'i')")
        lake.sql("BEGIN; CREATE TABLE u (a BIGINT, s VARCHAR); INSERT INTO u VALUES (0, 'i')")
        lake.sql(f"CALL ducklake_add_data_files('lake', 'u', '{file}', schema = 'main')")
        lake.sql("ALTER TABLE u RENAME s TO r; ALTER TABLE u ADD COLUMN d INT DEFAULT 3; COMMIT")
        lake.sql("BEGIN; ALTER TABLE t ADD COLUMN k BIGINT")
        lake.sql(f"CALL ducklake_add_data_files('lake', 't', '{more}'); COMMIT")
        lake.sql("BEGIN; CREATE OR REPLACE TABLE t (k BIGINT, a BIGINT, s VARCHAR)")
        lake.sql(f"CALL ducklake_add_data_files('lake', 't', '{more}'); COMMIT")
    assert duck.rows(uri, "SELECT * FROM u") == [(0, "i", 3), (1, "x", 3), (2, "y", 3)]
    assert duck.rows(uri, "SELECT * FROM t AT (VERSION => 4)") == [(0, "i", None), (3, "z", 5)]
    assert duck.rows(uri, "SELECT rowid, * FROM t WHERE k = 5") == [(0, 5, 3, "z")]
