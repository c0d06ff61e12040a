"""Plans in files: what they hold, and what moves them. No Spark: nothing is run."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.planning.plan import Plan
from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.saved_plan import SavedPlan, _encoded, request_as_dict, request_of
from penstock.engine.planning.slices import RunRequest
from penstock.errors import ArgumentError, PlanMoved
from penstock.project.planning import plan_request, require_same_plan
from penstock.project.project import Project
from tests.engine.planning.test_reasons import DAYS, HEAD, Shop, days
from tests.engine.state.builders import run_record
from tests.engine.toy import write_project


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    shop.project.lake("main").sql("CREATE TABLE src (day DATE)")
    return shop


def saved(shop: Shop, tmp_path: Path, **request: Any) -> Path:
    path = tmp_path / "plan.json"
    shop.project.save_plan(shop.project.plan(**request), path)
    return path


def moved(shop: Shop, plan: Plan | Path) -> list[str]:
    """Return what a run of the plan says has changed; nothing where it would run."""
    root = shop.project.settings.root
    with Project.load(root) as project:
        try:
            require_same_plan(project.context, plan)
        except PlanMoved as error:
            return list(error.data["moved"])
    return []


def edit(shop: Shop, name: str, old: str, new: str) -> None:
    path = shop.project.settings.root / "models" / f"{name}.sql"
    path.write_text(path.read_text().replace(old, new))


MOMENTS = st.none() | st.text(max_size=8) | st.dates() | st.datetimes(timezones=st.just(UTC))
NAMES = st.lists(st.text(min_size=1, max_size=8), max_size=3).map(tuple)
ANY_REQUEST = st.builds(
    RunRequest,
    partition=MOMENTS,
    select=NAMES,
    exclude=NAMES,
    to=NAMES,
    args=st.dictionaries(st.sampled_from(["date", "range", "n"]), st.none() | st.text()),
    fire_time=st.datetimes(timezones=st.just(UTC)),
    payload=st.none() | st.dictionaries(st.text(), st.integers() | st.text() | st.none()),
    trigger=st.text(),
    range=st.none() | st.builds(SliceRange, MOMENTS, MOMENTS, st.booleans()),
    behind=st.booleans(),
    force=st.booleans(),
)


@given(ANY_REQUEST)
def test_a_request_is_read_back_from_json(request: RunRequest) -> None:
    assert request_of(json.loads(json.dumps(request_as_dict(request)))) == request


def test_a_plan_that_nothing_moved_is_run_as_it_is(shop: Shop, tmp_path: Path) -> None:
    shop.made("days", *days(1, 2))
    path = saved(shop, tmp_path, **DAYS)
    with Project.load(shop.project.settings.root) as project:
        again = require_same_plan(project.context, path)
    planned = shop.project.plan(**DAYS)
    assert [(s.name, s.slices) for s in again.steps] == [(s.name, s.slices) for s in planned.steps]
    assert again.request == planned.request
    assert moved(shop, planned) == []


def test_comments_do_not_move_a_plan(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, **DAYS)
    edit(shop, "days", "SELECT", "-- as it was\nSELECT")
    assert moved(shop, path) == []


def test_a_changed_definition_is_named(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, **DAYS)
    edit(shop, "days", "SELECT", "SELECT 1 AS one,")
    assert moved(shop, path) == ["the definition of days has changed"]


def test_a_model_that_is_gone_is_named(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, select="whole")
    (shop.project.settings.root / "models" / "whole.sql").unlink()
    with Project.load(shop.project.settings.root) as project, pytest.raises(ArgumentError):
        require_same_plan(project.context, path)
    path = saved(shop, tmp_path, **DAYS)
    assert "model whole is gone" in moved(shop, path)


def test_slices_that_were_made_meanwhile_are_named(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, select="days", **DAYS)
    shop.made("days", *days(2, 3))
    assert moved(shop, path) == ["days 2026-01-02, 2026-01-03 made meanwhile by run r1"]


def test_many_slices_are_counted(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, select="days", **DAYS)
    shop.made("days", *days(2, 3, 4, 5, 6))
    (what,) = moved(shop, path)
    assert what.startswith("days 2026-01-02, 2026-01-03, 2026-01-04 and 2 more made meanwhile")


def test_a_forced_slice_that_was_made_again_is_named(shop: Shop, tmp_path: Path) -> None:
    shop.made("days", *days(1, 2))
    path = saved(shop, tmp_path, select="days", all_=True, **DAYS)
    shop.state.begin_run(run_record("r2"))
    shop.made("days", "2026-01-02", run_id="r2")
    assert moved(shop, path) == ["days 2026-01-02 made meanwhile by run r2"]


def test_intervals_that_were_made_meanwhile_are_named(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, select="timed", fire_time=DAYS["fire_time"])
    shop.made("timed", "2026-01-03T00:00:00Z/2026-01-05T00:00:00Z")
    (what,) = moved(shop, path)
    assert what == "timed 2026-01-03 to 2026-01-04 made meanwhile by run r1"


def test_a_batch_whose_record_was_cut_was_not_dropped(shop: Shop, tmp_path: Path) -> None:
    """Another run makes a day of it again: what is left of its record are the days around."""
    whole = "2026-01-01T00:00:00Z/2026-01-05T00:00:00Z"
    shop.made("timed", whole)
    path = saved(shop, tmp_path, select="timed", all_=True, **DAYS)
    shop.state.forget(shop.project.model("timed").target.qualified, whole)
    shop.made("timed", "2026-01-01T00:00:00Z/2026-01-02T00:00:00Z")
    shop.made("timed", "2026-01-03T00:00:00Z/2026-01-05T00:00:00Z")
    shop.state.begin_run(run_record("r2"))
    shop.made("timed", "2026-01-02T00:00:00Z/2026-01-03T00:00:00Z", run_id="r2")
    (what,) = (each for each in moved(shop, path) if "meanwhile" in each)
    assert what == "timed 2026-01-02 made meanwhile by run r2"


def test_slices_that_were_dropped_meanwhile_are_named(shop: Shop, tmp_path: Path) -> None:
    shop.made("days", *days(1, 2))
    path = saved(shop, tmp_path, select="days", all_=True, **DAYS)
    shop.state.forget(shop.project.model("days").target.qualified, "2026-01-02")
    assert moved(shop, path) == ["days 2026-01-02 dropped meanwhile"]


def test_what_waits_and_does_no_more_is_named(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, select="reader", **(DAYS | {"to": "2026-01-01"}))
    shop.made("days", "2026-01-01")
    assert moved(shop, path)[0] == "what reader 2026-01-01 waits for has changed"


def test_rows_of_a_table_that_no_model_makes_are_named(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, select="timed", fire_time=DAYS["fire_time"])
    lake = shop.project.lake("main")
    lake.sql("COMMENT ON TABLE src IS 'no rows'")
    assert moved(shop, path) == []
    lake.sql("INSERT INTO src VALUES (DATE '2026-01-01')")
    (what,) = moved(shop, path)
    assert what.startswith("rows of main.src have changed since snapshot ")


def test_another_lake_is_refused(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, **DAYS)
    value = json.loads(path.read_text())
    value["lakes"]["main"]["time"] = "2020-01-01T00:00:00+00:00"
    path.write_text(json.dumps(value))
    (what,) = moved(shop, path)
    assert what.startswith("lake main is not as it was: it was at snapshot ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1", "is not a Penstock plan"),
        ("[1]", "is not a Penstock plan"),
        ('{"penstock_plan": 99}', "has version 99 of plans, and this Penstock reads 1"),
        ('{"penstock_plan": 1, "project": "toy"}', "is not a whole plan: KeyError 'request'"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(
    shop: Shop, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=message):
        require_same_plan(shop.project.context, path)


def test_a_plan_of_another_project_is_refused(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, **DAYS)
    path.write_text(path.read_text().replace('"project": "toy"', '"project": "other"'))
    with pytest.raises(ArgumentError, match="is a plan of the project 'other', and this is 'toy'"):
        require_same_plan(shop.project.context, path)


def test_a_file_that_cannot_be_read_or_written_is_an_argument(shop: Shop, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="cannot be read"):
        require_same_plan(shop.project.context, tmp_path / "none.json")
    with pytest.raises(ArgumentError, match="cannot be written"):
        saved(shop, tmp_path / "none", **DAYS)


def test_a_saved_plan_takes_no_other_request(shop: Shop, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, **DAYS)
    with pytest.raises(ArgumentError, match="select, upstream cannot be given with it"):
        shop.project.run("days", upstream=True, plan=path)


REQUESTS = [
    RunRequest(partition=date(2026, 1, 1), select=("a", "+b")),
    RunRequest(partition=datetime(2026, 1, 1, tzinfo=UTC), args={"n": None, "m": "1"}),
    RunRequest(range=SliceRange("2026-01-01", date(2026, 1, 2), all=True), behind=False),
]


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_request_is_read_as_it_was_written(request_: RunRequest) -> None:
    text = json.dumps({n: _encoded(getattr(request_, n)) for n in RunRequest.__slots__})
    assert request_of(json.loads(text)) == request_


def test_a_payload_is_saved_as_far_as_models_declare_it(tmp_path: Path) -> None:
    script = HEAD.replace("daily start=2026-01-01", 'dynamic key="$.tenant"').format("t")
    root = write_project(tmp_path / "p", {"models/t": f"{script}-- $n (int) = 3\nSELECT $n AS n"})
    with Project.load(root) as project:
        plan = project.plan(payload={"tenant": "acme", "n": 4, "token": "hunter2"})
        text = SavedPlan.of(plan, "toy").to_json(plan)
        assert "hunter2" not in text
        request = SavedPlan.parse(text, "plan.json").request
        assert dict(request.args) == {"tenant": "acme", "n": "4"}
        assert [
            str(s) for step in plan_request(project.context, request).steps for s in step.slices
        ] == ["acme"]


@pytest.fixture
def files(shop: Shop) -> Path:
    """The folder of files of which a model reads one a day."""
    root = shop.project.settings.root
    head = HEAD.format("readings")
    query = "SELECT * FROM read_csv('data/{partition}*.csv')\n"
    (root / "models" / "readings.sql").write_text(head + query)
    (root / "data").mkdir()
    for day in (1, 2, 3):
        (root / "data" / f"2026-01-0{day}.csv").write_text(f"n\n{day}\n")
    shop.project = Project.load(root)
    return root / "data"


def test_files_that_moved_are_named(shop: Shop, files: Path, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, select="readings", **DAYS)
    assert moved(shop, path) == []
    (files / "2026-01-01.csv").write_text("n\n11\n")
    (files / "2026-01-02.csv").rename(files / "2026-01-02b.csv")
    said = [each.removeprefix("files that readings reads: ") for each in moved(shop, path)]
    assert said == [
        "changed data/2026-01-01.csv", "gone data/2026-01-02.csv", "new data/2026-01-02b.csv"
    ]  # fmt: skip


def test_files_that_were_only_copied_did_not_move(shop: Shop, files: Path, tmp_path: Path) -> None:
    path = saved(shop, tmp_path, select="readings", **DAYS)
    os.utime(files / "2026-01-01.csv", (1, 1))
    (files / "2026-01-19.csv").write_text("n\n9\n")  # of no slice of the plan
    assert moved(shop, path) == []


def test_files_of_a_plan_that_was_saved_without_them_are_not_compared(
    shop: Shop, files: Path, tmp_path: Path
) -> None:
    path = saved(shop, tmp_path, select="readings", **DAYS)
    plan = json.loads(path.read_text())
    for step in plan["steps"]:
        del step["file_reads"]
    path.write_text(json.dumps(plan))
    (files / "2026-01-01.csv").write_text("n\n11\n")
    assert moved(shop, path) == []
