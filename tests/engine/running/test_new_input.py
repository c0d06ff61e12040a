"""``incremental files``: each file is read once, whatever happens meanwhile."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select, text

from penstock.engine.planning.files_read import file_read, hash_of
from penstock.engine.running.new_input import NewFiles, choose
from penstock.engine.state.records import InputRead
from penstock.engine.state.store import State
from penstock.engine.state.tables import READ
from penstock.errors import DefinitionChanged, QueryFailed
from penstock.events import ignore
from penstock.lakes.lake import Lake
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.running.test_two_runs import both
from tests.engine.toy import rows, step, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


HEAD = "-- pipeline\n-- materialize ducklake://main/t {}\n-- incremental files\n"
QUERY = "SELECT id, name FROM read_csv('in/*.csv')"


def put(root: Path, name: str, *lines: str) -> Path:
    path = root / "in" / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("id,name", *lines)) + "\n")
    return path


def read_of(root: Path, *paths: Path) -> list[InputRead]:
    return [replace(file_read(path, root), hash=hash_of(path)) for path in paths]


def by_name(files: Sequence[InputRead]) -> dict[str, InputRead]:
    return {file.name: file for file in files}


def test_a_file_is_known_by_name_size_time_and_content(tmp_path: Path) -> None:
    a, b, c, d = (put(tmp_path, name, f"1,{name}") for name in "abcd")
    before = by_name(read_of(tmp_path, a, b, c))
    os.utime(a, ns=(1, 1))
    put(tmp_path, "b", "1,x")
    os.utime(b, ns=(2, 2))
    put(tmp_path, "c", "1,longer")
    now = [file_read(path, tmp_path) for path in (a, b, c, d)]
    choice = choose(now, before, tmp_path)
    assert [file.name for file in choice.new] == ["in/d.csv"]
    assert [file.name for file in choice.changed] == ["in/b.csv", "in/c.csv"]
    seen = by_name(choice.seen)
    assert (seen["in/a.csv"].time, seen["in/b.csv"]) == (1, before["in/b.csv"])


def test_files_that_are_gone_stay_known(tmp_path: Path) -> None:
    a, b = (put(tmp_path, name, "1,x") for name in "ab")
    before = by_name(read_of(tmp_path, a, b))
    choice = choose([file_read(b, tmp_path)], before, tmp_path)
    assert (choice.new, choice.changed, len(choice.seen)) == ((), (), 2)


def test_a_file_must_not_change_while_it_is_read(tmp_path: Path) -> None:
    a = put(tmp_path, "a", "1,x")
    made = NewFiles({}, tuple(read_of(tmp_path, a)), ())
    made.require_unchanged(tmp_path)
    put(tmp_path, "a", "1,x", "2,y")
    with pytest.raises(QueryFailed, match=r"in/a\.csv changed while it was read"):
        made.require_unchanged(tmp_path)


def load(root: Path, spark: SparkSession, options: str = "append", query: str = QUERY) -> Project:
    return Project.load(
        write_project(root, {"models/t": HEAD.format(options) + query}), spark=spark
    )


def notices(project: Project, *, full_refresh: bool = False) -> tuple[str, list[str]]:
    result = project.run(select="t", on_event=ignore, full_refresh=full_refresh)
    return result.steps[0].state, [notice.message for notice in result.notices]


ALL = "SELECT * FROM t ORDER BY ALL"


@pytest.mark.spark
def test_an_append_reads_each_file_once(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path, "a", "1,x")
    put(tmp_path, "b", "2,y")
    with load(tmp_path, spark) as project:
        assert notices(project) == ("done", [])
        before = len(project.snapshots())
        assert notices(project) == ("unchanged", [])
        assert len(project.snapshots()) == before
        put(tmp_path, "c", "3,z").with_suffix(".tmp")
        assert notices(project) == ("done", [])
        assert rows(project, ALL) == [(1, "x"), (2, "y"), (3, "z")]
        state = State(project.lake("main").catalog)
        with state.reading() as connection:
            assert connection is not None
            assert connection.execute(select(func.count()).select_from(READ)).scalar() == 1


@pytest.mark.spark
def test_a_changed_file_is_left_by_an_append(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path, "a", "1,x")
    with load(tmp_path, spark) as project:
        notices(project)
        put(tmp_path, "a", "1,x", "2,y")
        said = (
            "in/a.csv has changed since the rows were appended, and stays as it was read: "
            "`penstock run t --full-refresh` reads all files again"
        )
        assert notices(project) == ("unchanged", [said])
        assert notices(project) == ("unchanged", [said])
        assert rows(project, ALL) == [(1, "x")]
        assert notices(project, full_refresh=True)[0] == "done"
        assert rows(project, ALL) == [(1, "x"), (2, "y")]
        assert notices(project) == ("unchanged", [])


@pytest.mark.spark
def test_a_merge_reads_a_changed_file_again(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path, "a", "1,x")
    put(tmp_path, "b", "2,y")
    with load(tmp_path, spark, "key=id") as project:
        notices(project)
        put(tmp_path, "a", "1,new", "3,z")
        assert notices(project) == ("done", [])
        assert rows(project, ALL) == [(1, "new"), (2, "y"), (3, "z")]
        assert notices(project) == ("unchanged", [])
    with load(tmp_path, spark, "key=id", QUERY + " WHERE id > 0") as project:
        assert notices(project)[1] == ["reads all files: the model has changed"]


@pytest.mark.spark
def test_a_run_that_fails_has_read_nothing(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path, "a", "1,x")
    with load(tmp_path, spark) as project:
        notices(project)
        put(tmp_path, "b", "2,y", "3")
        result = project.run(on_event=ignore)
        assert "in/b.csv, line 3: the row has 1 of 2 columns" in str(result.steps[0].error)
        put(tmp_path, "b", "2,y", "3,z")
        assert notices(project) == ("done", [])
        assert rows(project, ALL) == [(1, "x"), (2, "y"), (3, "z")]


@pytest.mark.spark
def test_two_runs_at_once_read_each_file_once(tmp_path: Path, spark: SparkSession) -> None:
    for name in "abc":
        put(tmp_path, name, f"{ord(name)},{name}")
    with load(tmp_path, spark) as project:
        results = both(project, spark, {})
        assert [result.state for result in results] == ["done", "done"]
        assert rows(project, ALL) == [(97, "a"), (98, "b"), (99, "c")]
        put(tmp_path, "d", "100,d")
        both(project, spark, {})
        assert rows(project, "SELECT count(*) FROM t") == [(4,)]


@pytest.mark.spark
def test_a_rollback_and_an_append_of_before(tmp_path: Path, spark: SparkSession) -> None:
    put(tmp_path, "a", "1,x")
    header = HEAD.format("append").replace("-- incremental files\n", "")
    plain = write_project(tmp_path, {"models/t": header + QUERY})
    with Project.load(plain, spark=spark) as project:
        project.run(on_event=ignore)
    with load(tmp_path, spark) as project:
        assert notices(project) == ("unchanged", [])  # what an ordinary append has read is known
        put(tmp_path, "b", "2,y")
        notices(project)
        first = project.snapshots()[-2].id
        project.lake("main").table("t").rollback(version=first)
        result = project.run(on_event=ignore)
        assert "cannot tell which files are new: main.t was rolled back" in str(
            result.steps[0].error
        )


KILLED = """
import os, signal, sys
from penstock.events import StepFinished, StepProgress
from penstock.project.project import Project

def sink(event):
    is_publishing = isinstance(event, StepProgress) and event.phase == "publishing"
    if is_publishing if sys.argv[2] == "before" else isinstance(event, StepFinished):
        os.kill(os.getpid(), signal.SIGKILL)

Project.load(sys.argv[1], overrides={"spark.master": "local[1]"}).run(on_event=sink)
"""


@pytest.mark.spark
@pytest.mark.parametrize(("moment", "left"), [("before", 1), ("after", 2)])
def test_a_run_that_is_killed_has_read_all_of_a_file_or_nothing(
    tmp_path: Path, spark: SparkSession, moment: str, left: int
) -> None:
    """Before its commit, or after it and before anything else is recorded."""
    put(tmp_path, "a", "1,x")
    with load(tmp_path, spark) as project:
        notices(project)
        put(tmp_path, "b", "2,y")
        command = [sys.executable, "-c", KILLED, str(tmp_path), moment]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == -signal.SIGKILL, done.stderr
    with load(tmp_path, spark) as project:
        assert rows(project, "SELECT count(*) FROM t") == [(left,)]
        notices(project)
        assert rows(project, ALL) == [(1, "x"), (2, "y")]


DECLARED = "SELECT id, name FROM read_csv('in/*.csv', columns = {'id': 'INT', 'name': 'VARCHAR'})"


@pytest.mark.spark
def test_an_empty_directory_makes_an_empty_table(tmp_path: Path, spark: SparkSession) -> None:
    with load(tmp_path, spark, query=DECLARED) as project:
        assert notices(project) == ("done", [])
        assert rows(project, ALL) == []
        put(tmp_path, "a", "1,x")
        (slice_,) = project.status("t")[0].slices
        assert (slice_.state, slice_.reason) == ("behind", "file in/a.csv is new")
        assert notices(project) == ("done", [])
        assert rows(project, ALL) == [(1, "x")]
        (tmp_path / "in/a.csv").unlink()
        assert notices(project) == ("unchanged", [])
        assert rows(project, ALL) == [(1, "x")]


@pytest.mark.spark
def test_an_empty_directory_says_that_columns_are_not_known(
    tmp_path: Path, spark: SparkSession
) -> None:
    with load(tmp_path, spark) as project:
        (step,) = project.run(on_event=ignore).steps
        assert step.error is not None
        assert step.error.message == "there is no file in/*.csv yet, which would say the columns"
        assert "columns = {'id': 'BIGINT', ...}" in str(step.error.hint)


CHANGES_QUERY = "SELECT id, upper(name) AS name, n * 2 AS n FROM src WHERE n > 0"
MERGE = "-- pipeline\n-- materialize ducklake://main/{} key=id\n"
LOG = "-- pipeline\n-- materialize ducklake://main/log append\n-- incremental changes\n"
CHANGING = "-- incremental changes\n"
MODELS = {
    "models/some": MERGE.format("some") + CHANGING + CHANGES_QUERY,
    "models/whole": MERGE.format("whole") + CHANGES_QUERY,
}
MADE = "CREATE TABLE src (id INT, name STRING, n INT)"


def change(lake: Lake, chance: random.Random) -> None:
    """A change of some rows, in one of the forms that it may have."""
    key, n = chance.randrange(12), chance.randrange(-2, 9)
    statement = chance.choice(
        [
            f"INSERT INTO src VALUES ({key}, 'i{n}', {n})",
            f"UPDATE src SET n = {n}, name = 'u{n}' WHERE id >= {key}",
            f"DELETE FROM src WHERE id = {key}",
        ]
    )
    if statement.startswith("INSERT"):
        lake.sql(f"DELETE FROM src WHERE id = {key}")  # a merge wants each key once
    lake.sql(statement)
    maintain = chance.choice([lake.flush_inlined_data, lake.merge_adjacent_files, None, None])
    if maintain is not None:
        maintain()


@pytest.mark.spark
@pytest.mark.parametrize("seed", [1])
def test_the_same_as_reading_everything(make: Make, seed: int) -> None:
    project, chance = make(MODELS), random.Random(seed)
    lake = project.lake("main")
    lake.sql(MADE)
    for _ in range(6):
        for _ in range(chance.randrange(4)):
            change(lake, chance)
        result = project.run()
        assert result.state == "done", [each.reason for each in result.steps]
        assert not [notice for notice in result.notices if "whole" in notice.message]
        some, whole = (rows(project, f"SELECT * FROM {t} ORDER BY id") for t in ("some", "whole"))
        assert some == whole


@pytest.mark.spark
def test_a_new_row_with_the_key_of_an_old_one_is_refused(make: Make) -> None:
    project = make({"models/some": MODELS["models/some"]})
    lake = project.lake("main")
    lake.sql(MADE)
    lake.sql("INSERT INTO src VALUES (1, 'a', 1), (2, 'b', 1)")
    assert project.run().state == "done"
    lake.sql("INSERT INTO src VALUES (1, 'again', 2), (3, 'c', 1)")
    refused = step(project.run(), "some")
    reason = refused.reason or ""
    assert refused.state == "failed"
    assert "do not have a unique key (id): 1 values that come more than once" in reason
    assert "id = 1, rows = 2" in reason
    assert "models/some.sql:2" in reason
    lake.sql("DELETE FROM src WHERE name = 'a'")
    assert project.run().state == "done"
    found = rows(project, "SELECT * FROM some ORDER BY id")
    assert found == [(1, "AGAIN", 4), (2, "B", 2), (3, "C", 2)]


@pytest.mark.spark
def test_an_append_takes_each_new_row_once(make: Make) -> None:
    project = make({"models/log": LOG + "SELECT id, name FROM src"})
    lake = project.lake("main")
    lake.sql(MADE)
    lake.sql("INSERT INTO src VALUES (1, 'a', 1), (2, 'b', 2)")
    project.run()
    lake.sql("INSERT INTO src VALUES (3, 'c', 3), (4, 'd', 4)")
    lake.sql("UPDATE src SET name = 'x' WHERE id IN (1, 3)")
    lake.sql("DELETE FROM src WHERE id IN (2, 4)")
    (notice,) = project.run().notices
    assert "what was appended of them stays" in notice.message
    project.run()
    assert rows(project, "SELECT * FROM log ORDER BY id") == [(1, "a"), (2, "b"), (3, "x")]


@pytest.mark.spark
def test_only_the_changed_rows_are_read(make: Make) -> None:
    project = make(MODELS)
    lake = project.lake("main")
    lake.sql(MADE)
    lake.sql("INSERT INTO src SELECT id, 'a', 1 FROM range(500)")
    project.run()
    lake.sql("DELETE FROM src WHERE id < 400")
    lake.sql("UPDATE some SET name = 'mine' WHERE id > 450")
    lake.sql("UPDATE src SET name = 'b' WHERE id = 460")
    project.run(select="some")
    found = rows(project, "SELECT name, count(*) FROM some GROUP BY name ORDER BY name")
    assert found == [("A", 451), ("B", 1), ("mine", 48)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (["ALTER TABLE src ADD COLUMN more INT DEFAULT 7"], "the columns of the input have"),
        (["DROP TABLE src", MADE, "INSERT INTO src VALUES (1, 'z', 1)"], "another table"),
    ],
)
def test_what_is_not_known_from_changes_is_read_whole(
    make: Make, changes: list[str], reason: str
) -> None:
    project = make(MODELS)
    lake = project.lake("main")
    for statement in (MADE, "INSERT INTO src VALUES (1, 'a', 1)"):
        lake.sql(statement)
    project.run()
    for statement in changes:
        lake.sql(statement)
    notices = [notice.message for notice in project.run(select="some").notices]
    assert reason in " ".join(notices)


@pytest.mark.spark
def test_an_append_refuses_what_would_double_its_rows(make: Make) -> None:
    project = make({"models/log": LOG.replace(CHANGING, "") + "SELECT id FROM src"})
    for statement in (MADE, "INSERT INTO src VALUES (1, 'a', 1)"):
        project.lake("main").sql(statement)
    project.run()
    project = make({"models/log": LOG + "SELECT id FROM src"})
    error = step(project.run(), "log").error
    assert isinstance(error, DefinitionChanged)
    assert "no run has recorded how far it read" in str(error)
    assert error.location is not None
    assert error.location.line == 3
    assert project.run(select="log", full_refresh=True).state == "done"


@pytest.mark.spark
def test_an_append_whose_run_was_killed_later_goes_on_where_it_was(make: Make) -> None:
    project = make({"models/log": LOG + "SELECT id FROM src"})
    lake = project.lake("main")
    lake.sql("CREATE TABLE src AS SELECT 1 AS id")
    project.run()
    with lake.catalog.writing() as connection:  # as the next run finds a run that was killed
        connection.execute(text("UPDATE penstock_run SET state = 'abandoned'"))
    lake.sql("INSERT INTO src VALUES (2)")
    assert step(project.run(), "log").state == "unchanged"
    assert step(project.run(), "log").state == "done"
    assert rows(project, "SELECT id FROM log ORDER BY id") == [(1,), (2,)]
