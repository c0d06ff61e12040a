"""The change feed of what Penstock writes, its halves, its cost, and the other databases.

Tests ``lakes/catalog/files/feed.py``.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from sqlalchemy import event

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.files import feed as catalog_feed
from penstock.lakes.format.naming import TableRef
from penstock.lakes.lake import Lake
from penstock.lakes.reading.feed import final_rows
from tests.lakes import feeds
from tests.lakes.catalog.conftest import Place, postgres_server, postgres_uri
from tests.lakes.conftest import Rows, table_of
from tests.lakes.reading.test_feed import BOTH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["postgres_server", "postgres_uri"]

COLUMNS = "i int, s string"


@pytest.mark.spark
def test_appends_merges_and_replacements(tmp_path: Path, spark: SparkSession, rows: Rows) -> None:
    place = feeds.sqlite_place(tmp_path)
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        table = lake.table("t")
        table.append(rows(COLUMNS, [(n, "a") for n in range(9)]))
        table.merge(rows(COLUMNS, [(1, "b"), (10, "new")]), keys=["i"])
        table.merge(rows(COLUMNS, [(1, "c"), (2, "c")]), keys=["i"])
        table.append(rows(COLUMNS, [(11, "d")]))
        table.replace(rows(COLUMNS, [(1, "c"), (12, "e")]))
    known = feeds.theirs(place)
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        assert feeds.ours(lake, known) == known


@pytest.mark.spark
def test_insertions_and_deletions_have_both_images(tmp_path: Path, spark: SparkSession) -> None:
    place = feeds.sqlite_place(tmp_path)
    made = ["CREATE TABLE t (i INT)", "INSERT INTO t VALUES (1), (2)"]
    feeds.written(place, [*made, "UPDATE t SET i = 3 WHERE i = 2", "DELETE FROM t WHERE i = 1"])
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        table = lake.table("t")
        assert table.insertions(0, 4).columns == ["snapshot_id", "rowid", "i"]
        assert table_of(table.insertions(0, 4)) == [(2, 0, 1), (2, 1, 2), (3, 1, 3)]
        assert table_of(table.deletions(0, 4)) == [(3, 1, 2), (4, 0, 1)]
        assert table_of(table.insertions(4, 4)) == table_of(table.deletions(0, 2)) == []


@pytest.mark.spark
def test_columns_called_as_those_of_the_feed(tmp_path: Path, spark: SparkSession) -> None:
    place = feeds.sqlite_place(tmp_path)
    made = "CREATE TABLE t (snapshot_id INT, change_type VARCHAR)"
    feeds.written(place, [made, "INSERT INTO t VALUES (7, 'x')", "DELETE FROM t"])
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        feed = lake.table("t").changes(0, 3)
        names = ["snapshot_id", "rowid", "change_type", "snapshot_id", "change_type"]
        assert feed.columns == names
        assert table_of(feed) == [(2, 0, "insert", 7, "x"), (3, 0, "delete", 7, "x")]


@pytest.mark.spark
def test_what_is_only_appended_is_not_shuffled(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    place = feeds.sqlite_place(tmp_path)
    inserts = [f"INSERT INTO t VALUES ({n})" for n in range(3)]
    feeds.written(place, ["CREATE TABLE t (i INT)", *inserts, "DELETE FROM t WHERE i = 1"])
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        lake.table("t").changes(0, 5).explain()
    plan = capsys.readouterr().out
    assert "Scan parquet" in plan
    assert "Window" not in plan
    assert "hashpartitioning" not in plan


def test_as_many_queries_for_many_changes_as_for_few(tmp_path: Path) -> None:
    place = feeds.sqlite_place(tmp_path)
    changes = [
        change
        for n in range(6)
        for change in (f"INSERT INTO t VALUES ({n}), (-1)", f"DELETE FROM t WHERE i = {n}")
    ]
    feeds.written(place, ["CREATE TABLE t (i INT)", *changes])
    with Catalog.open(place.uri, data_path=place.data_path) as catalog:
        assert _queries(catalog, 3) == _queries(catalog, 13)


def _queries(catalog: Catalog, last: int) -> int:
    """How many it takes to find what changed up to a snapshot."""
    table = catalog.table("main", "t", last)
    seen: list[str] = []
    with catalog.reading() as connection:
        event.listen(connection, "before_cursor_execute", lambda *args: seen.append(args[2]))
        changed = catalog_feed.load_changed(connection, table, catalog_feed.Range(0, last))
    assert len(changed.begun.files) == last // 2
    assert len(changed.lost.files) == last // 2
    return len(seen)


@pytest.mark.spark
@pytest.mark.parametrize("where", ["duckdb", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_on_the_other_databases(
    where: str, tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    uri = f"ducklake:{tmp_path / 'meta.ducklake'}"
    if where == "postgres":
        uri = str(request.getfixturevalue("postgres_uri"))
    place = Place(uri, f"{tmp_path}/data/")
    feeds.written(place, BOTH["many deletes in one file, then the whole"], inline=3)
    known = feeds.theirs(place)
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        assert feeds.ours(lake, known) == known


def _final(events: Iterable[str], *, only_new: bool) -> list[tuple[object, ...]]:
    """The last image of each row that DuckDB's feed leaves there, as `final_rows` has them."""
    by_row: dict[int, list[tuple[int, bool, tuple[object, ...]]]] = {}
    for text in events:
        snapshot, row_id, kind, *values = literal_eval(text)
        comes = kind in {"insert", "update_postimage"}
        by_row.setdefault(row_id, []).append((snapshot, comes, tuple(values)))
    stories = [sorted(story, key=lambda event: event[:2]) for story in by_row.values()]
    stays = (story for story in stories if story[-1][1] and (story[0][1] or not only_new))
    return sorted((story[-1][2] for story in stays), key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["many deletes in one file, then the whole", "merge"])
def test_final_rows(tmp_path: Path, spark: SparkSession, name: str) -> None:
    """Of each range, all and only the new ones, in one Spark job."""
    place = feeds.sqlite_place(tmp_path)
    feeds.written(place, [*BOTH[name], feeds.MERGE])
    wanted: list[list[tuple[object, ...]]] = []
    frames: list[DataFrame] = []
    with Lake.attach(place.uri, data_path=place.data_path, spark=spark) as lake:
        for (first, last), content in feeds.theirs(place).items():
            for only_new in (False, True):
                ref = TableRef("main", "t")
                found = final_rows(spark, lake.catalog, ref, first, last, only_new=only_new)
                frames.append(found.df.select(fn.lit(len(wanted)).alias("_number"), "*"))
                wanted.append(_final(content.rows, only_new=only_new))
        rows = [tuple(row) for row in reduce(DataFrame.union, frames).collect()]
    for number, expected in enumerate(wanted):
        mine = [row[1:] for row in rows if row[0] == number]
        assert sorted(mine, key=repr) == expected, number
