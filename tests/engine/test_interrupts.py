"""Runs that are killed or interrupted: nothing half-written shows, and a re-run mends all.

Tests ``engine/running/publish.py`` (an append that was published by a killed run).
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.engine.state.store import State
from penstock.project.project import Project
from tests.engine.toy import rows, step, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCRIPTS = {
    "models/a_log": """
        -- pipeline
        -- materialize ducklake://main/a_log append
        SELECT id FROM range(3)
    """,
    "models/b_merged": """
        -- pipeline
        -- on ducklake://main/a_log
        -- materialize ducklake://main/b_merged key=id
        -- data_test unique id
        SELECT id, count(*) AS n FROM a_log GROUP BY id
    """,
    "models/c_whole": """
        -- pipeline
        -- materialize ducklake://main/c_whole
        SELECT sum(n) AS n FROM b_merged
    """,
}
SLOW = {
    "models/a_slow": """
        -- pipeline
        -- materialize ducklake://main/a_slow
        SELECT sum(hash(id)) AS n FROM range(1000000000000)
    """,
    "models/b_after": """
        -- pipeline
        -- materialize ducklake://main/b_after
        SELECT * FROM a_slow
    """,
}

# Runs a project and sends itself a signal when a step reaches a phase.
CHILD = """
import os, signal, sys, threading
from penstock.settings.config import SparkSettings
from penstock.events import StepProgress
from penstock.project.project import Project

root, step, phase, sent, delay = sys.argv[1:]

def sink(event):
    if isinstance(event, StepProgress) and (event.step, event.phase) == (step, phase):
        send = lambda: os.kill(os.getpid(), getattr(signal, sent))
        threading.Timer(float(delay), send).start() if float(delay) else send()

overrides = {"spark.master": "local[2]", "spark.conf.spark.driver.memory": "512m"}
result = Project.load(root, overrides=overrides).run(on_event=sink)
print(result.state, *(f"{one.name}={one.state}" for one in result.steps), sep="\\n")
sys.exit(result.exit_code)
"""


def run_child(
    root: Path, step: str, phase: str, sent: str = "SIGKILL", delay: float = 0.0
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CHILD, str(root), step, phase, sent, str(delay)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def tables(project: Project) -> dict[str, list[tuple[object, ...]]]:
    names = ("a_log", "b_merged", "c_whole")
    return {name: rows(project, f"SELECT * FROM {name} ORDER BY ALL") for name in names}


UNDISTURBED = {
    "a_log": [(0,), (1,), (2,)],
    "b_merged": [(0, 1), (1, 1), (2, 1)],
    "c_whole": [(3,)],
}


# While it is tested the catalog has no more of a table than before it is published.
@pytest.mark.parametrize(("killed_in", "phase"), [("a_log", "writing"), ("b_merged", "publishing")])
def test_a_killed_run_shows_nothing_half_written_and_is_taken_up(
    tmp_path: Path, spark: SparkSession, killed_in: str, phase: str
) -> None:
    root = write_project(tmp_path / "toy", SCRIPTS)
    assert run_child(root, killed_in, phase).returncode == -signal.SIGKILL
    with Project.load(root, spark=spark) as project:
        states = {status.model: status.state for status in project.status()}
        assert states[killed_in] == "failed"
        events: list[object] = []
        result = project.run(on_event=events.append)
        assert result.state == "done"
        assert any("was killed" in str(event) for event in events)
        assert tables(project) == UNDISTURBED
        expected = "done" if killed_in == "a_log" else "unchanged"
        assert step(result, "a_log").state == expected
        if phase == "publishing":  # it is taken up once only
            assert step(project.run(), "a_log").state == "done"


def test_a_run_after_one_that_ended_appends_again(tmp_path: Path, spark: SparkSession) -> None:
    with Project.load(write_project(tmp_path / "toy", SCRIPTS), spark=spark) as project:
        project.run()
        assert step(project.run(), "a_log").state == "done"
        assert len(rows(project, "SELECT * FROM a_log")) == 6


@pytest.mark.parametrize("delay", [0.05, 3.0])  # before Spark has a job, and while it has one
def test_ctrl_c_stops_spark_and_leaves_everything_consistent(tmp_path: Path, delay: float) -> None:
    root = write_project(tmp_path / "toy", SLOW)
    done = run_child(root, "a_slow", "writing", "SIGINT", delay=delay)
    assert done.returncode == 130, done.stderr
    assert done.stdout.split() == ["cancelled", "a_slow=cancelled", "b_after=cancelled"]
    assert done.stderr == ""
    with Project.load(root) as project:
        assert [status.state for status in project.status()] == ["failed", "missing"]
        (last,) = project.show("a_slow").runs
        assert last.state == "cancelled"
        run = State(project.lake("main").catalog).run(last.run_id)
        assert run is not None
        assert run.state == "cancelled"
    assert list((root / "lake").rglob("*.parquet")) == []
