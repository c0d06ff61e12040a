"""Steps in Python in a run: staged, tested and published as a SELECT's rows are.

Tests ``engine/python/frames.py`` (rows of Python values, typed as the table's) and
``engine/python/serve.py`` (what a step reads and hands over).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.engine.results import StepResult
from penstock.engine.state.store import State
from penstock.errors import DataTestFailed, PythonFailed
from penstock.events import Event, Notice, StepOutput, ignore
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.python.test_runners import are_gone, pids
from tests.engine.toy import rows, step, write_project

pytestmark = pytest.mark.spark

ORDERS = """
-- pipeline
-- materialize ducklake://main/orders
SELECT * FROM VALUES (1, 10.5, '2026-01-01'), (2, 3.25, '2026-01-02') AS v(id, amount, day)
"""
DOUBLED = """
# pipeline
# on ducklake://main/orders
# materialize ducklake://main/doubled key=id
# partitioned daily
# data_test accepted_range amount max=100
import pyarrow as pa

def main(partition: str, orders: pa.Table, factor: int = 2) -> list[dict]:
    print("making", partition)
    return [
        {"id": row["id"], "amount": row["amount"] * factor}
        for row in orders.to_pylist() if row["day"] == partition
    ]
"""


def run(project: Project, name: str, day: str | None = None, **args: object) -> StepResult:
    return step(project.run(day, select=name, args=args, on_event=ignore), name)


def test_rows_are_merged_into_the_slice_and_tested(make: Make) -> None:
    project = make({"models/orders": ORDERS, "models/doubled.py": DOUBLED})
    heard: list[Event] = []
    result = project.run("2026-01-01", on_event=heard.append)
    assert [each.state for each in result.steps] == ["done", "done"], result.steps
    assert StepOutput("doubled", "making 2026-01-01") in heard
    assert run(project, "doubled", "2026-01-02").rows == 1
    assert run(project, "doubled", "2026-01-02").state == "unchanged"
    failed = run(project, "doubled", "2026-01-02", factor=100)
    assert isinstance(failed.error, DataTestFailed)
    query = "SELECT id, CAST(amount AS STRING), _wm_partition FROM doubled ORDER BY id"
    assert rows(project, query) == [(1, "21.00", "2026-01-01"), (2, "6.50", "2026-01-02")]
    states = {each.slice: each.state for each in project.status("doubled")[0].slices}
    assert states == {"2026-01-01": "materialized", "2026-01-02": "failed"}


SPARK = """
# pipeline
# on ducklake://main/orders
# materialize ducklake://main/spark_made
import sys
from pyspark.sql import DataFrame, SparkSession, functions as fn

def main(spark: SparkSession, orders: DataFrame) -> DataFrame:
    print("rows", orders.count(), file=sys.stderr)
    return orders.select("id", (fn.col("amount") * 2).alias("twice"))
"""


def test_spark_is_given_in_process_with_a_notice(make: Make) -> None:
    project = make({"models/orders": ORDERS, "models/spark_made.py": SPARK})
    heard: list[Event] = []
    result = project.run(on_event=heard.append)
    assert step(result, "spark_made").rows == 2, result.steps
    assert StepOutput("spark_made", "rows 2", "stderr") in heard
    notices = [each for each in heard if isinstance(each, Notice) and each.step == "spark_made"]
    assert "runs in the run's own process" in notices[0].message
    assert rows(project, "SELECT CAST(twice AS STRING) FROM spark_made WHERE id = 1") == [
        ("21.00",)
    ]


HELPERS = """
# pipeline
# partitioned daily
# data_test not_null id
import penstock

lake = penstock.lake("main")
SQL = "SELECT id, day FROM orders WHERE day = '{partition}'"

def main(partition: str) -> None:
    lake.upsert_partition("helped", lake.query(SQL), key="id")
    lake.upsert_partition("helped", [{"id": 99, "day": partition}], "id")
"""


@pytest.mark.warm
def test_helpers_merge_within_the_slice(make: Make) -> None:
    project = make({"models/orders": ORDERS, "models/helped.py": HELPERS})
    assert step(project.run("2026-01-01", on_event=ignore), "helped").rows == 2
    assert run(project, "helped", "2026-01-02").rows == 2
    assert rows(project, "SELECT id, day, _wm_partition FROM helped ORDER BY day, id") == [
        (1, "2026-01-01", "2026-01-01"),
        (99, "2026-01-01", "2026-01-01"),
        (2, "2026-01-02", "2026-01-02"),
        (99, "2026-01-02", "2026-01-02"),
    ]
    assert run(project, "helped", "2026-01-02").state == "unchanged"
    assert [check.result.passed for check in project.tests("helped")] == [True, True]


WRITER = """
# pipeline
# partitioned daily
import penstock
RAW = "raw/{partition}/orders.json"
def main(partition: str):
    penstock.lake("main").write_file(RAW, [{"id": 1, "day": partition}])
"""
READER = """
# pipeline
# partitioned daily
# materialize ducklake://main/reader append
import json
import penstock
RAW = "raw/{partition}/orders.json"
def main(partition: str, payload: dict):
    print(payload)
    penstock.lake().write_file("out/{partition}.txt", "seen")
    return json.loads(penstock.lake().read_file(RAW))
"""


def test_files_are_recorded_as_slices(make: Make, tmp_path: Path) -> None:
    project = make({"models/writer.py": WRITER, "models/reader.py": READER})
    heard: list[Event] = []
    result = project.run("2026-01-01", payload={"x": 1}, on_event=heard.append)
    assert [(each.name, each.state) for each in result.steps] == [
        ("writer", "done"),
        ("reader", "done"),
    ], result.steps
    assert StepOutput("reader", "{'x': 1}") in heard
    file = tmp_path / "toy" / "raw" / "2026-01-01" / "orders.json"
    assert file.read_text() == '[{"id": 1, "day": "2026-01-01"}]'
    assert (tmp_path / "toy" / "out" / "2026-01-01.txt").read_text() == "seen"
    written = State(project.lake("main").catalog).slice("out/{partition}.txt", "2026-01-01")
    assert written is not None
    assert (written.step, written.strategy) == ("reader", "files")
    assert run(project, "writer", "2026-01-01").state == "unchanged"
    status = project.status("writer")[0]
    assert (status.target, status.state, status.rows) == (
        "raw/{partition}/orders.json",
        "materialized",
        None,
    )
    file.unlink()
    assert run(project, "writer", "2026-01-01").state == "done"
    assert [each.model for each in project.status()] == ["reader", "writer"]


FAILING = """
# pipeline
# materialize ducklake://main/failing key=id
# retry 1
from pathlib import Path
import penstock

def main(how: str):
    with Path("tries").open("a") as file:
        file.write("x")
    return PIECES[how]()

def late():
    if Path("tries").read_text() == "x":
        raise ValueError("too early")
    return [{"id": 1}]

def other():
    penstock.lake("main").upsert_partition(how_called(), [{"id": 1}])

def how_called():
    return "oth" + "er"

def both():
    penstock.lake("main").upsert_partition("failing", [{"id": 1}])
    return [{"id": 2}]

PIECES = {
    "late": late, "other": other, "both": both,
    "none": lambda: None, "empty": lambda: [], "columns": lambda: [{"it": 1}],
    "nulls": lambda: [{"id": 1, "x": None}],
    "types": lambda: [{"id": "x"}], "twice": lambda: [{"id": 1}, {"id": 1}],
}
"""


@pytest.fixture
def failing(make: Make) -> Project:
    return make({"models/failing.py": FAILING})


def test_what_a_step_does_wrong(failing: Project, tmp_path: Path) -> None:
    def error(how: str) -> str:
        result = run(failing, "failing", how=how)
        assert result.error is not None, result
        where = result.error.location
        assert where is not None
        assert Path(where.path).name == "failing.py"
        return f"{where.line}: {result.error.message}"

    first = error("empty")
    assert first.startswith("7: main returned an empty list, and main.failing does not exist yet")
    assert run(failing, "failing", how="late").rows == 1
    assert (tmp_path / "toy" / "tries").read_text() == "xx", "of the first; it is not retried"
    assert error("none") == "7: main returned no rows"
    assert error("both") == "7: main returned rows, and wrote others by a helper"
    assert "the step writes main.other, and its table is main.failing" in error("other")
    assert "id" in error("columns")
    assert "id" in error("types")
    assert error("nulls") == "7: column x is None in every row, so it has no type"
    assert "1" in error("twice")
    assert run(failing, "failing", how="empty").state == "unchanged"
    assert rows(failing, "SELECT * FROM failing") == [(1,)]


def test_a_step_that_takes_too_long(make: Make, tmp_path: Path) -> None:
    slow = DOUBLED.replace('print("making", partition)', "import time; time.sleep(60)")
    text = slow.replace("# on", "# timeout 3s\n# on")
    project = make({"models/orders": ORDERS, "models/doubled.py": text})
    failed = step(project.run("2026-01-01", on_event=ignore), "doubled").error
    assert isinstance(failed, PythonFailed)
    assert failed.message == "the step ran past its timeout of 3 s and was stopped"
    assert failed.location is not None
    assert failed.location.line == 2
    assert [table.name for table in project.lake("main").tables()] == ["orders"]


KILLED = """
# pipeline
# materialize ducklake://main/killed
import os, subprocess, time
def main():
    other = subprocess.Popen(["sleep", "300"])
    with open("pids.tmp", "w") as out:
        out.write(f"{os.getpid()} {other.pid}")
    os.rename("pids.tmp", "pids")
    time.sleep(300)
"""
CHILD = """
import sys
from penstock.project.project import Project
overrides = {"spark.master": "local[1]", "spark.conf.spark.driver.memory": "512m"}
Project.load(sys.argv[1], overrides=overrides).run()
"""


def test_a_killed_run_leaves_no_table_no_slice_and_no_process(tmp_path: Path) -> None:
    root = write_project(tmp_path / "toy", {"models/killed.py": KILLED})
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(root)], stderr=subprocess.DEVNULL)
    numbers = pids(root)
    time.sleep(0.2)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert are_gone(numbers)
    with Project.load(root) as project:
        (status,) = project.status()
        assert (status.state, status.rows) == ("failed", None)


EXPORT = """
# pipeline
# partitioned daily
import json
from pathlib import Path
import penstock
OUT = "exports/{partition}/x.json"

def main(partition: str) -> None:
    penstock.lake("main").write_file(OUT, json.dumps({"v": Path("v.txt").read_text()}))
"""
OF_EXPORT = """
-- partitioned daily
-- materialize ducklake://main/aa
SELECT * FROM read_json('./exports/' || '{partition}' || '/x.json', columns = {'v': 'VARCHAR'})
"""


def test_a_query_reads_the_file_that_a_step_of_its_run_wrote(make: Make, tmp_path: Path) -> None:
    project = make({"models/zz.py": EXPORT, "models/aa": OF_EXPORT})
    for value in ("one", "two"):
        (tmp_path / "toy" / "v.txt").write_text(value)
        result = project.run("2026-01-01", on_event=ignore)
        assert [(each.name, each.state) for each in result.steps] == [
            ("zz", "done"),
            ("aa", "done"),
        ]
        assert rows(project, "SELECT v FROM aa") == [(value,)]
    (tmp_path / "toy" / "v.txt").unlink()
    result = project.run("2026-01-01", on_event=ignore)
    assert [each.state for each in result.steps] == ["failed", "skipped"]
