"""append: rows are added, and a re-run adds them again, by the documents."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Make
from tests.engine.toy import rows

pytestmark = pytest.mark.spark

LOG = """
    -- pipeline
    -- materialize ducklake://main/log append
    SELECT * FROM VALUES (1), (2) AS v(id)
"""


def test_a_rerun_duplicates(make: Make) -> None:
    project = make({"models/log": LOG})
    assert [project.run().steps[0].state for _ in range(2)] == ["done", "done"]
    assert rows(project, "SELECT id FROM log ORDER BY id") == [(1,), (1,), (2,), (2,)]
    assert project.status()[0].slices[0].rows == 4  # all that the table holds, not the last load


def test_slices_of_a_log(make: Make) -> None:
    project = make({"models/log": LOG.replace("-- mat", "-- partitioned hourly\n    -- mat")})
    project.run(partition="2026-01-01T00")
    project.run(partition="2026-01-01T01")
    counts = rows(project, "SELECT _wm_partition, count(*) FROM log GROUP BY 1 ORDER BY 1")
    assert counts == [("2026-01-01T00", 2), ("2026-01-01T01", 2)]
    assert project.run(partition="2026-01-01T01", force=True).steps[0].rows == 4


def test_nothing_to_append_is_unchanged(make: Make) -> None:
    project = make({"models/log": LOG.rstrip() + " WHERE id > $n\n    -- $n (int) = 0\n"})
    project.run()
    assert project.run(args={"n": 5}).steps[0].state == "unchanged"
    assert len(project.snapshots("main")) == 2
