"""DuckDB copies a SQLite catalog to another file, as DuckLake's guide for backups has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from penstock.engine.state.tables import migrate
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.database.sqlite_indexes import add_indexes, hide_indexes
from tests import duck

ROWS = "CREATE TABLE t AS SELECT range AS i, range % 3 AS k FROM range(10)"
# As catalogs had them before; DuckDB fails at each.
EARLIER = (
    "CREATE INDEX penstock_data_file_table ON ducklake_data_file (table_id, begin_snapshot)",
    "CREATE INDEX penstock_delete_file_data ON ducklake_delete_file (data_file_id)",
    "CREATE INDEX penstock_file_stats ON ducklake_file_column_stats (table_id, column_id)",
)


def copied(tmp_path: Path) -> list[tuple[object, ...]]:
    """The rows of the table ``t``, read through a copy of the catalog that DuckDB made."""
    with duck.connect() as connection:
        connection.execute(f"ATTACH 'sqlite:{tmp_path}/meta.sqlite' AS db (READ_ONLY)")
        connection.execute(f"ATTACH 'sqlite:{tmp_path}/copy.sqlite' AS backup")
        connection.execute("COPY FROM DATABASE db TO backup")
    uri = f"ducklake:sqlite:{tmp_path}/copy.sqlite"
    with Catalog.open(uri) as catalog:
        assert [table.name for table in catalog.tables(catalog.latest().id)] == ["t"]
    return duck.rows(uri, "SELECT count(*), sum(i) FROM t")


def test_a_catalog_that_penstock_made_and_ran_in(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/meta.sqlite"
    with Catalog.open(uri, data_path=str(tmp_path)) as catalog, catalog.writing() as connection:
        migrate(connection)
    with duck.attach(uri) as connection:
        connection.execute(f"{ROWS}; DELETE FROM t WHERE i = 3; INSERT INTO t VALUES (20, 1)")
    assert copied(tmp_path) == [(10, 62)]


def test_a_catalog_of_before(tmp_path: Path) -> None:
    uri = f"ducklake:sqlite:{tmp_path}/meta.sqlite"
    with duck.attach(uri, tmp_path / "data") as connection:
        connection.execute(ROWS)
    with Catalog.open(uri) as catalog, catalog.writing() as connection:
        for statement in EARLIER:
            connection.exec_driver_sql(statement)
        migrate(connection)
    with duck.attach(uri) as connection:
        connection.execute("INSERT INTO t VALUES (20, 1); DELETE FROM t WHERE i = 3")
        connection.execute("ALTER TABLE t SET PARTITIONED BY (k); INSERT INTO t VALUES (30, 2)")
        connection.execute("CALL ducklake_merge_adjacent_files('lk')")
    assert copied(tmp_path) == [(11, 92)]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    uri = f"ducklake:sqlite:{tmp_path}/meta.sqlite"
    with Catalog.open(uri, data_path=str(tmp_path)) as catalog, catalog.writing() as writing:
        writing.exec_driver_sql("CREATE TABLE own (x BIGINT, y VARCHAR, PRIMARY KEY (x))")
        writing.exec_driver_sql("INSERT INTO own VALUES (1, 'p'), (2, 'p'), (3, NULL)")
        yield writing


def test_rows_and_columns_stay(connection: Connection) -> None:
    add_indexes(connection, {"own": [("y",)]})
    connection.exec_driver_sql("ALTER TABLE own ADD COLUMN z VARCHAR")
    connection.exec_driver_sql("CREATE INDEX penstock_z ON own (z, y)")
    connection.exec_driver_sql("CREATE INDEX theirs ON own (z)")
    hide_indexes(connection)
    add_indexes(connection, {"own": [("y",), ("z", "y")]})
    connection.exec_driver_sql("INSERT INTO own VALUES (4, 'p', 'q'), (5, 'p', 'q')")
    rows = connection.exec_driver_sql("SELECT x, y, z FROM own ORDER BY x").all()
    assert rows == [(1, "p", None), (2, "p", None), (3, None, None), (4, "p", "q"), (5, "p", "q")]
    indexes = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE name = 'theirs'")
    assert indexes.all() == [("theirs",)]
    text = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'own'").scalar()
    assert str(text).count("UNIQUE") == 2
    for where in ("y = 'p'", "z = 'q' AND y = 'p'"):
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN SELECT x FROM own WHERE {where}")
        assert "sqlite_autoindex" in str(plan.all())
