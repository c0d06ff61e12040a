"""A catalog restored to another kind of database: DuckDB reads what was inserted, at all times.

Tests ``lakes/catalog/copying.py``, ``lakes/recovery/backup.py``.

Tests ``lakes/catalog/inlined/columns.py`` (types and values on each database).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.errors import UnsupportedFeature
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.recovery.backup import backup, restore
from tests import duck
from tests.lakes.catalog.conftest import Place

# Values of all types that are inlined; a second row of each is NULL.
VALUES = {
    "BOOLEAN": "true",
    "TINYINT": "-128",
    "UTINYINT": "255",
    "SMALLINT": "-32768",
    "USMALLINT": "65535",
    "INTEGER": "-2147483648",
    "UINTEGER": "4294967295",
    "BIGINT": "-9223372036854775808",
    "UBIGINT": "18446744073709551615",
    "HUGEINT": "-12345678901234567890123456789012345678",
    "UHUGEINT": "98765432109876543210987654321098765432",
    "FLOAT": "'-inf'",
    "DOUBLE": "-0.1",
    "DECIMAL(4,1)": "-999.9",
    "DECIMAL(38,10)": "1234567890123456789012345678.0123456789",
    "DATE": "'0044-03-15 (BC)'",
    "TIME": "'23:59:59.000001'",
    "TIMETZ": "'12:00:00.5+05:30'",
    "TIMESTAMP": "'infinity'",
    "TIMESTAMP_S": "'1969-12-31 23:59:59'",
    "TIMESTAMP_MS": "'2020-01-01 00:00:01.5'",
    "TIMESTAMP_NS": "'2020-01-01 00:00:01.000000001'",
    "TIMESTAMPTZ": "'12345-01-01 00:00:00.25+02'",
    "INTERVAL": "'-1 year 2 months -3 days 04:05:06.789'",
    "VARCHAR": "'it''s \\ \"NULL\" é\t\n{[,'",
    "BLOB": r"'\xAA''\x00\x5C'",
    "UUID": "'ffffffff-0000-4000-8000-00000000000a'",
    "JSON": "'{\"a\":  [1, 2.50, null]}'",
}
NESTED = [kind for kind in VALUES if kind != "JSON"]  # in others DuckDB cannot read it itself
STATEMENTS = (
    "CREATE TABLE flat({columns})",
    "INSERT INTO flat SELECT {values}",
    "INSERT INTO flat(k) VALUES (2)",
    "UPDATE flat SET k = 3 WHERE k = 2",
    "CREATE TABLE deep({nested})",
    "INSERT INTO deep SELECT {nested_values}",
    "CREATE TABLE t(k INTEGER, s VARCHAR)",
    "INSERT INTO t SELECT n, 'file' FROM range(100) r(n)",
    "DELETE FROM t WHERE k < 3",
    "INSERT INTO t VALUES (200, 'inlined')",
    "ALTER TABLE t ADD COLUMN more DOUBLE DEFAULT 1.5",
    "ALTER TABLE t RENAME s TO text",
    "INSERT INTO t VALUES (201, 'newer', 2.5)",
    "DELETE FROM t WHERE k = 200",
    "CREATE VIEW v AS SELECT k FROM t WHERE k > 90",
    "CREATE SCHEMA other",
    "CREATE TABLE other.gone(a INTEGER)",
    "INSERT INTO other.gone VALUES (1)",
    "DROP TABLE other.gone",
)


def _filled() -> tuple[str, ...]:
    """The statements with all types in them."""
    pairs = list(VALUES.items())
    names = {kind: f"c{at}" for at, kind in enumerate(VALUES)}
    parts = {
        "columns": ", ".join(["k INTEGER", *(f"{names[kind]} {kind}" for kind in VALUES)]),
        "values": ", ".join(["1", *(f"({value})::{kind}" for kind, value in pairs)]),
        "nested": ", ".join(
            f"{names[kind]} STRUCT(a {kind}, l {kind}[], m MAP(INTEGER, {kind}))" for kind in NESTED
        ),
        "nested_values": ", ".join(
            f"{{'a': {_typed(kind)}, 'l': [{_typed(kind)}, NULL], 'm': MAP {{7: {_typed(kind)}}}}}"
            for kind in NESTED
        ),
    }
    return tuple(statement.format(**parts) for statement in STATEMENTS)


def _typed(kind: str) -> str:
    return f"({VALUES[kind]})::{kind}"


Rows = Mapping[tuple[int, str], list[Any]]


def _rows(connection: duckdb.DuckDBPyConnection, table: str, at: str = "") -> list[Any]:
    described = connection.execute(f"DESCRIBE SELECT * FROM {table}{at}").fetchall()
    listed = ", ".join(f"{name}::VARCHAR" for name, *_ in described)
    return sorted(connection.execute(f"SELECT {listed} FROM {table}{at}").fetchall(), key=repr)


def _truth() -> Rows:
    """What each table has after each statement, in a DuckDB without a lake."""
    truth: dict[tuple[int, str], list[Any]] = {}
    with closing(duckdb.connect()) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for snapshot, statement in enumerate(_filled(), 1):
            connection.execute(statement)
            query = "SELECT schema_name || '.' || table_name FROM duckdb_tables()"
            for (name,) in connection.execute(query).fetchall():
                truth[snapshot, name] = _rows(connection, name)
    return truth


def _read(uri: str, truth: Rows, options: Mapping[str, Any]) -> Rows:
    with closing(duck.attach(uri, inline=10, **options)) as connection:
        return {
            (snapshot, name): _rows(connection, name, f" AT (VERSION => {snapshot})")
            for snapshot, name in truth
        }


@pytest.fixture
def targets(place: Place, tmp_path: Path, request: pytest.FixtureRequest) -> list[Any]:
    """Where the other kinds of databases are."""
    others: list[Any] = []
    if "sqlite" not in place.uri:
        others.append((f"ducklake:sqlite:{tmp_path}/new.sqlite", {}))
    if ".ducklake" not in place.uri:
        others.append((f"ducklake:{tmp_path}/new.ducklake", {}))
    if "postgres" not in place.uri:
        uri = str(request.getfixturevalue("postgres_uri"))
        others.append((uri, {"metadata_schema": f"s{uuid.uuid4().hex}"}))
    return others


@pytest.mark.postgres
def test_to_the_other_kinds(place: Place, targets: list[Any], tmp_path: Path) -> None:
    duck.required()
    truth = _truth()
    with closing(duck.attach(place.uri, place.data_path.rstrip("/"), inline=10)) as connection:
        for statement in _filled():
            connection.execute(statement)
    with place.open() as catalog:
        with catalog.writing() as connection:
            for statement in (
                'CREATE TABLE penstock_meta ("key" VARCHAR PRIMARY KEY, n BIGINT NOT NULL)',
                "CREATE INDEX penstock_meta_n ON penstock_meta (n, key)",
                "INSERT INTO penstock_meta VALUES ('kept ü\t\\x', 7)",
            ):
                connection.exec_driver_sql(statement)
        backup(catalog, tmp_path / "one.bak")
        newest = catalog.latest()
    assert newest.id == len(STATEMENTS)
    for uri, options in targets:
        restored = restore(tmp_path / "one.bak", uri, check=True, **options)
        assert (restored.snapshot, restored.snapshot_time) == (newest.id, newest.time)
        assert restored.files is not None
        assert restored.files.missing == ()
        content = _read(uri, truth, options)
        assert [(key, content[key]) for key in truth if content[key] != truth[key]] == []
        _used(uri, options)


def _used(uri: str, options: Mapping[str, Any]) -> None:
    """Both write to it, and Penstock finds its own there."""
    with closing(duck.attach(uri, inline=10, **options)) as connection:
        connection.execute("INSERT INTO t VALUES (300, 'duckdb', NULL)")
        connection.execute("CALL ducklake_flush_inlined_data('lk', table_name => 't')")
        counted = connection.execute("SELECT count(*), max(rowid) FROM t").fetchall()
        assert connection.execute("SELECT count(*) FROM v").fetchall() == [(11,)]
    assert counted == [(99, 102)]
    with Catalog.open(uri, **options) as catalog, catalog.reading() as connection:
        schema = f'"{options["metadata_schema"]}".' if options else ""
        stored = connection.exec_driver_sql(f"SELECT * FROM {schema}penstock_meta").all()
    assert stored == [("kept ü\t\\x", 7)]


def test_what_the_other_kind_does_not_hold(sqlite_place: Place, tmp_path: Path) -> None:
    duck.required()
    with closing(duck.attach(sqlite_place.uri, sqlite_place.data_path, inline=10)) as connection:
        connection.execute("CREATE TABLE nul AS SELECT 'a' || chr(0) AS s")
    with sqlite_place.open() as catalog:
        backup(catalog, tmp_path / "one.bak")
    target = tmp_path / "new.ducklake"
    with pytest.raises(UnsupportedFeature, match="table nul has inlined rows"):
        restore(tmp_path / "one.bak", f"ducklake:{target}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "meta.sqlite", "one.bak"]
