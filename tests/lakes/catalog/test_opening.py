"""A new catalog is what DuckDB makes, and is not made over the files of a lost one.

Tests ``lakes/catalog/catalog.py`` (opened, created, closed).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import Connection, inspect, select

from penstock.errors import CatalogMissing, CatalogVanished, ConfigError, DataPathError
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database.metadata import snapshot
from penstock.lakes.lake import Lake
from penstock.lakes.recovery.backup import restore
from penstock.lakes.snapshot import At
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import on_disk, play


def shape(connection: Connection) -> dict[str, list[tuple[str, str]]]:
    inspector = inspect(connection)
    return {
        table: [
            (str(c["name"]), str(c["type"]))
            for c in inspector.get_columns(table)
            if "computed" not in c  # of an index (`database/sqlite_indexes.py`)
        ]
        for table in inspector.get_table_names()
        if table.startswith("ducklake_")
    }


def test_catalogs_on_sqlite_share_what_was_compiled(tmp_path: Path) -> None:
    compiled = []
    for name in ("one", "other"):
        uri = f"ducklake:sqlite:{tmp_path}/{name}"
        with Catalog.open(uri, data_path=str(tmp_path)) as lake, lake.reading() as connection:
            compiled.append(connection.execute(select(snapshot.c.snapshot_id)).context.compiled)
    assert compiled[0] is compiled[1]


def test_tables_on_sqlite_are_those_that_duckdb_makes(tmp_path: Path) -> None:
    shapes = []
    with duck.attach(f"ducklake:sqlite:{tmp_path}/theirs", tmp_path):
        pass
    for name in ("theirs", "ours"):
        uri = f"ducklake:sqlite:{tmp_path}/{name}"
        with Catalog.open(uri, data_path=str(tmp_path)) as lake, lake.reading() as connection:
            shapes.append(shape(connection))
    assert len(shapes[0]) == 28
    assert shapes[0] == shapes[1]


@pytest.mark.postgres
def test_tables_on_postgres_are_those_that_duckdb_makes(postgres_uri: str, tmp_path: Path) -> None:
    with duck.attach(postgres_uri, tmp_path, metadata_schema="theirs"):
        pass
    shapes = []
    for schema in ("theirs", "ours"):
        with Catalog.open(postgres_uri, data_path=str(tmp_path), metadata_schema=schema) as lake:
            assert lake.latest().id == 0
            with lake.reading() as connection:
                inspector = inspect(connection)
                shapes.append(
                    {
                        table: [
                            (c["name"], str(c["type"]), c["nullable"])
                            for c in inspector.get_columns(table, schema=schema)
                        ]
                        for table in inspector.get_table_names(schema=schema)
                    }
                )
    assert shapes[0] == shapes[1]


def test_rows_of_a_new_catalog(lake: Catalog) -> None:
    first = lake.latest()
    assert (first.id, first.schema_version, first.next_catalog_id, first.next_file_id) == (
        *(0, 0, 1, 0),
    )
    assert first.changes == 'created_schema:"main"'
    assert lake.schemas(0) == ["main"]
    assert lake.tables(0) == []
    assert lake.version == "1.0"
    assert lake.option("encrypted") == "false"
    assert lake.option("created_by", None) == "Penstock 0.1.0"


def test_duckdb_works_in_it(place: Place) -> None:
    with place.open() as lake:
        with duck.attach(place.uri) as theirs:
            theirs.execute("CREATE TABLE t AS SELECT range AS i FROM range(3)")
            theirs.execute("UPDATE t SET i = 10 WHERE i = 1")
            theirs.execute("DELETE FROM t WHERE i = 0")
        table = lake.table("main", "t", lake.latest().id)
        assert [c.type for c in table.schema.columns] == ["int64"]
        assert len(lake.files(table, lake.latest().id).files) == 2


def test_opening_again_finds_the_data_path(place: Place) -> None:
    with place.open() as first:
        path = first.data_path
    with Catalog.open(place.uri, create=False) as again:
        assert again.data_path == path
        assert again.latest().id == 0


def test_another_data_path_is_refused_unless_overridden(place: Place, tmp_path: Path) -> None:
    place.open().close()
    with pytest.raises(DataPathError, match="keeps its files in"):
        Catalog.open(place.uri, data_path=f"{tmp_path}/other")
    with Catalog.open(place.uri, data_path=f"{tmp_path}/other", override_data_path=True) as lake:
        assert lake.data_path == f"{tmp_path}/other/"


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_missing_is_said_where_nothing_is_created(place: Place, options: dict[str, Any]) -> None:
    with pytest.raises(CatalogMissing):
        place.open(**options)


def test_sqlite_without_data_path_keeps_files_beside_it(tmp_path: Path) -> None:
    with Catalog.open(f"ducklake:sqlite:{tmp_path}/meta.sqlite") as lake:
        assert lake.data_path == f"{tmp_path}/meta.sqlite.files/"
        assert lake.snapshot(At(version=0)).id == 0


@pytest.mark.postgres
def test_postgres_without_data_path_asks_for_one(postgres_uri: str) -> None:
    with pytest.raises(ConfigError, match="data_path"):
        Catalog.open(postgres_uri)


def test_a_timeout_that_is_no_number() -> None:
    """The only keyword that the driver reads, and not libpq."""
    with pytest.raises(ConfigError, match="connect_timeout that is not a number: 'soon'"):
        Catalog.open("ducklake:postgres:dbname=x connect_timeout=soon", data_path="data")


def test_a_catalog_of_duckdbs_gets_our_indexes_when_asked(tmp_path: Path) -> None:
    duck.required()
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with duck.attach(uri, tmp_path / "data") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    for _ in range(2):
        with Catalog.open(uri) as catalog:
            catalog.add_indexes()
    with duck.attach(uri) as connection:
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("CALL ducklake_merge_adjacent_files('lk')")
    assert duck.rows(uri, "SELECT a FROM t") == [(1,), (2,)]
    with Catalog.open(uri) as catalog, catalog.reading() as reading:
        query = "SELECT count(*) FROM sqlite_master WHERE sql LIKE '%penstock_null%'"
        assert reading.exec_driver_sql(query).scalar() == 5
        tables = "ducklake_data_file WHERE table_id = 1 AND begin_snapshot < 3"
        plan = reading.exec_driver_sql(f"EXPLAIN QUERY PLAN SELECT * FROM {tables}").all()
        assert "USING INDEX" in str(plan)


ROWS = ["CREATE TABLE t(i INT)", "INSERT INTO t VALUES (1)"]


@pytest.fixture(params=["sqlite", "duckdb"])
def lost(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A lake with a file, whose catalog was deleted."""
    kind = {"sqlite": "ducklake:sqlite:", "duckdb": "ducklake:"}[request.param]
    place = Place(f"{kind}{tmp_path}/meta.cat", f"{tmp_path}/data/")
    play(place, ROWS)
    with Lake.attach(place.uri) as lake:
        lake.backup(tmp_path / "lake.bak")
    (tmp_path / "meta.cat").unlink()
    return place


@pytest.mark.parametrize("create", [True, False])
def test_deleted(lost: Place, tmp_path: Path, create: bool) -> None:
    with pytest.raises(CatalogVanished, match=r"main/t/ducklake-.*parquet") as caught:
        Lake.attach(lost.uri, data_path=lost.data_path, create_if_not_exists=create)
    assert "penstock restore" in str(caught.value)
    assert "new_catalog" in str(caught.value)
    assert not (tmp_path / "meta.cat").exists()
    restore(tmp_path / "lake.bak", lost.uri)
    assert duck.rows(lost.uri, "FROM t") == [(1,)]


@pytest.mark.parametrize("lost", ["sqlite"], indirect=True)  # DuckDB refuses such a file itself
def test_of_no_bytes(lost: Place, tmp_path: Path) -> None:
    (tmp_path / "meta.cat").touch()
    with pytest.raises(CatalogVanished, match="holds the files of a lake"):
        Lake.attach(lost.uri, data_path=lost.data_path)


def test_asked_for(lost: Place) -> None:
    with Lake.attach(lost.uri, data_path=lost.data_path, new_catalog=True) as lake:
        assert lake.tables() == []
    with Lake.attach(lost.uri, data_path=lost.data_path) as lake:
        assert lake.delete_orphaned_files(cleanup_all=True)[0].left is not None
    assert len(on_disk(lost)) == 1


@pytest.mark.postgres
def test_a_database_without_the_catalog(postgres_uri: str, tmp_path: Path) -> None:
    play(Place(postgres_uri, f"{tmp_path}/data/"), ROWS)
    with pytest.raises(CatalogVanished):
        Lake.attach(postgres_uri, data_path=f"{tmp_path}/data", metadata_schema="other")


def test_files_of_others_are_no_lake(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    duck.connect().execute(f"COPY (SELECT 1 AS i) TO '{tmp_path}/data/raw.parquet'")
    with Lake.attach(f"ducklake:sqlite:{tmp_path}/m.sqlite", data_path=f"{tmp_path}/data") as lake:
        assert lake.tables() == []


def test_files_of_penstock_are(tmp_path: Path) -> None:
    uri, path = f"ducklake:sqlite:{tmp_path}/m.sqlite", f"{tmp_path}/data"
    with Lake.attach(uri, data_path=path, data_inlining_row_limit=0) as lake:
        lake.sql("CREATE TABLE t(i INT)")
        with lake.transaction() as tx:
            tx.table("t").append(pa.table({"i": pa.array([1], pa.int32())}))
    with pytest.raises(CatalogVanished, match="main/t/"):
        Lake.attach(f"ducklake:sqlite:{tmp_path}/typo.sqlite", data_path=path)
    assert not (tmp_path / "typo.sqlite").exists()
