"""Delete files and merged files of every form, by both versions of DuckDB, at every snapshot.

Rows are compared with their row ids. What the catalog holds itself is in `test_inlined`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from penstock.lakes.lake import Lake
from tests import duckdb_process
from tests.duckdb_process import DuckDBProcess
from tests.lakes.catalog.conftest import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VECTORS = "CALL lk.set_option('write_deletion_vectors', {})"
MERGE = "CALL ducklake_merge_adjacent_files('lk')"
REWRITE = "CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0.1)"
FLUSH = "CALL ducklake_flush_inlined_data('lk')"
CREATE = "CREATE TABLE t (k BIGINT, v VARCHAR)"
History = Mapping[int, Sequence[tuple[Any, ...]]]  # row id and columns, by snapshot


def insert(first: int, end: int) -> str:
    return f"INSERT INTO t SELECT range, 'v' || range FROM range({first}, {end})"


def delete(*keys: int) -> str:
    return f"DELETE FROM t WHERE k IN ({', '.join(map(str, keys))})"


SCRIPTS: Mapping[str, Sequence[str]] = {
    "deletes": [insert(0, 30), delete(1, 3), delete(2), delete(29, 0), insert(30, 33), delete(31)],
    "merged": [insert(0, 3), insert(3, 6), insert(6, 9), MERGE, delete(1, 7), delete(4), MERGE],
    "merged twice": [*(insert(i, i + 2) for i in (0, 2)), MERGE, insert(4, 6), MERGE, delete(3)],
    "merged beside deletes": [
        *(insert(0, 3), insert(3, 6), delete(1), delete(4), insert(6, 9), MERGE),
        *(insert(9, 11), insert(11, 12), MERGE, delete(7, 11)),
    ],
    "rewritten": [
        *(insert(0, 6), delete(0, 1), delete(3), REWRITE, insert(6, 9)),
        *("UPDATE t SET k = k + 100 WHERE k = 5", MERGE, delete(8), REWRITE),
    ],
    "updates": [
        *(insert(0, 6), "UPDATE t SET v = 'x' WHERE k < 3", "UPDATE t SET v = 'y' WHERE k < 2"),
        *(insert(6, 7), MERGE, "UPDATE t SET v = 'z' WHERE k IN (1, 5, 6)", MERGE, REWRITE, MERGE),
    ],
    "altered": [
        *(insert(0, 3), "ALTER TABLE t ADD COLUMN w INT DEFAULT 7"),
        *("INSERT INTO t VALUES (3, 'a', 1)", "INSERT INTO t VALUES (4, 'a', 2)", MERGE),
        *("UPDATE t SET w = 9 WHERE k IN (0, 4)", "ALTER TABLE t DROP COLUMN v", delete(2), MERGE),
    ],
}
FLUSHED: Mapping[str, Sequence[str]] = {
    "flushed": [
        *(insert(0, 3), insert(3, 5), delete(1), "UPDATE t SET k = 40 WHERE k = 4", insert(7, 8)),
        *(FLUSH, delete(40), FLUSH, delete(2), insert(20, 21), FLUSH, MERGE),
    ],
    "flushed deletes": [insert(0, 30), delete(1), delete(4), FLUSH, delete(5), delete(6), FLUSH],
}
ONLY_NEW: Mapping[str, Sequence[str]] = {
    "vectors": [VECTORS.format("true"), insert(0, 30), delete(1, 3), delete(2, 4), delete(9)],
    "vectors in between": [
        *(insert(0, 30), delete(1, 3), VECTORS.format("true"), delete(2, 4), delete(9)),
        *(VECTORS.format("false"), delete(10), delete(11)),
    ],
    "vectors in files merged": [
        *(insert(0, 3), insert(3, 6), MERGE, VECTORS.format("true"), delete(1, 4), delete(2)),
    ],
}


@pytest.fixture(scope="module", params=["1.5.5", pytest.param("1.4.4", marks=pytest.mark.extended)])
def writer(request: pytest.FixtureRequest) -> Iterator[DuckDBProcess]:
    reason = duckdb_process.why_not(request.param)
    if reason is not None:
        pytest.skip(reason)
    process = DuckDBProcess(request.param)
    yield process
    process.close()


def run(process: DuckDBProcess, place: Place, script: Sequence[str], inline: int) -> None:
    process.renew()
    process.execute(
        f"ATTACH '{place.uri}' AS lk "
        f"(DATA_PATH '{place.data_path}', DATA_INLINING_ROW_LIMIT {inline})"
    )
    for statement in ("USE lk", CREATE, *script):
        process.execute(statement)


def theirs(process: DuckDBProcess) -> History:
    versions = process.rows("SELECT snapshot_id FROM lk.snapshots() WHERE snapshot_id > 0")
    return {
        version: sorted(process.rows(f"SELECT rowid, * FROM t AT (VERSION => {version})"))
        for (version,) in versions
    }


def ours(lake: Lake) -> History:
    """Every snapshot by one job: columns come as one text."""
    from pyspark.sql import functions as fn

    by_version: dict[int, list[tuple[Any, ...]]] = {s.id: [] for s in lake.snapshots() if s.id > 0}
    frames = []
    for version in by_version:
        df = lake.table("t").to_df(version=version, row_ids=True)
        row = fn.struct("rowid", *(name for name in df.columns if name != "rowid"))
        options = {"ignoreNullFields": "false"}
        frames.append(df.select(fn.lit(version).alias("v"), fn.to_json(row, options).alias("row")))
    for version, row in reduce(lambda a, b: a.union(b), frames).collect():
        by_version[version].append(tuple(json.loads(row).values()))
    return {version: sorted(rows) for version, rows in by_version.items()}


def check(process: DuckDBProcess, place: Place, spark: SparkSession) -> None:
    known = theirs(process)
    process.renew()
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark, read_only=True) as lake:
        mine = ours(lake)
    for version, rows in known.items():
        assert mine[version] == rows, f"snapshot {version}"


@pytest.mark.parametrize("name", SCRIPTS)
def test_files(writer: DuckDBProcess, place: Place, spark: SparkSession, name: str) -> None:
    run(writer, place, SCRIPTS[name], 0)
    check(writer, place, spark)


@pytest.mark.parametrize("name", FLUSHED)
def test_flushed(writer: DuckDBProcess, place: Place, spark: SparkSession, name: str) -> None:
    run(writer, place, FLUSHED[name], 10)
    check(writer, place, spark)


@pytest.mark.parametrize("name", ONLY_NEW)
def test_deletion_vectors(
    writer: DuckDBProcess, place: Place, spark: SparkSession, name: str
) -> None:
    if writer.version == "1.4.4":
        pytest.skip("1.4.4 writes no deletion vectors")
    run(writer, place, ONLY_NEW[name], 0)
    check(writer, place, spark)


def test_vectors_of_all_kinds_of_containers(
    writer: DuckDBProcess, place: Place, spark: SparkSession
) -> None:
    """A roaring bitmap keeps few values as a list, many as bits, runs as runs, by 65,536 rows."""
    if writer.version == "1.4.4":
        pytest.skip("1.4.4 writes no deletion vectors")
    deleted = "k % 3 = 0 OR k BETWEEN 70000 AND 139999 OR k IN (140001, 199999)"
    run(writer, place, [VECTORS.format("true"), insert(0, 200_000)], 0)
    writer.execute(f"DELETE FROM t WHERE {deleted}")
    query = "SELECT count(*), sum(k), sum(k * k) FROM t"
    (known,) = writer.rows(query)
    writer.renew()
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark, read_only=True) as lake:
        assert tuple(lake.sql(query).collect()[0]) == known


IN_ORDER = [
    *(insert(0, 3), insert(3, 6), delete(1), delete(4), insert(6, 9), MERGE, delete(7)),
    *(insert(9, 30), "DELETE FROM t WHERE k > 12", REWRITE, delete(10), insert(30, 32)),
]


@pytest.mark.parametrize(
    "catalog", ["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)]
)
def test_in_other_catalogs(
    writer: DuckDBProcess,
    place: Place,
    catalog: str,
    request: pytest.FixtureRequest,
    spark: SparkSession,
) -> None:
    uris: Mapping[str, Callable[[], str]] = {
        "duckdb": lambda: f"ducklake:{Path(place.data_path).with_name('meta.ducklake')}",
        "postgres": lambda: str(request.getfixturevalue("postgres_uri")),
    }
    other = replace(place, uri=uris[catalog]())
    run(writer, other, IN_ORDER, 0)
    check(writer, other, spark)


def test_format_0_4(writer: DuckDBProcess, place: Place, spark: SparkSession) -> None:
    if writer.version == "1.4.4":
        pytest.skip("1.4.4 writes 0.3, with other tables")
    run(writer, place, IN_ORDER, 0)
    known = theirs(writer)
    writer.renew()
    with closing(sqlite3.connect(place.uri.removeprefix("ducklake:sqlite:"))) as catalog:
        catalog.execute("UPDATE ducklake_metadata SET value = '0.4' WHERE key = 'version'")
        catalog.commit()
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark, read_only=True) as lake:
        assert ours(lake) == known


def test_duckdb_sorts_by_bounds_of_later_rows(
    writer: DuckDBProcess, place: Place, spark: SparkSession
) -> None:
    """A rewrite narrows the bounds of the table, and 1.5.5 sorts older snapshots by them.

    It packs integers into a byte from the least value on; those below it come out 256 too great.
    """
    if writer.version == "1.4.4":
        pytest.skip("1.4.4 does not")
    table = ["CREATE TABLE u (i INTEGER)", "INSERT INTO u SELECT range FROM range(10)"]
    run(writer, place, [*table, "DELETE FROM u WHERE i < 4", REWRITE.replace("'t'", "'u'")], 0)
    wrong = writer.rows("SELECT i FROM u AT (VERSION => 3) ORDER BY i")
    right = writer.rows("SELECT i FROM u AT (VERSION => 3)")
    writer.renew()
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark, read_only=True) as lake:
        df = lake.table("u").to_df(version=3)
        assert [tuple(row) for row in df.orderBy("i").collect()] == [(i,) for i in range(10)]
        (file,) = lake.table("u").list_files(version=3)
    assert sorted(pq.read_table(file.data_file)["i"].to_pylist()) == list(range(10))
    assert sorted(right) == [(i,) for i in range(10)]
    assert wrong == [(i,) for i in (4, 5, 6, 7, 8, 9, 256, 257, 258, 259)], "right by now"
