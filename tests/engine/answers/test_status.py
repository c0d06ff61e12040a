"""States of slices from what the state tables say. Pure.

Tests ``engine/planning/slice_details.py`` as well.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.answers.status import model_status, unmade
from penstock.engine.planning.slice_details import Details
from penstock.engine.planning.slice_states import Recorded
from penstock.engine.results import CheckResult, ModelStatus
from penstock.engine.state.other_writers import Outside
from penstock.engine.state.records import CheckRecord, SliceRecord, StepRecord
from penstock.engine.state.store import State
from penstock.model.definition.model import Model
from penstock.project.project import Project
from tests.engine.state.builders import START, at, publication, run_record, step_record
from tests.engine.toy import write_project

SCRIPT = (
    "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/a\nSELECT '{partition}' AS d"
)
DAY = "2026-01-01"


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Project.load(write_project(tmp_path / "p", {"models/clean/a": SCRIPT})).model("clean/a")


def slice_of(model: Model, **changes: Any) -> SliceRecord:
    values: dict[str, Any] = {
        "snapshot_id": 7,
        "made_in": 7,
        "rows": 3,
        "definition_hash": model.definition_hash,
    } | changes
    return SliceRecord(
        target="main.a",
        slice=DAY,
        run_id="r1",
        step=model.name,
        strategy="replace",
        fingerprint=None,
        published_at=START,
        **values,
    )


def status(
    model: Model, *, slices: Any = (), attempts: Any = (), checks: Any = (), alive: bool = True
) -> ModelStatus:
    details = Details({"main.a": {check.slice: list(checks) for check in checks}})
    running = {"r2"} if alive else set[str]()
    return model_status(model, Recorded(slices, tried=attempts, alive=running, details=details))


def attempt(state: str, minutes: int = 5) -> StepRecord:
    return step_record("r2", state=state, started_at=at(minutes), reason="boom")


def test_nothing_known_is_missing(model: Model) -> None:
    statuses = status(model)
    assert (statuses.state, statuses.slices, statuses.rows) == ("missing", (), None)


def test_a_published_slice_is_materialized(model: Model) -> None:
    (statuses,) = status(model, slices=[slice_of(model)]).slices
    assert (statuses.slice, statuses.state, statuses.rows, statuses.snapshot_id, statuses.time) == (
        DAY,
        "materialized",
        3,
        7,
        START,
    )


def test_slices_are_in_the_order_of_time_whatever_their_texts(tmp_path: Path) -> None:
    script = SCRIPT.replace("daily", 'monthly format="%b %Y"')
    project = Project.load(write_project(tmp_path / "p", {"models/clean/a": script}))
    months = project.model("clean/a")
    values = ("Apr 2026", "Aug 2026", "Dec 2025", "2026-01-01")
    records = [replace(slice_of(months), slice=value) for value in values]
    shown = [each.slice for each in status(months, slices=records).slices]
    assert shown == ["Dec 2025", "Apr 2026", "Aug 2026", "2026-01-01"]


def test_another_definition_is_stale(model: Model) -> None:
    assert status(model, slices=[slice_of(model, definition_hash="old")]).state == "stale"


@pytest.mark.parametrize("state", ["failed", "running"])
def test_the_latest_attempt_presses(model: Model, state: str) -> None:
    (statuses,) = status(model, slices=[slice_of(model)], attempts=[attempt(state)]).slices
    assert (statuses.state, statuses.rows, statuses.time, statuses.run_id) == (
        state,
        3,
        at(5),
        "r2",
    )
    assert statuses.reason == "boom"


@pytest.mark.parametrize("state", ["running", "cancelled", "abandoned"])
def test_an_attempt_that_was_interrupted_has_failed(model: Model, state: str) -> None:
    tried = replace(attempt(state), reason=None)
    for slices in ([], [slice_of(model)]):
        (found,) = status(model, slices=slices, attempts=[tried], alive=False).slices
        assert (found.state, found.run_id) == ("failed", "r2")
        assert (found.reason or "").startswith("its run was ")


def test_a_slice_that_never_succeeded_is_failed(model: Model) -> None:
    (statuses,) = status(model, attempts=[attempt("failed")]).slices
    assert (statuses.state, statuses.rows, statuses.snapshot_id) == ("failed", None, None)


def test_tests_are_counted(model: Model) -> None:
    results = [CheckResult("a", True, 0), CheckResult("b", False, 2)]
    checks = [CheckRecord("r1", "main.a", DAY, result, START) for result in results]
    (statuses,) = status(model, slices=[slice_of(model)], checks=checks).slices
    assert (statuses.tests, statuses.tests_failed) == (2, 1)


def test_the_state_of_a_model_is_the_most_pressing(model: Model) -> None:
    slices = [slice_of(model)]
    failed = step_record("r2", state="failed", slice="2026-01-02")
    assert status(model, slices=slices, attempts=[failed]).state == "failed"


def test_what_others_changed_is_said(model: Model) -> None:
    outside = Outside({("main.a", DAY): 9}, frozenset({"main.a"}))
    recorded = Recorded((slice_of(model),), outside)
    (statuses,) = model_status(model, recorded).slices
    assert (statuses.state, statuses.outside_snapshot) == ("changed outside", 9)
    assert statuses.rows is None
    failed = replace(recorded, tried=(attempt("failed"),))
    (statuses,) = model_status(model, failed).slices
    assert (statuses.state, statuses.rows) == ("failed", None)


def test_a_slice_of_another_kind_is_listed(model: Model) -> None:
    monthly = replace(slice_of(model), slice="2026-01", slicing="monthly")
    old = replace(slice_of(model), slice="2026-02")  # recorded before kinds were
    statuses = status(model, slices=[slice_of(model), monthly, old])
    assert [slice_.state for slice_ in statuses.slices] == [
        "other kind",
        "materialized",
        "other kind",
    ]
    assert statuses.state == "other kind"


def test_a_table_that_no_model_makes_is_listed_while_it_is_there(model: Model) -> None:
    old = replace(slice_of(model), target="main.old")
    there = Recorded((old,), Outside(there=frozenset({"main.old"})))
    (one,) = unmade({"main.old": there}, "main")
    assert (one.model, one.target, one.state, one.rows) == (None, "main.old", "no model", 3)
    assert unmade({"main.old": Recorded((old,))}, "main") == []


def test_an_embedded_model_makes_nothing(tmp_path: Path) -> None:
    script = "MODEL (name s.e, kind EMBEDDED);\nSELECT 1 AS a"
    reader = "MODEL (name s.r, kind FULL);\nSELECT a FROM s.e"
    scripts = {"models/e": script, "models/r": reader}
    project = Project.load(write_project(tmp_path / "p", scripts))
    (one,) = project.status("e")
    makes = "nothing: its query stands in the models that read main.s.e"
    assert (one.state, one.makes, one.slices) == ("embedded", makes, ())
    assert (project.show("e").status.makes, len(project.status())) == (makes, 1)


def test_the_table_of_a_model_that_is_now_embedded_is_listed(tmp_path: Path) -> None:
    script = "MODEL (name main.old, kind EMBEDDED);\nSELECT 1 AS a"
    project = Project.load(write_project(tmp_path / "p", {"models/e": script}))
    lake = project.lake("main")
    lake.sql("CREATE TABLE old (a INTEGER)")
    State(lake.catalog).begin_run(run_record())
    made = publication(step="e", target="main.old", slice="", slicing=None)
    State(lake.catalog).confirm(made, lake.catalog.latest().id)
    (table,) = project.status()
    assert (table.model, table.target, table.state) == (None, "main.old", "no model")
