"""A new catalog is what DuckDB makes, and DuckDB works in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, inspect

from penstock.errors import CatalogMissing, ConfigError, DataPathError
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.snapshot import At
from tests import duck
from tests.lake.catalog.conftest import Place


def shape(connection: Connection) -> dict[str, list[tuple[str, str]]]:
    found = inspect(connection)
    return {
        table: [(str(c["name"]), str(c["type"])) for c in found.get_columns(table)]
        for table in found.get_table_names()
        if table.startswith("ducklake_")
    }


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
                found = inspect(connection)
                shapes.append(
                    {
                        table: [
                            (c["name"], str(c["type"]), c["nullable"])
                            for c in found.get_columns(table, schema=schema)
                        ]
                        for table in found.get_table_names(schema=schema)
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
    with Catalog.open(uri) as catalog, catalog.reading() as found:
        query = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'penstock%'"
        assert found.exec_driver_sql(query).scalar() == 6
