"""The example's tables hold what plain Python finds in its files."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest

from tests.examples import facts
from tests.examples.conftest import DAYS, Loaded

pytestmark = pytest.mark.spark


def rows(loaded: Loaded, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """The columns of a table, instants as UTC."""
    found = loaded.lake.table(f"main.{table}").to_df().select(*columns).toArrow().to_pylist()
    return [tuple(_utc(row[name]) for name in columns) for row in found]


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if getattr(value, "tzinfo", None) else value


def test_every_step_is_done_and_every_test_passed(loaded: Loaded) -> None:
    steps = [step for run in loaded.runs for step in run.steps]
    assert {run.state for run in loaded.runs} == {"done"}
    assert [step.name for step in steps if not all(check.passed for check in step.checks)] == []
    assert all(step.checks for step in steps if step.reason != "up to date")


@pytest.mark.parametrize("day", DAYS)
def test_raw_flights_have_every_line_of_the_file(loaded: Loaded, day: str) -> None:
    found = rows(loaded, "flights_raw", "_wm_partition", "carrier", "flight", "origin", "dep_delay")
    expected = [(day, f.carrier, f.flight, f.origin, f.delay) for f in facts.flights(day)]
    assert sorted(map(str, (row for row in found if row[0] == day))) == sorted(map(str, expected))


def test_clean_flights_are_instants_and_states(loaded: Loaded) -> None:
    columns = ("flight_date", "carrier", "flight", "origin", "departed_at", "status")
    expected = {
        (f.flight_date, f.carrier, f.flight, f.origin, f.departed_at, f.status)
        for day in DAYS
        for f in facts.flights(day)
    }
    found = rows(loaded, "flights", *columns)
    assert len(found) == len(expected)
    assert set(found) == expected


def test_delays_are_counted_by_day_and_airline(loaded: Loaded) -> None:
    columns = ("_wm_partition", "carrier", "flights", "cancelled", "late")
    expected = {
        (day, carrier, one.flights, one.cancelled, one.late)
        for day in DAYS
        for carrier, one in facts.delays(day).items()
    }
    assert sorted(rows(loaded, "delays_daily", *columns)) == sorted(expected)


def test_the_ranking_takes_all_days(loaded: Loaded) -> None:
    found = sorted(rows(loaded, "airline_ranking", "place", "carrier", "flights", "late_share"))
    expected = facts.ranking(DAYS, min_flights=20)
    assert [row[1:] for row in found] == expected
    assert [row[0] for row in found] == list(range(1, len(expected) + 1))


def test_dimensions_have_every_line(loaded: Loaded) -> None:
    assert len(rows(loaded, "airlines", "carrier")) == facts.lines("airlines.csv")
    assert len(rows(loaded, "airports", "faa")) == facts.lines("airports.csv")


def test_the_log_has_a_line_a_load(loaded: Loaded) -> None:
    found = rows(loaded, "loads", "_wm_partition", "flights", "raw_rows")
    expected = [(day, len(facts.flights(day))) for day in (*DAYS, DAYS[-1])]
    assert sorted(found) == sorted((day, count, count) for day, count in expected)


def test_the_leaders_are_noted_after_each_run(loaded: Loaded) -> None:
    found = sorted(rows(loaded, "leaders", "noted_at", "carrier"))
    expected = [facts.ranking(DAYS[: number + 1], 20)[0][0] for number in range(len(DAYS))]
    assert [row[1] for row in found] == [*expected, expected[-1]]


def test_a_day_loaded_again_changes_only_the_logs(loaded: Loaded) -> None:
    states = {(step.strategy == "append", step.state) for step in loaded.again.steps}
    assert states == {(True, "done"), (False, "unchanged")}
    logs = sum(step.strategy == "append" for step in loaded.again.steps)
    assert len(loaded.lake.snapshots()) == loaded.snapshots_before + logs
