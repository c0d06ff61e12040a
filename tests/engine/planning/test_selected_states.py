"""``state:`` in the selection of a plan: the slices that its request looks at. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.planning.intervals import Event, IntervalHistory
from penstock.engine.planning.make_plan import OF_MOMENT
from penstock.engine.planning.plan import Plan
from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.slices import RunRequest
from penstock.errors import ArgumentError, PartitionError
from penstock.model.time.interval import Interval
from penstock.states import SliceState
from tests.engine.planning.test_waiting import BY_TIME, DAILY, DAY, RAW, plan_of

TODAY = "2026-01-05"  # the plans are of its noon
MODELS = {
    "raw": RAW,
    "mart": f"{DAILY}SELECT * FROM raw {DAY}",
    "days": BY_TIME.format(name="days", of="src"),
    "whole": "SELECT count(*) AS n FROM mart",
    "tenants": "-- partitioned dynamic key=\"$.t\"\nSELECT '{partition}' AS t FROM src",
}
STATES = {
    "raw": {
        TODAY: SliceState.FAILED,
        "2026-01-04": SliceState.STALE,
        "2026-01-03": SliceState.MATERIALIZED,
        "2026-01-02": SliceState.BEHIND,
    },
    "mart": {TODAY: SliceState.MATERIALIZED, "2026-01-04": SliceState.SKIPPED},
    "whole": {"": SliceState.STALE},
    "tenants": {"eu": SliceState.FAILED},
}


def line(*states: SliceState) -> IntervalHistory:
    """The intervals of January, from its first day on."""
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, len(states) + 2)]
    spans = zip(days, days[1:], states, strict=False)
    return IntervalHistory(tuple(Event("", Interval(a, b), state) for a, b, state in spans))


LINES = {"days": line(SliceState.MATERIALIZED, SliceState.FAILED, SliceState.STALE)}


def planned(root: Path, *select: str, known: Any = None, **request: Any) -> Plan:
    asked = replace(RunRequest(select=select), **request)
    return plan_of(root, MODELS, STATES if known is None else known, asked, LINES)


def names(plan: Plan) -> set[str]:
    return {step.name for step in plan.steps}


RANGE = SliceRange("2026-01-01", "2026-01-03")


@pytest.mark.parametrize(
    ("select", "request_", "selected"),
    [
        ("state:failed", {}, {"raw", "days"}),
        ("state:changed", {}, {"whole", "days"}),
        ("state:missing", {}, {"days"}),
        ("state:behind", {}, set()),
        ("state:behind", {"late": True}, {"raw"}),
        ("state:failed", {"partition": TODAY}, {"raw"}),
        ("state:changed", {"partition": "2026-01-04"}, {"raw", "whole"}),
        ("state:skipped", {"partition": "2026-01-04"}, {"mart"}),
        ("state:failed", {"partition": "2026-01-02"}, {"days"}),
        ("state:failed", {"partition": "eu"}, {"tenants"}),
        ("state:behind", {"range": RANGE}, {"raw"}),
        ("state:missing", {"range": RANGE}, {"raw", "mart"}),
        ("state:failed", {"range": RANGE}, {"days"}),
        ("state:failed", {"range": SliceRange("2026-01-05", "2026-01-05")}, {"raw"}),
        ("state:changed", {"range": SliceRange(None, "2026-01-04")}, {"raw", "days", "whole"}),
        ("state:changed", {"full_refresh": True}, {"whole", "days"}),
        ("state:failed+", {"partition": TODAY}, {"raw", "mart", "whole"}),
        ("1+state:failed+1", {"partition": TODAY}, {"raw", "mart"}),
        ("state:changed,whole", {}, {"whole"}),
    ],
)
def test_models_with_slices_in_a_state(
    select: str, request_: Mapping[str, Any], selected: set[str], tmp_path: Path
) -> None:
    assert names(planned(tmp_path, select, **request_)) == selected


def test_late_rows_are_behind(tmp_path: Path) -> None:
    known = {"whole": {"": SliceState.LATE}}
    assert names(planned(tmp_path, "state:behind", known=known)) == {"whole"}


def test_what_waits_in_the_plan_is_waiting(tmp_path: Path) -> None:
    models = {"raw": RAW.replace("01-01", "01-03"), "mart": f"{DAILY}SELECT * FROM raw {DAY}"}
    known = {"raw": {"2026-01-04": SliceState.FAILED}, "mart": {"2026-01-03": SliceState.WAITING}}
    asked = RunRequest(select=("state:waiting",))
    assert names(plan_of(tmp_path, models, known, asked)) == set()
    asked = replace(asked, partition="2026-01-03")
    assert names(plan_of(tmp_path, models, known, asked)) == {"mart"}


def test_nothing_in_a_state_is_nothing_to_do(tmp_path: Path) -> None:
    plan = planned(tmp_path, "state:unfinished")
    assert plan.steps == ()
    idle = "nothing to do: state:unfinished selects no model"
    assert plan.notices == (f"{idle}{OF_MOMENT}",)
    assert planned(tmp_path, "state:unfinished", range=RANGE).notices == (idle,)


@pytest.mark.parametrize(
    ("request_", "error", "said"),
    [
        ({"partition": "05/01/2026"}, PartitionError, "is not a valid daily partition"),
        ({"range": SliceRange("soon", None)}, ArgumentError, "^'soon' is not a moment"),
        ({"range": SliceRange("2026-01-05", "2026-01-01")}, ArgumentError, "^the range is empty"),
    ],
)
def test_a_wrong_request_is_not_one_of_nothing(
    request_: Mapping[str, Any], error: type[Exception], said: str, tmp_path: Path
) -> None:
    models = {name: text for name, text in MODELS.items() if name != "tenants"}
    asked = replace(RunRequest(select=("state:failed",)), **request_)
    with pytest.raises(error, match=said):
        plan_of(tmp_path, models, STATES, asked, LINES)


def test_excluded_models_are_not_made_for_others(tmp_path: Path) -> None:
    models = {name: MODELS[name] for name in ("raw", "mart")}
    asked = RunRequest(select=("mart",), partition=TODAY, upstream=True)
    assert names(plan_of(tmp_path, models, {}, asked)) == {"raw", "mart"}
    without = replace(asked, exclude=("raw",))
    plan = plan_of(tmp_path, models, {}, without)
    assert names(plan) == {"mart"}
    assert plan.steps[0].waits


def test_to_names_models_for_a_full_refresh(tmp_path: Path) -> None:
    models = {"a": "SELECT 1 AS n", "b": "SELECT n FROM a", "c": "SELECT n FROM b"}
    plan = plan_of(tmp_path, models, {}, RunRequest(to=("b",), full_refresh=True))
    assert names(plan) == {"a", "b"}
    with pytest.raises(ArgumentError, match="it is for the models that you name"):
        plan_of(tmp_path, models, {}, RunRequest(exclude=("b",), full_refresh=True))


def test_what_changes_are_followed_to_leaves_out_the_excluded(tmp_path: Path) -> None:
    models = {"a": "SELECT 1 AS n", "b": "SELECT n FROM a", "c": "SELECT n FROM b"}
    asked = RunRequest(select=("a",), exclude=("c",), changed=True)
    assert names(plan_of(tmp_path, models, {"a": {"": SliceState.STALE}}, asked)) == {"a", "b"}
