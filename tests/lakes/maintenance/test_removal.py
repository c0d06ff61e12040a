"""What is removed from the disk, and what never is."""

from __future__ import annotations

import datetime as dt
import os
import sqlite3
import time
from pathlib import Path

import pytest

from penstock.errors import ArgumentError, UnsupportedFeature
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.naming import new_uuid7
from penstock.lakes.maintenance.scope import Removed
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.maintenance.lakes import maintain, on_disk, play

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
    maintain(each_place, "merge_adjacent_files")
    assert maintain(each_place, "cleanup_old_files") == []
    would = maintain(each_place, "cleanup_old_files", cleanup_all=True, dry_run=True)
    assert {file.path for file in would} == old
    assert old < on_disk(each_place)
    now = dt.datetime.now(dt.UTC)
    assert {file.path for file in maintain(each_place, "cleanup_old_files", older_than=now)} == old
    assert not old & on_disk(each_place)
    assert maintain(each_place, "cleanup_old_files", cleanup_all=True) == []
    assert duck.rows(each_place.uri, "SELECT * FROM t") == [(1,), (2,)]


def test_what_was_removed_already_is_forgotten(place: Place) -> None:
    play(place, ROWS)
    old = on_disk(place)
    maintain(place, "merge_adjacent_files")
    Path(min(old)).unlink()
    assert len(maintain(place, "cleanup_old_files", cleanup_all=True)) == 2
    assert maintain(place, "cleanup_old_files", cleanup_all=True) == []


def test_a_file_of_two_tables_stays_for_the_other(place: Place) -> None:
    play(place, [*ROWS, "CREATE TABLE u(i INT)"])
    shared = min(on_disk(place))
    play(place, [f"CALL ducklake_add_data_files('lk', 'u', '{shared}')"])
    maintain(place, "merge_adjacent_files", table="t")
    assert len(maintain(place, "cleanup_old_files", cleanup_all=True)) == 1
    assert duck.rows(place.uri, "SELECT count(*) FROM u") == [(1,)]


def test_orphans_by_their_age(place: Place) -> None:
    play(place, ROWS)
    known = on_disk(place)
    names = [f"ducklake-{new_uuid7()}.parquet" for _ in range(2)]
    old, young = _file(place, names[0], days=3), _file(place, names[1], days=1)
    text = _file(place, "notes.txt", days=9)
    assert [file.path for file in maintain(place, "delete_orphaned_files", dry_run=True)] == [old]
    assert [file.path for file in maintain(place, "delete_orphaned_files")] == [old]
    assert [file.path for file in maintain(place, "delete_orphaned_files", cleanup_all=True)] == [
        young
    ]
    assert on_disk(place) == known
    assert Path(text).exists()
    now = dt.datetime.now(dt.UTC)
    with pytest.raises(ArgumentError, match="cleanup_all"):
        maintain(place, "delete_orphaned_files", cleanup_all=True, older_than=now)


def test_checksums_go_with_their_files(place: Place) -> None:
    """DuckDB removes the data file alone."""
    play(place, ROWS)
    names = [f"ducklake-{new_uuid7()}.parquet" for _ in range(2)]
    gone, there = (f".{name}.crc" for name in names)
    old, _, orphan = _file(place, gone), _file(place, there), _file(place, names[1])
    _file(place, ".notes.txt.crc")
    listed = maintain(place, "delete_orphaned_files", cleanup_all=True)
    assert sorted(file.path for file in listed) == sorted([old, orphan])
    left = {path.name for path in Path(place.data_path).rglob("*.crc")}
    assert left == {".notes.txt.crc"}


def test_a_write_in_progress_counts_as_old_as_its_youngest_file(place: Place) -> None:
    play(place, ROWS)
    write = new_uuid7()
    first = _file(place, f"{write}/part-0.parquet", days=5)
    last = _file(place, f"{write}/_temporary/0/part-1.parquet")
    assert maintain(place, "delete_orphaned_files") == []
    assert maintain(place, "delete_orphaned_files", cleanup_all=True) == []
    os.utime(last, (0, 0))
    removed = maintain(place, "delete_orphaned_files")
    assert {file.path for file in removed} == {first, last}


def test_files_that_are_scheduled_are_no_orphans(place: Place) -> None:
    play(place, ROWS)
    maintain(place, "merge_adjacent_files")
    assert maintain(place, "delete_orphaned_files", cleanup_all=True) == []
    assert len(on_disk(place)) == 3


def test_all_of_it_by_the_options(place: Place) -> None:
    play(place, [*ROWS, "DELETE FROM t WHERE i = 1", "INSERT INTO t VALUES (3)"])
    for key in ("expire_older_than", "delete_older_than"):
        play(place, [f"CALL lk.set_option('{key}', '0 seconds')"])
    would = maintain(place, "checkpoint", dry_run=True)
    assert [len(step.rows) for step in would if step.name == "expire_snapshots"] == [5]
    done = maintain(place, "checkpoint")
    assert [step.name for step in done] == [
        *("flush_inlined_data", "expire_snapshots", "merge_adjacent_files"),
        *("rewrite_data_files", "cleanup_old_files", "delete_orphaned_files"),
    ]
    assert duck.rows(place.uri, "SELECT * FROM t") == [(2,), (3,)]
    assert len(on_disk(place)) == 1
    of_table = [step.name for step in maintain(place, "checkpoint", table="t")]
    assert of_table == ["flush_inlined_data", "merge_adjacent_files", "rewrite_data_files"]
    with Catalog.open(place.uri) as catalog:
        assert [snapshot.changes for snapshot in catalog.snapshots()][-1:] == ["merge_adjacent:1"]


def test_a_table_that_cannot_be_merged_keeps_nothing_else_back(place: Place) -> None:
    odd = ["CREATE TABLE a(i INTERVAL)", *["INSERT INTO a VALUES (INTERVAL 1 DAY)"] * 2]
    play(place, [*ROWS, *odd, "CALL lk.set_option('expire_older_than', '0 seconds')"])
    with pytest.raises(UnsupportedFeature, match="interval"):
        maintain(place, "checkpoint")
    assert duck.rows(place.uri, "SELECT count(*) FROM ducklake_list_files('lk', 't')") == [(1,)]
    assert len(duck.rows(place.uri, "SELECT * FROM lk.snapshots()")) == 2


def test_orphans_that_are_not_shown_to_be_of_this_catalog_stay(place: Place) -> None:
    play(place, ROWS)
    uuid, before = new_uuid7(), "0195b2d0-0000-7000-8000-000000000000"  # of March 2025
    files = {
        _file(place, f"ducklake-{before}.parquet"): "older than this catalog",
        _file(place, "mine.parquet"): "its name does not say when it was written",
        _file(place, f"../u/ducklake-{uuid}.parquet"): "below no table of this catalog",
        _file(place, f"id={uuid}/ducklake-{uuid}.parquet"): None,
        _file(place, f"id={before}/{uuid}/part-0.parquet"): None,
    }
    expected = {os.path.normpath(path): why for path, why in files.items()}
    listed = maintain(place, "delete_orphaned_files", cleanup_all=True)
    assert {file.path: file.left for file in listed} == expected
    assert {path for path in expected if Path(path).exists()} == {
        path for path, why in expected.items() if why is not None
    }


def test_the_time_at_which_a_catalog_began_survives_its_first_snapshots(place: Place) -> None:
    play(place, ROWS[:1])
    orphan = _file(place, f"ducklake-{new_uuid7()}.parquet")
    play(place, [*ROWS[1:], "CALL ducklake_expire_snapshots('lk', older_than => now())"])
    assert maintain(place, "delete_orphaned_files", cleanup_all=True) == [Removed(orphan)]


def test_links_do_not_lead_out_of_the_data_path(place: Place, tmp_path: Path) -> None:
    play(place, ROWS)
    victim = tmp_path / "elsewhere" / f"ducklake-{new_uuid7()}.parquet"
    victim.parent.mkdir()
    victim.write_bytes(b"PAR1")
    (tmp_path / "data/main/t/linked").symlink_to(victim.parent)
    listed = maintain(place, "delete_orphaned_files", cleanup_all=True)
    assert [file.left for file in listed] == ["outside the data path"]
    assert victim.exists()


FORGED = ["/{tmp}/victim.txt", "../victim.txt", "main/../../victim.txt"]


@pytest.mark.parametrize("agreed", [False, True])
@pytest.mark.parametrize("path", [*FORGED, "main/link/victim.txt", "main/x/../t/{needed}"])
def test_a_row_of_the_catalog_is_no_licence_to_delete(
    place: Place, tmp_path: Path, path: str, agreed: bool
) -> None:
    play(place, ROWS)
    needed = min(on_disk(place))
    (tmp_path / "victim.txt").write_text("mine")
    (tmp_path / "data/main/link").symlink_to(tmp_path)
    text = path.format(tmp=str(tmp_path)[1:], needed=Path(needed).name)
    _schedule(place, text)
    listed = maintain(place, "cleanup_old_files", cleanup_all=True, outside_data_path=agreed)
    assert Path(needed).exists()
    assert (tmp_path / "victim.txt").exists()
    assert all(file.left for file in listed)


def test_added_files_outside_go_when_the_caller_agrees(place: Place, tmp_path: Path) -> None:
    added = tmp_path / "added.parquet"
    play(place, ["CREATE TABLE t(i INT)", f"COPY (SELECT 7 AS i) TO '{added}'"])
    play(place, [f"CALL ducklake_add_data_files('lk', 't', '{added}')", "DROP TABLE t"])
    play(place, ["CALL ducklake_expire_snapshots('lk', older_than => now())"])
    left = maintain(place, "cleanup_old_files", cleanup_all=True)
    assert left == [Removed(str(added), "outside the data path")]
    assert added.exists()
    arguments = {"cleanup_all": True, "outside_data_path": True}
    assert maintain(place, "cleanup_old_files", **arguments) == [Removed(str(added))]
    assert not added.exists()
    assert maintain(place, "cleanup_old_files", **arguments) == []


def _schedule(place: Place, path: str) -> None:
    """A row that says that a file may go."""
    flag = int(not path.startswith("/"))
    with sqlite3.connect(place.uri.removeprefix("ducklake:sqlite:")) as connection:
        connection.execute(
            "INSERT INTO ducklake_files_scheduled_for_deletion VALUES (0, ?, ?, ?)",
            (path, flag, "2026-01-01 00:00:00+00"),
        )
    connection.close()
