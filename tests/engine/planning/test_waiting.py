"""Plans with what their slices need: made first, waited for, made again. No Spark, no catalog.

Tests ``engine/planning/plan_notices.py`` (what a plan leaves out and waits for is said).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from penstock.engine.planning.intervals import Event, IntervalHistory
from penstock.engine.planning.make_plan import make_plan
from penstock.engine.planning.plan import Known, Plan
from penstock.engine.planning.ranges import SliceRange, SliceStates
from penstock.engine.planning.slices import RunRequest
from penstock.model.slicing.undated import views_read
from penstock.model.time.interval import Interval
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.toy import write_project

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HEAD = "-- pipeline\n-- materialize ducklake://main/"
DAILY = "-- partitioned daily start=2026-01-01\n"
DAY = "WHERE day = '{partition}'"
LAG = "WHERE day >= date_sub('{partition}', 2) AND day <= '{partition}'"
RAW = f"{DAILY}SELECT 1 AS n, '{{partition}}' AS day"
BY_TIME = (
    "MODEL (name main.{name}, kind INCREMENTAL_BY_TIME_RANGE (time_column day), "
    "start '2026-01-01');\nSELECT * FROM {of} WHERE day BETWEEN @start_ds AND @end_ds"
)


def plan_of(
    root: Path,
    models: Mapping[str, str],
    known: Mapping[str, Mapping[str, SliceState]],
    request: RunRequest,
    lines: Mapping[str, IntervalHistory] | None = None,
) -> Plan:
    scripts = {
        f"models/{name}": text
        if text.startswith(("MODEL", "-- pipeline"))
        else f"{HEAD}{name}\n{text}"
        for name, text in models.items()
    }
    project = Project.load(write_project(root / "p", scripts))
    by_name = {model.name: model for model in project.models}
    states = {
        name: SliceStates(of, remakes=name not in by_name or by_name[name].strategy.restores)
        for name, of in known.items()
    }
    asked = replace(request, fire_time=NOON)
    views = views_read(project.models)
    told = Known(lambda _: states, lambda _: lines or {}, edges=project.edges, views=views)
    return make_plan(by_name, project.graph, asked, told)


def made(plan: Plan, name: str) -> list[str]:
    (step,) = (step for step in plan.steps if step.name == name)
    return [] if step.skipped else [str(each) for each in step.slices if each not in step.waits]


def waits(plan: Plan, name: str) -> dict[str, str]:
    (step,) = (step for step in plan.steps if step.name == name)
    return {str(slice_): why for slice_, why in step.waits.items()}


def days(*numbers: int) -> list[str]:
    return [f"2026-01-0{number}" for number in numbers]


def states(state: SliceState, numbers: Sequence[int]) -> dict[str, SliceState]:
    return dict.fromkeys(days(*numbers), state)


def test_what_is_missing_above_is_made_first(tmp_path: Path) -> None:
    models = {"raw": RAW, "mart": f"{DAILY}SELECT * FROM raw {LAG}"}
    plan = plan_of(tmp_path, models, {"raw": states(SliceState.MATERIALIZED, (1, 2))}, RunRequest())
    assert made(plan, "raw") == days(3, 4, 5)
    assert made(plan, "mart") == days(5)


def test_what_is_made_first_is_counted(tmp_path: Path) -> None:
    models = {"raw": RAW, "mart": f"{DAILY}SELECT * FROM raw {LAG}"}
    asked = RunRequest(range=SliceRange("2026-01-03", "2026-01-04"))
    plan = plan_of(tmp_path, models, {"raw": states(SliceState.FAILED, (2,))}, asked)
    assert made(plan, "raw") == days(1, 2, 3, 4)
    (tally, of_mart) = (step.tally for step in plan.steps)
    assert tally is not None
    assert (tally.states, tally.to_make) == ({SliceState.MISSING: 3, SliceState.FAILED: 1}, 4)
    assert of_mart is not None
    assert of_mart.states == {SliceState.MISSING: 2}


def test_alone_it_waits_and_with_upstream_it_does_not(tmp_path: Path) -> None:
    models = {"raw": RAW, "mid": f"{DAILY}SELECT * FROM raw {DAY}"}
    models["mart"] = f"{DAILY}SELECT * FROM mid {LAG}"
    known = {"raw": states(SliceState.MATERIALIZED, (3,)) | states(SliceState.FAILED, (4,))}
    known["mid"] = states(SliceState.MATERIALIZED, (3,))
    alone = RunRequest(select=("mart",), partition="2026-01-04")
    plan = plan_of(tmp_path, models, known, alone)
    assert waits(plan, "mart") == {"2026-01-04": "mid 2026-01-02 missing"}
    plan = plan_of(tmp_path, models, known, replace(alone, upstream=True))
    assert [step.name for step in plan.steps] == ["raw", "mid", "mart"]
    assert (made(plan, "raw"), made(plan, "mid")) == (days(2, 4), days(2, 4))
    assert plan.steps[-1].after == ("raw", "mid")
    plan = plan_of(tmp_path, models, known, replace(alone, allow_missing=True))
    assert made(plan, "mart") == days(4)


def test_upstream_makes_nothing_that_is_there(tmp_path: Path) -> None:
    models = {"raw": RAW, "mart": f"{DAILY}SELECT * FROM raw {DAY}"}
    asked = RunRequest(select=("mart",), partition="2026-01-04", upstream=True)
    plan = plan_of(tmp_path, models, {"raw": states(SliceState.MATERIALIZED, (4,))}, asked)
    assert [step.name for step in plan.steps] == ["mart"]


def test_who_reads_what_waits_waits_for_the_same(tmp_path: Path) -> None:
    models = {"raw": RAW, "mid": f"{DAILY}SELECT * FROM raw {DAY}"}
    models["mart"] = f"{DAILY}SELECT * FROM mid {DAY}"
    asked = RunRequest(select=("mid", "mart"), range=SliceRange("2026-01-03", "2026-01-04"))
    plan = plan_of(tmp_path, models, {"raw": states(SliceState.MATERIALIZED, (3,))}, asked)
    assert (made(plan, "mid"), made(plan, "mart")) == (days(3), days(3))
    assert waits(plan, "mart") == {"2026-01-04": "raw 2026-01-04 missing"} == waits(plan, "mid")


def test_a_range_makes_what_reads_what_it_makes(tmp_path: Path) -> None:
    models = {"raw": RAW, "month": "-- partitioned monthly\nSELECT count(*) AS n FROM raw"}
    models["mart"] = f"{DAILY}SELECT * FROM raw {DAY}"
    known = {
        "raw": states(SliceState.MATERIALIZED, (1, 2)),
        "month": {"2026-01": SliceState.MATERIALIZED},
    }
    known["mart"] = states(SliceState.MATERIALIZED, (1,)) | states(SliceState.BEHIND, (2,))
    asked = RunRequest(range=SliceRange("2026-01-01", "2026-01-03"))
    plan = plan_of(tmp_path, models, known, asked)
    assert made(plan, "raw") == days(3, 4)  # the month needs all that are over
    assert made(plan, "mart") == days(2, 3)
    assert made(plan, "month") == ["2026-01"]
    (month,) = (step for step in plan.steps if step.name == "month")
    assert {str(each) for each in month.conditional()} == {"2026-01"}


def test_a_running_slice_is_waited_for(tmp_path: Path) -> None:
    models = {"raw": RAW, "mart": f"{DAILY}SELECT * FROM raw {DAY}"}
    asked = RunRequest(partition="2026-01-04", select=("mart",))
    plan = plan_of(tmp_path, models, {"raw": states(SliceState.RUNNING, (4,))}, asked)
    assert waits(plan, "mart") == {"2026-01-04": "raw 2026-01-04 running"}


def test_intervals_wait_for_intervals(tmp_path: Path) -> None:
    models = {"ext": "SELECT 1 AS day", "raw": BY_TIME.format(name="raw", of="ext")}
    models["mart"] = BY_TIME.format(name="mart", of="raw")
    made_until = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    lines = {"raw": IntervalHistory((Event("a", made_until, SliceState.MATERIALIZED),))}
    plan = plan_of(tmp_path, models, {}, RunRequest(select=("mart",)), lines)
    assert waits(plan, "mart") == {"2026-01-03 to 2026-01-04": "raw 2026-01-03 missing"}
    assert made(plan, "mart") == ["2026-01-01 to 2026-01-02"]
    plan = plan_of(tmp_path, models, {}, RunRequest(select=("raw", "mart")), lines)
    assert made(plan, "raw") == ["2026-01-03 to 2026-01-04"]
    assert made(plan, "mart") == ["2026-01-01 to 2026-01-04"]


def test_what_is_added_is_in_the_order_of_time_and_is_counted(tmp_path: Path) -> None:
    raw = '-- partitioned daily format="%d.%m.%Y"\nSELECT 1 AS n, $partition_start AS at'
    bounds = "at >= $partition_start AND at < $partition_end"
    month = f"-- partitioned monthly\nSELECT count(*) AS n FROM raw WHERE {bounds}"
    asked = RunRequest(partition="2026-01", select=("month",), upstream=True)
    known = {"raw": {"01.01.2026": SliceState.MATERIALIZED}}
    plan = plan_of(tmp_path, {"raw": raw, "month": month}, known, asked)
    assert made(plan, "raw") == ["02.01.2026", "03.01.2026", "04.01.2026"]
    late = replace(asked, partition="2025-12")
    days_ = made(plan_of(tmp_path, {"raw": raw, "month": month}, known, late), "raw")
    assert (days_[0], days_[-1], len(days_)) == ("01.12.2025", "31.12.2025", 31)


def test_a_table_that_is_made_from_nothing_waits_as_a_whole(tmp_path: Path) -> None:
    models = {"ext": "SELECT 1 AS day", "raw": BY_TIME.format(name="raw", of="ext")}
    models["mart"] = BY_TIME.format(name="mart", of="raw")
    two_days = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    lines = {"raw": IntervalHistory((Event("a", two_days, SliceState.MATERIALIZED),))}
    asked = RunRequest(select=("mart",), full_refresh=True)
    plan = plan_of(tmp_path, models, {}, asked, lines)
    assert made(plan, "mart") == []  # else its rows of the third day would be gone
    assert set(waits(plan, "mart").values()) == {"raw 2026-01-03 missing"}


def test_a_reader_that_needs_all_is_made_with_any_of_it(tmp_path: Path) -> None:
    mart = f"{DAILY}-- needs raw all\nSELECT * FROM raw {DAY}"
    known = {
        "raw": states(SliceState.MATERIALIZED, (1,)),
        "mart": states(SliceState.MATERIALIZED, (1,)),
    }
    asked = RunRequest(range=SliceRange("2026-01-01", "2026-01-02"))
    plan = plan_of(tmp_path, {"raw": RAW, "mart": mart}, known, asked)
    assert made(plan, "mart") == days(1, 2)


def test_what_is_made_first_for_one_reader_is_read_by_the_others(tmp_path: Path) -> None:
    models = {"raw": RAW, "mart": f"{DAILY}SELECT * FROM raw {LAG}"}
    models["every"] = f"-- needs main.raw all\n{DAILY}SELECT count(*) AS n FROM raw"
    models["month"] = "-- partitioned monthly\nSELECT count(*) AS n FROM raw"
    models["whole"] = "SELECT count(*) AS n FROM raw"
    models["interval"] = BY_TIME.format(name="interval", of="raw")
    known = {
        "raw": states(SliceState.MATERIALIZED, (1, 4)),
        "every": states(SliceState.MATERIALIZED, (1, 2, 3, 4)),
    }
    known |= {"month": {"2026-01": SliceState.MATERIALIZED}, "whole": {"": SliceState.MATERIALIZED}}
    four = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC))
    lines = {"interval": IntervalHistory((Event("a", four, SliceState.MATERIALIZED),))}
    asked = RunRequest(range=SliceRange("2026-01-04", "2026-01-04"))
    plan = plan_of(tmp_path, models, known, asked, lines)
    assert (made(plan, "raw"), made(plan, "mart")) == (days(2, 3), days(4))
    assert made(plan, "every") == days(4)
    assert (made(plan, "month"), made(plan, "whole")) == (["2026-01"], ["whole table"])
    assert made(plan, "interval") == []  # of days that were not asked for
    by_name = {step.name: step for step in plan.steps}
    assert {str(each) for each in by_name["every"].conditional()} == set(days(4))
    others = replace(asked, select=("mart", "whole"), upstream=True)
    plan = plan_of(tmp_path, models, known, others, lines)
    assert [step.name for step in plan.steps] == ["raw", "mart", "whole"]
    assert made(plan, "whole") == ["whole table"]
    plain = replace(asked, range=None)
    plan = plan_of(
        tmp_path, models, known | {"raw": states(SliceState.MATERIALIZED, (1, 4, 5))}, plain, lines
    )
    assert made(plan, "interval") == ["2026-01-02 to 2026-01-03"]


def test_a_range_makes_the_intervals_that_read_what_it_makes(tmp_path: Path) -> None:
    models = {"raw": RAW, "mart": BY_TIME.format(name="mart", of="raw")}
    four = Interval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC))
    lines = {"mart": IntervalHistory((Event("a", four, SliceState.MATERIALIZED),))}
    known = {"raw": states(SliceState.MATERIALIZED, (1, 4))}
    asked = RunRequest(range=SliceRange("2026-01-01", "2026-01-02"))
    plan = plan_of(tmp_path, models, known, asked, lines)
    assert made(plan, "raw") == days(2)
    (mart,) = (step for step in plan.steps if step.name == "mart")
    assert [str(each) for each in mart.conditional()] == ["2026-01-02"]
    left = plan_of(tmp_path, models, known, replace(asked, behind=False), lines)
    assert made(left, "mart") == []


def test_where_late_rows_are_asked_for_a_whole_table_that_is_made_may_have_them(
    tmp_path: Path,
) -> None:
    models = {
        "raw": "SELECT 1 AS n, '2026-01-01' AS day",
        "mart": f"{DAILY}SELECT * FROM raw {DAY}",
    }
    models["seen"] = f"{DAILY}SELECT * FROM raw"
    known = {"raw": {"": SliceState.FAILED}, "mart": states(SliceState.MATERIALIZED, (1,))}
    known["seen"] = states(SliceState.MATERIALIZED, (1,))
    asked = RunRequest(range=SliceRange("2026-01-01", "2026-01-01"))
    assert made(plan_of(tmp_path, models, known, asked), "mart") == []
    plan = plan_of(tmp_path, models, known, replace(asked, late=True))
    assert (made(plan, "mart"), made(plan, "seen")) == (days(1), [])


def test_what_reads_the_slice_before_it_is_made_after_that(tmp_path: Path) -> None:
    own = (
        f"{DAILY}-- column n BIGINT\n"
        "SELECT count(*) AS n FROM mart "
        "WHERE _wm_partition = CAST(date_sub('{partition}', 1) AS STRING)"
    )
    known = {"mart": states(SliceState.MATERIALIZED, (1, 3, 4)) | states(SliceState.BEHIND, (2,))}
    asked = RunRequest(range=SliceRange("2026-01-01", "2026-01-04"))
    plan = plan_of(tmp_path, {"mart": own}, known, asked)
    assert made(plan, "mart") == days(2, 3, 4)
    assert {str(each) for each in plan.steps[0].conditional()} == {*days(3, 4)}


def test_what_is_made_without_its_input_says_without_what(tmp_path: Path) -> None:
    models = {"raw": RAW, "day": f"{DAILY}SELECT * FROM raw {LAG}"}
    known = {"raw": {"2026-01-01": SliceState.MATERIALIZED, "2026-01-03": SliceState.FAILED}}
    asked = RunRequest(
        range=SliceRange("2026-01-01", "2026-01-03"), select=("day",), allow_missing=True
    )
    plan = plan_of(tmp_path, models, known, asked)
    (step,) = plan.steps
    assert (waits(plan, "day"), made(plan, "day")) == ({}, days(1, 2, 3))
    assert {str(slice_): why for slice_, why in step.without.items()} == {
        "2026-01-02": "raw 2026-01-02 missing",
        "2026-01-03": "raw 2026-01-02 missing",
    }
    said = "day: 2 slices are made without all of the input (--allow-missing): raw 2026-01-02"
    assert plan.notices == (f"{said} missing",)


def test_a_slice_waits_for_the_one_of_its_own_table_that_waits_before_it(tmp_path: Path) -> None:
    own = "UNION ALL SELECT n, day FROM mart WHERE day = CAST(date_sub('{partition}', 1) AS STRING)"
    models = {"raw": RAW, "mart": f"{DAILY}SELECT n, day FROM raw {DAY} {own}"}
    asked = RunRequest(select=("mart",), partition="2026-01-03", upstream=False)
    known = {"raw": states(SliceState.MATERIALIZED, (1, 3))}
    plan = plan_of(tmp_path, models, known, asked)
    assert made(plan, "mart") == days(1)
    assert waits(plan, "mart") == dict.fromkeys(days(2, 3), "raw 2026-01-02 missing")
    known["mart"] = states(SliceState.MATERIALIZED, (1, 2))
    assert made(plan_of(tmp_path, models, known, asked), "mart") == days(3)


def test_an_append_says_that_it_will_be_behind(tmp_path: Path) -> None:
    log = f"-- pipeline\n-- materialize ducklake://main/log append\n{DAILY}SELECT * FROM raw {LAG}"
    there = states(SliceState.MATERIALIZED, (1, 2, 3, 4))
    one = RunRequest(range=SliceRange("2026-01-01", "2026-01-01", all=True), select=("raw",))
    both = replace(one, select=("raw", "log"), range=SliceRange("2026-01-01", "2026-01-02"))
    plan = plan_of(tmp_path, {"raw": RAW, "log": log}, {"raw": there, "log": there}, both)
    assert plan.notices == (), "nothing is made"
    some = {"raw": there | states(SliceState.FAILED, (1,)), "log": there}
    plan = plan_of(tmp_path, {"raw": RAW, "log": log}, some, both)
    assert made(plan, "raw") == days(1)
    assert plan.notices == (
        "log: 3 slices that read what this run makes stay as they are, and are behind if that has "
        "other rows: a rerun would not take back what they wrote; roll the table back, or drop "
        "what is to be made again",
    )


def test_a_history_says_what_it_leaves_behind(tmp_path: Path) -> None:
    history = (
        "MODEL (name main.h, kind SCD_TYPE_2_BY_COLUMN (unique_key n, columns *, batch_size 1, "
        "invalidate_hard_deletes true, disable_restatement false), start '2026-01-01');\n"
        "SELECT n FROM raw WHERE day = @start_ds"
    )
    spans = [Interval(NOON.replace(day=n, hour=0), NOON.replace(day=n + 1, hour=0)) for n in (1, 2)]
    events = (
        Event("a", spans[0], SliceState.BEHIND),
        Event("b", spans[1], SliceState.MATERIALIZED),
    )
    raw = {"raw": states(SliceState.MATERIALIZED, (1, 3, 4, 5)) | states(SliceState.FAILED, (2,))}
    asked = RunRequest(range=SliceRange("2026-01-01", "2026-01-04"))
    lines = {"h": IntervalHistory(events, remakes=False)}
    plan = plan_of(tmp_path, {"raw": RAW, "h": history}, raw, asked, lines)
    ways = "in a history the later loads count; --full-refresh loads it again from its start"
    assert plan.notices == (
        f"h: this run leaves 1 slice behind its input: {ways}",
        "h: 1 slice that reads what this run makes stays as it is, and is behind if that has other "
        f"rows: {ways}",
    )
    none = replace(asked, behind=False)
    assert plan_of(tmp_path, {"raw": RAW, "h": history}, raw, none, lines).notices == ()


VIEW = "MODEL (name main.seen, kind VIEW);\nSELECT day, n FROM raw"
VIEWED = {"raw": RAW, "seen": VIEW, "day": f"{DAILY}SELECT * FROM seen {DAY}"}
RANGE = SliceRange("2026-01-01", "2026-01-03")


def test_a_view_waits_for_no_slice_and_its_readers_for_their_own(tmp_path: Path) -> None:
    known = {
        "raw": {
            "2026-01-01": SliceState.MATERIALIZED,
            "2026-01-02": SliceState.FAILED,
            "2026-01-03": SliceState.MATERIALIZED,
        }
    }
    request = RunRequest(range=RANGE, select=("seen", "day"))
    plan = plan_of(tmp_path, VIEWED, known, request)
    assert made(plan, "seen") == ["whole table"]
    assert made(plan, "day") == days(1, 3)
    assert waits(plan, "day") == {"2026-01-02": "raw 2026-01-02 failed"}


def test_what_reads_a_view_is_made_again_where_that_has_another_query(tmp_path: Path) -> None:
    each = dict.fromkeys(days(1, 2, 3), SliceState.MATERIALIZED)
    for state, again in ((SliceState.MISSING, days(1, 2, 3)), (SliceState.MATERIALIZED, [])):
        known = {"raw": each, "day": each, "seen": {"": state}}
        plan = plan_of(tmp_path, VIEWED, known, RunRequest(range=RANGE))
        step = next(step for step in plan.steps if step.name == "day")
        assert sorted(map(str, step.conditional())) == again
