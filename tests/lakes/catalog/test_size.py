"""The number of queries does not grow with the catalog.

Tests ``lakes/catalog/reads.py``, ``lakes/catalog/files/files.py``.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pyarrow as pa
from sqlalchemy import event

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import DataFile, PartitionField
from penstock.lakes.snapshot import At
from tests import duck
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

IV = staging.columns(id="int64", v="varchar")


@contextmanager
def counting(lake: Catalog) -> Iterator[list[str]]:
    said: list[str] = []

    def note(_c: object, _k: object, statement: str, *_rest: object) -> None:
        said.append(statement)

    event.listen(lake._engine, "before_cursor_execute", note)
    yield said
    event.remove(lake._engine, "before_cursor_execute", note)


def fill(lake: Catalog, name: str, files: int) -> None:
    """A partitioned table of so many files, all registered, one of them written."""
    new = staging.new_table(lake, name, IV, (PartitionField("v"),))
    file = staging.stage(new.path, IV, pa.table({"id": [1], "v": ["a"]}), partition_values=("a",))
    added = tuple(replace(file, path=f"{file.path}.{i}") for i in range(files))
    lake.commit(lake.latest(), staging.change_set(name, create=new, add=added))


def queries(lake: Catalog, ask: Callable[[], object]) -> int:
    with counting(lake) as said:
        ask()
    return len(said)


def test_reading_is_a_fixed_number_of_queries(lake: Catalog) -> None:
    counts: list[tuple[int, ...]] = []
    for name, files in (("few", 2), ("many", 400)):
        fill(lake, name, files)
        at = lake.latest().id
        table = lake.table("main", name, at)
        counts.append(
            (
                queries(lake, partial(lake.files, table, at)),
                queries(lake, partial(lake.tables, at)),
                queries(lake, partial(lake.table, "main", name, at)),
                queries(lake, partial(lake.changed_since, table, at, ("v", "a"))),
            )
        )
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 9


def test_asking_is_a_fixed_number_of_queries_in_a_lake_of_many_tables(lake: Catalog) -> None:
    """With 3 tables, snapshots and files of each, and with 30."""
    counts: list[tuple[int, ...]] = []
    for start, count in ((0, 3), (3, 30)):
        for n in range(start, count):
            fill(lake, f"t{n}", count)
        at = lake.latest().id
        table = lake.table("main", "t0", at)
        asked: tuple[Callable[[], object], ...] = (
            lake.latest,
            lake.snapshots,
            lambda: lake.snapshot(At(version=1)),
            lambda: lake.snapshot(At(timestamp=dt.datetime.now(dt.UTC))),
            partial(lake.schemas, at),
            partial(lake.tables, at),
            partial(lake.table, "main", "t2", at),
            partial(lake.find_table, "main", "none", at),
            partial(lake.files, table, at),
        )
        counts.append(tuple(queries(lake, ask) for ask in asked))
    assert counts[0] == counts[1]
    assert sum(counts[0]) <= 36  # SQLite: a BEGIN each


def test_registering_and_listing_many_files_is_quick(lake: Catalog) -> None:
    """The peers: 24,000 files took 1,000 s to register; 60,000 take 1 to 2 s a query."""
    begin = time.perf_counter()
    fill(lake, "t", 5000)
    registered = time.perf_counter() - begin
    at = lake.latest().id
    table = lake.table("main", "t", at)
    begin = time.perf_counter()
    registered_files: tuple[DataFile, ...] = lake.files(table, at).files
    listed = time.perf_counter() - begin
    assert len(registered_files) == 5000
    assert registered < 15
    assert listed < 3


def test_a_commit_is_a_fixed_number_of_statements(lake: Catalog) -> None:
    fill(lake, "t", 3)
    table = lake.table("main", "t", 1)
    file = staging.stage(table.path, IV, pa.table({"id": [1], "v": ["a"]}), partition_values=("a",))
    counts = {
        files: queries(
            lake,
            partial(
                staging.change,
                lake,
                table,
                add=tuple(replace(file, path=f"{file.path}.{i}") for i in range(files)),
            ),
        )
        for files in (1, 100, 300)
    }
    # Few rows go to PostgreSQL by fewer statements yet.
    assert counts[1] <= counts[100] == counts[300]


def test_our_indexes_are_there_and_duckdb_does_not_mind(place: Place) -> None:
    with place.open() as lake:
        fill(lake, "t", 1)
        sources = {
            "sqlite": "SELECT sum(length(sql) - length(replace(sql, 'UNIQUE', ''))) / 6 "
            "FROM sqlite_master",
            "postgresql": "SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'penstock_%%'",
            "duckdb": "SELECT count(*) FROM duckdb_indexes()",  # it is as quick without
        }
        with lake.reading() as connection:
            indexes = connection.exec_driver_sql(sources[connection.dialect.name]).scalar()
        assert indexes == (0 if connection.dialect.name == "duckdb" else 6)
    with duck.attach(place.uri) as theirs:
        theirs.execute("CREATE TABLE mine AS SELECT 1 AS i")
        theirs.execute("DROP TABLE t")
        theirs.execute("CALL ducklake_expire_snapshots('lk', older_than => now())")
        theirs.execute("CALL ducklake_cleanup_old_files('lk', cleanup_all => true)")
        assert theirs.execute("SELECT i FROM mine").fetchall() == [(1,)]
