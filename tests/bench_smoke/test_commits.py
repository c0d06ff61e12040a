"""The benchmark of one-row commits still runs; both sides leave the same rows. No Spark is used."""

from __future__ import annotations

from pathlib import Path

from bench import commits, harness

from tests import duck


def test_both_sides_commit_the_same_rows(tmp_path: Path) -> None:
    duck.required()

    def uri(name: str) -> str:
        return f"ducklake:sqlite:{tmp_path / name}.sqlite"

    harness.race(commits.sides(tmp_path, "SQLite", uri, 2), 1, warmup=0)
    ours, theirs = (duck.rows(uri(name), "SELECT rowid, * FROM t") for name in ("ours", "theirs"))
    assert ours == theirs
    assert len(ours) == 2
