"""A SELECT whose columns differ from a table that keeps rows of other runs."""

from __future__ import annotations

import pytest

from penstock.engine.evolution import Difference, difference, fit
from penstock.errors import SchemaMismatch
from tests.engine.conftest import Make
from tests.engine.toy import rows

DAILY = """
    -- pipeline
    -- partitioned daily
    -- materialize ducklake://main/t {}
    SELECT {}
"""


def test_names_compare_without_case_and_the_managed_column_is_no_difference() -> None:
    found = difference(["A", "new"], ["a", "old", "_wm_partition"], "_wm_partition")
    assert found == Difference(("new",), ("old",))
    assert str(found) == "new is new and old is missing"
    assert not difference(["A"], ["a"], None)


def test_fail_refuses_any_difference() -> None:
    with pytest.raises(SchemaMismatch, match="on_schema_change=fail"):
        fit(Difference((), ("old",)), "fail", "main.t")


def test_ignore_leaves_new_columns_out() -> None:
    assert fit(Difference(("new",), ()), "ignore", "main.t").drop == ("new",)


def test_warn_says_what_is_missing() -> None:
    assert "old is missing" in fit(Difference((), ("old",)), "warn", "main.t").notices[0]


@pytest.mark.spark
def test_ignore_on_a_partitioned_table(make: Make) -> None:
    make({"models/t": DAILY.format("", "1 AS a")}).run(partition="2026-01-01")
    project = make({"models/t": DAILY.format("on_schema_change=ignore", "2 AS a, 3 AS b")})
    assert project.run(partition="2026-01-02").state == "done"
    assert rows(project, "SELECT * FROM t ORDER BY a") == [(1, "2026-01-01"), (2, "2026-01-02")]


@pytest.mark.spark
def test_a_missing_column_is_null_and_said(make: Make) -> None:
    events: list[object] = []
    make({"models/t": DAILY.format("", "1 AS a, 2 AS b")}).run(partition="2026-01-01")
    project = make({"models/t": DAILY.format("", "3 AS a")})
    project.run(partition="2026-01-02", on_event=events.append)
    assert any("b is missing" in str(event) for event in events)
    assert rows(project, "SELECT a, b FROM t ORDER BY a") == [(1, 2), (3, None)]
