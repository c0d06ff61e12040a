"""DuckDB writes, Penstock reads: the same rows at every snapshot, or a refusal that says why."""

from __future__ import annotations

import pytest

from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential.content import assert_same, of_spark

pytestmark = pytest.mark.spark

FLAT = {
    "b": ("BOOLEAN", ["true", "false"]),
    "i8": ("TINYINT", ["-128", "127"]),
    "i16": ("SMALLINT", ["-32768", "32767"]),
    "i32": ("INTEGER", ["-2147483648", "2147483647"]),
    "i64": ("BIGINT", ["-9223372036854775808", "9223372036854775807"]),
    "u8": ("UTINYINT", ["0", "255"]),
    "u16": ("USMALLINT", ["0", "65535"]),
    "u32": ("UINTEGER", ["0", "4294967295"]),
    "u64": ("UBIGINT", ["0", "18446744073709551615"]),
    "f": ("FLOAT", ["'nan'", "'inf'", "'-inf'", "-0.0", "1.17549435e-38"]),
    "d": ("DOUBLE", ["'nan'", "'inf'", "'-inf'", "-0.0", "1.7976931348623157e308"]),
    "d4": ("DECIMAL(4,1)", ["-999.9", "0"]),
    "d9": ("DECIMAL(9,2)", ["1.10", "-1.10"]),
    "d18": ("DECIMAL(18,3)", ["123456789012345.678"]),
    "d38": ("DECIMAL(38,10)", ["1234567890123456789012345678.0123456789", "-0.0000000001"]),
    "dt": (
        "DATE",
        [
            "'1582-10-04'",
            "'1582-10-10'",
            "'infinity'",
            "'0001-01-01'",
            "'9999-12-31'",
            "'1970-01-01'",
        ],
    ),
    "ts": ("TIMESTAMP", ["'0001-01-01'", "'1582-10-10 01:02:03.000001'", "'9999-12-31 23:59:59'"]),
    "tss": ("TIMESTAMP_S", ["'1582-10-10 01:02:03'", "'2013-01-02 03:04:05'"]),
    "tsms": ("TIMESTAMP_MS", ["'1582-10-10 01:02:03.5'", "'2013-01-02 03:04:05.123'"]),
    "tsns": ("TIMESTAMP_NS", ["'1969-12-31 23:59:59.999999'", "'2013-01-02 03:04:05.123456'"]),
    "tz": ("TIMESTAMPTZ", ["'0001-01-01 00:00:00+00'", "'2013-03-10 02:30:00 America/New_York'"]),
    "v": ("VARCHAR", ["''", "'é ☃ ''\"'", "'日本'"]),
    "bl": ("BLOB", ["''::BLOB", "'\\x00\\xFF'::BLOB"]),
    "j": ("JSON", ["'{\"a\": [1, null]}'", "'null'"]),
    "u": (
        "UUID",
        ["'00112233-4455-6677-8899-aabbccddeeff'", "'f0112233-4455-6677-8899-aabbccddeeff'"],
    ),
}
NESTED = {
    "l": ("INT[]", ["[1, NULL]", "[]"]),
    "s": ("STRUCT(a INT, b VARCHAR)", ["{'a': NULL, 'b': NULL}", "{'a': 1, 'b': 'x'}"]),
    "m": ("MAP(VARCHAR, INT)", ["MAP {'k': 1, 'n': NULL}", "MAP {}"]),
    "lll": ("UUID[][][]", ["[[['00112233-4455-6677-8899-aabbccddeeff', NULL]], NULL, []]"]),
    "deep": (
        "STRUCT(x STRUCT(y MAP(INT, TIMESTAMP_NS[]))[], z UBIGINT)",
        [
            "{'x': [{'y': MAP {1: ['2013-01-02 03:04:05.5'::TIMESTAMP_NS, NULL]}}, NULL], 'z': 1}",
            "{'x': NULL, 'z': 18446744073709551615}",
        ],
    ),
    "ms": (
        "MAP(STRUCT(a INT, b VARCHAR), STRUCT(c DECIMAL(38,10), d JSON))",
        ["MAP {{'a': 1, 'b': 'x'}: {'c': 1.5, 'd': '{}'}}"],
    ),
    "ls": ("STRUCT(a INT, u UTINYINT)[]", ["[{'a': 1, 'u': 255}, NULL, {'a': NULL, 'u': NULL}]"]),
}


def run(place: Place, *statements: str, inline: int = 0) -> None:
    """Run statements, each a snapshot of its own, and let go of the catalog."""
    with duck.attach(place.uri, place.data_path, inline=inline) as connection:
        for statement in statements:
            connection.execute(statement)


def test_all_types(each_place: Place, each_lake: Lake) -> None:
    columns = {**FLAT, **NESTED}
    listed = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
    longest = max(len(values) for _, values in columns.values())
    rows = [
        ", ".join(values[at] if at < len(values) else "NULL" for _, values in columns.values())
        for at in range(longest + 1)
    ]
    inserts = ", ".join(f"({row})" for row in rows)
    run(each_place, f"CREATE TABLE t({listed})", f"INSERT INTO t VALUES {inserts}")
    history = assert_same(each_lake, each_place)
    assert len(history[2]["main.t"].rows) == longest + 1


SCRIPTS = {
    "deletes and updates": [
        "CREATE TABLE t AS SELECT range AS i, range % 3 AS g FROM range(20)",
        "DELETE FROM t WHERE i = 1",
        "DELETE FROM t WHERE i IN (3, 4)",
        "UPDATE t SET g = 10 WHERE i < 6",
        "UPDATE t SET g = g + 1",
        "DELETE FROM t WHERE i = 7",
        "DELETE FROM t WHERE i = 8",
        "DELETE FROM t",
        "INSERT INTO t VALUES (1, 1)",
    ],
    "one file and many deletes": [
        "CREATE TABLE t AS SELECT range AS i FROM range(10)",
        *(f"DELETE FROM t WHERE i = {i}" for i in range(0, 10, 2)),
        "TRUNCATE t",
    ],
    "columns change": [
        "CREATE TABLE t(a INT, b VARCHAR)",
        "INSERT INTO t VALUES (1, 'x'), (2, NULL)",
        "ALTER TABLE t ADD COLUMN c INT DEFAULT 7",
        "INSERT INTO t VALUES (3, 'z', 8), (4, 'z', NULL)",
        "ALTER TABLE t ADD COLUMN d VARCHAR DEFAULT 'it''s'",
        "ALTER TABLE t ADD COLUMN e DATE DEFAULT '2013-01-02'",
        "ALTER TABLE t RENAME COLUMN b TO bb",
        "ALTER TABLE t DROP COLUMN a",
        "ALTER TABLE t ADD COLUMN a VARCHAR",
        "ALTER TABLE t ADD COLUMN b DOUBLE DEFAULT 1.5",
        "INSERT INTO t VALUES ('n', 1, 'd', '2000-01-01', 'a', 2.5)",
        "UPDATE t SET a = 'u' WHERE c = 7",
        "ALTER TABLE t ALTER COLUMN c SET DATA TYPE BIGINT",
        "INSERT INTO t(bb, c) VALUES ('w', 9000000000)",
        "ALTER TABLE t ALTER COLUMN c SET DEFAULT 99",
        "INSERT INTO t(bb) VALUES ('dflt')",
        "ALTER TABLE t RENAME TO t2",
    ],
    "types widen": [
        "CREATE TABLE t(a TINYINT, b UTINYINT, c FLOAT, d INT, e USMALLINT)",
        "INSERT INTO t VALUES (-1, 255, 1.5, 1, 65535), (NULL, NULL, NULL, NULL, NULL)",
        "ALTER TABLE t ALTER a SET DATA TYPE SMALLINT",
        "ALTER TABLE t ALTER b SET DATA TYPE USMALLINT",
        "ALTER TABLE t ALTER c SET DATA TYPE DOUBLE",
        "ALTER TABLE t ALTER d SET DATA TYPE BIGINT",
        "ALTER TABLE t ALTER e SET DATA TYPE UINTEGER",
        "ALTER TABLE t ALTER a SET DATA TYPE BIGINT",
        "INSERT INTO t VALUES (9000000000, 65535, 1e300, -1, 4294967295)",
    ],
    "struct fields change": [
        "CREATE TABLE t(s STRUCT(a INT, b VARCHAR), l STRUCT(x INT)[], m MAP(INT, STRUCT(x INT)))",
        "INSERT INTO t VALUES ({'a': 1, 'b': 'x'}, [{'x': 1}], MAP {1: {'x': 1}})",
        "INSERT INTO t VALUES (NULL, NULL, NULL)",
        "ALTER TABLE t ADD COLUMN s.c DOUBLE",
        "ALTER TABLE t RENAME COLUMN s.a TO z",
        "ALTER TABLE t DROP COLUMN s.b",
        "ALTER TABLE t ADD COLUMN s.b INT",
        "ALTER TABLE t ALTER s SET DATA TYPE STRUCT(z BIGINT, c DOUBLE, b INT)",
        "INSERT INTO t VALUES ({'z': 9000000000, 'c': 1.5, 'b': 3}, [{'x': 2}], MAP {2: {'x': 2}})",
        "ALTER TABLE t ADD COLUMN l.element.y INT",
        "INSERT INTO t VALUES (NULL, [{'x': 3, 'y': 4}, NULL], NULL)",
    ],
    "partitions": [
        "CREATE TABLE t(k INT, p VARCHAR, ts TIMESTAMP)",
        "ALTER TABLE t SET PARTITIONED BY (p)",
        "INSERT INTO t VALUES (1, 'a/b %2F=''', '2013-01-02'), (2, NULL, NULL), (3, '', NULL), "
        "(4, 'ü +&', '2013-01-02 03:04:05')",
        "ALTER TABLE t SET PARTITIONED BY (year(ts), month(ts), bucket(4, p))",
        "INSERT INTO t VALUES (5, 'a/b %2F=''', '2013-01-02'), (6, NULL, NULL)",
        "DELETE FROM t WHERE k IN (2, 5)",
        "UPDATE t SET p = 'moved' WHERE k = 1",
        "ALTER TABLE t RESET PARTITIONED BY",
        "INSERT INTO t VALUES (7, 'z', NULL)",
    ],
    "names": [
        'CREATE SCHEMA "odd ""s"" / %"',
        'CREATE TABLE "odd ""s"" / %"."T a.b"("a b" INT, "C.d" INT, "e`f" INT, "É" INT)',
        'INSERT INTO "odd ""s"" / %"."T a.b" VALUES (1, 2, 3, 4)',
        'UPDATE "odd ""s"" / %"."T a.b" SET "C.d" = 5',
        'CREATE TABLE "Üt"(_metadata INT, "select" INT)',
        'INSERT INTO "Üt" VALUES (1, 2), (3, 4)',
        'DELETE FROM "Üt" WHERE "select" = 2',
    ],
    "tables come and go": [
        "CREATE TABLE t AS SELECT 1 AS a",
        "DROP TABLE t",
        "CREATE TABLE t AS SELECT 'x' AS b",
        "CREATE OR REPLACE TABLE t AS SELECT 2.5 AS c",
        "CREATE VIEW w AS SELECT * FROM t",
        "CREATE TABLE empty(a INT)",
    ],
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_scripts(place: Place, lake: Lake, script: list[str]) -> None:
    run(place, *script)
    assert_same(lake, place)


def test_rewritten_files(place: Place, lake: Lake) -> None:
    run(
        place,
        "CREATE TABLE t AS SELECT range AS i FROM range(10)",
        "DELETE FROM t WHERE i < 8",
        "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)",
        "UPDATE t SET i = 100 WHERE i = 9",
    )
    assert_same(lake, place)


def test_merged_files(place: Place, lake: Lake) -> None:
    inserts = [f"INSERT INTO t VALUES ({i})" for i in range(4)]
    run(place, "CREATE TABLE t(i INT)", *inserts, "CALL ducklake_merge_adjacent_files('lk')")
    run(place, "DELETE FROM t WHERE i = 2", "INSERT INTO t VALUES (9)")
    assert_same(lake, place)


def test_nanoseconds_are_an_error(place: Place, lake: Lake) -> None:
    """It depends on the values, so Spark raises it while it reads."""
    run(place, "CREATE TABLE t AS SELECT '2013-01-02 03:04:05.123456789'::TIMESTAMP_NS AS c")
    with pytest.raises(Exception, match="column c holds nanoseconds"):
        of_spark(lake.table("t").to_df())


def test_flushed_rows(place: Place, lake: Lake) -> None:
    """Once flushed they are files like others, which their older snapshots see as well."""
    run(place, "CREATE TABLE t(i INT)", "INSERT INTO t VALUES (1), (2)", inline=10)
    run(place, "DELETE FROM t WHERE i = 1", inline=10)
    run(place, "CALL ducklake_flush_inlined_data('lk')")
    run(place, "INSERT INTO t VALUES (3)")
    assert_same(lake, place)


def test_flushed_rows_of_several_snapshots(place: Place, lake: Lake) -> None:
    inserts = [f"INSERT INTO t VALUES ({i})" for i in range(3)]
    run(place, "CREATE TABLE t(i INT)", *inserts, "DELETE FROM t WHERE i = 1", inline=10)
    run(place, "CALL ducklake_flush_inlined_data('lk')")
    assert_same(lake, place)
