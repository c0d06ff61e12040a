"""Maintenance in an open transaction: rows and changes of each snapshot are those of DuckDB.

Tests ``lakes/statements/call.py``, ``lakes/maintenance/calls.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import CommitConflict, LakeError
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.conftest import table_of

ADD = "CALL ducklake_add_data_files('lk', 't', '{file}')"
ADD_MORE = "CALL ducklake_add_data_files('lk', 't', '{more}')"
FLUSH = "CALL ducklake_flush_inlined_data('lk')"
REWRITE = "CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0.1)"
MERGE = "CALL lk.merge_adjacent_files()"
OPTION = "CALL lk.set_option('target_file_size', '10MB')"
INSERT, DELETE = "INSERT INTO t VALUES (5)", "DELETE FROM t WHERE a = 7"
DELETING = ["BEGIN", FLUSH, ADD, DELETE, "COMMIT", "BEGIN", REWRITE, DELETE, "COMMIT"]
ASKED = "SELECT a FROM t"
OPTIONS = "SELECT option_name, value FROM lk.options()"
SCRIPTS = [
    ["BEGIN", ADD, INSERT, "COMMIT"],
    ["BEGIN", INSERT, ADD, "ROLLBACK"],
    ["BEGIN", ADD, "DELETE FROM t", INSERT, "COMMIT"],
    ["BEGIN", ADD, "DELETE FROM t", "ROLLBACK"],
    ["BEGIN", FLUSH, INSERT, "COMMIT", "BEGIN", REWRITE, INSERT, "COMMIT"],
    ["BEGIN", FLUSH, "ROLLBACK", INSERT],
    ["BEGIN", INSERT, FLUSH, INSERT, "COMMIT", INSERT],
    ["BEGIN", FLUSH, "DELETE FROM t", "ROLLBACK"],
    ["BEGIN", "CREATE TABLE u (b INTEGER)", "INSERT INTO u VALUES (1)", FLUSH, "COMMIT"],
    [ADD, ADD_MORE, "BEGIN", MERGE, "COMMIT", INSERT],
    [ADD, ADD_MORE, "BEGIN", MERGE, "ROLLBACK", INSERT],
    ["BEGIN", "CHECKPOINT lk", "ROLLBACK"],
    ["BEGIN", OPTION, INSERT, "COMMIT"],
    ["BEGIN", OPTION, "COMMIT"],
    ["BEGIN", OPTION, "ROLLBACK"],
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("duck", "penstock"):  # a file is the lake's once it was added: one for each
        for values, more in (([7, 8], ""), ([9], "_more")):
            rows = pa.table({"a": pa.array(values, pa.int32())})
            pq.write_table(rows, tmp_path / f"{name}{more}.parquet")
    return tmp_path


@pytest.fixture
def plain(folder: Path) -> Iterator[Lake]:
    """Without Spark."""
    uri = f"ducklake:sqlite:{folder}/m.sqlite"
    with Lake.attach(uri, data_path=f"{folder}/d", name="lk") as attached:
        yield attached


def steps(run: Callable[[str], Any], script: list[str], file: Path) -> None:
    run("CREATE TABLE t (a INTEGER)")
    run("INSERT INTO t VALUES (1), (2), (7)")
    for statement in script:
        run(statement.format(file=file, more=file.with_stem(f"{file.stem}_more")))


def in_duckdb(script: list[str], folder: Path) -> tuple[list[Any], dict[str, str]]:
    """The rows of ``t`` at each snapshot, and the options."""
    with duck.attach(f"ducklake:sqlite:{folder}/duck.sqlite", folder / "duck", inline=10) as con:
        steps(lambda text: con.execute(text).fetchall(), script, folder / "duck.parquet")
        return history(con), dict(con.execute(OPTIONS).fetchall())


def history(con: duckdb.DuckDBPyConnection) -> list[Any]:
    """Each snapshot's changes and the rows, with their ids, that ``t`` has there."""
    changes = con.execute("SELECT snapshot_id, changes FROM lk.snapshots() ORDER BY 1").fetchall()
    rows = "SELECT rowid, a FROM t AT (VERSION => {}) ORDER BY 1"
    return [
        (version, made, version and con.execute(rows.format(version)).fetchall())
        for version, made in changes
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: " ".join(script)[:60])
def test_as_in_duckdb(plain: Lake, folder: Path, script: list[str]) -> None:
    expected, options = in_duckdb(script, folder)
    steps(plain.sql, script, folder / "penstock.parquet")
    mine = {option.name: option.value for option in plain.options()}
    assert mine.get("target_file_size") == options.get("target_file_size")
    plain.close()
    with duck.attach(f"ducklake:sqlite:{folder}/m.sqlite") as con:
        assert history(con) == expected
    assert (folder / "penstock.parquet").exists()


@pytest.mark.spark
def test_deleting_from_files_that_were_added(lake: Lake, folder: Path) -> None:
    expected, _ = in_duckdb(DELETING, folder)
    steps(lambda text: lake.sql(text.replace("lk", "lake")), DELETING, folder / "penstock.parquet")
    assert sorted(table_of(lake.sql(ASKED))) == sorted((a,) for _, a in expected[-1][2])


def test_rewriting(folder: Path) -> None:
    uri = f"ducklake:sqlite:{folder}/m.sqlite"
    with duck.attach(uri, folder / "d") as con:
        steps(con.execute, ["DELETE FROM t WHERE a < 3"], folder)
        before = [rows for *_, rows in history(con)]
    for end in ("ROLLBACK", "COMMIT"):
        with Lake.attach(uri, name="lk") as lake:
            (row,) = lake.sql(f"BEGIN; {REWRITE}").collect()
            assert (row.files_processed, row.files_created) == (1, 1)
            lake.sql(end)
        with duck.attach(uri) as con:
            rows = [rows for *_, rows in history(con)]
        assert rows == before + before[-1:] * (end == "COMMIT")


def test_a_flush_is_left_out_where_its_rows_go(plain: Lake, folder: Path) -> None:
    """DuckDB 1.5.5 loses the rows of snapshot 2 there."""
    steps(plain.sql, ["BEGIN", FLUSH, "DELETE FROM t", INSERT, "COMMIT"], folder)
    assert not {*(folder / "d").rglob("*.parquet")}
    plain.close()
    with duck.attach(f"ducklake:sqlite:{folder}/m.sqlite") as con:
        rows = [rows for *_, rows in history(con)]
    assert rows == [0, [], [(0, 1), (1, 2), (2, 7)], [(3, 5)]]


def test_refused(plain: Lake, folder: Path) -> None:
    plain.sql("CREATE TABLE t (a INTEGER)")
    add = ADD.format(file=folder / "penstock.parquet")
    plain.sql(f"BEGIN; {add}")
    with pytest.raises(CommitConflict, match="added twice"):
        plain.sql(add)
    plain.sql("ROLLBACK")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([ADD, ADD_MORE, "BEGIN", INSERT, MERGE], "cannot both compact data files"),
        ([ADD, ADD_MORE, "BEGIN", MERGE, INSERT], "cannot both compact data files"),
        ([ADD, ADD_MORE, "BEGIN", MERGE, FLUSH], "cannot both compact data files"),
        ([ADD, ADD_MORE, "BEGIN", MERGE, MERGE], "compacted twice"),
        (["BEGIN", "DELETE FROM t", FLUSH], "other than new rows"),
        (["BEGIN", "ALTER TABLE t ADD COLUMN b INTEGER", FLUSH], "other than new rows"),
    ],
)
def test_what_excludes_each_other(
    plain: Lake, folder: Path, script: list[str], reason: str
) -> None:
    *before, last = script
    steps(plain.sql, before, folder / "penstock.parquet")
    with pytest.raises(LakeError, match=reason):
        plain.sql(last)
    plain.sql("ROLLBACK")
    staged = {*(folder / "d").rglob("*.parquet")}
    assert not staged, "what was staged went with the transaction"


def test_two_that_compact_one_table(plain: Lake, folder: Path) -> None:
    steps(plain.sql, [ADD, ADD_MORE, "BEGIN", MERGE], folder / "penstock.parquet")
    with Lake.attach(f"ducklake:sqlite:{folder}/m.sqlite") as other:
        other.merge_adjacent_files()
    with pytest.raises(CommitConflict, match=r"compacted main\.t too"):
        plain.sql("COMMIT")
    assert len({*(folder / "d").rglob("*.parquet")}) == 1
