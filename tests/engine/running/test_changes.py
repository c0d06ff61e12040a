"""Models that read what changed: the same tables as those that read everything."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import text

from penstock.errors import DefinitionChanged
from penstock.lake.lake import Lake
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

QUERY = "SELECT id, upper(name) AS name, n * 2 AS n FROM src WHERE n > 0"
MERGE = "-- pipeline\n-- materialize ducklake://main/{} key=id\n"
LOG = "-- pipeline\n-- materialize ducklake://main/log append\n-- incremental changes\n"
CHANGING = "-- incremental changes\n"
MODELS = {
    "models/some": MERGE.format("some") + CHANGING + QUERY,
    "models/whole": MERGE.format("whole") + QUERY,
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
