"""Catalogs of other versions are read as they are, and nothing is written to them.

Tests ``lakes/catalog/database/metadata.py``.
"""

from __future__ import annotations

import pytest
from sqlalchemy import select, text

from penstock.errors import TableNotFound, UnsupportedFeature
from penstock.lakes.catalog.database import metadata
from penstock.lakes.catalog.definitions import stored_sql
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

COLUMNS = staging.columns(id="int64")

# The changes of 0.4, undone: ducklake-migrations, 0.3 -> 0.4.
TO_0_3 = (
    *(
        f"DROP TABLE ducklake_{name}"
        for name in ("macro", "macro_impl", "macro_parameters", "sort_info", "sort_expression")
    ),
    "DROP TABLE ducklake_file_variant_stats",
    "ALTER TABLE ducklake_column DROP COLUMN default_value_type",
    "ALTER TABLE ducklake_column DROP COLUMN default_value_dialect",
    "ALTER TABLE ducklake_schema_versions DROP COLUMN table_id",
    "ALTER TABLE ducklake_delete_file DROP COLUMN partial_max",
    "ALTER TABLE ducklake_data_file ADD COLUMN partial_file_info VARCHAR",
)
TO_1_1 = (
    "ALTER TABLE ducklake_data_file ADD COLUMN row_group_count BIGINT",
    "ALTER TABLE ducklake_delete_file ADD COLUMN row_group_count BIGINT",
    "ALTER TABLE ducklake_file_column_stats ADD COLUMN min_is_exact BOOLEAN",
    "ALTER TABLE ducklake_file_column_stats ADD COLUMN max_is_exact BOOLEAN",
    "ALTER TABLE ducklake_table_column_stats ADD COLUMN min_is_exact BOOLEAN",
    "ALTER TABLE ducklake_table_column_stats ADD COLUMN max_is_exact BOOLEAN",
    "ALTER TABLE ducklake_schema ADD COLUMN parent_schema_id BIGINT",
    "CREATE TABLE ducklake_view_column_tag(view_id BIGINT, column_name VARCHAR, "
    "begin_snapshot BIGINT, end_snapshot BIGINT, key VARCHAR, value VARCHAR)",
    *(
        f"ALTER TABLE ducklake_inlined_data_1_1 RENAME COLUMN {name} TO _ducklake_{name}"
        for name in ("row_id", "begin_snapshot", "end_snapshot")
    ),
)


def change_version(place: Place, version: str, statements: tuple[str, ...]) -> None:
    with place.open() as lake:
        staging.create(lake, "t", COLUMNS)
        with lake.writing() as connection:
            for statement in statements:
                connection.execute(text(statement))
            connection.execute(
                text(f"UPDATE ducklake_metadata SET value = '{version}' WHERE key = 'version'")
            )


@pytest.mark.parametrize(("version", "statements"), [("0.3", TO_0_3), ("0.4", ()), ("1.1", TO_1_1)])
def test_read_and_not_written(place: Place, version: str, statements: tuple[str, ...]) -> None:
    change_version(place, version, statements)
    with place.open() as lake:
        table = lake.table("main", "t", 1)
        assert (lake.version, table.schema_version) == (version, 1)
        assert table.schema.columns[0].name == "id"
        assert lake.files(table, 1).files == ()
        with pytest.raises(
            UnsupportedFeature, match=f"{version} of the format, which is read"
        ) as e:
            staging.create(lake, "u", COLUMNS)
        assert version != "1.1" or "DUCKLAKE_VERSION '1.0'" in str(e.value.hint)


@pytest.mark.parametrize(("version", "statements"), [("0.3", TO_0_3), ("1.0", ()), ("1.1", TO_1_1)])
def test_every_table_can_be_asked(place: Place, version: str, statements: tuple[str, ...]) -> None:
    change_version(place, version, statements)
    with place.open() as lake, lake.reading() as connection:
        tables = metadata.of(connection)
        for name in metadata.Tables.__slots__:
            connection.execute(select(getattr(tables, name))).all()
        connection.execute(select(tables.partial_file_info)).all()


def test_tags_of_a_views_columns_in_1_1(place: Place) -> None:
    view = "9, 1, 0, 'v', 'duckdb', 'SELECT id FROM t', ''"
    tags = ((1, "NULL", "comment", "now"), (0, "1", "comment", "before"), (1, "NULL", "gone", None))
    added = (
        "INSERT INTO ducklake_view "
        f"(view_id, begin_snapshot, schema_id, view_name, dialect, sql, column_aliases) "
        f"VALUES ({view})",
        *(
            f"INSERT INTO ducklake_view_column_tag VALUES (9, 'id', {begin}, {end}, '{key}', "
            f"{'NULL' if value is None else repr(value)})"
            for begin, end, key, value in tags
        ),
    )
    change_version(place, "1.1", (*TO_1_1, *added))
    with place.open() as lake, lake.reading() as connection:
        (tagged,) = stored_sql.load_views(connection, 1)
    assert tagged.column_tags == {"id": {"comment": "now"}}


def test_nested_schemas_are_refused_when_they_are_met(place: Place) -> None:
    """1.1 has them. A schema inside another may bear the name of one that is not."""
    row = "7, 0, 'inner', 0"
    table = "70, 0, 7, 'mine', 'mine/'"
    added = (
        "INSERT INTO ducklake_schema (schema_id, begin_snapshot, schema_name, parent_schema_id) "
        f"VALUES ({row}), (8, 0, 'main', 7)",
        "INSERT INTO ducklake_table (table_id, begin_snapshot, schema_id, table_name, path) "
        f"VALUES ({table}), (80, 0, 8, 't', 't/')",
    )
    change_version(place, "1.1", (*TO_1_1, *added))
    with place.open() as lake:
        assert lake.table("main", "t", 1).id == 1
        for ask in (
            lambda: lake.table("inner", "mine", 1),
            lambda: lake.schemas(1),
            lambda: lake.tables(1),
        ):
            with pytest.raises(UnsupportedFeature, match="nested schemas are not read"):
                ask()
        with pytest.raises(TableNotFound):
            lake.table("main", "mine", 1)
