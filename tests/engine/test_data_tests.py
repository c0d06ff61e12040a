"""Data tests on real slices: scoped, on the candidate state, against other tables."""

from __future__ import annotations

import pytest

from tests.engine.conftest import Make
from tests.engine.toy import step

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


def project_of(make: Make):
    return make({"models/dim": DIM, "models/fact": FACT, "tests/few": FEW})


def test_built_in_tests_see_the_slice_only(make: Make) -> None:
    project = project_of(make)
    for day in ("2026-01-01", "2026-01-02"):  # id 1 in each: unique within a slice
        assert project.run(partition=day).state == "done"


def test_a_value_that_is_not_referenced_fails(make: Make) -> None:
    failed = step(project_of(make).run(partition="2026-01-01", args={"code": "x"}), "fact")
    assert [(one.name, one.failures) for one in failed.checks if not one.passed] == [
        ("relationships code", 1)
    ]
    assert failed.checks[0].samples[0]["code"] == "x"


def test_a_script_sees_the_candidate_state(make: Make) -> None:
    project = project_of(make)
    project.run(partition="2026-01-01")
    failed = step(project.run(partition="2026-01-02", args={"code": "b"}), "fact")
    (check,) = [one for one in failed.checks if not one.passed]
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
    assert [one.failures for one in done.checks] == [0] * 5, done.reason
