"""The lake's own name before names, as ``ATTACH ... AS lk`` gives it; another's is refused.

Tests ``sql/identifiers.py`` (every function by its name).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import LakeError, PenstockError, QueryFailed
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.statements import twins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Alike on both engines, `lk` being the lake's name.
CHANGES = (
    "CREATE SCHEMA lk.pond",
    "CREATE TABLE lk.main.fish (id INT, kind VARCHAR)",
    "INSERT INTO lk.main.fish VALUES (1, 'eel'), (2, 'pike'), (3, 'carp')",
    "CREATE TABLE lk.pond.toads AS SELECT fish.id, lk.main.fish.kind FROM lk.main.fish",
    "UPDATE lk.main.fish SET kind = 'old' WHERE lk.main.fish.id = 1",
    "DELETE FROM lk.main.fish WHERE lk.main.fish.id = 2",
    "MERGE INTO lk.main.fish USING lk.pond.toads ON lk.main.fish.id = lk.pond.toads.id "
    "WHEN MATCHED AND lk.pond.toads.id = 3 THEN UPDATE SET kind = lk.pond.toads.kind || '!' "
    "WHEN NOT MATCHED THEN INSERT VALUES (toads.id, toads.kind)",
    "ALTER TABLE lk.main.fish ADD COLUMN size INT",
    "ALTER TABLE lk.pond.toads RENAME TO frogs",
    "COMMENT ON TABLE lk.main.fish IS 'scaly'",
    "COMMENT ON COLUMN lk.main.fish.size IS 'in cm'",
    "CREATE VIEW lk.main.seen AS SELECT lk.main.fish.id FROM lk.main.fish WHERE id > 1",
    "CREATE TABLE lk.main.gone (id INT)",
    "DROP TABLE lk.main.gone",
    "CREATE SCHEMA lk.dry",
    "DROP SCHEMA lk.dry",
)
SEEN = (
    "FROM fish",
    "FROM pond.frogs",
    "FROM seen",
    "SELECT table_name, comment FROM duckdb_tables() WHERE database_name = 'lk' ORDER BY ALL",
    "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'fish' ORDER BY ALL",
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Path, Path]:
    duck.required()
    folder = tmp_path_factory.mktemp("named")
    twins.by_duckdb(folder / "duckdb", CHANGES)
    ours = folder / "penstock"
    ours.mkdir()
    with Lake.attach(twins.uri(ours), data_path=f"{ours}/data", spark=spark, name="lk") as lake:
        for text in CHANGES:
            lake.sql(text)
    return ours, folder / "duckdb"


@pytest.mark.parametrize("query", SEEN)
def test_as_duckdb_has_it(pair: tuple[Path, Path], query: str) -> None:
    ours, theirs = pair
    assert twins.rows(ours, query) == twins.rows(theirs, query) != []


def test_a_view_is_read_under_any_name(pair: tuple[Path, Path], spark: SparkSession) -> None:
    with Lake.attach(twins.uri(pair[0]), spark=spark, read_only=True) as lake:
        assert lake.sql("SELECT count(*) FROM lake.main.seen").collect() == [(2,)]
        assert lake.sql("SHOW TABLES FROM lake.pond").collect() == [("frogs",)]
        assert lake.sql("SHOW TABLES FROM lake").count() == 2


ANOTHERS = {
    "SELECT * FROM other.main.fish": 15,
    "SELECT count(*) FROM other.main.fish": 22,
    "INSERT INTO other.main.fish VALUES (1, 'a', 2)": 13,
    "DROP TABLE other.main.fish": 12,
    "CALL other.expire_snapshots()": 6,
    "CALL other.system.expire_snapshots()": 6,
    "CALL lake.system.expire_snapshots()": 6,
    "CALL other.main.snapshots()": 6,
    "CALL ducklake_expire_snapshots('other')": 6,
    "CHECKPOINT other": 12,
    "SHOW TABLES FROM other.main": 18,
    "SHOW SCHEMAS FROM other": 19,
}


@pytest.mark.parametrize(("text", "column"), ANOTHERS.items())
def test_of_another(pair: tuple[Path, Path], spark: SparkSession, text: str, column: int) -> None:
    with Lake.attach(twins.uri(pair[0]), spark=spark) as lake:
        before = len(lake.snapshots())
        with pytest.raises(QueryFailed, match="lake") as caught:
            lake.sql(text)
        assert "is called lake" in f"{caught.value.message} {caught.value.hint}"
        assert (caught.value.data["line"], caught.value.data["column"]) == (1, column)
        assert len(lake.snapshots()) == before


@pytest.mark.parametrize(
    "text",
    [
        "CALL lake.set_option('sort_on_insert', true)",
        "CALL lake.main.set_option('sort_on_insert', true)",
        "CALL main.set_option('sort_on_insert', true)",
        "CALL set_option('sort_on_insert', true)",
        "CALL LK.set_option('sort_on_insert', true)",
        "CALL ducklake_set_option('lk', 'sort_on_insert', true)",
    ],
)
def test_calls(pair: tuple[Path, Path], text: str) -> None:
    with Lake.attach(twins.uri(pair[0]), name="lk") as lake:
        assert lake.sql(text).collect() == []


PLACED = {
    "CALL set_option('colour', 1)": (17, "option 'colour' does not exist"),
    "CALL set_option('parquet_compression', 'tar')": (40, "does not take 'tar'"),
    "CALL set_option('parquet_version', 7)": (36, "does not take 7"),
    "CALL set_option('version', '2')": (17, "cannot be set"),
    "CALL set_option('sort_on_insert')": (6, "needs a value"),
    "CALL set_option('sort_on_insert', true, scope => 'x')": (6, "no parameter scope"),
    "CALL set_option('sort_on_insert', true, table_name => 'birds')": (6, "birds"),
    "SELECT * FROM fish AT (VERSION => 99)": (15, "snapshot 99 does not exist"),
    "SELECT count(*) FROM fish AT (VERSION => 99)": (22, "snapshot 99 does not exist"),
    "SELECT * FROM fish\n  AT (TIMESTAMP => '2001-01-01')": (15, "2001"),
    "SELECT * FROM fish AT (VERSION => id)": (15, "names a column"),
    "SELECT * FROM fish AT (VERSION => (SELECT 1))": (15, "asks a query"),
    "INSERT INTO fish SELECT * FROM fish VERSION AS OF 99": (32, "snapshot 99 does not exist"),
    "INSERT INTO fish VALUES (3, 'x', 99999999999)": (34, "is not a valid int32"),
    "INSERT INTO fish VALUES (3, 'x', -99999999999)": (35, "is not a valid int32"),
    "UPDATE fish SET kind = 'x' FROM fish AT (VERSION => 99) AS f WHERE fish.id = f.id": (
        33,
        "snapshot 99 does not exist",
    ),
}


@pytest.mark.parametrize(("text", "said"), PLACED.items())
def test_places(
    pair: tuple[Path, Path], spark: SparkSession, text: str, said: tuple[int, str]
) -> None:
    with Lake.attach(twins.uri(pair[0]), spark=spark) as lake:
        with pytest.raises((PenstockError, LakeError)) as caught:
            lake.sql(text)
        assert said[1] in caught.value.message
        assert caught.value.message.endswith(f", at line 1:{said[0]}")
        assert caught.value.hint
