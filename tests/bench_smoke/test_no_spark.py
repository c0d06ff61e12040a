"""The benchmark of commands without Spark still runs, on a few models."""

from __future__ import annotations

from pathlib import Path

from bench import generated, harness, no_spark


def test_all_columns_are_known(tmp_path: Path) -> None:
    generated.write(tmp_path / "project", 4)
    script = (tmp_path / "project" / "models" / "g0" / "m0003.sql").read_text()
    assert len(script.splitlines()) == 25
    ours = no_spark.sides(tmp_path / "project", tmp_path / "cache")
    seconds = harness.race(ours, 1, warmup=0)
    assert list(seconds) == list(no_spark.GOALS)
    printed = no_spark.run(tmp_path / "project", tmp_path / "cache", ("lineage",))
    assert printed == f"{4 * generated.COLUMNS}\n"
