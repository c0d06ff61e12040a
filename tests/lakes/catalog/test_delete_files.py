"""Delete files that succeed each other: whichever way, each snapshot reads as it did.

Tests ``lakes/catalog/files/registration.py``.

Tests ``lakes/format/files.py`` (data files with their delete files).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import Table
from tests import duck
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place

IDS = staging.columns(id="int64")


def start(lake: Catalog) -> Table:
    staging.create(lake, "t", IDS, pa.table({"id": list(range(6))}))
    return lake.table("main", "t", 1)


def delete(lake: Catalog, table: Table, positions: list[int], since: list[int]) -> None:
    path = f"{table.path}x/"
    (file,) = lake.files(table, lake.latest().id).files
    staged = staging.stage_deletes(path, file.path, positions, since=since)
    staging.change(lake, table, deletes={0: staged})


def ids(place: Place, last: int) -> list[list[int]]:
    return [
        [r[0] for r in duck.rows(place.uri, f"SELECT id FROM t AT (VERSION => {version})")]
        for version in range(1, last + 1)
    ]


def feed(place: Place, last: int) -> list[Any]:
    query = f"SELECT snapshot_id, id FROM lk.table_changes('t', 2, {last})"
    return duck.rows(place.uri, query)


def test_foreseen_snapshots_make_one_row(place: Place) -> None:
    with place.open() as lake:
        table = start(lake)
        delete(lake, table, [1], [])
        delete(lake, table, [1, 3], [2, 3])
        delete(lake, table, [1, 3, 4], [2, 3, 4])
        (file,) = lake.files(table, 2).files
        assert file.delete is not None
        assert (file.delete.begin_snapshot, file.delete.partial_max) == (2, 4)
        with lake.reading() as connection:
            scheduled = connection.exec_driver_sql(
                "SELECT path, path_is_relative FROM ducklake_files_scheduled_for_deletion"
            ).fetchall()
    assert ids(place, 4) == [[*range(6)], [0, 2, 3, 4, 5], [0, 2, 4, 5], [0, 2, 5]]
    assert feed(place, 4) == [(2, 1), (3, 3), (4, 4)]
    assert len(scheduled) == 2
    assert all(path.startswith("main/t/x/") and relative for path, relative in scheduled)


def test_a_snapshot_that_was_not_foreseen_is_corrected(place: Place) -> None:
    with place.open() as lake:
        table = start(lake)
        delete(lake, table, [1], [])
        staging.create(lake, "other", IDS)
        delete(lake, table, [1, 3], [2, 3])  # wrong: it becomes snapshot 4
        (file,) = lake.files(table, 4).files
        assert file.delete is not None
        assert (file.delete.begin_snapshot, file.delete.partial_max) == (2, 4)
        assert file.delete.size_bytes == Path(file.delete.path).stat().st_size
    with duck.attach(place.uri) as theirs:
        theirs.execute("DELETE FROM t WHERE id = 0")
    expected = [[*range(6)], [0, 2, 3, 4, 5], [0, 2, 3, 4, 5], [0, 2, 4, 5], [2, 4, 5]]
    assert ids(place, 5) == expected
    assert feed(place, 5) == [(2, 1), (4, 3), (5, 0)]


@pytest.mark.parametrize("since", [[], [2, 3, 4]])
def test_taking_turns_with_duckdb(place: Place, since: list[int]) -> None:
    with place.open() as lake:
        table = start(lake)
        with duck.attach(place.uri) as theirs:
            theirs.execute("DELETE FROM t WHERE id = 1")
            theirs.execute("DELETE FROM t WHERE id = 3")
        delete(lake, table, [1, 3, 4], since)
        with duck.attach(place.uri) as theirs:
            theirs.execute("DELETE FROM t WHERE id = 0")
        staging.change(lake, table, end=(0,))
    expected = [[*range(6)], [0, 2, 3, 4, 5], [0, 2, 4, 5], [0, 2, 5], [2, 5], []]
    assert ids(place, 6) == expected
    if since:
        assert feed(place, 6) == [(2, 1), (3, 3), (4, 4), (5, 0), (6, 2), (6, 5)]


def test_cleanup_by_duckdb_takes_only_what_is_not_needed(place: Place) -> None:
    with place.open() as lake:
        table = start(lake)
        delete(lake, table, [1], [])
        delete(lake, table, [1, 3], [2, 3])
        delete(lake, table, [1, 3, 5], [])
        with duck.attach(place.uri) as theirs:
            theirs.execute("CALL ducklake_expire_snapshots('lk', versions => [1, 2])")
            theirs.execute("CALL ducklake_cleanup_old_files('lk', cleanup_all => true)")
    rows = [duck.rows(place.uri, f"SELECT id FROM t AT (VERSION => {v})") for v in (3, 4)]
    assert rows == [[(0,), (2,), (4,), (5,)], [(0,), (2,), (4,)]]
