"""Steps of past runs made once more over Spark, after other runs, compaction and expiry.

Tests ``engine/verifying/past_step.py``, ``project/repeating.py`` and ``cli/reproduce.py`` as
well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.engine.verifying.reproduce import ReproducedStep, Reproduction
from penstock.errors import ArgumentError
from penstock.events import ignore
from penstock.project.project import Project
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = "-- pipeline\n-- materialize ducklake://main/"
SRC = "SELECT id, at, amount FROM src"
SCRIPTS = {
    "models/whole": f"{HEAD}whole\n-- $n (int) = 1\nSELECT id, amount * $n AS amount FROM src",
    "models/kept": f"{HEAD}kept key=id\n{SRC} WHERE amount > 1",
    "models/added": f"{HEAD}added append\nSELECT max(id) AS id, count(*) AS n FROM src",
    "models/versions": f"{HEAD}versions history key=id\n{SRC}",
    "models/days": "-- pipeline\n-- partitioned daily start=2026-01-01\n"
    "-- materialize ducklake://main/days\nSELECT id FROM src WHERE at = DATE '{partition}'",
    "models/spans": "MODEL (name spans, kind INCREMENTAL_BY_TIME_RANGE (time_column at), "
    "start '2026-01-01', cron '@daily');\n"
    "SELECT id, at FROM src WHERE at BETWEEN @start_date AND @end_date",
    "models/file": f"{HEAD}file\nSELECT x FROM read_csv('in/a.csv', header = true)",
    "models/code.py": "# pipeline\n# materialize ducklake://main/code\n# on ducklake://main/whole\n"
    "# data_test unique n\nimport time\nimport pyarrow\n\ndef main(whole: pyarrow.Table):\n"
    "    return [{'n': len(whole), 'at': time.time_ns()}]\n",
    "models/below": f"{HEAD}below\nSELECT sum(amount) AS amount FROM whole",
    "models/clock": f"{HEAD}clock\nSELECT current_date() AS day FROM src",
}
Runs = tuple[Project, str, str]


def run(project: Project, **asked: Any) -> str:
    done = project.run(from_="2026-01-01", to="2026-01-02", on_event=ignore, **asked)
    assert done.state == "done", [(step.name, step.reason) for step in done.steps]
    return done.run_id


@pytest.fixture(scope="module")
def past(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Two runs with changes of the source in between, and of a definition after them."""
    root = write_project(tmp_path_factory.mktemp("reproduce") / "shop", SCRIPTS)
    (root / "in").mkdir()
    (root / "in" / "a.csv").write_text("x\n1\n2\n")
    with Project.load(root, spark=spark) as project:
        lake = project.lake("main")
        lake.sql("CREATE TABLE src (id INT, at DATE, amount DECIMAL(9, 2))")
        lake.sql(
            "INSERT INTO src VALUES (1, DATE '2026-01-01', 1), (2, DATE '2026-01-02', 2), "
            "(3, DATE '2026-01-02', 3)"
        )
        first = run(project, args={"n": 2})
        lake.sql("UPDATE src SET amount = 30 WHERE id = 3")
        lake.sql("INSERT INTO src VALUES (4, DATE '2026-01-01', NULL)")
        second = run(project, force=True)
        lake.sql("DELETE FROM src WHERE id = 1")
    script = root / "models" / "whole.sql"
    script.write_text(script.read_text().replace("amount * $n", "amount + $n"))
    with Project.load(root, spark=spark) as project:
        project.run("whole", on_event=ignore)
        for table in ("src", "whole", "days", "kept"):
            project.lake("main").sql(f"CALL lake.merge_adjacent_files('{table}')")
        yield project, first, second


def of(done: Reproduction, name: str) -> ReproducedStep:
    return next(each for each in done.steps if each.step == name)


def test_every_step_is_as_it_was(past: Runs) -> None:
    project, first, second = past
    done = project.reproduce(first)
    states = {(each.step, each.slice): each.reason or each.state for each in done.steps}
    assert states.pop(("clock", None)) == "current_date differs from run to run"
    assert states.pop(("code", None)) == "differs"
    assert set(states.values()) == {"same"}, states
    assert len(states) == 9  # two of days
    code = of(done, "code").changes
    assert code is not None
    assert (code.updated, dict(code.columns), done.exit_code) == (1, {"at": 1}, 1)
    for name in ("kept", "added", "versions"):
        assert of(project.reproduce(second, name), name).state == "same", name


def test_arguments_and_definitions_are_those_of_then(past: Runs) -> None:
    """The rows were doubled by an argument, which the script of now adds."""
    project, first, _ = past
    done = of(project.reproduce(first, "whole"), "whole")
    assert done.changes is not None
    assert (done.state, done.changes.same) == ("same", 3)


def test_what_differs_is_shown(past: Runs) -> None:
    """Its code looks at the clock, which nobody can see."""
    project, first, _ = past
    asked = ["reproduce", first, "code", "--project", str(project.settings.root)]
    told = CliRunner().invoke(main, asked)
    assert told.exit_code == 1
    assert "code: differs (1 row different)" in told.output
    assert "updated" in told.output


def test_the_command_says_the_same(past: Runs) -> None:
    project, first, _ = past
    asked = ["reproduce", first, "days", "--project", str(project.settings.root)]
    told = CliRunner().invoke(main, [*asked, "--partition", "2026-01-02"])
    assert (told.exit_code, told.stdout) == (0, "days 2026-01-02: same (2 rows equal)\n")
    found = json.loads(CliRunner().invoke(main, [*asked, "--json"]).stdout)
    assert [(each["slice"], each["state"]) for each in found["steps"]] == [
        ("2026-01-01", "same"), ("2026-01-02", "same"),
    ]  # fmt: skip
    with pytest.raises(ArgumentError, match="has no days 2026-01-09"):
        project.reproduce(first, "days", partition="2026-01-09")
    with pytest.raises(ArgumentError, match="has no nosuch"):
        project.reproduce(first, "nosuch")


def test_what_is_gone_is_named(past: Runs, spark: SparkSession) -> None:
    """The last test: it changes a file, and all but the latest snapshot expires."""
    project, first, _ = past
    (project.settings.root / "in" / "a.csv").write_text("x\n1\n")
    assert of(project.reproduce(first, "file"), "file").reason == (
        "the file in/a.csv has changed since it was read"
    )
    project.lake("main").sql("CALL lake.expire_snapshots(older_than => now())")
    done = project.reproduce(first)
    assert {each.state for each in done.steps} == {"refused"}
    assert done.exit_code == 3
    assert "has expired" in (of(done, "below").reason or "")
