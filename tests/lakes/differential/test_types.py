"""Every type of the format, and what columns were before they were changed, as DuckDB has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.errors import PenstockError, UnsupportedFeature
from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential.typed import differences

pytestmark = pytest.mark.spark

# Values of each type that its files hold; intervals there have no signs and milliseconds only.
VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128"],
    "UTINYINT": ["255"],
    "SMALLINT": ["-32768"],
    "USMALLINT": ["65535"],
    "INTEGER": ["-2147483648"],
    "UINTEGER": ["4294967295"],
    "BIGINT": ["-9223372036854775808"],
    "UBIGINT": ["18446744073709551615"],
    "HUGEINT": ["12345678901234567890123", "-9007199254740993", "-1", "0"],
    "UHUGEINT": ["12345678901234567890123456789012345678", "7"],
    "FLOAT": ["'nan'", "'-inf'", "-0.0", "1.1"],
    "DOUBLE": ["'nan'", "'inf'", "1e300"],
    "DECIMAL(4,1)": ["-123.4"],
    "DECIMAL(38,10)": ["1234567890123456789012345678.0123456789"],
    "DATE": ["'infinity'", "'-infinity'", "'0044-03-15 (BC)'", "'1582-10-10'", "'12345-01-01'"],
    "TIME": ["'00:00:00'", "'23:59:59.999999'", "'24:00:00'", "'01:02:03.5'"],
    "TIMETZ": ["'00:00:00+00'", "'23:59:59.999999+05:30'"],
    "TIMESTAMP": [
        "'infinity'",
        "'-infinity'",
        "'0044-03-15 (BC) 01:02:03'",
        "'1582-10-04 12:00:00'",
    ],
    "TIMESTAMP_S": ["'0044-03-15 (BC) 01:02:03'", "'2020-01-01 00:00:01'"],
    "TIMESTAMP_MS": ["'infinity'", "'0044-03-15 (BC) 01:02:03.123'", "'2020-01-01 00:00:01.5'"],
    "TIMESTAMP_NS": ["'infinity'", "'1677-09-22 00:00:00'", "'2020-01-01 00:00:01.123456'"],
    "TIMESTAMPTZ": ["'infinity'", "'0044-03-15 (BC) 01:02:03+00'", "'2020-01-01 00:00:01.5+02'"],
    "INTERVAL": ["'1 year 2 months 3 days 4.567 seconds'", "'100000 hours'"],
    "VARCHAR": ["'a' || chr(0) || 'b'", "''"],
    "BLOB": [r"'\xAA\x00'"],
    "UUID": ["'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "JSON": ["'{\"a\": [1, 2.50, null]}'", "'null'"],
    "GEOMETRY": ["'POINT(1 2)'", "'LINESTRING Z (0 0 1, 1 1 2)'"],
}


def run(place: Place, *statements: str) -> int:
    """The last snapshot after these."""
    with duck.attach(place.uri, place.data_path) as connection:
        for statement in statements:
            connection.execute(statement)
        return int(
            connection.execute("SELECT max(snapshot_id) FROM lk.snapshots()").fetchall()[0][0]
        )


def test_every_type_alone_and_inside_others(place: Place, spark: SparkSession) -> None:
    """One table of a row for each value; what a type has no more values for is NULL."""
    names = {kind: f"c{at}" for at, kind in enumerate(VALUES)}
    columns = ", ".join(
        f"{name} {kind}, {name}_s STRUCT(l {kind}[], m MAP(INT, {kind}))"
        for kind, name in names.items()
    )
    rows = []
    for at in range(max(map(len, VALUES.values())) + 1):
        parts = []
        for kind, values in VALUES.items():
            value = f"({values[at]})::{kind}" if at < len(values) else f"NULL::{kind}"
            parts.append(f"{value}, {{'l': [{value}, NULL], 'm': MAP {{1: {value}}}}}")
        rows.append(f"SELECT {', '.join(parts)}")
    last = run(place, f"CREATE TABLE t({columns})", f"INSERT INTO t {' UNION ALL '.join(rows)}")
    assert differences(place, spark, [last]) == []


VARIANTS = [
    *("1", "'abc'", "{'a': 1, 'b': [1, NULL]}", "NULL", "DATE '2020-01-01'", "1.5::DECIMAL(4,2)"),
    *("TIMESTAMP '2020-01-01 01:02:03.5'", "true", "2.5::DOUBLE", "[1, NULL]", "MAP {'a': 1}"),
]


def test_variants(place: Place, spark: SparkSession) -> None:
    """Shredded as DuckDB shreds them: each file alone, and all kinds in one."""
    each = [f"INSERT INTO t VALUES ({at}, ({v})::VARIANT)" for at, v in enumerate(VARIANTS)]
    listed = ", ".join(f"({at}, ({v})::VARIANT)" for at, v in enumerate(VARIANTS))
    last = run(place, "CREATE TABLE t(k INT, v VARIANT)", *each, f"INSERT INTO t VALUES {listed}")
    assert differences(place, spark, [last]) == []


POINT = "X'0101000000000000000000F03F0000000000000040'"
MERGED = f"SELECT 2 AS k, parse_json('[2]') AS v, st_geomfromwkb({POINT}) AS g"
WRITTEN = [
    "CREATE TABLE t(k INT, v VARIANT, g GEOMETRY, s STRUCT(a INT, g GEOMETRY[]))",
    "INSERT INTO t(k, v) VALUES (1, 'text'), (2, 1.5), (3, DEFAULT), (6, 7)",
    f"INSERT INTO t SELECT 4, named_struct('a', array(1, NULL)), {POINT}, "
    f"named_struct('g', array(st_geomfromwkb({POINT}), NULL), 'a', 1)",
    f"UPDATE t SET g = st_geomfromwkb({POINT}), v = parse_json('true') WHERE k = 1",
    "DELETE FROM t WHERE k = 3",
    f"MERGE INTO t USING ({MERGED}) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v, g = s.g",
]


def test_variants_and_geometries_are_written(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    for statement in WRITTEN:
        lake.sql(statement)
    both = spark.sql(f"{MERGED} UNION ALL SELECT 5, parse_json('5'), NULL")
    for limits in (Limits(), Limits(compared_rows=-1)):  # of a small target and of a large one
        lake.limits = limits
        assert lake.table("t").merge(both, "k").staged.rows_written == 2
    lake.table("t").append(both)
    lake.sql("CREATE TABLE u AS SELECT k, v, st_geomfromwkb(g) AS g FROM t")
    place = Place(f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}", f"{tmp_path}/data")
    last = lake.snapshots()[-1].id
    assert differences(place, spark, [3, 6, last - 2, last]) == []
    with duck.attach(place.uri) as connection:
        kinds = connection.execute("SELECT DISTINCT typeof(v), typeof(g) FROM u").fetchall()
        assert kinds == [("VARIANT", "GEOMETRY")]
        near = connection.execute("SELECT count(*) FROM t WHERE g && 'POINT(1 2)'")
        assert near.fetchall() == [(4,)]


def test_unchanged_geometries_make_no_snapshot(lake: Lake, spark: SparkSession) -> None:
    df = spark.sql(f"SELECT 1 AS k, st_geomfromwkb({POINT}) AS g")
    lake.table("t").replace(df)
    assert lake.table("t").replace(df).staged.unchanged
    assert lake.table("t").merge(df, "k").staged.unchanged
    assert [row.column_type for row in lake.sql("DESCRIBE t").collect()] == ["INTEGER", "GEOMETRY"]


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("'POINT(1 2)'", r"st_geomfromwkb\(\.\.\.\)"),
        (f"st_setsrid(st_geomfromwkb({POINT}), 4326)", r"st_setsrid\(g, 0\)"),
        ("X'0102'", r"st_geomfromwkb\(X'0101"),
    ],
)
def test_geometries_that_are_not_written(lake: Lake, value: str, hint: str) -> None:
    lake.sql("CREATE TABLE t(g GEOMETRY)")
    with pytest.raises(PenstockError, match=hint):
        lake.sql(f"INSERT INTO t SELECT {value}")


def test_a_whole_number_too_large_for_spark_is_an_error(place: Place, spark: SparkSession) -> None:
    run(place, "CREATE TABLE t AS SELECT 3e38::UHUGEINT AS c")
    with (
        Lake.attach(place.uri, spark=spark) as lake,
        pytest.raises(Exception, match="column c holds"),
    ):
        lake.table("t").to_df().collect()


PROMOTIONS = [
    ("BOOLEAN", "HUGEINT", "true"),
    ("TINYINT", "DOUBLE", "-5"),
    ("UTINYINT", "SMALLINT", "255"),
    ("SMALLINT", "DECIMAL(9,3)", "-32768"),
    ("USMALLINT", "UBIGINT", "65535"),
    ("INTEGER", "BIGINT", "2147483647"),
    ("INTEGER", "FLOAT", "16777217"),
    ("UINTEGER", "UBIGINT", "4294967295"),
    ("UINTEGER", "BIGINT", "4294967295"),
    ("BIGINT", "DECIMAL(38,1)", "9223372036854775807"),
    ("BIGINT", "DOUBLE", "9223372036854775807"),
    ("UBIGINT", "UHUGEINT", "18446744073709551615"),
    ("UBIGINT", "FLOAT", "18446744073709551615"),
    ("HUGEINT", "DOUBLE", "12345678901234567890123"),
    ("HUGEINT", "FLOAT", "12345678901234567890123"),
    ("FLOAT", "DOUBLE", "1.1"),
    ("DECIMAL(4,1)", "DECIMAL(9,3)", "123.4"),
    ("DECIMAL(4,1)", "DECIMAL(38,1)", "123.4"),
    ("DECIMAL(9,3)", "DOUBLE", "123456.789"),
    ("DATE", "TIMESTAMP", "'infinity'"),
    ("DATE", "TIMESTAMPTZ", "'0044-03-15 (BC)'"),
    ("TIMESTAMP", "TIMESTAMPTZ", "'-infinity'"),
    ("TIMESTAMP", "TIMESTAMP_NS", "'2020-01-01 01:02:03.5'"),
    ("TIMESTAMP_S", "TIMESTAMP_MS", "'2020-01-01 01:02:03'"),
    ("TIMESTAMP_MS", "TIMESTAMP", "'infinity'"),
]
OF_ONE_COLUMN = [
    *(("BOOLEAN", "JSON", "true"), ("BIGINT", "JSON", "-7"), ("DECIMAL(4,1)", "JSON", "-0.1")),
    *(("VARCHAR", "JSON", "'[1,  2]'"), ("INTEGER", "VARIANT", "5"), ("VARCHAR", "VARIANT", "'x'")),
]


def test_promotions(place: Place, spark: SparkSession) -> None:
    """Files from before and after, merged too; alone, in lists and in structs."""
    columns: list[str] = []
    values: list[str] = []
    alters: list[str] = []
    for at, (old, new, value) in enumerate(PROMOTIONS):
        typed = f"({value})::{old}"
        columns += [f"c{at} {old}", f"l{at} {old}[]", f"s{at} STRUCT(f {old})"]
        values += [typed, f"[{typed}, NULL]", f"{{'f': {typed}}}"]
        alters += [f"ALTER TABLE t ALTER c{at} SET TYPE {new}"]
        alters += [f"ALTER TABLE t ALTER l{at} SET TYPE {new}[]"]
        alters += [f"ALTER TABLE t ALTER s{at} SET TYPE STRUCT(f {new})"]
    for at, (old, new, value) in enumerate(OF_ONE_COLUMN):
        columns.append(f"o{at} {old}")
        values.append(f"({value})::{old}")
        alters.append(f"ALTER TABLE t ALTER o{at} SET TYPE {new}")
    insert = f"INSERT INTO t SELECT {', '.join(values)}"
    before = run(place, f"CREATE TABLE t({', '.join(columns)})", insert)
    after = run(place, *alters, insert)
    assert differences(place, spark, [before, after]) == []


def test_a_promotion_that_is_not_read_names_itself(place: Place, spark: SparkSession) -> None:
    run(
        place,
        "CREATE TABLE t AS SELECT TIME '01:02:03' AS c",
        "ALTER TABLE t ALTER c SET TYPE JSON",
    )
    with Lake.attach(place.uri, spark=spark) as lake:
        assert lake.table("t").to_df(version=1).collect() == [("01:02:03",)]
        with pytest.raises(
            UnsupportedFeature, match="column 'c' is json, and a file of it has time"
        ):
            lake.table("t").to_df()


DEFAULTS = {
    "BOOLEAN": "'t'",
    "TINYINT": "-5",
    "UBIGINT": "18446744073709551615",
    "HUGEINT": "12345678901234567890123",
    "FLOAT": "1.1",
    "DOUBLE": "'-inf'",
    "DECIMAL(10,2)": "1.5",
    "DATE": "'0044-03-15 (BC)'",
    "TIME": "'01:02:03.5'",
    "TIMETZ": "'01:02:03.5+00'",
    "TIMESTAMP": "'-infinity'",
    "TIMESTAMP_S": "'2020-01-01 01:02:03'",
    "TIMESTAMP_MS": "'2020-01-01 01:02:03.5'",
    "TIMESTAMP_NS": "'2020-01-01 01:02:03.123456'",
    "TIMESTAMPTZ": "'2020-01-01 01:02:03.5+02'",
    "INTERVAL": "'-1 month -3 days -04:05:06.5'",
    "VARCHAR": "'it''s NULL'",
    "BLOB": r"'\xAAb\x00'",
    "UUID": "'00000000-0000-0000-0000-000000000001'",
    "JSON": "'{\"a\": 1}'",
}


def test_defaults_of_columns_that_older_files_lack(place: Place, spark: SparkSession) -> None:
    """At the top, in structs, in structs of lists and of maps; and none before they were added."""
    adds = [
        f"ALTER TABLE t ADD COLUMN {where}n{at} {kind} DEFAULT {value}"
        for at, (kind, value) in enumerate(DEFAULTS.items())
        for where in ("", "s.", "l.element.", "m.value.")
    ]
    middle = run(
        place,
        "CREATE TABLE t(k INT, s STRUCT(a INT), l STRUCT(a INT)[], m MAP(INT, STRUCT(a INT)))",
        "INSERT INTO t VALUES (1, {'a': 1}, [{'a': 2}, NULL], MAP {1: {'a': 3}})",
        "INSERT INTO t(k) VALUES (2)",
        *adds[:6],
    )
    last = run(
        place, *adds[6:], "ALTER TABLE t RENAME n1 TO renamed", "ALTER TABLE t DROP COLUMN n2"
    )
    assert differences(place, spark, [3, middle, last]) == []
