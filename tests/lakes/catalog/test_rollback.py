"""A table rolled back is what it was, for DuckDB too, and its history stays.

Tests ``lakes/recovery/rollback.py``, ``lakes/catalog/files/maintenance_rows.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import (
    ArgumentError,
    DataFileMissing,
    SnapshotNotFound,
    TableNotFound,
)
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.lake import Lake
from penstock.lakes.recovery.rollback import rollback
from tests import duck
from tests.lakes.catalog.conftest import Place

INSERT = "INSERT INTO t (i, s) SELECT n, 'v' || n FROM range({}, {}) r(n)"
STEPS = (
    "CREATE TABLE t (i INT, s VARCHAR)",
    INSERT.format(0, 100),
    "DELETE FROM t WHERE i < 10",
    INSERT.format(100, 103),
    "UPDATE t SET s = 'new' WHERE i IN (50, 51, 101)",
    "DELETE FROM t WHERE i = 102",
    "ALTER TABLE t ADD COLUMN d INT DEFAULT 7",
    INSERT.format(200, 220),
    "CALL ducklake_flush_inlined_data('lk')",
    "DELETE FROM t WHERE i >= 60",
    "ALTER TABLE t RENAME COLUMN s TO label",
    "CALL ducklake_merge_adjacent_files('lk')",
    "DELETE FROM t",
)
VERSIONS = (10, 8, 5, 4, 7, 1, 2, 11)
ROWS = "SELECT rowid, * FROM t {} ORDER BY rowid"


def make(place: Place, *, inline: int) -> None:
    with duck.attach(place.uri, place.data_path.rstrip("/"), inline=inline) as connection:
        for step in STEPS:
            connection.execute(step)


def states(place: Place, last: int) -> dict[int, Any]:
    """The rows and their columns at every snapshot."""
    by_version = {}
    with duck.attach(place.uri) as connection:
        for version in range(1, last + 1):
            rows = connection.execute(ROWS.format(f"AT (VERSION => {version})"))
            by_version[version] = ([column[0] for column in rows.description], rows.fetchall())
    return by_version


def now(place: Place) -> Any:
    rows = duck.rows(place.uri, ROWS.format(""), order=False)
    columns = [row[0] for row in duck.rows(place.uri, "DESCRIBE t", order=False)]
    return ["rowid", *columns], rows


def test_each_snapshot(place: Place) -> None:
    duck.required()
    roll_back_and_forth(place, VERSIONS if "sqlite" in place.uri else VERSIONS[:3], inline=10)


def test_each_snapshot_of_files(sqlite_place: Place) -> None:
    roll_back_and_forth(sqlite_place, VERSIONS, inline=0)


def roll_back_and_forth(place: Place, versions: Sequence[int], *, inline: int) -> None:
    make(place, inline=inline)
    with place.open() as catalog:
        last = catalog.latest().id
    known = states(place, last)
    for version in versions:
        with place.open() as catalog:
            done, again = (rollback(catalog, "t", version) for _ in range(2))
        assert done.to == version
        assert again.snapshot is None
        assert now(place) == known[version], version
    assert states(place, last) == known


def test_files_are_its_own(sqlite_place: Place) -> None:
    """DuckDB's maintenance takes the old files away; those of the rollback stay."""
    make(sqlite_place, inline=0)
    with sqlite_place.open() as catalog:
        last = catalog.latest().id
        expected = states(sqlite_place, last)[6]
        rollback(catalog, "t", 6)
    with duck.attach(sqlite_place.uri) as connection:
        versions = list(range(last + 1))
        connection.execute(f"CALL ducklake_expire_snapshots('lk', versions => {versions})")
        connection.execute("CALL ducklake_cleanup_old_files('lk', cleanup_all => true)")
        rows = connection.execute(ROWS.format("")).fetchall()
    assert rows == expected[1]
    with sqlite_place.open() as catalog, pytest.raises(SnapshotNotFound, match="remain"):
        rollback(catalog, "t", 6)


def test_goes_on(sqlite_place: Place) -> None:
    """Rows that come later get row ids of their own; the change feed has what the rollback did."""
    make(sqlite_place, inline=0)
    with sqlite_place.open() as catalog:
        done = rollback(catalog, "t", 3, author="me")
        assert done.snapshot is not None
        assert (done.snapshot.author, done.columns_changed) == ("me", True)
        assert done.snapshot.message == "main.t as it was at snapshot 3"
    before = now(sqlite_place)[1]
    with duck.attach(sqlite_place.uri) as connection:
        connection.execute("INSERT INTO t VALUES (1000, 'x')")
        rows = connection.execute(ROWS.format("")).fetchall()
        span = f"{done.snapshot.id}, {done.snapshot.id}"
        feed = f"SELECT rowid FROM ducklake_table_insertions('lk', 'main', 't', {span})"
        inserted = {row[0] for row in connection.execute(feed).fetchall()}
    assert rows[:-1] == before
    assert rows[-1][0] > max(row[0] for row in before)
    assert {row[0] for row in before} <= inserted


def test_by_time(sqlite_place: Place) -> None:
    make(sqlite_place, inline=0)
    with sqlite_place.open() as catalog:
        moment = catalog.snapshots()[4].time
        assert rollback(catalog, "t", timestamp=moment).to == 4
        assert rollback(catalog, "t", timestamp=str(moment)).snapshot is None
        with pytest.raises(ArgumentError, match="needs the snapshot"):
            rollback(catalog, "t")


def refused(catalog: Catalog, table: str, to: int, kind: type[Exception], said: str) -> None:
    before = catalog.latest().id
    with pytest.raises(kind, match=said):
        rollback(catalog, table, to)
    assert catalog.latest().id == before


def test_refused(sqlite_place: Place) -> None:
    make(sqlite_place, inline=0)
    with duck.attach(sqlite_place.uri) as connection:
        connection.execute("CREATE TABLE late (i INT)")
        connection.execute("DROP TABLE t")
    with sqlite_place.open() as catalog:
        refused(catalog, "late", 3, TableNotFound, "did not exist at snapshot 3")
        refused(catalog, "t", 3, TableNotFound, r"table main\.t does not exist")
        refused(catalog, "late", 999, SnapshotNotFound, "snapshot 999 does not exist")


def test_a_file_that_is_gone(sqlite_place: Place) -> None:
    make(sqlite_place, inline=0)
    folder = Path(sqlite_place.data_path)
    with sqlite_place.open() as catalog:
        for file in folder.rglob("*.parquet"):
            if "delete" not in file.name:
                file.unlink()
        refused(catalog, "t", 3, DataFileMissing, "is missing")
    assert {path.name for path in (folder / "main/t").iterdir() if path.is_dir()} == set()


def test_as_a_statement(tmp_path: Path) -> None:
    with Lake.attach(f"sqlite:{tmp_path}/meta.sqlite", data_path=f"{tmp_path}/data") as lake:
        lake.sql("CREATE TABLE t (i INT)")
        lake.sql("INSERT INTO t VALUES (1)")
        (row,) = lake.sql("CALL rollback_to_snapshot('t', 1)").collect()
        assert (row.to_snapshot, row.new_snapshot, row.rows_ended) == (1, 3, 1)
        lake.sql("CALL rollback_to_snapshot('t', snapshot => 2)")
        assert lake.catalog.latest().id == 4
