"""What DuckDB writes, we read; what we do not read yet, we refuse by name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyarrow import parquet as pq
from sqlalchemy import text

from penstock.errors import CatalogCorrupt, UnsupportedFeature
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import ColumnStats, Partial, PartitionField, Table
from penstock.lakes.format.schema import type_text
from penstock.lakes.format.statistics import from_footer
from penstock.lakes.format.types import to_spark_schema
from tests import duck
from tests.lakes.catalog.conftest import Place

ALL_TYPES = """CREATE TABLE t(b BOOLEAN, i8 TINYINT, u8 UTINYINT, i16 SMALLINT, u16 USMALLINT,
  i INT, u32 UINTEGER, i64 BIGINT, ul UBIGINT, f FLOAT, d DOUBLE, d4 DECIMAL(4,1), d9 DECIMAL(9,2),
  d18 DECIMAL(18,3), d38 DECIMAL(38,5), dt DATE, ts TIMESTAMP, tss TIMESTAMP_S, tsms TIMESTAMP_MS,
  tsn TIMESTAMP_NS, tz TIMESTAMPTZ, v VARCHAR, bl BLOB, j JSON, u UUID, l INT[],
  s STRUCT(a INT, b VARCHAR), m MAP(VARCHAR, INT), deep STRUCT(x STRUCT(y DOUBLE[])[]))"""
LOW = """(false, -128, 0, -5, 0, -2147483648, 0,
  -9223372036854775808, 0, -0.5, -1e300, -999.9,
  -1.10, -5,
  -12345678901234567890.5, '1913-01-02', '1913-01-02 03:04:05.000001', '1913-01-02 03:04:05',
  '1913-01-02 03:04:05.12', '1970-01-01 00:00:00.000000001', '1913-01-02 03:04:05.1+00', 'a''b',
  'zz', '{"a":1}', '00112233-4455-6677-8899-aabbccddeeff', [1, NULL], {'a': 1, 'b': NULL},
  MAP {'k': 1}, {'x': [{'y': [1.5, 2]}]})"""
HIGH = """(true, 127, 255, 5, 65535, 2147483647, 4294967295, 9223372036854775807,
  18446744073709551615, 1.1, 2.5, 999.9, 12.30, 5, 12345678901234567890.5, '2113-01-02',
  '2113-01-02 03:04:05', '2013-01-02 03:04:06', '2013-01-02 03:04:05', '2013-01-02 03:04:05.1',
  '2013-01-02 03:04:05+00', 'é', '\\xAA\\x01', '{}', 'f0112233-4455-6677-8899-aabbccddeeff', [],
  NULL, MAP {}, NULL)"""


@pytest.fixture
def table(place: Place) -> Table:
    with duck.attach(place.uri, place.data_path) as theirs:
        theirs.execute(ALL_TYPES)
        theirs.execute(f"INSERT INTO t VALUES {LOW}, {HIGH}")
    with place.open() as lake:
        return lake.table("main", "t", 2)


def stored_stats(lake: Catalog, table: Table) -> list[ColumnStats]:
    from penstock.lakes.catalog.database import metadata as t

    query = t.file_column_stats.select().order_by("column_id")
    with lake.reading() as connection:
        return [
            ColumnStats(
                *(row.column_id, row.column_size_bytes, row.value_count, row.null_count),
                *(row.min_value, row.max_value, row.contains_nan),
            )
            for row in connection.execute(query)
        ]


def test_all_types(table: Table) -> None:
    assert [type_text(column) for column in table.schema.columns] == [
        *("boolean", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float32", "float64", "decimal(4,1)", "decimal(9,2)", "decimal(18,3)"),
        *("decimal(38,5)", "date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"),
        *("timestamptz", "varchar", "blob", "json", "uuid", "list<int32>"),
        *("struct<a: int32, b: varchar>", "map<varchar, int32>"),
        "struct<x: list<struct<y: list<float64>>>>",
    ]
    assert len(to_spark_schema(table.schema)["fields"]) == 29


def test_our_statistics_of_their_file_are_theirs(place: Place, table: Table) -> None:
    with place.open() as lake:
        (file,) = lake.files(table, 2).files
        theirs = stored_stats(lake, table)
    ours = from_footer(pq.read_metadata(file.path), table.schema, frozenset())
    for mine, known in zip(ours, theirs, strict=True):
        assert mine.column_id == known.column_id
        assert (mine.min_value, mine.max_value) == (known.min_value, known.max_value), known
        assert (mine.value_count, mine.null_count) == (known.value_count, known.null_count)
        assert mine.contains_nan == known.contains_nan


def prepare(place: Place, statements: Sequence[str], inline: int = 0) -> None:
    with duck.attach(place.uri, place.data_path, inline=inline) as theirs:
        for statement in statements:
            theirs.execute(statement)


def files_at(place: Place, version: int | None = None) -> int:
    with place.open() as lake:
        at = lake.latest().id if version is None else version
        return len(lake.files(lake.table("main", "t", at), at).files)


def test_inlined_rows_come_with_the_files(place: Place) -> None:
    prepare(place, ["CREATE TABLE t (i INT)", "INSERT INTO t VALUES (1)"], inline=10)
    assert inlined_at(place, 1) == (0, 0)
    assert inlined_at(place) == (1, 0)
    prepare(place, ["CALL ducklake_flush_inlined_data('lk')"])
    assert (inlined_at(place), files_at(place)) == ((0, 0), 1)


def test_inlined_deletes_come_with_the_files(place: Place) -> None:
    create = "CREATE TABLE t AS SELECT range AS i FROM range(100)"
    prepare(place, [create, "DELETE FROM t WHERE i = 1"], inline=10)
    assert [inlined_at(place, version) for version in (1, 2)] == [(0, 0), (0, 1)]


def inlined_at(place: Place, version: int | None = None) -> tuple[int, int]:
    """Rows and deletes that the catalog itself holds."""
    with place.open() as lake:
        at = lake.latest().id if version is None else version
        listed = lake.files(lake.table("main", "t", at), at)
    rows = 0 if listed.inlined is None else listed.inlined.count
    deletes = 0 if listed.inlined_deletes is None else listed.inlined_deletes.rows.num_rows
    return rows, deletes


def test_merged_files_know_their_last_snapshot(place: Place) -> None:
    inserts = [f"INSERT INTO t VALUES ({i})" for i in range(3)]
    prepare(place, ["CREATE TABLE t (i INT)", *inserts, "CALL ducklake_merge_adjacent_files('lk')"])
    with place.open() as lake:
        listed = [lake.files(lake.table("main", "t", 2), version).files for version in (2, 5)]
    assert [file.partial for files in listed for file in files] == [Partial(4)] * 2


def test_more_rows_deleted_than_a_file_has(place: Place) -> None:
    create = "CREATE TABLE t AS SELECT range AS i FROM range(100)"
    prepare(place, [create, "DELETE FROM t WHERE i = 1"])
    change(place, "UPDATE ducklake_delete_file SET delete_count = 101")
    with pytest.raises(CatalogCorrupt, match="has 100 rows, of which 101 are deleted"):
        files_at(place)


def test_an_unknown_kind_of_delete_file_is_named(place: Place) -> None:
    create = "CREATE TABLE t AS SELECT range AS i FROM range(100)"
    prepare(place, [create, "DELETE FROM t WHERE i = 1"])
    change(place, "UPDATE ducklake_delete_file SET format = 'avro'")
    with pytest.raises(UnsupportedFeature, match=r"main\.t has delete files that are neither"):
        files_at(place)


def change(place: Place, statement: str) -> None:
    with place.open() as lake, lake.writing() as connection:
        connection.execute(text(statement))


def test_partition_transforms_are_read(place: Place) -> None:
    prepare(
        place,
        [
            "CREATE TABLE t (i INT, ts TIMESTAMP)",
            "ALTER TABLE t SET PARTITIONED BY (year(ts), bucket(4, i))",
            "INSERT INTO t VALUES (1, '2013-01-02')",
        ],
    )
    with place.open() as lake:
        table = lake.table("main", "t", 3)
        assert table.partition_by == (
            *(PartitionField("ts", "year"), PartitionField("i", "bucket(4)")),
        )
        (file,) = lake.files(table, 3).files
        assert file.partition_values is not None
        assert file.partition_values[0] == "2013"


def test_encrypted_lakes_are_refused(place: Place) -> None:
    prepare(place, ["CREATE TABLE t AS SELECT 1 AS i"])
    change(place, "UPDATE ducklake_data_file SET encryption_key = 'x'")
    with pytest.raises(UnsupportedFeature, match="encrypted files"):
        files_at(place)


def test_options_by_scope(place: Place) -> None:
    prepare(
        place,
        [
            "CREATE TABLE t (i INT)",
            "CREATE TABLE u (i INT)",
            "CALL lk.set_option('parquet_compression', 'zstd')",
            "CALL lk.set_option('parquet_compression', 'gzip', table_name => 't')",
        ],
    )
    with place.open() as lake:
        at = lake.latest().id
        t, u = (lake.table("main", name, at) for name in "tu")
        asked = [lake.option("parquet_compression", x) for x in (t, u, None)]
    assert asked == ["gzip", "zstd", "zstd"]


def test_defaults_views_and_odd_names(place: Place) -> None:
    prepare(
        place,
        [
            "CREATE TABLE \"Odd \"\"t\" (i INT DEFAULT 3, s VARCHAR DEFAULT 'x''y', "
            "t TIMESTAMP DEFAULT now())",
            "CREATE VIEW v AS SELECT 1 AS a",
        ],
    )
    with place.open() as lake:
        at = lake.latest().id
        (table,) = lake.tables(at)
        defaults = [(c.default, c.default_kind) for c in table.schema.columns]
        assert lake.find_table("main", 'ODD "T', at) == table
    assert defaults == [("3", "literal"), ("x'y", "literal"), ("now()", "expression")]
