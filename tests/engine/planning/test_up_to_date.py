"""Plans without what is up to date. No Spark, no catalog.

What ``engine/planning/made_from.py`` reads of catalogs is given here; runs show it in the test of
this name of the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.engine.planning.made_from import AsAsked, MadeFrom
from penstock.engine.planning.make_plan import make_plan
from penstock.engine.planning.plan import Condition, Known, Made, Plan
from penstock.engine.planning.ranges import SliceRange, SliceStates
from penstock.engine.planning.slices import RunRequest
from penstock.engine.state.records import ReadRecord
from penstock.model.definition.model import Model
from penstock.model.slicing.undated import views_read
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.toy import write_project

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
HEAD = "-- pipeline\n-- materialize ducklake://main/"
DAILY = "-- partitioned daily start=2026-01-01\n"
MODELS = {
    "raw": f"{DAILY}SELECT n, '{{partition}}' AS day FROM read_csv('data.csv')",
    "day": f"{DAILY}SELECT * FROM raw WHERE day = '{{partition}}'",
    "dim": "-- $n (int) = 1\nSELECT $n AS n",
    "named": f"{DAILY}SELECT raw.n FROM raw JOIN dim USING (n) WHERE day = '{{partition}}'",
    "total": "SELECT count(*) AS n FROM day",
    "log append": "SELECT n FROM total",
}
TODAY = "2026-01-02"


def read_of(model: Model) -> ReadRecord:
    return ReadRecord("r", model.target.qualified, "run", {"main": 1}, tests=model.terms)


class Fake:
    """What catalogs would tell: of each model how its slices were made, None for missing ones."""

    def __init__(self, root: Path, models: Mapping[str, str] = MODELS) -> None:
        scripts = {
            f"models/{name.split()[0]}": f"{HEAD}{name}\n{text}" for name, text in models.items()
        }
        self.project = Project.load(write_project(root / "p", scripts))
        self.changed: dict[str, MadeFrom | None] = {}
        self.same_files = True
        self.unfinished = set[str]()

    def made(self, name: str) -> MadeFrom | None:
        """Return what its slices were made from."""
        model = self.project.model(name)
        known = MadeFrom(frozenset({model.definition_hash}), (read_of(model),))
        return self.changed.get(name, known)

    def made_from(self, of: AsAsked, models: Sequence[Model]) -> Made:
        found = {model.name: self.made(model.name) for model in models}
        return {
            name: {} if made is None else dict.fromkeys(of[name], made)
            for name, made in found.items()
        }

    def states(self, models: Sequence[Model]) -> Mapping[str, SliceStates]:
        def of(model: Model) -> dict[str, SliceState]:
            state = SliceState.MISSING if self.made(model.name) is None else SliceState.MATERIALIZED
            days = ("2026-01-01", TODAY) if model.partition else ("",)
            of_days = dict.fromkeys(days, state)
            return (
                of_days | {TODAY: SliceState.UNFINISHED}
                if model.name in self.unfinished
                else of_days
            )

        return {model.name: SliceStates(of(model)) for model in models}

    def plan(self, **request: object) -> Plan:
        project = self.project
        known = Known(
            self.states,
            edges=project.edges,
            views=views_read(project.models),
            made_from=self.made_from,
            same_files=lambda *_: self.same_files,
        )
        asked = replace(RunRequest(fire_time=NOON), **request)  # type: ignore[arg-type] # of any
        models = {model.name: model for model in project.models}
        return make_plan(models, project.graph, asked, known)


def made(plan: Plan) -> dict[str, str]:
    """The steps that are made: ``yes``, or ``perhaps`` if their inputs get other rows."""
    return {
        step.name: "perhaps" if step.conditional(Condition.INPUTS) else "yes"
        for step in plan.steps
        if not step.skipped
    }


def test_what_is_as_a_run_would_make_it_is_left_out(tmp_path: Path) -> None:
    plan = Fake(tmp_path).plan()
    assert made(plan) == {"log": "yes"}  # a whole-table append is done once a run
    left = {step.name: step.skipped for step in plan.steps if step.skipped}
    assert set(map(str, left.values())) == {"up to date"}
    assert {step.skipped.ends_as for step in plan.steps if step.skipped} == {"unchanged"}


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("raw", {"definitions": frozenset({"x"})}, "raw day named total"),
        ("raw", {"moved": "dim: snapshot 2, read 1"}, "raw day named total"),
        ("dim", {"definitions": frozenset({"x"})}, "dim named"),
        ("total", {"definitions": frozenset({"x"})}, "total"),
        ("day", {"reads": ()}, ""),
        ("day", None, "day total"),
    ],
)
def test_a_change_makes_one_and_perhaps_what_reads_it(
    tmp_path: Path, name: str, change: dict[str, object] | None, expected: str
) -> None:
    fake = Fake(tmp_path)
    known = fake.made(name)
    assert known is not None
    fake.changed[name] = None if change is None else replace(known, **change)  # type: ignore[arg-type] # of any
    found = made(fake.plan())
    assert found.pop("log") == "yes"
    assert list(found) == [each for each in fake.project.graph.order() if each in expected.split()]
    assert set(found.values()) <= {"yes", "perhaps"}
    assert [each for each, how in found.items() if how == "yes"] == ([name] if expected else [])


def test_tests_arguments_and_files_count(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    assert "dim" in made(fake.plan(args={"n": "2"}))
    fake.same_files = False
    assert made(fake.plan(select=("raw", "day"))) == {"raw": "yes", "day": "perhaps"}
    fake.same_files = True
    known = fake.made("total")
    assert known is not None
    fake.changed["total"] = replace(known, reads=(replace(known.reads[0], tests="other"),))
    assert made(fake.plan(select=("total",))) == {"total": "yes"}
    assert made(fake.plan(range=SliceRange(TODAY, TODAY), exclude=("log",))) == {"total": "yes"}


@pytest.mark.parametrize(
    "request_", [{"force": True}, {"behind": False}, {"range": SliceRange(TODAY, TODAY, all=True)}]
)
def test_requests_that_make_it_all_the_same(tmp_path: Path, request_: dict[str, object]) -> None:
    assert set(made(Fake(tmp_path).plan(**request_)).values()) == {"yes"}


def test_a_full_refresh_makes_it_all_the_same(tmp_path: Path) -> None:
    assert made(Fake(tmp_path).plan(select=("total",), full_refresh=True)) == {"total": "yes"}


def test_a_range_makes_whole_tables_only_if_what_they_read_changes(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    range_ = SliceRange(TODAY, TODAY)
    assert made(fake.plan(range=range_)) == {}
    fake.changed["day"] = None
    assert made(fake.plan(range=range_)) == {"day": "yes", "total": "perhaps", "log": "yes"}


def test_a_range_makes_what_is_not_over_only_if_what_it_reads_changes(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    fake.unfinished = {"raw", "day"}
    range_ = SliceRange("2026-01-01", TODAY)
    assert made(fake.plan(range=range_, exclude=("log",))) == {}
    known = fake.made("raw")
    assert known is not None
    fake.changed["raw"] = replace(known, moved="dim: snapshot 2, read 1")
    assert made(fake.plan(range=range_, select=("raw", "day"))) == {"raw": "yes", "day": "perhaps"}


def test_what_differs_from_run_to_run_is_made(tmp_path: Path) -> None:
    fake = Fake(
        tmp_path, {"a": "SELECT now() AS at", "b": "SELECT at FROM a", "c": "SELECT 1 AS x"}
    )
    assert made(fake.plan()) == {"a": "yes", "b": "perhaps"}


def test_a_view_is_made_for_its_definition_or_its_tests(tmp_path: Path) -> None:
    fake = Fake(tmp_path, {"a": "SELECT 1 AS x"})
    view = "MODEL (name main.{0}, kind VIEW{1});\nSELECT x FROM a"
    scripts = {
        "models/v": view.format("v", ""),
        "models/w": view.format("w", ", audits (not_null(columns := (x)))"),
        "models/of_v": f"{HEAD}of_v\nSELECT x FROM v",
    }
    fake.project = Project.load(write_project(tmp_path / "p", scripts))
    assert made(fake.plan()) == {}
    fake.changed["a"] = None
    assert made(fake.plan()) == {"a": "yes", "of_v": "perhaps", "w": "perhaps"}
    del fake.changed["a"]
    fake.changed["v"] = None
    assert made(fake.plan()) == {"v": "yes", "of_v": "perhaps"}
