"""Warm servers as they are, in an environment that has the packages: ``.venv-connect``.

``test_the_marked_tests_pass_over_a_warm_server`` runs there what is marked ``warm``, the tests of
this file among them. By hand: ``make warm-tests``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.engine.session.warm import end_server, missing_packages
from penstock.engine.session.warm_files import ServerPlace, ServerRecord
from penstock.project.project import Project
from penstock.scheduler.values import EventKind, TriggerEvent
from penstock.server.opening import open_agenda
from tests.engine.toy import write_project

ROOT = Path(__file__).parents[3]
ENGINE = ROOT / "tests" / "engine"
KILLS = "PENSTOCK_TEST_WARM_KILLS"  # in the environment: `make warm-tests` sets it
PYTHON = ROOT / ".venv-connect" / "bin" / "python"
needs_packages = pytest.mark.skipif(bool(missing_packages()), reason="runs in .venv-connect")

SLOW = {
    "models/slow": """
        -- pipeline
        -- materialize ducklake://main/slow
        SELECT sum(hash(id)) AS n FROM range(1000000000000)
    """,
    "models/quick": """
        -- pipeline
        -- materialize ducklake://main/quick
        SELECT count(*) AS n FROM range(10)
    """,
}
SERVED = SLOW | {
    "models/served": """
        -- pipeline
        -- on webhook name=go
        -- materialize ducklake://main/served
        SELECT count(*) AS n FROM range(10)
    """,
}
TOML = """
[spark]
master = "local[2]"
warm = "30s"
[spark.conf]
"spark.driver.memory" = "768m"
"""
NOTEBOOK = """
import sys
from pyspark.sql import SparkSession
from penstock import Lake, Project

project = Project.load(sys.argv[1], warm=True)
project.sql("SELECT 1").collect()
spark = SparkSession.builder.getOrCreate()
assert spark is project.spark, spark
with Lake.attach("ducklake:sqlite:own.sqlite", data_path="own") as lake:
    lake.sql("CREATE TABLE t AS SELECT 7 AS a")
    lake.register(spark)
    assert spark.table("t").collect()[0].a == 7
assert Project.load(sys.argv[1], warm=True).sql("SELECT 2 AS b").collect()[0].b == 2
"""
RUN = "from penstock.cli.main import main; main()"
PHASE = '"phase": "writing"'  # of an event as JSON


@pytest.mark.skipif(not PYTHON.exists(), reason="`make test` makes .venv-connect")
def test_the_marked_tests_pass_over_a_warm_server() -> None:
    marked = [path for path in ENGINE.rglob("test_*.py") if "pytest.mark.warm" in path.read_text()]
    options = ["--warm", "-m", "warm", "-p", "no:cacheprovider"]
    command = [str(PYTHON), "-m", "pytest", *options, *map(str, marked)]
    ran = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False
    )
    assert ran.returncode == 0, ran.stdout[-6000:]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project whose servers have a directory of their own, and end with the test."""
    yield from _shop(tmp_path, monkeypatch, SLOW)


@pytest.fixture
def served_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same with a model that a message fires."""
    yield from _shop(tmp_path, monkeypatch, SERVED)


def _shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, models: Mapping[str, str]
) -> Iterator[Path]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("SPARK_CONNECT_MODE_ENABLED", raising=False)
    root = write_project(tmp_path / "shop", models)
    with (root / "penstock.toml").open("a") as file:
        file.write(TOML)
    yield root
    for place in _places(root):
        if (record := place.record()) is not None:
            end_server(place, record)


def _places(root: Path) -> list[ServerPlace]:
    return [ServerPlace(path) for path in root.parent.glob("penstock-spark-*/*")]


def _server(root: Path) -> tuple[ServerPlace, ServerRecord]:
    (found,) = [(each, record) for each in _places(root) if (record := each.record())]
    return found


def penstock(root: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *arguments, "--project", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"{text!r} was not printed")


@pytest.mark.warm
@pytest.mark.skipif(KILLS not in os.environ, reason=f"takes a minute: {KILLS}=1")
@needs_packages
def test_kills_of_clients_and_of_the_server(shop: Path) -> None:
    slow = penstock(shop, "run", "slow", "--warm", "--json")
    _wait_for(slow, PHASE)
    place, record = _server(shop)

    # Another client joins, and goes on when the first is killed.
    other = penstock(shop, "sql", "SELECT count(*) FROM range(100000000)", "--warm")
    slow.send_signal(signal.SIGKILL)
    slow.communicate()
    assert "100000000" in other.communicate(timeout=60)[0]
    assert other.returncode == 0
    assert _server(shop) == (place, record)

    # Ctrl-C ends the run's own work only.
    stopped, beside = penstock(shop, "run", "slow", "--warm", "--json"), None
    _wait_for(stopped, PHASE)
    beside = penstock(shop, "run", "quick", "--warm")
    stopped.send_signal(signal.SIGINT)
    stopped.communicate(timeout=60)
    assert stopped.returncode == 130
    said = beside.communicate(timeout=60)[0]
    assert beside.returncode == 0, said

    # The server is killed in a run: the run says so, and the next command has another.
    lost = penstock(shop, "run", "slow", "--warm", "--json")
    _wait_for(lost, PHASE)
    os.kill(record.pid, signal.SIGKILL)
    said = lost.communicate(timeout=60)[0]
    assert lost.returncode == 1
    assert "Spark has ended" in said, said
    again = penstock(shop, "run", "quick", "--warm", "--force")
    said = again.communicate(timeout=90)[0]
    assert again.returncode == 0, said
    assert _server(shop)[1].pid != record.pid


@pytest.mark.warm
@needs_packages
def test_a_server_ends_when_it_is_idle(shop: Path) -> None:
    toml = shop / "penstock.toml"
    toml.write_text(toml.read_text().replace('"30s"', '"1s"'))
    first, second = (penstock(shop, "run", "quick", "--warm") for _ in range(2))
    for each in (first, second):
        said = each.communicate(timeout=90)[0]
        assert each.returncode == 0, said
    (place,) = _places(shop)  # two that start at once start one
    until = time.monotonic() + 20
    while place.is_alive():
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.warm
@pytest.mark.skipif(KILLS not in os.environ, reason=f"takes a minute: {KILLS}=1")
@needs_packages
def test_a_run_beside_serve_outlives_it_and_says_that_spark_was_killed(served_shop: Path) -> None:
    shop = served_shop
    project = Project.load(shop)
    message = TriggerEvent("message:go/1", EventKind.MESSAGE, "go", datetime.now(UTC), payload={})
    assert open_agenda(project.context).accept(message)
    serve = penstock(shop, "serve", "--no-http")
    _wait_for(serve, "ended served: done")
    _, record = _server(shop)
    slow = penstock(shop, "run", "slow", "--json")
    _wait_for(slow, "Spark is that of `penstock serve`")
    _wait_for(slow, PHASE)
    serve.send_signal(signal.SIGTERM)
    serve.communicate(timeout=60)
    assert serve.returncode == 0
    assert slow.poll() is None
    assert _server(shop)[1] == record
    os.killpg(record.pid, signal.SIGKILL)
    said = slow.communicate(timeout=60)[0]
    assert slow.returncode == 1
    assert "Spark has ended" in said, said
    states = {model.model: model.state for model in project.status()}
    assert (states["served"], states["slow"]) == ("materialized", "failed")


@pytest.mark.warm
@needs_packages
def test_a_notebook_joins_the_server_that_a_terminal_started(shop: Path) -> None:
    start = ["-c", RUN, "spark", "start", "--project", str(shop)]
    subprocess.run([str(PYTHON.with_name("python3")), *start], check=True, timeout=120)
    cells = [str(PYTHON), "-c", NOTEBOOK, str(shop)]
    done = subprocess.run(cells, cwd=shop, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    _server(shop)  # the only one
    assert len(_places(shop)) == 1
