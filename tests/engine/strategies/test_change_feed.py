"""Change feeds against the last event of each key in plain Python."""

from __future__ import annotations

import random

import pytest

from penstock.errors import DefinitionChanged, MergeKeyError
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

pytestmark = pytest.mark.spark

MODEL = """
    MODEL (name s.t, start '2026-01-01', dialect duckdb, kind INCREMENTAL_BY_UNIQUE_KEY (
      unique_key (id, Part), sequence seq, deletes (op = 'D' AND length(op) = 1)));
    SELECT id, part, seq, op, name FROM s.feed WHERE ds BETWEEN @start_ds AND @end_ds
"""
Event = tuple[str, int, str, int, str | None, str]  # day, id, part, seq, op, name


def events() -> list[Event]:
    """Several events of each key, on the days that they happen to come."""
    choose = random.Random(15)
    return [
        (
            f"2026-01-0{choose.randrange(1, 4)}",
            key // 2,
            "ab"[key % 2],
            number,
            choose.choice(["D", "D", "U", None]),
            f"n{number}",
        )
        for key in range(80)
        for number in range(1, choose.randrange(2, 8))
    ]


def test_events_in_any_order_and_batches(make: Make) -> None:
    toy, feed = make({"models/t": MODEL}), events()
    values = ", ".join(str(event).replace("None", "NULL") for event in feed)
    lake = toy.lake("main")
    lake.sql("CREATE SCHEMA s")
    lake.sql(
        "CREATE TABLE s.feed (ds STRING, id INT, part STRING, seq INT, op STRING, name STRING)"
    )
    lake.sql(f"INSERT INTO s.feed VALUES {values}")
    arrived: set[str] = set()
    for start, end in (("3", "3"), ("1", "2"), ("3", "3")):
        result = toy.run(from_=f"2026-01-0{start}", to=f"2026-01-0{end}", force=True)
        assert result.state == "done", result.steps
        is_again = start in arrived
        assert (step(result, "t").state == "unchanged") == is_again
        arrived |= {start, end}
        last: dict[tuple[int, str], Event] = {}
        for event in sorted(feed, key=lambda event: event[3]):
            if event[0][-1] in arrived:
                last[event[1], event[2]] = event
        current = sorted(event[1:] for event in last.values() if event[4] != "D")
        deleted = sorted(event[1:4] for event in last.values() if event[4] == "D")
        assert len(current) > 5 < len(deleted)
        assert sorted(rows(toy, "SELECT * FROM s.t"), key=repr) == sorted(current, key=repr)
        assert sorted(rows(toy, "SELECT * FROM s.t_deleted")) == deleted


HEADER = """
    -- pipeline
    -- materialize ducklake://main/t key=id sequence=seq deletes="op = 'D'"
    SELECT * FROM (VALUES {}) AS v(id, seq, op)
"""


def test_events_that_cannot_be_ordered_are_errors(make: Make) -> None:
    problems = {
        "(1, 1, 'U'), (1, NULL, 'U')": "without a sequence (seq): id = 1, seq = NULL",
        "(NULL, 1, 'U'), (2, 2, 'U')": "without a key (id): id = NULL, seq = 1",
        "(3, 1, 'U'), (2, 2, 'U'), (2, 2, 'D')": "(seq), and either could be the last: id = 2",
    }
    for values, message in problems.items():
        project = make({"models/t": HEADER.format(values)})
        error = step(project.run(), "t").error
        assert isinstance(error, MergeKeyError)
        assert message in str(error)
    ties_below = "(4, 1, 'U'), (4, 1, 'D'), (4, 2, 'U'), (5, 1, 'D')"
    project = make({"models/t": HEADER.format(ties_below)})
    assert project.run().state == "done"
    assert rows(project, "SELECT * FROM t") == [(4, 2, "U")]
    by_op = HEADER.replace("sequence=seq", "sequence=op").format(ties_below)
    error = step(make({"models/t": by_op}).run(), "t").error
    assert isinstance(error, DefinitionChanged)
    assert "--full-refresh" in str(error.hint)
    project = make({"models/t": HEADER.format("(5, 0, 'U')")})
    assert project.run("t", full_refresh=True).state == "done"
    assert rows(project, "SELECT * FROM t") == [(5, 0, "U")], "its tombstone went with the table"


def test_a_deletion_comes_again_after_a_rollback(make: Make) -> None:
    """The tombstones are newer than the rows: the deletion is made, and no row comes back."""
    project = make({"models/t": HEADER.format("(1, 1, 'U')")})
    project.run()
    snapshot = project.lake("main").catalog.latest().id
    deletion = HEADER.format("(1, 3, 'D'), (2, 3, 'D')")
    project = make({"models/t": deletion})
    assert project.run().state == "done"
    assert rows(project, "SELECT * FROM t") == []
    project.lake("main").table("t").rollback(snapshot)
    assert rows(project, "SELECT * FROM t") == [(1, 1, "U")]
    assert project.run(force=True).state == "done"
    assert rows(project, "SELECT * FROM t") == []
    late = make({"models/t": HEADER.format("(1, 2, 'U'), (2, 2, 'U')")})
    assert step(late.run(), "t").state == "unchanged"


def test_a_table_of_the_user_is_left_alone(make: Make) -> None:
    project = make({"models/t": HEADER.format("(1, 1, 'D')")})
    project.lake("main").sql("CREATE TABLE t_deleted AS SELECT 1 AS id, 1 AS seq")
    error = step(project.run(), "t").error
    assert isinstance(error, DefinitionChanged)
    assert "main.t_deleted is a table of its own" in str(error)


def test_later_events_of_a_key_are_read_alone(make: Make) -> None:
    """With ``incremental changes``, where a merge refuses a new row with the key of an old one."""
    text = HEADER.replace("(VALUES {}) AS v(id, seq, op)", "feed")
    header = text.replace("    SELECT", "    -- incremental changes\n    SELECT")
    project = make({"models/t": header})
    lake = project.lake("main")
    lake.sql("CREATE TABLE feed (id INT, seq INT, op STRING)")
    for batch in ("(1, 1, 'U'), (1, 2, 'U'), (2, 5, 'D')", "(1, 3, 'D'), (2, 4, 'U'), (3, 1, 'U')"):
        lake.sql(f"INSERT INTO feed VALUES {batch}")
        result = project.run()
        assert result.state == "done", result.steps
    assert rows(project, "SELECT * FROM t") == [(3, 1, "U")]
