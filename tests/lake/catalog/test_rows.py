"""A damaged row names itself; it is never read as something else."""

from __future__ import annotations

import pyarrow as pa
import pytest
from sqlalchemy import text

from penstock.errors import CatalogCorrupt, SnapshotNotFound
from penstock.lake.snapshot import At
from tests.lake.catalog import staging
from tests.lake.catalog.conftest import Place

COLUMNS = staging.columns(id="int64", note="varchar")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE ducklake_column SET column_name = NULL WHERE column_id = 2", "column 2 of table"),
        ("UPDATE ducklake_column SET column_type = NULL WHERE column_id = 1", "column_type"),
        ("UPDATE ducklake_column SET parent_column = 77 WHERE column_id = 1", "under column 77"),
        ("UPDATE ducklake_column SET column_id = 2", "twice"),
        ("UPDATE ducklake_table SET table_name = NULL", "table_name"),
        ("UPDATE ducklake_schema SET schema_name = NULL", "schema_name"),
    ],
)
def test_damaged_definitions(place: Place, statement: str, said: str) -> None:
    with place.open() as lake:
        staging.create(lake, "t", COLUMNS)
        with lake.writing() as connection:
            connection.execute(text(statement))
        with pytest.raises(CatalogCorrupt, match=said):
            lake.tables(1)


def test_two_schemas_of_one_name(place: Place) -> None:
    with place.open() as lake:
        with lake.writing() as connection:
            connection.execute(
                text(
                    "INSERT INTO ducklake_schema (schema_id, begin_snapshot, schema_name) "
                    "VALUES (9, 0, 'main')"
                )
            )
        with pytest.raises(CatalogCorrupt, match="schema 'main' is there twice"):
            lake.schemas(0)


def test_a_text_where_a_number_must_be(sqlite_place: Place) -> None:
    with sqlite_place.open() as lake:
        staging.create(lake, "t", COLUMNS)
        with lake.writing() as connection:
            connection.execute(
                text("UPDATE ducklake_column SET column_id = 'x' WHERE column_id = 1")
            )
        with pytest.raises(CatalogCorrupt, match="has 'x' as its column_id"):
            lake.tables(1)


def test_an_expired_snapshot_says_which_remain(place: Place) -> None:
    with place.open() as lake:
        for name in "abcd":
            staging.create(lake, name, COLUMNS)
        with lake.writing() as connection:
            connection.execute(text("DELETE FROM ducklake_snapshot WHERE snapshot_id IN (0, 2)"))
        with pytest.raises(SnapshotNotFound, match="snapshots 1 to 4 remain") as found:
            lake.snapshot(At(version=2))
        assert "none between 1 and 3" in str(found.value)


@pytest.mark.parametrize("column", ["path", "record_count"])
def test_damaged_files(place: Place, column: str) -> None:
    with place.open() as lake:
        staging.create(lake, "t", COLUMNS, pa.table({"id": [1], "note": ["a"]}))
        with lake.writing() as connection:
            connection.execute(text(f"UPDATE ducklake_data_file SET {column} = NULL"))
        with pytest.raises(CatalogCorrupt, match=f"row 0 of ducklake_data_file has .* {column}"):
            lake.files(lake.table("main", "t", 1), 1)
