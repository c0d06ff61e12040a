"""Rows that Penstock puts into the catalog, read by DuckDB at every snapshot, on each database.

Tests ``lakes/format/inlined/staged.py`` (rows inserted, ended and deleted).
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from sqlalchemy import text

from penstock.errors import CommitConflict, SchemaMismatch
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.inlined.literal_rows import typed
from penstock.lakes.format.inlined.text import stored
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.catalog.conftest import Place

pytestmark = pytest.mark.usefixtures("_duckdb")

ALL = """CREATE TABLE t (i INTEGER, b BOOLEAN, u UBIGINT, f FLOAT, d DOUBLE, n DECIMAL(9,2),
 day DATE, made TIMESTAMP, tz TIMESTAMPTZ, ns TIMESTAMP_NS, clock TIME, v VARCHAR, x BLOB, id UUID,
 span INTERVAL, j JSON, l VARCHAR[], s STRUCT(a DATE, b VARCHAR), m MAP(VARCHAR, DOUBLE))"""
ROW: dict[str, Any] = {
    "i": 1,
    "b": True,
    "u": 2**64 - 1,
    "f": 0.1,
    "d": float("inf"),
    "n": Decimal("-0.01"),
    "day": "2024-02-29",
    "made": "2024-01-02 03:04:05.12",
    "tz": dt.datetime(2024, 1, 2, 3, tzinfo=dt.UTC),
    "ns": "2024-01-02 03:04:05.123456789",
    "clock": "01:02:03.5",
    "v": "it's ü",
    "x": b"\0'\xff",
    "id": "6f9619ff-8b86-d011-b42d-00c04fc964ff",
    "span": "1 year 2 months 3 days 04:05:06.7",
    "j": '{"a": 1}',
    "l": ["it's", None, "NULL", "x\\y", "a,b", ""],
    "s": {"a": "2024-01-01", "b": "it's"},
    "m": {"k": 1.5, "a=b": None},
}


@pytest.fixture(scope="module")
def _duckdb() -> None:
    duck.required()


def _made(place: Place, *statements: str, inline: int = 10) -> Lake:
    with duck.attach(place.uri, place.data_path, inline=inline) as connection:
        for statement in statements:
            connection.execute(statement)
    return Lake.attach(place.uri)


def _duck(place: Place, *queries: str) -> list[list[tuple[Any, ...]]]:
    with duck.attach(place.uri, inline=10) as connection:
        return [connection.execute(query).fetchall() for query in queries]


def test_duckdb_reads_every_type_as_it_reads_its_own(place: Place) -> None:
    with _made(place, ALL) as lake:
        lake.table("t").append([ROW, {}])
    literals = """SELECT 1, true, 18446744073709551615, 0.1::FLOAT, 'inf'::DOUBLE, -0.01,
     DATE '2024-02-29', TIMESTAMP '2024-01-02 03:04:05.12', TIMESTAMPTZ '2024-01-02 03:00:00+00',
     TIMESTAMP_NS '2024-01-02 03:04:05.123456789', TIME '01:02:03.5', 'it''s ü',
     '\\x00\\x27\\xFF'::BLOB,
     UUID '6f9619ff-8b86-d011-b42d-00c04fc964ff', INTERVAL '1 year 2 months 3 days 04:05:06.7',
     '{"a": 1}'::JSON, ['it''s', NULL, 'NULL', 'x\\y', 'a,b', ''],
     {'a': DATE '2024-01-01', 'b': 'it''s'}, MAP {'k': 1.5, 'a=b': NULL}"""
    first, nulls, wanted = _duck(place, "FROM t WHERE i = 1", "FROM t WHERE i IS NULL", literals)
    assert first == wanted
    assert nulls == [(None,) * 19]


def test_rows_get_the_next_ids_and_are_counted(place: Place) -> None:
    with _made(place, "CREATE TABLE t (i INTEGER, v VARCHAR)") as lake:
        lake.table("t").append([{"i": 5, "v": "b"}, {"i": 7}])
        lake.table("t").append(pa.table({"i": [1]}))
        with lake.catalog.reading() as connection:
            stats = connection.execute(text("SELECT * FROM ducklake_table_stats")).all()
            bounds = connection.execute(
                text("SELECT column_id, min_value, max_value FROM ducklake_table_column_stats")
            ).all()
        assert [snapshot.changes for snapshot in lake.snapshots()[-2:]] == ["inlined_insert:1"] * 2
    assert [tuple(row) for row in stats] == [(1, 3, 3, 0)]
    assert sorted(map(tuple, bounds)) == [(1, "1", "7"), (2, "b", "b")]
    rows, files = _duck(place, "SELECT rowid, i FROM t", "FROM ducklake_list_files('lk', 't')")
    assert sorted(rows) == [(0, 5), (1, 7), (2, 1)]
    assert files == []


def test_the_limit_goes_by_table_schema_lake_and_attachment(place: Place) -> None:
    def changes(lake: Lake, rows: int) -> str:
        lake.table("t").append([{"i": i} for i in range(rows)])
        return lake.snapshots()[-1].changes

    with _made(place, "CREATE TABLE t (i INTEGER)") as lake:
        assert [changes(lake, rows) for rows in (10, 11)] == [
            "inlined_insert:1",
            "inserted_into_table:1",
        ]
        for value, scope in ((3, {}), (2, {"schema": "main"}), (1, {"table": "t"})):
            lake.set_option("data_inlining_row_limit", value, **scope)
            assert changes(lake, value) == "inlined_insert:1"
            assert changes(lake, value + 1) == "inserted_into_table:1"
    with Lake.attach(place.uri, data_inlining_row_limit=100) as lake:
        assert changes(lake, 2) == "inserted_into_table:1"  # the table's option comes first
    assert _duck(place, "SELECT count(*), max(rowid) FROM t") == [[(38, 37)]]


def test_an_inlined_table_is_made_when_one_lacks(place: Place) -> None:
    with _made(place, "CREATE TABLE t (i INTEGER)", inline=0) as lake:
        before = lake.catalog.latest().schema_version
        lake.table("t").append([{"i": 1}])
        assert lake.catalog.latest().schema_version == before + 1  # else nobody would look for it
        lake.table("t").append([{"i": 2}])
        assert lake.catalog.latest().schema_version == before + 1
    rows = _duck(place, "INSERT INTO t VALUES (3)", "FROM t")[1]
    assert sorted(rows) == [(1,), (2,), (3,)]


def test_duckdb_inserts_after_columns_changed_here(place: Place) -> None:
    """It inserts into the newest inlined table: one of the new columns has to be there."""
    made = _made(place, "CREATE TABLE t (i INTEGER)", "INSERT INTO t VALUES (1)")
    with made as lake, lake.transaction() as transaction:
        table = transaction.table("t")
        table.append([{"i": 2}])
        table.alter(TableSchema((*table.schema.columns, Column("n", "varchar", default="d"))))
        table.append([{"i": 3}])
    rows = _duck(place, "INSERT INTO t VALUES (4, 'x')", "FROM t")[1]
    assert {row[0] for row in rows} == {1, 2, 3, 4}
    assert {row[1] for row in rows if row[0] > 2} == {"d", "x"}


def test_rows_end_and_begin_again_under_their_ids(place: Place) -> None:
    with _made(place, "CREATE TABLE t (i INTEGER)") as lake:
        lake.table("t").append([{"i": 1}, {"i": 2}])
        with lake.transaction() as transaction:
            table = transaction.table("t")
            new = stored(typed([{"i": 10}], table.schema, table="t"), table.schema)
            assert new is not None
            inline = table.candidate.inline.without_rows([0, 1])
            inline = inline.with_rows(table.schema, new, transaction.base.id + 1, [0])
            table.stage(_with_inline(table.candidate, inline))
    now, before, feed = _duck(
        place,
        "SELECT rowid, i FROM t",
        "SELECT rowid, i FROM t AT (VERSION => 2) ORDER BY 1",
        "SELECT rowid, change_type, i FROM lk.table_changes('t', 3, 3) ORDER BY ALL",
    )
    assert (now, before) == ([(0, 10)], [(0, 1), (1, 2)])
    assert feed == [(0, "update_postimage", 10), (0, "update_preimage", 1), (1, "delete", 2)]


def test_two_that_end_the_same_row_do_not_both_land(place: Place) -> None:
    with _made(place, "CREATE TABLE t (i INTEGER)", "INSERT INTO t VALUES (1)") as lake:
        first, second = lake.transaction(), lake.transaction()
        for transaction in (first, second):
            table = transaction.table("t")
            table.stage(_with_inline(table.candidate, table.candidate.inline.without_rows([0])))
        first.commit()
        with pytest.raises(CommitConflict):
            second.commit()


def test_deletes_of_a_file_in_the_catalog(place: Place) -> None:
    many = "INSERT INTO t SELECT i FROM range(20) r(i)"
    with _made(place, "CREATE TABLE t (i INTEGER)", many) as lake:
        for gone in ([3], [4, 5]):
            with lake.transaction() as transaction:
                table = transaction.table("t")
                file_id = table.files().files[0].id
                assert file_id is not None
                inline = table.candidate.inline.with_deletes({file_id: gone})
                table.stage(_with_inline(table.candidate, inline))
        assert lake.snapshots()[-1].changes == "inlined_delete:1"
    counts, feed = _duck(
        place,
        "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM t AT (VERSION => 3))",
        "SELECT rowid, change_type FROM lk.table_changes('t', 4, 4) ORDER BY 1",
    )
    assert counts == [(17, 19)]
    assert feed == [(4, "delete"), (5, "delete")]


def test_nothing_is_written_of_rows_that_do_not_fit(place: Place) -> None:
    with _made(place, "CREATE TABLE t (i INTEGER NOT NULL)") as lake:
        before = lake.catalog.latest()
        for rows in ([{"i": 1}, {"i": None}], [{"i": 1}, {"j": 2}], [{"i": 2**40}]):
            with pytest.raises(SchemaMismatch):
                lake.table("t").append(rows)
        assert lake.catalog.latest() == before


def _with_inline(candidate: Any, inline: Any) -> Any:
    from dataclasses import replace

    return replace(candidate, inline=inline)


def test_catalogs_made_here_have_inlined_tables_for_duckdb(place: Place) -> None:
    with Catalog.open(place.uri, data_path=place.data_path):
        pass
    with Lake.attach(place.uri) as lake, lake.transaction() as transaction:
        transaction.create_table("t", TableSchema((Column("i", "int32"),))).append([{"i": 1}])
    assert _duck(place, "INSERT INTO t VALUES (2)", "SELECT rowid, i FROM t ORDER BY 1")[1] == [
        (0, 1),
        (1, 2),
    ]


def test_no_inlined_table_is_made_while_inlining_is_off(place: Place) -> None:
    """The most specific scope decides, as in DuckDB: schema, lake, attachment."""
    cases: dict[str, tuple[int | None, dict[str | None, int], list[str]]] = {
        "off": (0, {}, []),
        "on": (None, {}, ["on"]),
        "lake": (0, {None: 5}, ["lake"]),
        "a_schema": (None, {"main": 0, None: 5}, []),
    }
    for name, (attached, options, expected) in cases.items():
        with Lake.attach(
            place.uri, data_path=place.data_path, data_inlining_row_limit=attached
        ) as lake:
            for schema, limit in options.items():
                lake.set_option("data_inlining_row_limit", limit, schema=schema)
            lake.sql(f"CREATE TABLE {name} (id BIGINT)")
            assert _with_inlined_tables(lake) == expected, name
            lake.sql(f"DROP TABLE {name}")
            for schema in options:
                lake.set_option("data_inlining_row_limit", None, schema=schema)


def _with_inlined_tables(lake: Lake) -> list[str]:
    """The names of the tables that have one."""
    with lake.catalog.reading() as connection:
        rows = connection.execute(
            text(
                "SELECT t.table_name FROM ducklake_inlined_data_tables i JOIN ducklake_table t "
                "ON t.table_id = i.table_id WHERE t.end_snapshot IS NULL"
            )
        )
        return [str(row[0]) for row in rows]


@pytest.mark.postgres
def test_a_role_that_may_not_create_tables_writes(
    postgres_uri: str, postgres_server: str, tmp_path: Path
) -> None:
    with Lake.attach(postgres_uri, data_path=str(tmp_path)):
        pass
    database = postgres_uri.removeprefix("ducklake:postgres:")
    role = f"writer_{uuid.uuid4().hex}"
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        owner.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        owner.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        uri = f"{postgres_uri} user={role}"
        with Lake.attach(uri, data_inlining_row_limit=0) as lake:
            lake.sql("CREATE TABLE t (id BIGINT)")
            lake.table("t").append([{"id": 1}])
            lake.sql("ALTER TABLE t ADD COLUMN name VARCHAR")
            lake.table("t").append([{"id": 2, "name": "b"}])
        assert duck.rows(uri, "SELECT * FROM t") == [(1, None), (2, "b")]
        owner.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
