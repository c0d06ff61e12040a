"""What is removed from the disk, and what never is."""

from __future__ import annotations

import datetime as dt
import os
import time
from pathlib import Path

import pytest

from penstock.errors import ArgumentError, UnsupportedFeature
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.naming import new_uuid7
from tests import duck
from tests.lake.catalog.conftest import Place
from tests.lake.maintenance.lakes import on_disk, play, upkeep

ROWS = ["CREATE TABLE t(i INT)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"]


def _file(place: Place, name: str, *, days: float = 0) -> str:
    path = Path(place.data_path) / "main" / "t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PAR1")
    then = time.time() - days * 86_400
    os.utime(path, (then, then))
    return str(path)


def test_merged_files_go_after_their_time(each_place: Place) -> None:
    play(each_place, ROWS)
    old = on_disk(each_place)
    upkeep(each_place, "merge_adjacent_files")
    assert upkeep(each_place, "cleanup_old_files") == []
    would = upkeep(each_place, "cleanup_old_files", cleanup_all=True, dry_run=True)
    assert {one.path for one in would} == old
    assert old < on_disk(each_place)
    now = dt.datetime.now(dt.UTC)
    assert {one.path for one in upkeep(each_place, "cleanup_old_files", older_than=now)} == old
    assert not old & on_disk(each_place)
    assert upkeep(each_place, "cleanup_old_files", cleanup_all=True) == []
    assert duck.rows(each_place.uri, "SELECT * FROM t") == [(1,), (2,)]


def test_what_was_removed_already_is_forgotten(place: Place) -> None:
    play(place, ROWS)
    old = on_disk(place)
    upkeep(place, "merge_adjacent_files")
    Path(min(old)).unlink()
    assert len(upkeep(place, "cleanup_old_files", cleanup_all=True)) == 2
    assert upkeep(place, "cleanup_old_files", cleanup_all=True) == []


def test_a_file_of_two_tables_stays_for_the_other(place: Place) -> None:
    play(place, [*ROWS, "CREATE TABLE u(i INT)"])
    shared = min(on_disk(place))
    play(place, [f"CALL ducklake_add_data_files('lk', 'u', '{shared}')"])
    upkeep(place, "merge_adjacent_files", table="t")
    assert len(upkeep(place, "cleanup_old_files", cleanup_all=True)) == 1
    assert duck.rows(place.uri, "SELECT count(*) FROM u") == [(1,)]


def test_orphans_by_their_age(place: Place) -> None:
    play(place, ROWS)
    known = on_disk(place)
    old, young = _file(place, "old.parquet", days=3), _file(place, "young.parquet", days=1)
    text = _file(place, "notes.txt", days=9)
    assert [one.path for one in upkeep(place, "delete_orphaned_files", dry_run=True)] == [old]
    assert [one.path for one in upkeep(place, "delete_orphaned_files")] == [old]
    assert [one.path for one in upkeep(place, "delete_orphaned_files", cleanup_all=True)] == [young]
    assert on_disk(place) == known
    assert Path(text).exists()
    now = dt.datetime.now(dt.UTC)
    with pytest.raises(ArgumentError, match="cleanup_all"):
        upkeep(place, "delete_orphaned_files", cleanup_all=True, older_than=now)


def test_a_write_in_progress_counts_as_old_as_its_youngest_file(place: Place) -> None:
    play(place, ROWS)
    write = new_uuid7()
    first = _file(place, f"{write}/part-0.parquet", days=5)
    last = _file(place, f"{write}/_temporary/0/part-1.parquet")
    assert upkeep(place, "delete_orphaned_files") == []
    assert upkeep(place, "delete_orphaned_files", cleanup_all=True) == []
    os.utime(last, (0, 0))
    removed = upkeep(place, "delete_orphaned_files")
    assert {one.path for one in removed} == {first, last}


def test_files_that_are_scheduled_are_no_orphans(place: Place) -> None:
    play(place, ROWS)
    upkeep(place, "merge_adjacent_files")
    assert upkeep(place, "delete_orphaned_files", cleanup_all=True) == []
    assert len(on_disk(place)) == 3


def test_all_of_it_by_the_options(place: Place) -> None:
    play(place, [*ROWS, "DELETE FROM t WHERE i = 1", "INSERT INTO t VALUES (3)"])
    for key in ("expire_older_than", "delete_older_than"):
        play(place, [f"CALL lk.set_option('{key}', '0 seconds')"])
    would = upkeep(place, "checkpoint", dry_run=True)
    assert [len(one.rows) for one in would if one.name == "expire_snapshots"] == [5]
    done = upkeep(place, "checkpoint")
    assert [one.name for one in done] == [
        *("flush_inlined_data", "expire_snapshots", "merge_adjacent_files"),
        *("rewrite_data_files", "cleanup_old_files", "delete_orphaned_files"),
    ]
    assert duck.rows(place.uri, "SELECT * FROM t") == [(2,), (3,)]
    assert len(on_disk(place)) == 1
    of_table = [one.name for one in upkeep(place, "checkpoint", table="t")]
    assert of_table == ["flush_inlined_data", "merge_adjacent_files", "rewrite_data_files"]
    with Catalog.open(place.uri) as catalog:
        assert [one.changes for one in catalog.snapshots()][-1:] == ["merge_adjacent:1"]


def test_a_table_that_cannot_be_merged_keeps_nothing_else_back(place: Place) -> None:
    odd = ["CREATE TABLE a(i INTERVAL)", *["INSERT INTO a VALUES (INTERVAL 1 DAY)"] * 2]
    play(place, [*ROWS, *odd, "CALL lk.set_option('expire_older_than', '0 seconds')"])
    with pytest.raises(UnsupportedFeature, match="interval"):
        upkeep(place, "checkpoint")
    assert duck.rows(place.uri, "SELECT count(*) FROM ducklake_list_files('lk', 't')") == [(1,)]
    assert len(duck.rows(place.uri, "SELECT * FROM lk.snapshots()")) == 2
