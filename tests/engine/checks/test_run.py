"""Data tests on real slices: scoped, on the candidate state, against other tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.events import Event, StepProgress
from penstock.project import Project
from tests.engine.conftest import Make
from tests.engine.toy import step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DIM = """
    -- pipeline
    -- materialize ducklake://main/dim
    SELECT * FROM VALUES ('a'), ('b') AS v(code)
"""
FACT = """
    -- pipeline
    -- on ducklake://main/dim
    -- partitioned daily
    -- materialize ducklake://main/fact
    -- data_test relationships code -> ducklake://main/dim.CODE
    -- data_test unique id
    -- data_test tests/few
    -- $code (text) = a
    SELECT 1 AS id, $code AS code
"""
FEW = "SELECT * FROM fact WHERE _wm_partition = '{partition}' AND code = 'b'"


def project_of(make: Make) -> Project:
    return make({"models/dim": DIM, "models/fact": FACT, "tests/few": FEW})


def test_built_in_tests_see_the_slice_only(make: Make) -> None:
    project = project_of(make)
    for day in ("2026-01-01", "2026-01-02"):  # id 1 in each: unique within a slice
        assert project.run(partition=day).state == "done"


def test_a_value_that_is_not_referenced_fails(make: Make) -> None:
    failed = step(project_of(make).run(partition="2026-01-01", args={"code": "x"}), "fact")
    assert [(check.name, check.failures) for check in failed.checks if not check.passed] == [
        ("relationships code", 1)
    ]
    assert failed.checks[0].samples[0]["code"] == "x"


def test_a_script_sees_the_candidate_state(make: Make) -> None:
    project = project_of(make)
    project.run(partition="2026-01-01")
    failed = step(project.run(partition="2026-01-02", args={"code": "b"}), "fact")
    (check,) = [check for check in failed.checks if not check.passed]
    assert (check.name, check.failures) == ("tests/few", 1)
    assert check.samples[0]["_wm_partition"] == "2026-01-02"


def test_unchanged_slices_are_tested_too(make: Make) -> None:
    project_of(make).run(partition="2026-01-01")
    smaller = DIM.replace("('a'), ('b')", "('b')")
    project = make({"models/dim": smaller, "models/fact": FACT, "tests/few": FEW})
    failed = step(project.run(partition="2026-01-01"), "fact")
    assert (failed.state, failed.checks[0].passed) == ("failed", False)


NUMBERS = """
    -- pipeline
    -- materialize ducklake://main/t
    -- data_test accepted_values i = 1,2
    -- data_test accepted_values d = 1,2.50
    -- data_test accepted_values b = true
    -- data_test accepted_values day = 2026-01-01
    -- data_test accepted_values a`b = it's
    SELECT 1 AS i, 2.5BD AS d, true AS b, DATE'2026-01-01' AS day, 'it''s' AS `a``b`
"""


def test_accepted_values_of_every_kind(make: Make) -> None:
    (done,) = make({"models/t": NUMBERS}).run().steps
    assert [check.failures for check in done.checks] == [0] * 5, done.reason


PLAIN = """
    -- pipeline
    -- on ducklake://main/dim
    -- partitioned daily
    -- materialize ducklake://main/plain key=id
    -- data_test unique id
    -- data_test not_null code
    -- data_test accepted_values code = a,b
    -- data_test relationships code -> ducklake://main/dim.code
    -- $code (text) = a
    SELECT 1 AS id, $code AS code UNION ALL SELECT 2, 'b'
"""


def test_few_rows_that_pass_take_no_job(make: Make, spark: SparkSession) -> None:
    """What fails is Spark's to say, in the same words as ever."""
    tracker = spark.sparkContext.statusTracker()
    jobs: dict[str, int] = {}

    def note(event: Event) -> None:
        if isinstance(event, StepProgress) and event.step == "plain":
            jobs[event.phase] = len(tracker.getJobIdsForGroup(None))

    project = make({"models/dim": DIM, "models/plain": PLAIN})
    for day in ("2026-01-01", "2026-01-01", "2026-01-02"):
        done = step(project.run(partition=day, on_event=note, jobs=1), "plain")
        assert [check.passed for check in done.checks] == [True] * 4
        assert jobs["publishing"] == jobs["testing"]
    failed = step(project.run(partition="2026-01-02", args={"code": "x"}), "plain")
    assert [check.failures for check in failed.checks] == [0, 0, 1, 1]
    assert failed.checks[2].samples[0]["code"] == "x"


def test_a_script_reads_no_file_that_its_conditions_leave_out(make: Make) -> None:
    project = project_of(make)
    project.run(partition="2026-01-01")
    catalog = project.lake("main").catalog
    before = catalog.latest().id
    (file,) = catalog.files(catalog.table("main", "fact", before), before).files
    Path(file.path).unlink()
    assert project.run(partition="2026-01-02").state == "done"


ONE = """
    -- pipeline
    -- materialize ducklake://main/one
    {more}
    -- data_test tests/odd
    -- $least (bigint) = 1
    SELECT /*+ COALESCE(1) */ id FROM VALUES (1), (2), (3), (5), (8) AS v(id) WHERE id >= $least
"""
ODD = "SELECT * FROM one WHERE id % 2 = 1"


@pytest.mark.parametrize(
    "more", ["-- data_test not_null id", "-- data_test accepted_values id = 8"]
)
def test_a_script_over_one_file_is_counted(make: Make, more: str) -> None:
    """Alone, or beside another test that Spark counts: both ways see the same."""
    project = make({"models/one": ONE.format(more=more), "tests/odd": ODD})
    failed = step(project.run(), "one")
    assert failed.checks[-1].failures == 3
    assert {row["id"] for row in failed.checks[-1].samples} == {1, 3, 5}
    passed = step(project.run(args={"least": 6}), "one")
    assert (passed.state, [check.failures for check in passed.checks]) == ("done", [0, 0])
