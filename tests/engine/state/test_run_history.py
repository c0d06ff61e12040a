"""Lists of past runs, and all that is recorded of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from penstock.engine.results import CheckResult
from penstock.engine.state import run_history
from penstock.engine.state.reading import VERSION
from penstock.engine.state.records import ReadRecord, RunRecord
from penstock.engine.state.run_history import AskedRuns, last_other
from penstock.engine.state.store import State, insert_read
from penstock.model.definition.model import Model
from penstock.project.project import Project
from penstock.settings.environment_tables import Environment
from tests.engine.planning.test_reasons import Shop
from tests.engine.state.builders import at, publication, run_record, step_record


@pytest.fixture
def known(state: State) -> State:
    """Three runs: of two tables, of one that failed, and one that has not ended."""
    for number, target in enumerate(("main.a", "main.b", "main.a")):
        run = run_record(f"r{number}", started_at=at(10 * number), user="ann", plan="{}")
        state.begin_run(run)
        state.begin_step(step_record(f"r{number}", target=target, started_at=at(10 * number + 1)))
    state.begin_step(step_record("r0", step="b", target="main.b", started_at=at(2)))
    state.confirm(publication("r0", at=at(3)), 1)
    state.end_step(("r1", "clean/a", "2026-01-01"), "failed", "no")
    state.end_run("r0", "done", 0)
    state.end_run("r1", "failed", 1)
    return state


def listed(state: State, **asked: Any) -> list[str]:
    wanted = AskedRuns(**{"limit": 10, **asked})
    found = state.read(lambda c: run_history.runs(c, wanted), list[RunRecord]())
    return [run.run_id for run in found]


def test_runs_are_newest_first_and_limited(known: State) -> None:
    assert listed(known) == ["r2", "r1", "r0"]
    assert listed(known, limit=2) == ["r2", "r1"]


def test_runs_since_a_moment(known: State) -> None:
    assert listed(known, since=at(10)) == ["r2", "r1"]
    assert listed(known, since=at(10), target="main.a") == ["r2"]


def test_runs_that_may_have_failed(known: State) -> None:
    """One that is running may have been killed: the process is looked at later."""
    assert listed(known, failed=True) == ["r2", "r1"]


def test_runs_of_a_table(known: State) -> None:
    assert listed(known, target="main.b") == ["r1", "r0"]
    assert listed(known, target="main.a", limit=1) == ["r2"]
    assert listed(known, target="main.c") == []


def test_who_and_how_it_ended_are_recorded(known: State) -> None:
    run = known.run("r1")
    assert run is not None
    assert (run.user, run.exit_code, run.plan, run.state) == ("ann", 1, "{}", "failed")


def test_slices_are_counted_by_state(known: State) -> None:
    none = dict[str, dict[str, int]]()
    found = known.read(lambda c: run_history.counts(c, ["r0", "r1"]), none)
    assert found == {"r0": {"done": 1, "running": 1}, "r1": {"failed": 1}}


def test_a_run_is_called_by_its_beginning_or_its_end(known: State) -> None:
    def ids(text: str) -> list[str]:
        return known.read(lambda c: run_history.ids_like(c, text), list[str]())

    assert (ids("r1"), ids("2"), sorted(ids("r"))) == (["r1"], ["r2"], ["r0", "r1", "r2"])
    assert ids("%") != []  # all that there are: the sign itself is in none
    assert known.read(run_history.last_id, None) is not None


def test_all_that_is_recorded_of_a_run(known: State) -> None:
    failed = publication("r1", checks=(CheckResult("c", False, 2, ({"id": 1},)),), reason="c")
    known.fail_tests(failed)
    known.write(lambda c: insert_read(c, ReadRecord("x", "main.a", "r1", {"main": 4})))

    def ask(connection: Connection) -> run_history.Recorded | None:
        return run_history.recorded(connection, "r1")

    found = known.read(ask, None)
    assert found is not None
    assert [step.state for step in found.steps] == ["failed"]
    assert [check.result.failures for check in found.checks] == [2]
    assert found.reads is not None
    assert found.reads["main.a"].lakes == {"main": 4}
    assert known.read(lambda c: run_history.recorded(c, "r9"), None) is None


def test_runs_of_other_environments_are_left_out(known: State) -> None:
    """Those are listed whose environment is not known, as the three of old are."""
    for name, suffix in (("dev", "_dev"), ("night", "")):
        ran = Environment(name, suffix)
        known.begin_run(run_record(name, started_at=at(40), environment=ran))
    assert sorted(listed(known)) == ["dev", "night", "r0", "r1", "r2"]
    assert sorted(listed(known, suffix="_dev")) == ["dev", "r0", "r1", "r2"]
    assert sorted(listed(known, suffix="")) == ["night", "r0", "r1", "r2"]
    last = known.read(lambda c: run_history.last_id(c, "_dev"), None)
    assert last is not None
    assert last[1] == "dev"
    run = known.run("night")
    assert run is not None
    assert run.environment == Environment("night", "")


def recorded(shop: Shop, model: Model) -> Mapping[str, str] | None:
    target, own = model.target.qualified, model.definition_hash
    return shop.state.read(lambda each: last_other(each, target, own), None)


def test_the_definition_of_slices_is_known_after_it_has_changed(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    model = shop.project.model("days")
    shop.state.begin_run(run_record("r2"), [model, model])
    shop.state.begin_run(run_record("r3"), [model])
    shop.made("days", "2026-01-01")
    assert recorded(shop, model) is None
    assert recorded(shop, replace(model, definition_hash="new")) == model.definition_parts


def test_a_definition_that_was_not_recorded_is_not_known(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.made("days", "2026-01-01", definition_hash="old")
    assert recorded(shop, shop.project.model("days")) is None


def test_tables_of_an_earlier_version_have_none(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with shop.catalog.reading() as connection:
        connection.execution_options(**{VERSION: 8})
        assert last_other(connection, "main.days", "new") is None


def test_a_plan_shows_what_differs(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.state.begin_run(run_record("r2"), shop.project.models)
    shop.made("days", "2026-01-01")
    path = shop.project.settings.root / "models" / "days.sql"
    path.write_text(path.read_text().replace("SELECT", "SELECT 1 AS one,"))
    with Project.load(shop.project.settings.root) as project:
        (change,) = project.plan("days").changes
    assert str(change) == "changed: days (query); 1 slice"
    assert "+SELECT 1 AS one, '{partition}' AS day" in change.diff
