"""The reasons for which a plan makes slices, as ranges. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from penstock.engine.planning.plan import PlannedStep
from penstock.engine.planning.slice_reason import Reason
from penstock.engine.state.claims import Asked, take
from penstock.engine.state.store import State
from penstock.model.time.interval import Interval
from penstock.project.project import Project
from tests.engine.state.builders import publication, run_record, step_record
from tests.engine.toy import write_project

HEAD = "-- pipeline\n-- partitioned daily start=2026-01-01\n-- materialize ducklake://main/{}\n"
SCRIPTS = {
    "models/days": HEAD.format("days") + "SELECT '{partition}' AS day",
    "models/reader": HEAD.format("reader") + "SELECT day FROM days WHERE day = '{partition}'",
    "models/whole": "-- pipeline\n-- materialize ducklake://main/whole\nSELECT 1 AS a",
    "models/timed": """
        MODEL (name timed, kind INCREMENTAL_BY_TIME_RANGE (time_column day, lookback 1),
               start '2026-01-01', end '2026-01-09');
        SELECT CAST('2026-01-01' AS DATE) AS day FROM src WHERE day BETWEEN @start_ds AND @end_ds
        """,
}
NOW = datetime(2026, 1, 12, 3, tzinfo=UTC)
LATER = datetime(2026, 2, 1, tzinfo=UTC)
DAYS: dict[str, Any] = {"from_": "2026-01-01", "to": "2026-01-09", "fire_time": NOW}


class Shop:
    """A project whose state a test writes, without a run."""

    def __init__(self, root: Path, more: Mapping[str, str] = MappingProxyType({})) -> None:
        self.project = Project.load(write_project(root / "p", {**SCRIPTS, **more}))
        lake = self.project.lake("main")
        for name in ("days", "reader", *(["apart"] if more else [])):
            lake.sql(f"CREATE TABLE {name} (day VARCHAR, _wm_partition VARCHAR)")
        for name in ("whole", *(["fu", "log"] if more else [])):
            lake.sql(f"CREATE TABLE {name} (a INTEGER)")
        lake.sql("CREATE TABLE timed (day DATE)")
        self.catalog, self.state = lake.catalog, State(lake.catalog)
        self.state.begin_run(run_record())

    def made(self, name: str, *slices: str, **changes: Any) -> None:
        model = self.project.model(name)
        known: dict[str, Any] = {"definition_hash": model.definition_hash, "at": LATER}
        known |= {"columns": (), **changes}
        for slice_ in slices:
            what = publication(
                step=name,
                target=model.target.qualified,
                slice=slice_,
                strategy=model.strategy.name,
                slicing=model.slicing,
                **known,
            )
            self.state.confirm(what, self.catalog.latest().id)

    def failed(self, name: str, slice_: str, state: str = "failed") -> None:
        target = self.project.model(name).target.qualified
        tried = step_record(step=name, target=target, slice=slice_, started_at=LATER)
        self.state.begin_step(tried)
        self.state.end_step(("r1", name, slice_), state, "as it is")

    def step(self, name: str, **request: Any) -> PlannedStep:
        return next(step for step in self.project.plan(**request).steps if step.name == name)

    def said(self, name: str, **request: Any) -> list[str]:
        return [str(each) for each in self.step(name, **request).ranges]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def days(*numbers: int) -> list[str]:
    return [f"2026-01-{number:02d}" for number in numbers]


def test_slices_that_follow_each_other_are_one_range(shop: Shop) -> None:
    assert shop.said("days", select="days", **DAYS) == ["2026-01-01 to 2026-01-09 missing (9)"]
    shop.made("days", *days(4, 5))
    shop.failed("days", "2026-01-07")
    assert shop.said("days", select="days", **DAYS) == [
        "2026-01-01 to 2026-01-03 missing (3)",
        "2026-01-06 missing",
        "2026-01-07 failed",
        "2026-01-08 to 2026-01-09 missing (2)",
    ]


def test_a_skipped_slice_failed_because_of_its_input(shop: Shop) -> None:
    shop.failed("days", "2026-01-01", "skipped")
    shop.failed("days", "2026-01-02", "waiting")
    request = DAYS | {"to": "2026-01-02"}
    assert shop.said("days", select="days", **request) == [
        "2026-01-01 failed (its input failed)",
        "2026-01-02 missing (it waited for its input)",
    ]


@pytest.mark.parametrize("states", [("skipped", "failed"), ("failed", "skipped")])
def test_slices_with_different_reasons_are_two_ranges(shop: Shop, states: tuple[str, str]) -> None:
    for day, state in zip(days(1, 2), states, strict=True):
        shop.failed("days", day, state)
    words = {"skipped": "failed (its input failed)", "failed": "failed"}
    said = shop.said("days", select="days", **(DAYS | {"to": "2026-01-02"}))
    assert said == [f"2026-01-0{n} {words[state]}" for n, state in enumerate(states, 1)]


@pytest.mark.parametrize(
    ("changes", "request_", "reason"),
    [
        ({}, {"all_": True}, "forced (--all)"),
        ({"definition_hash": "old"}, {"all_": True}, "changed (its definition)"),
        ({"at": datetime(2026, 1, 1, 9, tzinfo=UTC)}, {}, "not over yet"),
    ],
)
def test_what_is_there_is_made_for_a_reason(
    shop: Shop, changes: dict[str, Any], request_: dict[str, Any], reason: str
) -> None:
    shop.made("days", "2026-01-01", **changes)
    request = DAYS | {"to": "2026-01-01"} | request_
    assert shop.said("days", select="days", **request) == [f"2026-01-01 {reason}"]


def test_a_slice_that_is_asked_for_by_itself_is_forced(shop: Shop) -> None:
    shop.made("days", "2026-01-01")
    said = shop.said("days", select="days", partition="2026-01-01", fire_time=NOW)
    assert said == ["2026-01-01 forced (asked for by itself)"]
    refreshed = shop.said("days", select="days", partition="2026-01-01", full_refresh=True)
    assert refreshed == ["2026-01-01 forced (--full-refresh)"]


LAG = "day >= date_sub('{partition}', 2) AND day <= '{partition}'"
READERS = {
    "models/month": HEAD.format("month").replace("daily", "monthly")
    + "SELECT count(*) AS n FROM days WHERE substr(day, 1, 7) = '{partition}'",
    "models/lag": HEAD.format("lag") + f"SELECT day FROM timed WHERE {LAG}",
}


def test_a_slice_outside_of_the_range_is_made_for_a_reader(tmp_path: Path) -> None:
    shop = Shop(tmp_path, READERS)
    shop.failed("days", "2026-01-09")
    request = DAYS | {"from_": "2026-01-10", "to": "2026-01-12", "fire_time": LATER}
    assert shop.said("days", select=["days", "month"], **request) == [
        "2026-01-01 to 2026-01-08 missing (for month 2026-01) (8)",
        "2026-01-09 failed (for month 2026-01)",
        "2026-01-10 to 2026-01-12 missing (3)",
        "2026-01-13 to 2026-01-31 missing (for month 2026-01) (19)",
    ]
    assert shop.said("days", select="month", upstream=True, **request)[-1] == (
        "2026-01-10 to 2026-01-31 missing (for month 2026-01) (22)"
    )


def test_an_interval_outside_of_the_range_is_made_for_a_reader(tmp_path: Path) -> None:
    shop = Shop(tmp_path, READERS)
    request = DAYS | {"from_": "2026-01-05", "to": "2026-01-06"}
    assert shop.said("timed", select=["timed", "lag"], **request) == [
        "2026-01-03 to 2026-01-04 missing (for lag 2026-01-05) (2)",
        "2026-01-05 to 2026-01-06 missing (2)",
    ]


def test_a_whole_table_is_made_in_each_run(shop: Shop) -> None:
    assert shop.said("whole", select="whole") == ["whole table missing"]
    shop.made("whole", "")
    assert shop.step("whole", select="whole").ranges[0].reason is Reason.FORCED


def test_a_slice_whose_input_the_run_makes_is_behind_if_that_changes(shop: Shop) -> None:
    shop.made("days", *days(2, 3))
    shop.made("reader", *days(1, 2, 3))
    request = DAYS | {"to": "2026-01-03"}
    assert shop.said("reader", select=["days", "reader"], **request) == [
        "2026-01-01 behind (if its input changes in this run)"
    ]


def test_a_plan_of_the_project_names_tables_without_a_model(shop: Shop) -> None:
    """Those that runs have made: a table of others is none."""
    shop.project.lake("main").sql("CREATE TABLE theirs (a INTEGER)")
    shop.made("whole", "")
    shop.made("days", "2026-01-01")
    assert not any("no model" in notice for notice in shop.project.plan(**DAYS).notices)
    root = shop.project.settings.root
    (root / "models" / "whole.sql").unlink()
    with Project.load(root) as project:
        assert project.plan("days", **DAYS).notices == ()
        assert project.plan(**DAYS).notices == (
            "no model makes main.whole any more: penstock drop main.whole removes it",
        )
    (root / "models" / "days.sql").unlink()
    with Project.load(root) as project:
        (notice,) = (each for each in project.plan(**DAYS).notices if "no model" in each)
        said = "no model makes main.days, main.whole any more: penstock drop TABLE removes one"
        assert notice == said


def test_what_waits_says_for_what(shop: Shop) -> None:
    shop.failed("days", "2026-01-02")
    step = shop.step("reader", select="reader", **(DAYS | {"to": "2026-01-02"}))
    (range_,) = step.ranges
    assert (range_.state, range_.reason, range_.count) == ("waiting", Reason.MISSING, 2)
    assert range_.until == "days 2026-01-01 missing, and 1 more"


def test_what_another_run_holds_says_who(shop: Shop) -> None:
    target = shop.project.model("days").target.qualified
    shop.state.write(
        lambda connection: (
            take(connection, Asked("main", target, ("2026-01-02",), "other"), 30) and None
        )
    )
    step = shop.step("days", select="days", **(DAYS | {"to": "2026-01-03"}))
    assert [(str(each), each.state) for each in step.ranges] == [
        ("2026-01-01 missing", "planned"),
        ("2026-01-02 missing", "held"),
        ("2026-01-03 missing", "planned"),
    ]
    assert (step.ranges[1].until or "").startswith("run other (")


def test_intervals_are_cut_by_their_reasons(shop: Shop) -> None:
    assert shop.said("timed", select="timed") == ["2026-01-01 to 2026-01-09 missing (9)"]
    first = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC))
    shop.made("timed", first.text)
    assert shop.said("timed", select="timed") == [
        "2026-01-04 late (lookback)",
        "2026-01-05 to 2026-01-09 missing (5)",
    ]


def test_a_skipped_step_has_no_ranges(shop: Shop) -> None:
    shop.made("days", "2026-01-01")
    step = shop.step("days", select="days", **(DAYS | {"to": "2026-01-01"}))
    assert (step.ranges, bool(step.skipped)) == ((), True)


def test_a_run_of_very_many_slices_is_noticed(shop: Shop) -> None:
    long_ago = NOW - timedelta(days=11_000)
    scripts = {"models/days": SCRIPTS["models/days"].replace("2026-01-01", f"{long_ago:%Y-%m-%d}")}
    root = write_project(shop.project.settings.root.parent / "q", scripts)
    plan = Project.load(root).plan(from_=long_ago.date(), to="2026-01-11", fire_time=NOW)
    (notice,) = plan.notices
    assert notice.startswith("the run makes 11,000 slices, more than 10,000: ")
    assert [str(each) for each in plan.steps[0].ranges] == [
        f"{long_ago:%Y-%m-%d} to 2026-01-11 missing (11,000)"
    ]


@pytest.mark.parametrize("state", ["failed", "abandoned"])
def test_status_names_an_attempt_of_before_a_publication_that_is_undone(
    shop: Shop, state: str
) -> None:
    """As plans do: a rollback has taken the rows that a later run published."""
    text = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)).text
    shop.failed("timed", text, state)
    later = step_record("r2", step="timed", target="main.timed", slice=text)
    shop.state.begin_step(replace(later, state="done", started_at=LATER + timedelta(days=1)))
    model = shop.project.model("timed")
    planned = shop.project.context.slices().intervals([model])["timed"].events
    for known in (shop.project.status(), shop.project.status("timed")):
        status = next(each for each in known if each.model == "timed")
        assert [(each.slice, each.state) for each in status.slices] == [
            (str(event.interval), event.state) for event in planned
        ]
    assert [event.state for event in planned] == ["failed"]
