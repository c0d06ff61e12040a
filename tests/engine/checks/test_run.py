"""Data tests on real slices: scoped, on the candidate state, against other tables.

Tests ``engine/checks/run.py`` (tests that the rows cannot have) and
``engine/checks/one_pass.py`` (tests of a step are counted in one query).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.events import CheckFinished, Event, StepProgress
from penstock.project.project import Project
from tests.engine.conftest import Make
from tests.engine.toy import rows, step

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
    -- data_test accepted_values "a b" = '',x
    -- data_test unique `a b`, "I"
    SELECT 1 AS i, 2.5BD AS d, true AS b, DATE'2026-01-01' AS day, 'it''s' AS `a``b`, '' AS `a b`
"""


def test_accepted_values_of_every_kind(make: Make) -> None:
    (done,) = make({"models/t": NUMBERS}).run().steps
    assert [check.failures for check in done.checks] == [0] * 7, done.reason


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
        again = project.run(partition=day, on_event=note, jobs=1, force=True)
        done = step(again, "plain")
        assert [check.passed for check in done.checks] == [True] * 4
        assert jobs["publishing"] == jobs["testing"]
    failed = step(project.run(partition="2026-01-02", args={"code": "x"}), "plain")
    assert [check.failures for check in failed.checks] == [0, 0, 1, 1]
    assert failed.checks[2].samples[0]["code"] == "x"
    assert rows(project, failed.checks[3].query) == [], "of the slice as it is published"


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


LENIENT = """
    -- pipeline
    -- materialize ducklake://main/lenient
    -- data_test not_null code severity=warn
    -- data_test unique id, code
    -- data_test accepted_range id min=1 max=9
    -- data_test row_count min=1
    -- data_test expression id <> 7 severity=warn
    -- data_test expression code <> 'b'
    -- data_test expression (code <> 'b') IS TRUE severity=warn
    -- data_test tests/at_most column=id limit=9
    -- data_test tests/at_most column=id limit=2 severity=warn
    SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, NULL), (3, NULL) AS v(id, code)
"""
AT_MOST = """
    -- $column (name)
    -- $limit (int)
    SELECT * FROM lenient WHERE $column > $limit
"""


def test_a_warning_lets_the_slice_be_published_and_is_recorded(make: Make) -> None:
    project = make({"models/lenient": LENIENT, "tests/at_most": AT_MOST})
    events: list[Event] = []
    result = project.run(on_event=events.append)
    (done,) = result.steps
    assert (done.state, result.exit_code) == ("done", 0)
    assert [(check.name, check.outcome, check.failures) for check in done.checks] == [
        ("not_null code", "warned", 2),
        ("unique id, code", "passed", 0),
        ("accepted_range id", "passed", 0),
        ("row_count", "passed", 0),
        ("expression id <> 7", "passed", 0),
        ("expression code <> 'b'", "passed", 0),  # a condition that is NULL passes
        ("expression (code <> 'b') IS TRUE", "warned", 2),
        ("tests/at_most column=id limit=9", "passed", 0),
        ("tests/at_most column=id limit=2", "warned", 1),
    ]
    warned = [event for event in events if isinstance(event, CheckFinished) and not event.passed]
    assert [(event.severity, event.failures) for event in warned] == [
        ("warn", 2),
        ("warn", 2),
        ("warn", 1),
    ]
    (slice_,) = project.status("lenient")[0].slices
    assert (slice_.tests, slice_.tests_failed, slice_.tests_warned) == (9, 0, 3)
    found = project.query(done.checks[0].query).rows
    assert found == ((2, None), (3, None))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not_null cde", "models/a.sql:3:4: the data test names column 'cde', which the result"),
        ("expression idd > 0", "models/a.sql:3:25: the data test names column 'idd', which the"),
        ("expression upper(id)", "models/a.sql:3:25: the data test's condition `upper(id)` is str"),
        ("expression id > array(1)", "models/a.sql:3:25: Spark: "),
        ("accepted_range id min=x", "models/a.sql:3:4: `min=x` is not a value of id, which is int"),
    ],
)
def test_a_test_that_the_rows_cannot_have_fails_before_they_are_written(
    make: Make, line: str, message: str
) -> None:
    text = f"-- pipeline\n-- materialize ducklake://main/a\n-- data_test {line}\nSELECT 1 AS id"
    phases: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, StepProgress):
            phases.append(event.phase)

    project = make({"models/a": text})
    (failed,) = project.run(on_event=note).steps
    assert failed.state == "failed"
    assert message in str(failed.error)
    assert phases == ["querying"]
    said = [str(finding) for finding in project.check(spark=True) if finding.severity == "error"]
    place = message.split(": ", maxsplit=1)[0]
    assert len(said) == 1
    assert place.rpartition(":")[0] in said[0]
