"""What keeps a lake in order, inside an open transaction: the rows after each step as in DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import CommitConflict, LakeError
from penstock.lake.lake import Lake
from tests import duck
from tests.lake.conftest import table_of

ADD = "CALL ducklake_add_data_files('lk', 't', '{file}')"
FLUSH = "CALL ducklake_flush_inlined_data('lk')"
REWRITE = "CALL ducklake_rewrite_data_files('lk', 't', delete_threshold => 0.1)"
OPTION = "CALL lk.set_option('target_file_size', '10MB')"
INSERT, DELETE = "INSERT INTO t VALUES (5)", "DELETE FROM t WHERE a = 7"
DELETING = ["BEGIN", FLUSH, ADD, DELETE, "COMMIT", "BEGIN", REWRITE, DELETE, "COMMIT"]
ASKED = "SELECT a FROM t"
SCRIPTS = [
    ["BEGIN", ADD, INSERT, "COMMIT"],
    ["BEGIN", INSERT, ADD, "ROLLBACK"],
    ["BEGIN", ADD, "DELETE FROM t", INSERT, "COMMIT"],
    ["BEGIN", ADD, "DELETE FROM t", "ROLLBACK"],
    ["BEGIN", FLUSH, INSERT, "COMMIT", "BEGIN", REWRITE, INSERT, "COMMIT"],
    ["BEGIN", FLUSH, "ROLLBACK", INSERT],
    ["BEGIN", "CHECKPOINT lk", "ROLLBACK"],
    ["BEGIN", OPTION, INSERT, "COMMIT"],
    ["BEGIN", OPTION, "COMMIT"],
    ["BEGIN", OPTION, "ROLLBACK"],
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("duck", "penstock"):  # a file is the lake's once it was added: one for each
        rows = pa.table({"a": pa.array([7, 8], pa.int32())})
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.fixture
def plain(folder: Path) -> Iterator[Lake]:
    """Without Spark."""
    uri = f"ducklake:sqlite:{folder}/m.sqlite"
    with Lake.attach(uri, data_path=f"{folder}/d", name="lk") as found:
        yield found


def steps(run: Callable[[str], Any], script: list[str], file: Path) -> None:
    run("CREATE TABLE t (a INTEGER)")
    run("INSERT INTO t VALUES (1), (2), (7)")
    for statement in script:
        run(statement.format(file=file))


def in_duckdb(script: list[str], folder: Path) -> tuple[list[Any], dict[str, str]]:
    with duck.attach(f"ducklake:sqlite:{folder}/duck.sqlite", folder / "duck", inline=10) as con:
        steps(lambda text: con.execute(text).fetchall(), script, folder / "duck.parquet")
        rows = sorted(con.execute(ASKED).fetchall())
        return rows, dict(con.execute("SELECT option_name, value FROM lk.options()").fetchall())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: " ".join(script)[:60])
def test_as_in_duckdb(plain: Lake, folder: Path, script: list[str]) -> None:
    expected, options = in_duckdb(script, folder)
    steps(plain.sql, script, folder / "penstock.parquet")
    mine = {option.name: option.value for option in plain.options()}
    assert mine.get("target_file_size") == options.get("target_file_size")
    plain.close()
    assert duck.rows(f"ducklake:sqlite:{folder}/m.sqlite", ASKED) == expected
    assert (folder / "penstock.parquet").exists()


@pytest.mark.spark
def test_deleting_from_files_that_were_added(lake: Lake, folder: Path) -> None:
    expected, _ = in_duckdb(DELETING, folder)
    steps(lambda text: lake.sql(text.replace("lk", "lake")), DELETING, folder / "penstock.parquet")
    assert table_of(lake.sql(ASKED)) == expected


def test_refused(plain: Lake, folder: Path) -> None:
    plain.sql("CREATE TABLE t (a INTEGER)")
    add = ADD.format(file=folder / "penstock.parquet")
    plain.sql(f"BEGIN; {add}")
    with pytest.raises(CommitConflict, match="added twice"):
        plain.sql(add)
    plain.sql("ROLLBACK")
    plain.sql(f"BEGIN; {INSERT}")
    with pytest.raises(LakeError, match="has changed something"):
        plain.sql(FLUSH)
    plain.sql("ROLLBACK")
