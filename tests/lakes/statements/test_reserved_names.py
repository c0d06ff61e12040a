"""Columns called as inlined rows call their own: refused where DuckDB refuses them. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from penstock.errors import NameTaken
from penstock.lakes.lake import Lake
from tests import duck
from tests.lakes.statements import twins

MAKE = ("CREATE SCHEMA s", "CREATE TABLE fish (id INT, kind VARCHAR)")
NO_INLINING = "CALL lk.set_option('data_inlining_row_limit', 0)"
# What is done before, and the statement: both engines take it, or neither does.
CASES: tuple[tuple[Sequence[str], str], ...] = (
    *(
        ((), text.format(name))
        for name in ("row_id", "begin_snapshot", "end_snapshot", "ROW_ID", '"Row_Id"')
        for text in ("CREATE TABLE t (x INT, {} INT)", "ALTER TABLE fish ADD COLUMN {} INT")
    ),
    ((), "ALTER TABLE fish RENAME COLUMN kind TO end_snapshot"),
    ((), "CREATE TABLE t (x INT, rowid INT, snapshot_id INT, file_path INT, pos INT)"),
    ((), "CREATE TABLE t (s STRUCT(row_id INT))"),
    ((NO_INLINING,), "CREATE TABLE t (row_id INT)"),
    ((NO_INLINING,), "ALTER TABLE fish RENAME COLUMN kind TO begin_snapshot"),
    (
        ("CALL lk.set_option('data_inlining_row_limit', 0, schema => 's')",),
        "CREATE TABLE s.t (row_id INT)",
    ),
    (
        ("CALL lk.set_option('data_inlining_row_limit', 0, schema => 's')",),
        "CREATE TABLE t (row_id INT)",
    ),
    (
        ("CALL lk.set_option('data_inlining_row_limit', 0, table_name => 'fish')",),
        "ALTER TABLE fish ADD COLUMN row_id INT",
    ),
    (
        (NO_INLINING, "CREATE TABLE t (row_id INT)"),
        "CALL lk.set_option('data_inlining_row_limit', 5)",
    ),
    (
        (NO_INLINING, "CREATE TABLE t (row_id INT)"),
        "CALL lk.set_option('data_inlining_row_limit', 5, table_name => 'fish')",
    ),
)


@pytest.mark.parametrize(("before", "text"), CASES)
def test_as_duckdb_takes_it(tmp_path: Path, before: Sequence[str], text: str) -> None:
    duck.required()
    twins.by_duckdb(tmp_path / "duckdb", (*MAKE, *before))
    said = ""
    with closing(duck.attach(twins.uri(tmp_path / "duckdb"), inline=10)) as theirs:
        try:
            theirs.execute(text)
        except duckdb.Error as error:
            said = str(error)
    assert not said or "reserved" in said
    folder = tmp_path / "penstock"
    folder.mkdir()
    with Lake.attach(twins.uri(folder), data_path=f"{folder}/data", name="lk") as ours:
        for statement in (*MAKE, *before):
            ours.sql(statement)
        if not said:
            ours.sql(text)
            return
        made = len(ours.snapshots())
        with pytest.raises(NameTaken) as caught:
            ours.sql(text)
        assert caught.value.hint
        assert len(ours.snapshots()) == made


def test_a_table_that_has_one_goes_on(tmp_path: Path) -> None:
    """Its rows are written to files, and its other columns change."""
    duck.required()
    folder = tmp_path / "lake"
    folder.mkdir()
    with closing(duck.attach(twins.uri(folder), folder / "data")) as theirs:
        theirs.execute("CREATE TABLE t (row_id INT, x INT)")
    with Lake.attach(twins.uri(folder)) as lake:
        lake.sql("INSERT INTO t VALUES (1, 2)")
        lake.sql("ALTER TABLE t ADD COLUMN y INT")
        lake.sql("ALTER TABLE t RENAME COLUMN row_id TO id")
    assert twins.rows(folder, "FROM t") == [(1, 2, None)]
