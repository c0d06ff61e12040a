"""What a DuckDB that stays attached is told by Penstock's commits."""

from __future__ import annotations

from pathlib import Path

from tests.duckdb_process import DuckDBProcess
from tests.lakes.differential.written import judge
from tests.lakes.differential.written.play import play
from tests.lakes.differential.written.script import parse

SCRIPT = """
-- inline: 10
CREATE TABLE t (i INTEGER, v VARCHAR);
@duckdb INSERT INTO t SELECT n, 'x' FROM range(1, 31) AS r(n);
INSERT INTO t VALUES (1000, NULL), (1001, 'y');
INSERT INTO t VALUES (1002, NULL);
"""


def test_an_attached_duckdb_sees_inlined_rows(tmp_path: Path) -> None:
    """By their bounds and NULLs, and its own rows get other ids."""
    theirs, watching = DuckDBProcess("1.5.5"), DuckDBProcess("1.5.5")
    script = parse(SCRIPT, "inlined")
    try:
        played = play(
            None,  # type: ignore[arg-type] # no statement here needs a session
            theirs,
            script,
            "sqlite",
            tmp_path / "lake",
            watching=watching,
        )
    finally:
        theirs.close()
        watching.close()
    assert played.problems == []
    assert judge.of_duckdb(played) == []
    assert any(len(state['"main"."t"']) == 34 for state in played.states.values() if state)
