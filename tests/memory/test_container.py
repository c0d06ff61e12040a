"""Runs in a control group with little memory, as in a container."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.groups import Group, NoGroups, limited
from tests.memory.merge import ROOT, merge, project, run

ASKED = "PENSTOCK_TEST_MEMORY"  # in the environment: `make memory-tests` sets it
GIB = 1 << 30
GREEDY = """# pipeline
# materialize ducklake://main/greedy

def main():
    kept = []
    while True:
        kept.append(bytearray(64 << 20))
"""
ONE_ROW = "-- pipeline\n-- materialize ducklake://main/t\nSELECT 1 AS a"
MACHINE = "from penstock.spark.memory import this_machine; print(this_machine().container)"


@pytest.fixture
def small() -> Iterator[Group]:
    """A group of 1 GiB."""
    try:
        with limited(GIB) as group:
            yield group
    except NoGroups as reason:
        pytest.skip(str(reason))


def test_the_limit_of_a_group_is_known(small: Group) -> None:
    done = small.run([sys.executable, "-c", MACHINE], cwd=ROOT, env=os.environ)
    assert done.stdout.strip() == str(GIB)


def test_too_small_a_group_is_said_before_spark_starts(small: Group, tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "models" / "orders.sql").write_text(
        "-- pipeline\n-- materialize ducklake://main/t\nSELECT 1 AS a"
    )
    outcome = run(root, small, "run", environ=os.environ)
    assert outcome.code == 2
    assert (
        "Spark and Python need 1,408 MiB of memory, and the container has 1,024" in outcome.output
    )
    assert not (root / "lake").exists()


@pytest.mark.skipif(ASKED not in os.environ, reason="minutes: `make memory-tests`")
def test_ten_million_rows_are_merged_in_three_gib(tmp_path: Path) -> None:
    fill, merged = merge(tmp_path, 3 * GIB, 10_000_000, os.environ)
    assert (fill.code, merged.code) == (0, 0), merged.output
    assert fill.kills + merged.kills == 0
    assert "15,000,000 rows" in merged.output
    assert "of the container's 3 GiB" in merged.output


@pytest.mark.skipif(ASKED not in os.environ, reason="minutes: `make memory-tests`")
def test_a_step_that_takes_all_memory_ends_alone(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "models" / "orders.sql").write_text(ONE_ROW)
    (root / "models" / "greedy.py").write_text(GREEDY)
    with limited(3 * GIB) as group:
        outcome = run(root, group, "run", environ=os.environ)
    assert outcome.kills == 1, outcome.output
    assert "greedy: failed" in outcome.output
    assert "the step's process was killed by signal 9" in outcome.output
    assert "orders: done" in outcome.output
