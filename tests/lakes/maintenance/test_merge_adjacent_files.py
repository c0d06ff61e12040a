"""Merging: what becomes of the files, and what keeps them apart.

Tests ``lakes/maintenance/writing.py``, ``lakes/catalog/files/maintenance_rows.py``.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from penstock.errors import ArgumentError, TableNotFound
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.maintenance.scope import Compacted
from penstock.lakes.maintenance.writing import Resources
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import maintain, on_disk, play, seen

NESTED = (
    "CREATE TABLE t(i INT, s VARCHAR, f DOUBLE, u UUID, q INT[], m MAP(VARCHAR, INT), h TIME, "
    "r STRUCT(x INT, y STRUCT(z VARCHAR)[]), g JSON, d DECIMAL(9, 2), n HUGEINT, ts TIMESTAMP_NS, "
    "b BLOB, tz TIMESTAMPTZ, us UINTEGER)"
)


def nested_rows(first: int) -> str:
    return (
        "INSERT INTO t SELECT i, 'a' || i, i * 1.5, uuid(), [i, NULL], MAP {'k': i::INT}, "
        "'10:00:00', {'x': i, 'y': [{'z': 'q' || i}]}, '{\"a\": 1}', i / 3, i * 100, "
        "TIMESTAMP '2026-01-01', 'ab', TIMESTAMPTZ '2026-01-01 00:00:00+00', i "
        f"FROM range({first}, {first + 3}) x(i)"
    )


def _inserts(count: int) -> list[str]:
    return ["CREATE TABLE t(i INT)", *(f"INSERT INTO t VALUES ({at})" for at in range(count))]


def test_types_nulls_and_updates(each_place: Place) -> None:
    odd = ["INSERT INTO t(i, f) VALUES (100, 'nan')", "UPDATE t SET r = NULL, q = NULL WHERE i > 4"]
    play(each_place, [NESTED, nested_rows(0), nested_rows(3), *odd, nested_rows(6)])
    before = seen(each_place)
    last = max(key for key in before if isinstance(key, int))
    assert maintain(each_place, "merge_adjacent_files") == [Compacted("main", "t", 3, 1)]
    assert seen(each_place, last) == before


def test_the_rows_that_duckdb_leaves_in_the_catalog(place: Place) -> None:
    play(place, _inserts(4))
    assert maintain(place, "merge_adjacent_files", dry_run=True) == [Compacted("main", "t", 4, 1)]
    assert maintain(place, "merge_adjacent_files") == [Compacted("main", "t", 4, 1)]
    with Catalog.open(place.uri) as catalog, catalog.reading() as connection:
        files = connection.exec_driver_sql(
            "SELECT begin_snapshot, partial_max, row_id_start, record_count FROM ducklake_data_file"
        ).all()
        waiting = connection.exec_driver_sql(
            "SELECT count(*) FROM ducklake_files_scheduled_for_deletion"
        ).scalar()
        assert catalog.latest().changes == "merge_adjacent:1"
    assert files == [(2, 5, 0, 4)]
    assert waiting == 4
    assert maintain(place, "merge_adjacent_files") == []


def test_row_ids_of_updated_rows_stay(place: Place) -> None:
    play(place, [*_inserts(3), "UPDATE t SET i = i + 10 WHERE i > 0", "INSERT INTO t VALUES (7)"])
    before = duck.rows(place.uri, "SELECT rowid, i FROM t")
    maintain(place, "merge_adjacent_files")
    assert duck.rows(place.uri, "SELECT rowid, i FROM t") == before
    play(place, ["INSERT INTO t VALUES (8)"])
    maintain(place, "merge_adjacent_files")
    assert (5, 7) in duck.rows(place.uri, "SELECT rowid, i FROM t")


def test_row_ids_of_files_without_field_ids_stay(place: Place) -> None:
    """As updates of tables with lists leave them: their column is called what its id would be."""
    file = f"{place.data_path}/main/t/own.parquet"
    play(place, ["CREATE TABLE t(i BIGINT, s VARCHAR)", "INSERT INTO t VALUES (7, 'x')"])
    ids = pa.field("2147483540", pa.int64(), metadata={"PARQUET:field_id": "2147483540"})
    schema = pa.schema([pa.field("i", pa.int64()), pa.field("s", pa.string()), ids])
    rows = pa.table([[0, 1, 2], ["s0", "s1", "s2"], [40, 41, 42]], schema=schema)
    pq.write_table(rows, file)
    call = f"CALL ducklake_add_data_files('lk', 't', '{file}', ignore_extra_columns => true)"
    play(place, [call])
    before = duck.rows(place.uri, "SELECT rowid, * FROM t")
    assert before == [(0, 7, "x"), (40, 0, "s0"), (41, 1, "s1"), (42, 2, "s2")]
    assert maintain(place, "merge_adjacent_files")
    assert duck.rows(place.uri, "SELECT rowid, * FROM t") == before


def test_times_of_added_files_that_are_finer_than_their_column(place: Place) -> None:
    file = f"{place.data_path}/main/t/fine.parquet"
    times = "'1969-12-31 23:59:59.9995', '2000-01-01 00:00:00.500499', 'infinity', NULL"
    rows = f"SELECT t::TIMESTAMP AS s, t::TIMESTAMP AS ms FROM unnest([{times}]) x(t)"
    play(
        place,
        [
            "CREATE TABLE t(s TIMESTAMP_S, ms TIMESTAMP_MS)",
            "INSERT INTO t VALUES ('2013-01-01 00:00:01', '2013-01-01 00:00:00.001')",
            f"COPY ({rows}) TO '{file}'",
            f"CALL ducklake_add_data_files('lk', 't', '{file}')",
        ],
    )
    query = "SELECT s::VARCHAR, ms::VARCHAR FROM t ORDER BY rowid"
    before = duck.rows(place.uri, query, order=False)
    assert maintain(place, "merge_adjacent_files")
    assert duck.rows(place.uri, query, order=False) == before


def test_columns_partitions_and_deletes_keep_files_apart(place: Place) -> None:
    more = ["ALTER TABLE t ADD COLUMN p VARCHAR", "INSERT INTO t VALUES (5, 'a'), (6, 'b')"]
    parts = [
        "ALTER TABLE t SET PARTITIONED BY (p)",
        *["INSERT INTO t VALUES (7, 'a'), (8, 'b')"] * 2,
    ]
    play(place, [*_inserts(3), *more, *parts, "DELETE FROM t WHERE i = 8 AND rowid = 6"])
    merged = maintain(place, "merge_adjacent_files", table="t")
    assert [row.files_processed for row in merged] == [3, 2]
    folders = {path.rsplit("/", 2)[1] for path in on_disk(place) if "/penstock-" in path}
    assert folders == {"t", "p=a"}


def test_in_a_lake_that_wants_messages(place: Place) -> None:
    play(place, [*_inserts(2), "CALL lk.set_option('require_commit_message', true)"])
    assert maintain(place, "merge_adjacent_files") == [Compacted("main", "t", 2, 1)]
    with Catalog.open(place.uri) as catalog:
        assert catalog.latest().message == "compaction of main.t"


def test_sizes_and_counts(place: Place) -> None:
    play(place, ["CALL lk.set_option('target_file_size', '500B')", *_inserts(6)])
    assert maintain(place, "merge_adjacent_files", max_file_size=10) == []
    merged = maintain(place, "merge_adjacent_files", max_compacted_files=1)
    assert [each.files_processed for each in merged] == [3]
    with pytest.raises(ArgumentError, match="must be less than"):
        maintain(place, "merge_adjacent_files", min_file_size=10, max_file_size=5)
    with pytest.raises(TableNotFound):
        maintain(place, "merge_adjacent_files", table="nope")


def test_sorted_tables(place: Place) -> None:
    play(place, [*_inserts(4), "ALTER TABLE t SET SORTED BY (i DESC)", "INSERT INTO t VALUES (9)"])
    play(place, ["INSERT INTO t VALUES (10)"])
    before = duck.rows(place.uri, "SELECT rowid, i FROM t")
    maintain(place, "merge_adjacent_files")
    assert duck.rows(place.uri, "SELECT rowid, i FROM t") == before
    listed = [
        pq.read_table(path)["i"].to_pylist() for path in on_disk(place) if "penstock-" in path
    ]
    assert listed == [[10, 9, 3, 2, 1, 0]]


def test_memory_is_bounded_by_row_groups(place: Place) -> None:
    """With so little memory that each file is a row group of its own."""
    rows = "INSERT INTO t SELECT i FROM range({}, {}) x(i)"
    inserts = [rows.format(at * 60_000, (at + 1) * 60_000) for at in range(3)]
    play(place, ["CREATE TABLE t(i BIGINT)", *inserts])
    maintain(place, "merge_adjacent_files", resources=Resources(memory=1 << 20))
    (merged,) = (path for path in on_disk(place) if "penstock-" in path)
    assert pq.read_metadata(merged).num_row_groups == 3
    assert duck.rows(place.uri, "SELECT count(*), sum(i), sum(rowid) FROM t") == [
        (180_000, 16_199_910_000, 16_199_910_000)
    ]
