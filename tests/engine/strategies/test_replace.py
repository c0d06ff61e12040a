"""replace: whole tables and slices become what the SELECT returns; unchanged makes no snapshot."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Make
from tests.engine.toy import rows, step

pytestmark = pytest.mark.spark

WHOLE = """
    -- pipeline
    -- materialize ducklake://main/t
    SELECT * FROM VALUES {} AS v(id, name)
"""
DAILY = """
    -- pipeline
    -- partitioned daily
    -- materialize ducklake://main/t
    -- $n (int) = 1
    SELECT '{partition}' AS day, $n AS n
"""


def test_a_whole_table_is_replaced(make: Make) -> None:
    make({"models/t": WHOLE.format("(1, 'a'), (2, 'b')")}).run()
    project = make({"models/t": WHOLE.format("(2, 'c')")})
    result = project.run()
    assert (result.steps[0].state, result.steps[0].rows) == ("done", 1)
    assert rows(project, "SELECT * FROM t") == [(2, "c")]


def test_an_unchanged_table_makes_no_snapshot(make: Make) -> None:
    project = make({"models/t": WHOLE.format("(1, 'a'), (2, NULL)")})
    first, second = project.run(), project.run(force=True)
    assert (first.steps[0].state, second.steps[0].state) == ("done", "unchanged")
    assert first.steps[0].snapshot_id == second.steps[0].snapshot_id
    assert [snapshot.id for snapshot in project.snapshots("main")] == [1, 0]
    assert [run.state for run in project.show("t").runs] == ["unchanged", "done"]


def test_other_columns_just_work_and_are_a_schema_version(make: Make) -> None:
    make({"models/t": WHOLE.format("(1, 'a')")}).run()
    changed = WHOLE.format("(1, 'a')").replace("SELECT *", "SELECT id, name AS label, 1.5D AS x")
    project = make({"models/t": changed})
    assert project.run().state == "done"
    assert rows(project, "SELECT * FROM t") == [(1, "a", 1.5)]
    versions = [
        [column.name for column in version.columns] for version in project.show("t").schema_versions
    ]
    assert versions == [["id", "name"], ["id", "label", "x"]]


def test_a_renamed_column_with_the_same_values_is_a_change(make: Make) -> None:
    make({"models/t": WHOLE.format("(1, 'a')")}).run()
    project = make({"models/t": WHOLE.format("(1, 'a')").replace("v(id,", "v(code,")})
    assert project.run().steps[0].state == "done"
    assert [column.name for column in project.show("t").columns] == ["code", "name"]


def test_slices_do_not_touch_each_other(make: Make) -> None:
    project = make({"models/t": DAILY})
    for day in ("2026-01-01", "2026-01-02"):
        project.run(partition=day)
    changed = project.run(partition="2026-01-01", args={"n": 7})
    assert step(changed, "t").rows == 1
    assert rows(project, "SELECT day, n, _wm_partition FROM t ORDER BY day") == [
        ("2026-01-01", 7, "2026-01-01"),
        ("2026-01-02", 1, "2026-01-02"),
    ]
    assert project.run(partition="2026-01-02", force=True).steps[0].state == "unchanged"


def test_a_slice_may_become_empty(make: Make) -> None:
    project = make({"models/t": DAILY.rstrip() + " WHERE $n > 0\n"})
    project.run(partition="2026-01-01")
    emptied = project.run(partition="2026-01-01", args={"n": 0})
    assert (emptied.steps[0].state, emptied.steps[0].rows) == ("done", 0)
    assert rows(project, "SELECT * FROM t") == []


def test_a_partition_value_is_data(make: Make) -> None:
    dynamic = DAILY.replace("daily", 'dynamic key="$.tenant"')
    project = make({"models/t": dynamic})
    evil = "x' OR '1'='1"
    project.run(payload={"tenant": evil})
    project.run(partition="plain")
    assert rows(project, "SELECT day, _wm_partition FROM t ORDER BY day") == [
        ("plain", "plain"),
        (evil, evil),
    ]
    assert project.run(partition=evil, force=True).steps[0].state == "unchanged"
