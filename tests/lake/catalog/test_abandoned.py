"""No new catalog over the files of a lake whose catalog is gone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import CatalogVanished
from penstock.lake.lake import Lake
from penstock.lake.recovery.restore import restore
from tests import duck
from tests.lake.catalog.conftest import Place
from tests.lake.maintenance.lakes import on_disk, play

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
