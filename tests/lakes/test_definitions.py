"""Definitions: the same statements through DuckDB and through a transaction leave the same rows.

The whole history of a lake is in its catalog, so what is compared at the end is every statement.

Tests ``lakes/candidate/definable.py``, ``lakes/format/objects.py``, ``sql/macros.py``.

Tests ``lakes/catalog/definitions/tables.py`` (rows of the catalog as DuckDB writes them).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.lakes import alter
from penstock.lakes.catalog.database.sqlite_indexes import NULL_COLUMN
from penstock.lakes.format.files import PartitionField
from penstock.lakes.format.objects import SortKey
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.lake import Lake
from penstock.lakes.transaction import Transaction
from penstock.sql.macros import MacroForm, Parameter
from tests import duck

INT, TEXT = "int32", "varchar"
STRUCT = Column(
    "c",
    "struct",
    children=(
        Column("x", INT),
        Column(
            "y",
            "list",
            children=(Column("element", "struct", children=(Column("z", TEXT),)),),
        ),
    ),
)
MAP = Column("m", "map", children=(Column("key", TEXT), Column("value", "int16")))
TABLE = TableSchema(
    (
        Column("a", INT, nullable=False, default="5"),
        Column("b", TEXT, default="it's"),
        STRUCT,
        MAP,
        Column("d", "date", default="now()", default_kind="expression"),
    )
)
CREATE = """CREATE TABLE s.t(a INTEGER NOT NULL DEFAULT 5, b VARCHAR DEFAULT 'it''s',
 c STRUCT(x INTEGER, y STRUCT(z VARCHAR)[]), m MAP(VARCHAR, SMALLINT), d DATE DEFAULT now())"""


def altering(change: Callable[[TableSchema], TableSchema]) -> Callable[[Transaction], None]:
    def run(transaction: Transaction) -> None:
        table = transaction.table("s.t")
        table.alter(change(table.schema))

    return run


def partitioned(*fields: PartitionField) -> Callable[[Transaction], None]:
    return lambda t: t.table("s.t").set_partitioning(fields)


def sorted_by(*keys: SortKey) -> Callable[[Transaction], None]:
    return lambda t: t.table("s.t").set_sorting(keys)


def form(kind: str, sql: str, *parameters: Parameter) -> list[MacroForm]:
    return [MacroForm(kind, "duckdb", sql, parameters)]


STATEMENTS: list[tuple[str, Callable[[Transaction], Any]]] = [
    ("CREATE SCHEMA s", lambda t: t.create_schema("s")),
    (CREATE, lambda t: t.create_table("s.t", TABLE)),
    ("COMMENT ON TABLE s.t IS 'one'", lambda t: t.comment_on_table("s.t", "one")),
    ("COMMENT ON TABLE s.t IS 'two'", lambda t: t.comment_on_table("s.t", "two")),
    ("COMMENT ON TABLE s.t IS NULL", lambda t: t.comment_on_table("s.t", None)),
    ("COMMENT ON COLUMN s.t.b IS 'cb'", lambda t: t.comment_on_column("s.t", "B", "cb")),
    (
        "ALTER TABLE s.t ADD COLUMN h INTEGER DEFAULT 42",
        altering(lambda s: alter.add_column(s, (), Column("h", INT, default="42"))),
    ),
    (
        "ALTER TABLE s.t ADD COLUMN c.y.element.q INTEGER",
        altering(lambda s: alter.add_column(s, ("c", "y", "element"), Column("q", INT))),
    ),
    ("ALTER TABLE s.t RENAME b TO bb", altering(lambda s: alter.rename_column(s, ("b",), "bb"))),
    (
        "ALTER TABLE s.t RENAME c.x TO xx",
        altering(lambda s: alter.rename_column(s, ("c", "x"), "xx")),
    ),
    (
        "ALTER TABLE s.t DROP COLUMN c.y.element.q",
        altering(lambda s: alter.drop_column(s, ("c", "y", "element", "q"))),
    ),
    ("ALTER TABLE s.t DROP COLUMN d", altering(lambda s: alter.drop_column(s, ("d",)))),
    (
        "ALTER TABLE s.t ALTER a TYPE BIGINT",
        altering(lambda s: alter.set_type(s, ("a",), Column("", "int64"))),
    ),
    (
        "ALTER TABLE s.t ALTER m TYPE MAP(VARCHAR, BIGINT)",
        altering(lambda s: alter.set_type(s, ("m", "value"), Column("", "int64"))),
    ),
    (
        "ALTER TABLE s.t ALTER a DROP NOT NULL",
        altering(lambda s: alter.set_nullable(s, ("a",), True)),
    ),
    (
        "ALTER TABLE s.t ALTER h DROP DEFAULT",
        altering(lambda s: alter.set_default(s, ("h",), None)),
    ),
    (
        "ALTER TABLE s.t ALTER h SET DEFAULT 8",
        altering(lambda s: alter.set_default(s, ("h",), "8")),
    ),
    (
        "ALTER TABLE s.t SET PARTITIONED BY (bb, h)",
        partitioned(PartitionField("bb"), PartitionField("h")),
    ),
    ("ALTER TABLE s.t SET PARTITIONED BY (h)", partitioned(PartitionField("h"))),
    ("ALTER TABLE s.t RENAME h TO hh", altering(lambda s: alter.rename_column(s, ("h",), "hh"))),
    ("ALTER TABLE s.t RESET PARTITIONED BY", partitioned()),
    (
        "ALTER TABLE s.t SET SORTED BY (bb DESC, a ASC NULLS FIRST, (hh + 1))",
        sorted_by(
            SortKey("bb", direction="DESC"), SortKey("a", nulls="NULLS_FIRST"), SortKey("(hh + 1)")
        ),
    ),
    ("ALTER TABLE s.t RENAME bb TO b", altering(lambda s: alter.rename_column(s, ("bb",), "b"))),
    ("ALTER TABLE s.t RESET SORTED BY", sorted_by()),
    ("ALTER TABLE s.t RENAME TO u", lambda t: t.rename_table("s.t", "u")),
    ("CREATE VIEW s.v AS SELECT 1 AS one", lambda t: t.create_view("s.v", "SELECT 1 AS one")),
    (
        'CREATE VIEW s.w(x, "y z") AS SELECT 1, 2',
        lambda t: t.create_view("s.w", "SELECT 1, 2", columns=["x", "y z"]),
    ),
    ("COMMENT ON VIEW s.v IS 'vc'", lambda t: t.comment_on_view("s.v", "vc")),
    ("ALTER VIEW s.v RENAME TO v2", lambda t: t.rename_view("s.v", "v2")),
    (
        "CREATE OR REPLACE VIEW s.w AS SELECT 2",
        lambda t: t.create_view("s.w", "SELECT 2", or_replace=True),
    ),
    ("DROP VIEW s.w", lambda t: t.drop_view("s.w")),
    (
        "CREATE MACRO s.plus(a, b := 5) AS a + b",
        lambda t: t.create_macro(
            "s.plus",
            form("scalar", "(a + b)", Parameter("a"), Parameter("b", None, "5", "int32")),
        ),
    ),
    (
        "CREATE OR REPLACE MACRO s.plus(a) AS a + 1",
        lambda t: t.create_macro(
            "s.plus", form("scalar", "(a + 1)", Parameter("a")), or_replace=True
        ),
    ),
    (
        "CREATE MACRO s.plus(n) AS TABLE SELECT n",
        lambda t: t.create_macro("s.plus", form("table", "SELECT n", Parameter("n"))),
    ),
    ("DROP MACRO s.plus", lambda t: t.drop_macro("s.plus")),
    (
        "CREATE OR REPLACE TABLE s.u(q INTEGER)",
        lambda t: t.create_table("s.u", TableSchema((Column("q", INT),)), or_replace=True),
    ),
    ("DROP TABLE s.u", lambda t: t.drop_table("s.u")),
    (
        "CREATE TABLE s.z(i INTEGER)",
        lambda t: t.create_table("s.z", TableSchema((Column("i", INT),))),
    ),
    ("DROP SCHEMA s CASCADE", lambda t: t.drop_schema("s", cascade=True)),
]
# What differs from lake to lake, and what the extension writes otherwise than it means it: fields
# inside others that it adds or renames are NOT NULL there.
_IGNORED = frozenset(
    {"schema_uuid", "table_uuid", "view_uuid", "snapshot_time", "default_value_dialect"}
    | {NULL_COLUMN}  # of our indexes, which DuckDB does not see
)


_OF_OLD = "database_name = 'old' ORDER BY ALL"
_READS = [
    "SELECT schema_name, table_name, column_name, data_type, is_nullable, column_default, comment "
    f"FROM duckdb_columns() WHERE {_OF_OLD}",
    f"SELECT schema_name, table_name, comment FROM duckdb_tables() WHERE {_OF_OLD}",
    f"SELECT schema_name, view_name, comment, sql FROM duckdb_views() WHERE {_OF_OLD}",
    "SELECT function_name, function_type, parameters, macro_definition FROM duckdb_functions() "
    f"WHERE {_OF_OLD}",
]


def catalog_rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    tables = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    content = {
        table: [dict(row) for row in connection.execute(f'SELECT * FROM "{table}"')]
        for table in tables
        if table != "ducklake_metadata" and "inlined" not in table
    }
    connection.close()
    return {table: sorted(map(_comparable, rows), key=repr) for table, rows in content.items()}


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    inside = row.get("parent_column") is not None
    ignored = _IGNORED | ({"nulls_allowed", "default_value_type"} if inside else set())
    return {key: value for key, value in row.items() if key not in ignored}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The catalogs of two lakes that had the same statements."""
    theirs, ours = (tmp_path_factory.mktemp(name) / "meta.sqlite" for name in ("theirs", "ours"))
    connection = duck.attach(f"ducklake:sqlite:{theirs}", theirs.parent / "data", inline=10)
    for statement, _ in STATEMENTS:
        connection.execute(statement)
    connection.close()
    with Lake.attach(f"ducklake:sqlite:{ours}", data_path=str(ours.parent / "data")) as lake:
        for _, change in STATEMENTS:
            with lake.transaction() as transaction:
                change(transaction)
    return theirs, ours


def test_duckdb_reads_the_definitions_at_every_snapshot(both: tuple[Path, Path]) -> None:
    connection = duck.connect()
    for version in (2, 10, 22, 28, 34):
        results = []
        for path in both:
            connection.execute(
                f"ATTACH 'ducklake:sqlite:{path}' AS old (SNAPSHOT_VERSION {version}, READ_ONLY)"
            )
            results.append([connection.execute(query).fetchall() for query in _READS])
            connection.execute("DETACH old")
        assert results[0] == results[1], version
        assert any(results[0]), version
    connection.close()


def test_every_statement_leaves_the_rows_that_duckdb_leaves(both: tuple[Path, Path]) -> None:
    theirs, ours = map(catalog_rows, both)
    assert ours.keys() >= theirs.keys()
    for table, rows in theirs.items():
        assert ours[table] == rows, table
