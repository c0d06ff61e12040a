"""merge: by key, into whole tables and slices; bad keys write nothing."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Make
from tests.engine.toy import rows

pytestmark = pytest.mark.spark

MERGED = """
    -- pipeline
    -- materialize ducklake://main/t key=id
    SELECT * FROM VALUES {} AS v(id, name)
"""


def test_rows_are_updated_inserted_and_left(make: Make) -> None:
    make({"models/t": MERGED.format("(1, 'a'), (2, 'b')")}).run()
    project = make({"models/t": MERGED.format("(2, 'B'), (3, 'c')")})
    result = project.run()
    assert (result.steps[0].state, result.steps[0].rows) == ("done", 3)
    assert rows(project, "SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "B"), (3, "c")]


def test_an_unchanged_merge_makes_no_snapshot(make: Make) -> None:
    project = make({"models/t": MERGED.format("(1, 'a'), (2, NULL)")})
    project.run()
    assert [project.run(force=True).steps[0].state for _ in range(2)] == ["unchanged", "unchanged"]
    assert len(project.snapshots("main")) == 2
    assert rows(project, "SELECT * FROM t ORDER BY id") == [(1, "a"), (2, None)]


def test_within_a_slice(make: Make) -> None:
    daily = MERGED.replace("-- mat", "-- partitioned daily\n    -- mat")
    make({"models/t": daily.format("(1, 'a')")}).run(partition="2026-01-01")
    project = make({"models/t": daily.format("(1, 'x'), (2, 'y')")})
    project.run(partition="2026-01-02")
    project.run(partition="2026-01-01")
    merged = rows(project, "SELECT _wm_partition, id, name FROM t ORDER BY 1, 2")
    assert merged == [
        ("2026-01-01", 1, "x"),
        ("2026-01-01", 2, "y"),
        ("2026-01-02", 1, "x"),
        ("2026-01-02", 2, "y"),
    ]


@pytest.mark.parametrize("values", ["(1, 'a'), (1, 'b')", "(1, 'a'), (CAST(NULL AS INT), 'b')"])
def test_bad_keys_fail_the_step_and_write_nothing(make: Make, values: str) -> None:
    make({"models/t": MERGED.format("(1, 'old')")}).run()
    project = make({"models/t": MERGED.format(values)})
    (failed,) = project.run().steps
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.data["samples"]
    assert str(failed.error.location).endswith("models/t.sql:2:4")
    assert "= None" not in str(failed.error)
    assert rows(project, "SELECT * FROM t") == [(1, "old")]
    assert project.status("t")[0].state == "failed"
