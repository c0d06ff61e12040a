"""How values look at the end of a cell."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.engine.results import (
    CheckResult,
    QueryResult,
    RecordedCheck,
    RecordedChecks,
    RunResult,
    SnapshotInfo,
    Snapshots,
    StepResult,
)
from penstock.errors import ArgumentError, PenstockError, QueryFailed, StepError
from penstock.project.project import Project
from tests.engine.toy import write_project

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
STEP = StepResult("orders", "main.orders", "replace", "2026-01-01", "done", 32.153957, 2000, 7)


def test_results_are_one_line() -> None:
    check = CheckResult("not_null id", passed=False, failures=2)
    snapshot = SnapshotInfo("main", 3, AT, "created_table:t", None, "first", None)
    run = RunResult("r1", "done", None, (STEP,), 3.16)
    assert [
        repr(each) for each in (STEP, check, RecordedCheck(None, "r", AT, check), snapshot)
    ] == [
        "StepResult(orders 2026-01-01: done, 2,000 rows, 32 s)",
        "CheckResult(not_null id: failed, 2 failures)",
        "RecordedCheck(not_null id: failed, 2 failures, 2026-01-02 03:04)",
        "SnapshotInfo(main 3, 2026-01-02 03:04:00, created_table:t, 'first')",
    ]
    assert repr(run) == "RunResult(r1: done, 1 done, 3.2 s)"
    assert "<td>32 s</td>" in run._repr_html_()
    assert "not_null id" in RecordedChecks([RecordedCheck(None, "r", AT, check)])._repr_html_()
    assert "created_table:t" in Snapshots([snapshot])._repr_html_()
    assert repr(QueryResult((("a", "int"),), ((1,),), more=True)) == (
        "QueryResult(the first 1 row, columns a)"
    )


def test_projects_and_what_they_answer(tmp_path: Path) -> None:
    script = "-- pipeline\n-- {}\n-- materialize ducklake://main/{}\nSELECT id FROM {}"
    models = {
        "models/a": script.format("partitioned daily", "a", "range(3)"),
        "models/b": script.format("owner ada", "b", "a"),
    }
    with Project.load(write_project(tmp_path / "p", models)) as project:
        assert repr(project) == f"Project('toy', 2 models, {tmp_path / 'p'})"
        plan = project.plan(partition="2026-01-01")
        assert repr(plan) == "Plan(2 steps: a, b)"
        assert repr(plan.steps[0]) == "PlannedStep(a 2026-01-01, replace main.a)"
        assert repr(project.show("b")) == "ModelDetail(b: missing, 0 columns, 0 tests)"
        assert repr(project.status("b")) == "(ModelStatus(b: missing),)"
        traced = project.lineage("b.id")
        assert repr(traced) == "Trace(upstream of main.b, id, 2 columns)"
        for each in (project, plan, traced, project.show("b"), project.snapshots()):
            assert each._repr_html_().startswith(("<p>", "<table>"))


def test_an_error_is_its_message_unless_all_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    error = QueryFailed("no such column", hint="write id")
    assert error._render_traceback_() == ["QueryFailed: no such column", "  → write id"]
    monkeypatch.setattr(PenstockError, "full_traceback", True)
    with pytest.raises(ArgumentError) as caught:
        raise ArgumentError("wrong")
    assert "Traceback (most recent call last):" in caught.value._render_traceback_()


def test_a_failed_run_is_raised() -> None:
    assert RunResult("r", "done", None, (STEP,), 1.0).raise_for_status().steps == (STEP,)
    failed = StepResult("a", "main.a", "replace", None, "failed", error=QueryFailed("bad"))
    with pytest.raises(QueryFailed, match="bad"):
        RunResult("r", "failed", None, (STEP, failed), 1.0).raise_for_status()
    with pytest.raises(StepError, match="run r is cancelled"):
        RunResult("r", "cancelled", None, (STEP,), 1.0).raise_for_status()
