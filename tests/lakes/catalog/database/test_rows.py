"""A damaged row names itself; it is never read as something else.

Rows are checked in ``lakes/catalog/database/faults.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from sqlalchemy import text

from penstock.errors import CatalogCorrupt, SnapshotNotFound, UnsupportedFeature
from penstock.lakes.catalog import answers
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.files import feed
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.partitioning import partition_columns
from penstock.lakes.format.types import to_spark_schema
from penstock.lakes.snapshot import At
from penstock.sql.text import Compare, Constant, Predicate
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

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
        with pytest.raises(SnapshotNotFound, match="snapshots 1 to 4 remain") as error:
            lake.snapshot(At(version=2))
        assert "none between 1 and 3" in str(error.value)


@pytest.mark.parametrize("column", ["path", "record_count"])
def test_damaged_files(place: Place, column: str) -> None:
    with place.open() as lake:
        staging.create(lake, "t", COLUMNS, pa.table({"id": [1], "note": ["a"]}))
        with lake.writing() as connection:
            connection.execute(text(f"UPDATE ducklake_data_file SET {column} = NULL"))
        with pytest.raises(CatalogCorrupt, match=f"row 0 of ducklake_data_file has .* {column}"):
            lake.files(lake.table("main", "t", 1), 1)


def files(lake: Catalog) -> object:
    return lake.files(lake.table("main", "t", 2), 2)


def with_everything(lake: Catalog) -> None:
    """A partitioned table of one file with one delete file."""
    fields = (PartitionField("note"),)
    data = pa.table({"id": [1, 2], "note": ["a", "a"]})
    new = staging.new_table(lake, "t", COLUMNS, fields)
    file = staging.stage(new.path, COLUMNS, data, partition_values=("a",))
    lake.commit(lake.latest(), staging.change_set("t", create=new, add=(file,)))
    table = lake.table("main", "t", 1)
    staging.change(lake, table, deletes={0: staging.stage_deletes(table.path, file.path, [0])})


def damage(lake: Catalog, *statements: str) -> None:
    with lake.writing() as connection:
        for statement in statements:
            connection.execute(text(statement))


Ask = Callable[[Catalog], object]

# Which rows of a table lose their beginning, who meets them, and how they are named.
NEVER_BEGAN: dict[str, tuple[str, Ask, str]] = {
    "schema": ("schema_name = 'main'", lambda lake: lake.schemas(2), "row 0 of ducklake_schema"),
    "table": ("table_name = 't'", lambda lake: lake.tables(2), "row 1 of ducklake_table"),
    "column": ("column_name = 'note'", lambda lake: lake.tables(2), "column 2 of table 1 in"),
    "partition_info": ("1 = 1", lambda lake: lake.tables(2), "row 2 of ducklake_partition_info"),
    "data_file": ("1 = 1", files, "row 0 of ducklake_data_file"),
    "delete_file": ("1 = 1", files, "row 1 of ducklake_delete_file"),
}


def test_rows_that_never_began(place: Place) -> None:
    """Such rows are in force at no snapshot: without a check they would just be missing."""
    with place.open() as lake:
        with_everything(lake)
        for name, (where, ask, said) in NEVER_BEGAN.items():
            with lake.reading() as connection:
                query = f"SELECT min(begin_snapshot) FROM ducklake_{name} WHERE {where}"
                begin = connection.execute(text(query)).scalar()
            damage(lake, f"UPDATE ducklake_{name} SET begin_snapshot = NULL WHERE {where}")
            with pytest.raises(CatalogCorrupt, match=f"{said}.* has NULL as its begin_snapshot"):
                ask(lake)
            damage(lake, f"UPDATE ducklake_{name} SET begin_snapshot = {begin} WHERE {where}")
        assert files(lake)


@pytest.mark.parametrize("of", ["data_file", "delete_file"])
def test_counts_and_changes_of_rows_that_never_began(place: Place, of: str) -> None:
    with place.open() as lake:
        with_everything(lake)
        table = lake.table("main", "t", 2)
        damage(lake, f"UPDATE ducklake_{of} SET begin_snapshot = NULL")
        with lake.reading() as connection:
            assert answers.totals(connection, table, 2).rows is None
            with pytest.raises(CatalogCorrupt, match=of):
                feed.load_changed(connection, table, feed.Range(1, 2))
            with pytest.raises(CatalogCorrupt, match=of):
                answers.table_sizes(connection, 2)


def test_a_table_in_a_schema_that_never_began(place: Place) -> None:
    with place.open() as lake:
        staging.create(lake, "t", COLUMNS)
        damage(lake, "UPDATE ducklake_schema SET begin_snapshot = NULL")
        with pytest.raises(CatalogCorrupt, match="schema 'main' in ducklake_schema has NULL"):
            lake.table("main", "t", 1)


# Of a table with files: what is set, and how the error names it.
NO_NUMBERS = [
    ("data_file", "record_count", "'abc'"),
    ("data_file", "record_count", "-1"),
    ("data_file", "file_size_bytes", "'abc'"),
    ("data_file", "file_size_bytes", "NULL"),
    ("data_file", "footer_size", "-5"),
    ("data_file", "row_id_start", "'abc'"),
    ("data_file", "row_id_start", "-1"),
    ("data_file", "partition_id", "'abc'"),
    ("data_file", "mapping_id", "'abc'"),
    ("data_file", "partial_max", "'abc'"),
    ("data_file", "begin_snapshot", "'abc'"),
    ("data_file", "end_snapshot", "'abc'"),
    ("delete_file", "begin_snapshot", "'abc'"),
    ("delete_file", "end_snapshot", "'abc'"),
    ("delete_file", "delete_count", "'abc'"),
    ("delete_file", "delete_count", "-1"),
    ("delete_file", "delete_count", "NULL"),
    ("delete_file", "file_size_bytes", "NULL"),
    ("delete_file", "delete_file_id", "'abc'"),
]


def test_numbers_that_are_none(sqlite_place: Place) -> None:
    """SQLite keeps any value in any column; as a text is above all numbers, it may even match."""
    with sqlite_place.open() as lake:
        with_everything(lake)
        with lake.reading() as connection:
            originals = {
                name: connection.execute(text(f"SELECT * FROM ducklake_{name}")).one()._mapping
                for name in ("data_file", "delete_file")
            }
        for name, column, value in NO_NUMBERS:
            damage(lake, f"UPDATE ducklake_{name} SET {column} = {value}")
            said = f"row .* of ducklake_{name} has {value} as its {column}, where a number"
            with pytest.raises(CatalogCorrupt, match=said):
                files(lake)
            with lake.writing() as connection:
                statement = text(f"UPDATE ducklake_{name} SET {column} = :old")
                connection.execute(statement, {"old": originals[name][column]})
        assert files(lake)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("data_file SET encryption_key = 'k'", "encrypted files.*data file 0"),
        ("delete_file SET encryption_key = 'k'", "encrypted files.*delete file 1"),
        ("data_file SET file_format = 'lance'", "not Parquet.*data file 0 in format 'lance'"),
        ("delete_file SET format = 'roaring'", "delete file 1 in format 'roaring'"),
    ],
)
def test_formats_that_are_not_read(place: Place, statement: str, said: str) -> None:
    with place.open() as lake:
        with_everything(lake)
        damage(lake, f"UPDATE ducklake_{statement}")
        with pytest.raises(UnsupportedFeature, match=said):
            files(lake)


def test_a_partition_transform_that_is_unknown(place: Place) -> None:
    """Nothing is chosen by it, and nothing written."""
    with place.open() as lake:
        with_everything(lake)
        damage(
            lake,
            "UPDATE ducklake_partition_column SET transform = 'spiral(3)'",
            "DELETE FROM ducklake_file_column_stats",
        )
        table = lake.table("main", "t", 2)
        wanted = Predicate(Compare(("note",), "=", Constant("string", "z")), "UTC")
        assert len(lake.files(table, 2, wanted).files) == 1
        with pytest.raises(UnsupportedFeature, match=r"spiral\(3\)"):
            partition_columns(table.schema, table.partition_by)


def test_a_column_type_that_is_unknown(place: Place) -> None:
    with place.open() as lake:
        staging.create(lake, "t", COLUMNS)
        damage(lake, "UPDATE ducklake_column SET column_type = 'qubit' WHERE column_id = 2")
        with pytest.raises(UnsupportedFeature, match="qubit") as caught:
            to_spark_schema(lake.table("main", "t", 1).schema)
        assert "note" in str(caught.value)


def test_an_expired_time_says_what_remains(place: Place) -> None:
    with place.open() as lake:
        for name in "ab":
            staging.create(lake, name, COLUMNS)
        first, second, _ = lake.snapshots()
        damage(lake, "DELETE FROM ducklake_snapshot WHERE snapshot_id = 0")
        with pytest.raises(SnapshotNotFound, match=r"snapshots 1 to 2 remain, the first of") as at:
            lake.snapshot(At(timestamp=first.time))
        assert str(second.time.date()) in str(at.value)
