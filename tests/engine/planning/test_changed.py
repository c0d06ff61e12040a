"""What a change of definitions touches, and the plan that rebuilds exactly that. Spark runs
one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.planning.changed import NOTHING
from penstock.engine.planning.definition_diff import _rebuild_command
from penstock.engine.results import StaleSlices
from penstock.engine.state.records import ReadRecord
from penstock.engine.state.store import insert_read
from penstock.errors import ArgumentError, PlanMoved
from penstock.model.time.interval import Interval
from penstock.model.time.slice import Part
from penstock.project.planning import require_same_plan
from penstock.project.project import Project
from tests.engine.planning.test_reasons import HEAD, Shop, days
from tests.engine.planning.test_slices import TENANT, model
from tests.engine.state.builders import run_record
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MORE = {
    "models/fu": "-- pipeline\n-- materialize ducklake://main/fu\nSELECT count(*) AS n FROM days",
    "models/log": "-- pipeline\n-- materialize ducklake://main/log append\nSELECT * FROM fu",
    "models/apart": HEAD.format("apart") + "SELECT '{partition}' AS day",
}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Days of which five were made, a reader of three, a whole table and an append below."""
    shop = Shop(tmp_path, MORE)
    shop.made("days", *days(1, 2, 3, 4, 5))
    shop.made("reader", *days(2, 3, 4))
    shop.made("fu", "")
    shop.made("log", "")
    return shop


def edited(shop: Shop, name: str = "days") -> Project:
    path = shop.project.settings.root / "models" / f"{name}.sql"
    path.write_text(path.read_text().replace("SELECT", "SELECT 1 AS one,"))
    return Project.load(shop.project.settings.root)


def planned(project: Project, *models: str, **request: Any) -> list[tuple[str, list[str]]]:
    plan = project.plan(*models, changed=True, **request)
    return [(step.name, [str(each) for each in step.slices]) for step in plan.steps]


def test_nothing_has_changed(shop: Shop) -> None:
    with Project.load(shop.project.settings.root) as project:
        plan = project.plan(changed=True)
        assert (plan.steps, plan.notices) == ((), (NOTHING,))
        assert project.plan().changes == ()
        assert project.run(changed=True).state == "done"


def under(shop: Shop, conf: Mapping[str, str], recorded: Mapping[str, str] | None) -> Project:
    """The project under settings of Spark, its days made under others; None: not known which."""
    read = ReadRecord("x1", "main.days", "r1", {"main": 0}, settings=recorded)
    shop.state.write(lambda connection: insert_read(connection, read))
    shop.made("days", *days(1, 2), read_id="x1")
    root = shop.project.settings.root
    return Project.load(root, overrides={f"spark.conf.{name}": conf[name] for name in conf})


ANSI = "spark.sql.ansi.enabled"
ANSI_CHANGED = f"changed: days ({ANSI}); 2 slices; readers: fu (whole), reader (1)"


@pytest.mark.parametrize(
    ("conf", "recorded", "said"),
    [
        ({}, None, []),
        ({ANSI: "false"}, None, []),
        ({ANSI: "True"}, {}, []),
        ({"spark.driver.memory": "2g"}, {}, []),
        ({ANSI: "false"}, {}, [ANSI_CHANGED]),
        ({}, {ANSI: "false"}, [ANSI_CHANGED]),
    ],
)
def test_settings_of_spark_that_decide_rows(
    shop: Shop, conf: dict[str, str], recorded: dict[str, str] | None, said: list[str]
) -> None:
    with under(shop, conf, recorded) as project:
        changes = project.plan("days").changes
        assert [str(each).partition("; not")[0] for each in changes] == said
        status = next(each for each in project.status() if each.model == "days")
        states = {each.slice: each.state for each in status.slices}
        assert states["2026-01-01"] == ("stale" if said else "materialized")


def test_a_plan_says_which_setting_is_another(shop: Shop) -> None:
    why = f"{ANSI}: as without it, now false"
    with under(shop, {ANSI: "false"}, {}) as project:
        (change,) = project.plan("days").changes
        assert change.diff == (why,)
        step = project.plan("days", from_="2026-01-01", to="2026-01-02", all_=True).steps[0]
        (made,) = step.ranges
        assert str(made) == f"2026-01-01 to 2026-01-02 changed ({why}) (2)"


@pytest.mark.parametrize(("values", "shown"), [("x", "x"), ("xy", "VALUE (for each)")])
def test_values_of_a_dynamic_partition_are_made_one_by_one(values: str, shown: str) -> None:
    command = _rebuild_command(model("tenants", TENANT), [Part(value) for value in values])
    assert command == f"penstock run tenants --partition {shown}"


TESTED = "-- data_test not_null day\n"


def test_data_tests_that_slices_were_not_published_under(shop: Shop) -> None:
    """They make no other rows, so nothing is rebuilt; old records say nothing of them."""
    model = shop.project.model("days")
    for read_id, tests in (("x1", model.terms), ("x2", "")):
        read = ReadRecord(read_id, "main.days", "r1", {"main": 0}, tests=tests)
        shop.state.write(partial(insert_read, read=read))
    shop.state.begin_run(run_record("r2"), [model])
    shop.made("days", *days(1, 2), read_id="x1")
    shop.made("days", *days(3), read_id="x2")
    path = shop.project.settings.root / "models" / "days.sql"
    path.write_text(path.read_text().replace("SELECT", f"{TESTED}SELECT", 1))
    with Project.load(shop.project.settings.root) as project:
        (change,) = project.plan("days").changes
        again = "penstock run days --from 2026-01-01 --to 2026-01-02 --all"
        assert str(change) == (
            "changed: days (data test not_null day); 2 slices; not rebuilt: "
            f"data tests make no rows; {again} makes the slices again under them"
        )
        assert project.plan(changed=True).steps == ()
        result = project.run("days", from_="2026-01-01", to="2026-01-02")
        assert (result.state, result.stale) == ("done", ())
        assert result.untested == (StaleSlices("days", 2, again),)
        status = next(each for each in project.status() if each.model == "days")
        assert {each.state for each in status.slices} == {"materialized"}


def test_what_a_change_touches_is_rebuilt_and_nothing_else(shop: Shop) -> None:
    with edited(shop) as project:
        assert planned(project) == [
            ("days", days(1, 2, 3, 4, 5)),
            ("fu", ["whole table"]),
            ("log", []),
            ("reader", days(2, 3, 4)),
        ]


def test_steps_are_in_the_order_of_the_graph_and_say_why(shop: Shop) -> None:
    with edited(shop) as project:
        steps = {step.name: step for step in project.plan(changed=True).steps}
    assert steps["reader"].after == ("days",)
    assert [str(each) for each in steps["days"].ranges] == [
        "2026-01-01 to 2026-01-05 restated (the definition of days has changed) (5)"
    ]
    assert "not rebuilt: " in str(steps["log"].skipped)


def test_only_selected_models_begin(shop: Shop) -> None:
    with edited(shop) as project:
        assert [name for name, _ in planned(project, "reader")] == []
        assert [name for name, _ in planned(project, "days")] == ["days", "fu", "log", "reader"]


def test_a_changed_reader_is_rebuilt_alone(shop: Shop) -> None:
    with edited(shop, "reader") as project:
        assert planned(project) == [("reader", days(2, 3, 4))]


def test_formatting_is_no_change(shop: Shop) -> None:
    path = shop.project.settings.root / "models" / "days.sql"
    path.write_text(path.read_text().replace("SELECT", "select -- as before\n"))
    with Project.load(shop.project.settings.root) as project:
        assert planned(project) == []


def test_a_plan_names_what_a_change_touches(shop: Shop) -> None:
    with edited(shop) as project:
        (change,) = project.plan().changes
    assert str(change).startswith(
        "changed: days; 5 slices; readers: fu (whole), reader (3); not log"
    )
    assert change.to_dict()["readers"] == [
        {"model": "fu", "slices": None},
        {"model": "reader", "slices": 3},
    ]


def test_intervals_that_another_definition_made_are_rebuilt_together(shop: Shop) -> None:
    shop.made("timed", "2026-01-01T00:00:00Z/2026-01-04T00:00:00Z")
    shop.made("timed", "2026-01-04T00:00:00Z/2026-01-06T00:00:00Z")
    with edited(shop, "timed") as project:
        assert planned(project) == [("timed", ["2026-01-01 to 2026-01-05"])]
        (change,) = project.plan("timed").changes
        assert str(change) == "changed: timed; 5 slices"


def test_what_cannot_be_rebuilt_says_so(shop: Shop) -> None:
    with edited(shop, "log") as project:
        (step,) = project.plan(changed=True).steps
        assert str(step.skipped or "").startswith(
            "its definition has changed, and it is not rebuilt: "
        )
        (change,) = project.plan().changes
        assert "changed: log; whole table; not rebuilt: " in str(change)


def test_a_slice_cannot_be_asked_for_as_well(shop: Shop) -> None:
    with pytest.raises(ArgumentError, match="--changed says which slices are made"):
        shop.project.plan(changed=True, partition="2026-01-01")


def test_a_range_rebuilds_what_has_changed_beside_what_it_lacks(shop: Shop) -> None:
    with edited(shop) as project:
        asked: dict[str, Any] = {"from_": "2026-01-04", "to": "2026-01-06"}
        plan = project.plan("days", "reader", "fu", changed=True, **asked)
        made = {step.name: [each.text for each in step.slices] for step in plan.steps}
        assert made == {
            "days": days(1, 2, 3, 4, 5, 6),
            "reader": days(2, 3, 4, 5, 6),
            "fu": [""],
        }
        assert plan.stale == ()
        (left,) = project.plan("days", **asked).stale
        assert (left.model, left.slices) == ("days", 5)


def test_a_range_rebuilds_a_whole_table_of_another_definition(shop: Shop) -> None:
    shop.made("whole", "")
    with edited(shop, "whole"), edited(shop, "log") as project:
        asked: dict[str, Any] = {"from_": "2026-01-01", "to": "2026-01-03"}
        steps = {step.name: step for step in project.plan(**asked).steps}
        assert steps["whole"].skipped is None
        assert [str(each) for each in steps["whole"].ranges] == [
            "whole table changed (its definition)"
        ]
        assert steps["log"].skipped is not None  # an append would add its rows once more


def test_a_changed_plan_can_be_saved(shop: Shop, tmp_path: Path) -> None:
    with edited(shop) as project:
        project.save_plan(project.plan(changed=True), tmp_path / "plan.json")
        again = require_same_plan(project.context, tmp_path / "plan.json")
        assert [step.name for step in again.steps] == ["days", "fu", "log", "reader"]


MADE = {
    "models/ids": HEAD.format("ids") + "SELECT 1 AS id, '{partition}' AS day",
    "models/dn": HEAD.format("dn") + "SELECT id, day FROM ids WHERE day = '{partition}'",
    "models/fu": "-- pipeline\n-- materialize ducklake://main/fu\nSELECT sum(id) AS n FROM dn",
    "models/other": HEAD.format("other") + "SELECT '{partition}' AS day",
}


def test_a_run_rebuilds_exactly_what_its_plan_shows(spark: SparkSession, tmp_path: Path) -> None:
    root = write_project(tmp_path / "p", MADE)
    with Project.load(root, spark=spark) as project:
        project.run(from_="2026-01-01", to="2026-01-02").raise_for_status()
    write_project(root, {"models/ids": MADE["models/ids"].replace("1 AS id", "5 AS id")})
    with Project.load(root, spark=spark) as project:
        plan = project.plan(changed=True)
        assert [str(each) for each in plan.changes] == [
            "changed: ids (query); 2 slices; readers: dn (2), fu (whole)"
        ]
        project.save_plan(plan, root / "plan.json")
        result = project.run(plan=root / "plan.json").raise_for_status()
        assert {each.name for each in result.steps} == {"ids", "dn", "fu"}
        assert rows(project, "SELECT n FROM fu") == [(10,)]
        assert project.plan(changed=True).steps == ()
        with pytest.raises(PlanMoved, match="made meanwhile by run"):
            project.run(plan=root / "plan.json")


TIMED = """
MODEL (name {}, kind {}, start '2026-01-01', end '2026-01-02');
SELECT CAST('2026-01-01' AS DATE) AS day FROM src WHERE day BETWEEN @start_ds AND @end_ds
"""
KEPT = {
    "models/apart": HEAD.format("apart append") + "SELECT '{partition}' AS day",
    "models/added": TIMED.format(
        "added", "INCREMENTAL_UNMANAGED (forward_only false, disable_restatement true)"
    ),
    "models/fixed": TIMED.format(
        "fixed", "INCREMENTAL_BY_TIME_RANGE (time_column day, disable_restatement true)"
    ),
}
ALLOW = "write disable_restatement false in its kind, then penstock run --changed"
EACH = "for each slice: penstock drop apart --partition SLICE, then run again"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("apart", EACH), ("added", ALLOW), ("fixed", ALLOW)],
    ids=["partitions", "append by time", "time range"],
)
def test_what_no_run_rebuilds_names_the_command_that_does(
    tmp_path: Path, name: str, hint: str
) -> None:
    shop = Shop(tmp_path, {**MORE, **KEPT})
    timed = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)).text
    if name != "apart":
        shop.project.lake("main").sql(f"CREATE TABLE {name} (day DATE)")
    shop.made(name, *(days(1, 2) if name == "apart" else [timed]), definition_hash="other")
    asked = {"from_": "2026-01-01", "to": "2026-01-02"}
    skipped = str(shop.step(name, select=name, **asked).skipped)
    assert "2 stale; what is stale stays: " in skipped
    assert skipped.endswith(hint)
    with edited_kind(shop, name) as project:
        if name == "apart":
            project.drop(name, "2026-01-02")
        step = project.plan(name, **(asked if name == "apart" else {"changed": True})).steps[0]
        remade = ["2026-01-02"] if name == "apart" else ["2026-01-01 to 2026-01-02"]
        assert (step.skipped, [str(each) for each in step.slices]) == (None, remade)


def edited_kind(shop: Shop, name: str) -> Project:
    path = shop.project.settings.root / "models" / f"{name}.sql"
    path.write_text(path.read_text().replace("restatement true", "restatement false"))
    return Project.load(shop.project.settings.root)
