"""The bounds of a change feed: ids, times, expired ones, and tables that do not exist yet."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.errors import ArgumentError, SnapshotNotFound, TableNotFound
from penstock.lakes.lake import Lake
from tests.lakes import feeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TICK = dt.timedelta(microseconds=1)
LONG_AGO = dt.datetime(2001, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Lake]:
    """Snapshots 0 to 5; the table ``t`` from 1 on, a row comes in 2, 3 and 4; ``t2`` from 5 on."""
    place = feeds.sqlite_place(tmp_path_factory.mktemp("bounds"))
    inserts = [f"INSERT INTO t VALUES ({n})" for n in (2, 3, 4)]
    feeds.written(place, ["CREATE TABLE t (i INT)", *inserts, "ALTER TABLE t RENAME TO t2"])
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as attached:
        yield attached


def _rows(lake: Lake, first: int | dt.datetime, last: int | dt.datetime) -> list[int]:
    return sorted(row["i"] for row in lake.table("t").changes(first, last).collect())


def test_both_bounds_are_inclusive(lake: Lake) -> None:
    assert _rows(lake, 2, 3) == [2, 3]
    assert _rows(lake, 0, 4) == [2, 3, 4]


def test_bounds_the_wrong_way_round_are_refused_by_methods_and_empty_in_sql(lake: Lake) -> None:
    times = [snapshot.time for snapshot in lake.snapshots()]
    table = lake.table("t")
    for read in (table.changes, table.insertions, table.deletions):
        with pytest.raises(ArgumentError, match="nothing lies between 4 and 2"):
            read(4, 2)
    with pytest.raises(ArgumentError, match="the first is the later"):
        table.changes(times[4], str(times[2]))
    assert lake.sql("SELECT * FROM table_changes('t', 4, 2)").collect() == []


def test_times_are_the_snapshots_within_them(lake: Lake) -> None:
    times = [snapshot.time for snapshot in lake.snapshots()]
    assert _rows(lake, times[2], times[3]) == [2, 3]
    assert _rows(lake, times[2] + TICK, times[3]) == [3]
    assert _rows(lake, times[2], times[3] - TICK) == [2]
    assert _rows(lake, times[2] + TICK, times[3] - TICK) == []
    assert _rows(lake, LONG_AGO, times[4]) == [2, 3, 4]


def test_a_time_without_a_zone_is_in_utc(lake: Lake) -> None:
    times = [snapshot.time.replace(tzinfo=None) for snapshot in lake.snapshots()]
    assert _rows(lake, times[2], times[3]) == [2, 3]
    assert sorted(row["i"] for row in lake.table("t").changes(str(times[2]), 3).collect()) == [2, 3]


@pytest.mark.parametrize(
    ("first", "last"),
    [(2, 99), (99, 99), (-1, 3), (LONG_AGO, LONG_AGO), (dt.datetime(3001, 1, 1, tzinfo=dt.UTC), 3)],
)
def test_bounds_that_are_not_there_say_what_is(
    lake: Lake, first: int | dt.datetime, last: int | dt.datetime
) -> None:
    with pytest.raises(SnapshotNotFound, match="snapshots 0 to 5 remain"):
        lake.table("t").changes(first, last)


def test_the_table_is_looked_for_at_the_upper_bound(lake: Lake) -> None:
    with pytest.raises(TableNotFound, match="at snapshot 5"):
        lake.table("t").changes(2, 5)
    renamed = lake.table("t2").changes(2, 5).collect()
    assert sorted(row["i"] for row in renamed) == [2, 3, 4]


def test_an_expired_bound_says_which_remain(tmp_path: Path, spark: SparkSession) -> None:
    place = feeds.sqlite_place(tmp_path)
    inserts = [f"INSERT INTO t VALUES ({n})" for n in (2, 3, 4)]
    expire = "CALL ducklake_expire_snapshots('lk', versions => [0, 1, 2])"
    feeds.written(place, ["CREATE TABLE t (i INT)", *inserts, expire])
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        with pytest.raises(SnapshotNotFound, match="snapshots 3 to 4 remain"):
            lake.table("t").changes(2, 4)
        assert _rows(lake, 3, 4) == [3, 4]
        assert _rows(lake, LONG_AGO, 4) == [3, 4]


def test_a_table_of_the_same_name_is_another(tmp_path: Path, spark: SparkSession) -> None:
    place = feeds.sqlite_place(tmp_path)
    made = ["CREATE TABLE t (i INT)", "INSERT INTO t VALUES (1)"]
    feeds.written(place, [*made, "DROP TABLE t", *made])
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        feed = lake.table("t").changes(0, 5).collect()
        assert [tuple(row) for row in feed] == [(5, 0, "insert", 1)]
