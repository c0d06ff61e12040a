"""What the catalog itself holds of a table, as DuckDB left it there."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.inlined import inlined
from penstock.lakes.format.files import InlinedDeletes, InlinedPart, InlinedRows
from tests import duck
from tests.lakes.catalog.conftest import Place

pytestmark = pytest.mark.usefixtures("_duckdb")


@pytest.fixture(scope="module")
def _duckdb() -> None:
    duck.required()


def _written(place: Place, *statements: str) -> Catalog:
    with duck.attach(place.uri, place.data_path, inline=10) as connection:
        for statement in statements:
            connection.execute(statement)
    return place.open()


def _rows(catalog: Catalog, at: int | None = None, name: str = "t") -> InlinedRows | None:
    at = catalog.latest().id if at is None else at
    with catalog.reading() as connection:
        return inlined.load_rows(connection, catalog.table("main", name, at), at)


def _values(part: InlinedPart) -> list[tuple[object, ...]]:
    names = [str(column.id) for column in part.schema.columns]
    return [tuple(row[name] for name in ("row_id", *names)) for row in part.rows.to_pylist()]


CREATE = "CREATE TABLE t (i INTEGER, v VARCHAR)"
INSERT = "INSERT INTO t VALUES (1, 'a'), (2, 'b')"


def test_rows_are_those_in_force_at_the_snapshot(place: Place) -> None:
    update = "UPDATE t SET v = 'c' WHERE i = 2"
    with _written(place, CREATE, INSERT, update, "DELETE FROM t WHERE i = 1") as catalog:
        assert _rows(catalog, 1) is None
        by_version = {at: _rows(catalog, at) for at in (2, 3, 4)}
    shown = {at: _values(rows.parts[0]) for at, rows in by_version.items() if rows is not None}
    assert shown == {
        2: [(0, 1, "a"), (1, 2, "b")],
        3: [(0, 1, "a"), (1, 2, "c")],
        4: [(1, 2, "c")],
    }


def test_each_schema_version_is_a_part_with_the_columns_it_had(place: Place) -> None:
    alter = ("ALTER TABLE t RENAME v TO w", "ALTER TABLE t ADD COLUMN n INTEGER")
    with _written(place, CREATE, INSERT, *alter, "INSERT INTO t VALUES (3, 'c', 4)") as catalog:
        rows = _rows(catalog)
    assert rows is not None
    assert [part.schema.names for part in rows.parts] == [("i", "v"), ("i", "w", "n")]
    assert rows.count == 3


def test_columns_that_are_not_asked_for_are_not_loaded(place: Place) -> None:
    with _written(place, CREATE, INSERT, "ALTER TABLE t DROP COLUMN v") as catalog:
        rows = _rows(catalog)
    assert rows is not None
    assert _values(rows.parts[0]) == [(0, 1), (1, 2)]


def test_rows_of_a_table_that_was_made_with_inlining_off(place: Place) -> None:
    """DuckDB gives its inlined table the number of a schema version that is yet to come."""
    with duck.attach(place.uri, place.data_path, inline=0) as connection:
        connection.execute(CREATE)
    with _written(place, INSERT) as catalog:
        rows = _rows(catalog)
    assert rows is not None
    assert _values(rows.parts[0]) == [(0, 1, "a"), (1, 2, "b")]


def test_deletes_are_places_in_files_in_force(place: Place) -> None:
    fill = "INSERT INTO t SELECT range, 'x' FROM range(20)"
    gone = ("DELETE FROM t WHERE i = 7", "DELETE FROM t WHERE i IN (3, 9)")
    with _written(place, CREATE, fill, *gone) as catalog:
        table = catalog.table("main", "t", 4)
        with catalog.reading() as connection:
            by_version = {at: inlined.load_deletes(connection, table, at) for at in (2, 3, 4)}
    assert by_version[2] is None
    assert [_places(deletes) for at, deletes in by_version.items() if at > 2] == [
        [(7, 3)],
        [(3, 4), (7, 3), (9, 4)],
    ]


def _places(deletes: InlinedDeletes | None) -> list[tuple[int, int]]:
    assert deletes is not None
    return sorted((row["position"], row["snapshot"]) for row in deletes.rows.to_pylist())


def test_changes_are_rows_that_began_and_ended(place: Place) -> None:
    update = "UPDATE t SET v = 'c' WHERE i = 2"
    with _written(place, CREATE, INSERT, update, "DELETE FROM t WHERE i = 1") as catalog:
        table = catalog.table("main", "t", 4)
        with catalog.reading() as connection:
            changes = inlined.load_changes(connection, table, 3, 4)
    assert [_values(part) for part in changes.begun] == [[(1, 2, "c")]]
    assert [_values(part) for part in changes.ended] == [[(0, 1, "a"), (1, 2, "b")]]


def test_a_table_changed_when_its_inlined_rows_did(place: Place) -> None:
    other = ("CREATE TABLE other (i INTEGER)", "INSERT INTO other VALUES (1)")
    statements = (CREATE, INSERT, *other, "DELETE FROM t WHERE i = 1")
    with _written(place, *statements) as catalog, catalog.reading() as connection:
        table = catalog.table("main", "t", 5).id
        changed = [inlined.changed_since(connection, table, at) for at in (1, 2, 4, 5)]
    assert changed == [True, True, True, False]


def test_the_system_columns_of_1_1_have_a_prefix(sqlite_place: Place) -> None:
    with _written(sqlite_place, CREATE, INSERT) as catalog, catalog.writing() as connection:
        for name in ("row_id", "begin_snapshot", "end_snapshot"):
            connection.execute(
                text(f"ALTER TABLE ducklake_inlined_data_1_1 RENAME {name} TO _ducklake_{name}")
            )
        for table in ("data_file", "delete_file"):
            connection.execute(
                text(f"ALTER TABLE ducklake_{table} ADD COLUMN row_group_count BIGINT")
            )
        connection.execute(text("ALTER TABLE ducklake_schema ADD COLUMN parent_schema_id BIGINT"))
        connection.execute(text("UPDATE ducklake_metadata SET value = '1.1' WHERE key = 'version'"))
    with sqlite_place.open(read_only=True) as catalog:
        rows = _rows(catalog)
    assert rows is not None
    assert _values(rows.parts[0]) == [(0, 1, "a"), (1, 2, "b")]
