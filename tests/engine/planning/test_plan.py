"""Plans: selection, order, slices, arguments. No Spark, no catalog.

Tests ``project/planning.py`` as well.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.planning.plan import Plan
from penstock.errors import ArgumentError, PartitionError
from penstock.project.project import Project
from tests.engine.toy import write_project

RAW = (
    "-- pipeline\n-- partitioned daily\n-- materialize ducklake://main/raw\n"
    "SELECT 1 AS a, $partition_start AS at"
)
CLEAN = (
    '-- pipeline\n-- partitioned daily tz="America/New_York"\n'
    "-- materialize ducklake://main/clean\n-- $n (int) = 3\nSELECT a, $n AS n FROM raw "
    "WHERE at >= $partition_start AND at < $partition_end"
)
MART = (
    "-- pipeline\n-- materialize ducklake://main/mart\nSELECT * EXCEPT (_wm_partition) FROM clean"
)
NIGHT = datetime(2026, 5, 16, 0, 30, tzinfo=UTC)


def plan(root: Path, scripts: dict[str, str] | None = None, **request: Any) -> Plan:
    chosen = scripts or {"models/mart": MART, "models/raw": RAW, "models/clean": CLEAN}
    return Project.load(write_project(root / "p", chosen)).plan(**request)


def test_order_is_that_of_the_graph(tmp_path: Path) -> None:
    planned = plan(tmp_path, partition="2026-05-16")
    assert [step.name for step in planned.steps] == ["raw", "clean", "mart"]
    assert planned.steps[2].after == ("raw", "clean")


def test_a_text_selects_one_step(tmp_path: Path) -> None:
    planned = plan(tmp_path, partition="2026-05-16", select="raw")
    assert [step.name for step in planned.steps] == ["raw"]


def test_no_model_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="the project has no model to run"):
        plan(tmp_path, {"models/note": "-- just a note\nSELECT 1"})


def test_an_early_partition_that_was_asked_for_is_an_error(tmp_path: Path) -> None:
    raw = RAW.replace("daily", "daily start=2026-01-02")
    with pytest.raises(PartitionError, match="2026-01-01 is before start=2026-01-02 of raw") as at:
        plan(tmp_path, {"models/raw": raw}, partition="2026-01-01")
    assert str(at.value.location).endswith("raw.sql:2:4")
    assert plan(tmp_path, {"models/raw": raw}, partition="2026-01-02").partition == "2026-01-02"


TENANTS = (
    '-- pipeline\n-- partitioned dynamic key="$.tenant"\n'
    "-- materialize ducklake://main/tenants\nSELECT '{partition}' AS tenant FROM raw"
)


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        ({"from_": "2026-05-01", "to": "2026-05-03"}, ["raw"]),
        ({}, ["raw"]),
        ({"partition": "2026-05-16"}, ["raw"]),
        ({"exclude": "other"}, ["raw"]),
        ({"partition": "2026-05-16", "payload": {"tenant": "a"}}, ["raw", "tenants"]),
    ],
)
def test_a_dynamic_model_without_a_value_is_skipped_with_a_notice(
    tmp_path: Path, request_: dict[str, Any], names: list[str]
) -> None:
    scripts = {"models/raw": RAW, "models/tenants": TENANTS, "models/other": MART}
    planned = plan(tmp_path, {**scripts, "models/other": RAW.replace("/raw", "/x")}, **request_)
    assert [step.name for step in planned.steps if step.name != "other"] == names
    said = [notice for notice in planned.notices if "tenants is skipped" in notice]
    assert len(said) == (len(names) == 1)


def test_a_dynamic_model_that_is_named_needs_a_value(tmp_path: Path) -> None:
    scripts = {"models/raw": RAW, "models/tenants": TENANTS}
    with pytest.raises(PartitionError, match="there is no payload"):
        plan(tmp_path, scripts, select="tenants")
    with pytest.raises(PartitionError, match="there is no payload"):
        plan(tmp_path / "p", {"models/tenants": TENANTS.replace(" FROM raw", "")})


def test_today_is_not_over_for_a_model_by_time_as_for_a_partitioned_one(tmp_path: Path) -> None:
    by_time = (
        "MODEL (name t, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start '2026-05-01');\n"
        "SELECT CAST(@start_ds AS DATE) AS ds"
    )
    scripts = {"models/t": by_time, "models/raw": RAW}
    planned = plan(tmp_path, scripts, from_="2026-05-10", fire_time=NIGHT)
    assert planned.notices == ()
    tallies = [(each.tally.current, each.tally.later) for each in planned.steps if each.tally]
    assert tallies == [(1, 0), (1, 0)]
    planned = plan(
        tmp_path, scripts, select="t", from_="2026-05-10", to="2026-05-18", fire_time=NIGHT
    )
    assert planned.notices == ("t: 2 slices of the range have not begun yet, and are left out",)


def test_the_slice_is_for_partitioned_steps_only(tmp_path: Path) -> None:
    planned = plan(tmp_path, partition="2026-05-16")
    days = "2026-05-16 to 2026-05-17 (2 slices)"  # in UTC, of a day in New York
    assert [step.slice for step in planned.steps] == [days, "2026-05-16", None]


def test_the_slice_of_one_step(tmp_path: Path) -> None:
    assert plan(tmp_path, partition="2026-05-16", select="raw").slice_of_step() == "2026-05-16"
    with pytest.raises(ArgumentError) as raised:
        plan(tmp_path, partition="2026-05-16", select="mart").slice_of_step()
    assert raised.value.message == "mart is not partitioned: it has no slice '2026-05-16'"
    assert raised.value.hint == "leave out the partition"


def test_the_topmost_step_resolves_for_all(tmp_path: Path) -> None:
    planned = plan(tmp_path, fire_time=NIGHT)  # still the 15th in New York, where `clean` is
    assert [step.slice for step in planned.steps][:2] == ["2026-05-16", "2026-05-16"]


def test_the_topmost_selected_step_resolves(tmp_path: Path) -> None:
    planned = plan(tmp_path, fire_time=NIGHT, select=["clean+"])
    assert [step.slice for step in planned.steps] == ["2026-05-15", None]


def test_a_wrong_partition_is_placed(tmp_path: Path) -> None:
    with pytest.raises(PartitionError) as caught:
        plan(tmp_path, partition="16/05/2026")
    assert caught.value.location is not None
    assert str(caught.value.location).endswith("raw.sql:2:4")


def test_a_partition_for_nothing_is_said(tmp_path: Path) -> None:
    planned = plan(tmp_path, partition="2026-05-16", select=["mart"])
    assert "no selected step is partitioned" in planned.notices[0]


def test_arguments_are_typed(tmp_path: Path) -> None:
    planned = plan(tmp_path, partition="2026-05-16", args={"n": "7"})
    bound = planned.steps[1].bindings.arguments
    assert (bound["n"], bound["partition"]) == (7, "2026-05-16")
    assert str(bound["partition_end"]) == "2026-05-17 00:00:00-04:00"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"limit": "1"}, "declared: n"),
        ({"n": "x"}, "'x' is not a valid int"),
        ({"partition": "2026-05-16"}, "--partition"),
        ({"partition_start": "2026-05-16"}, "--partition"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, args: dict[str, str], said: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        plan(tmp_path, partition="2026-05-16", args=args)
    assert said in str(caught.value)


def test_before_the_start_a_step_is_skipped_with_what_reads_it(tmp_path: Path) -> None:
    late = RAW.replace("daily", 'daily start="2030-01-01"')
    planned = plan(tmp_path, {"models/raw": late, "models/mart": MART, "models/clean": CLEAN})
    assert [(step.name, str(step.skipped)) for step in planned.steps] == [
        ("raw", "before start"),
        ("clean", "raw is before its start"),
        ("mart", "raw is before its start"),
    ]
    assert [step.blocked for step in planned.steps] == [None, None, None]


def test_a_payload_gives_a_dynamic_partition(tmp_path: Path) -> None:
    dynamic = RAW.replace("daily", 'dynamic key="$.a.b"').replace(", $partition_start AS at", "")
    planned = plan(tmp_path, {"models/raw": dynamic}, payload={"a": {"b": 42}})
    assert planned.partition == "42"
    with pytest.raises(PartitionError):
        plan(tmp_path, {"models/raw": dynamic})


@pytest.mark.parametrize(
    "request_",
    [{"payload": {"f": "../../x"}}, {"partition": "*"}, {"partition": "a", "args": {"d": "a/b"}}],
)
def test_a_value_that_would_leave_its_place_in_a_path_stops_the_run(
    tmp_path: Path, request_: dict[str, Any]
) -> None:
    raw = (
        '-- partitioned dynamic key="$.f"\n-- materialize ducklake://main/raw\n'
        "-- $d (text) = 'data/in'\nSELECT * FROM read_csv($d || '/' || '{partition}' || '.csv')"
    )
    assert plan(tmp_path, {"models/raw": raw}, payload={"f": "x"}).steps[0].slice == "x"
    with pytest.raises((PartitionError, ArgumentError), match="becomes part of a path"):
        plan(tmp_path, {"models/raw": raw}, **request_)


DAYS = (
    "MODEL (name main.days, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start '2026-01-01');\n"
    "SELECT ds FROM src WHERE ds BETWEEN @start_ds AND @end_ds"
)


@pytest.mark.parametrize(
    ("partition", "made"),
    [("2026-05-16", "2026-05-16"), ("2026-05-16T07", "2026-05-16"), ("2025-12-31", None)],
)
def test_a_partition_is_an_interval_of_a_model_by_time(
    tmp_path: Path, partition: str, made: str | None
) -> None:
    planned = plan(tmp_path, {"models/days": DAYS}, partition=partition)
    assert planned.steps[0].slice == made
    assert str(planned.steps[0].skipped or "").startswith("" if made else "nothing to do")
    with pytest.raises(ArgumentError, match="'eu' is not a moment"):
        plan(tmp_path, {"models/days": DAYS}, partition="eu")


def test_check_warns_of_a_start_in_the_future(tmp_path: Path) -> None:
    scripts = {"models/days": DAYS.replace("2026-01-01", "2999-01-01")}
    found = Project.load(write_project(tmp_path / "p", scripts)).check()
    (finding,) = [each for each in found if each.rule == "future-start"]
    assert (
        finding.message
        == "it starts at 2999-01-01, which is in the future: until then runs skip it"
    )
    assert str(finding.location).endswith("days.sql:1:73")
