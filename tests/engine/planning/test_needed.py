"""What a slice lacks of the slices it needs: by kinds, zones, starts, and what its query says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.engine.planning.needed import There, lacking, missing_to
from penstock.engine.planning.ranges import SliceStates
from penstock.model.slicing.needs import Edge, edges_of
from penstock.model.time.slice import WHOLE, Part, Slice
from penstock.project.project import Project
from penstock.states import SliceState
from tests.engine.toy import write_project

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04")


BY_VALUE = "SELECT * FROM raw WHERE day = '{partition}'"
BY_MOMENTS = "SELECT * FROM raw WHERE at >= $partition_start AND at < $partition_end"


def edge_of(root: Path, of_raw: str, of_mart: str, query: str = "") -> Edge:
    """Return the edge of two models; without a query the reader reads by the bounds of its slice,
    if it has one.
    """
    head, day = "-- pipeline\n-- materialize ducklake://main/", "'{partition}' AS day"
    if "dynamic" in of_mart:
        query = query or BY_VALUE
    elif "partitioned" in of_mart:
        query = query or BY_MOMENTS
    if "partitioned" not in of_raw:
        day = "'2026-01-01' AS day"
    at = "" if "partitioned" not in of_raw or "dynamic" in of_raw else ", $partition_start AS at"
    scripts = {
        "models/raw": f"{head}raw\n{of_raw}\nSELECT 1 AS x, {day}{at}",
        "models/mart": f"{head}mart\n{of_mart}\n{query or 'SELECT * FROM raw'}",
    }
    project = Project.load(write_project(root / "p", scripts))
    (edge,) = edges_of(project.models)["mart"]
    return edge


def lacks(edge: Edge, *slices: Slice, made: tuple[str, ...] = (), failed: tuple[str, ...] = ()):  # type: ignore[no-untyped-def]
    states = dict.fromkeys(made, SliceState.MATERIALIZED) | dict.fromkeys(failed, SliceState.FAILED)
    found = lacking(edge, slices, There(edge.upstream, SliceStates(states)), NOW)
    return {slice_.text: [str(each.slice) for each in found[slice_]] for slice_ in found}


@pytest.mark.parametrize(
    ("kinds", "slice_", "made", "expected"),
    [
        (("daily", "daily"), "2026-01-02", ("2026-01-02",), []),
        (("daily", "daily"), "2026-01-02", ("2026-01-01",), ["2026-01-02"]),
        (("daily", "weekly"), "2026-W01", DAYS, ["2025-12-29", "2025-12-30", "2025-12-31"]),
        (("daily", "hourly"), "2026-01-02T05", (), ["2026-01-02"]),
        (("daily", "hourly"), "2026-01-10T05", (), ["2026-01-10"]),  # not over, and contains it
        (("daily start=2026-01-01", "weekly"), "2026-W01", DAYS, []),
        (("daily", "monthly"), "2026-01", DAYS, [f"2026-01-{day:02}" for day in range(5, 10)]),
        (('daily tz="America/New_York"', "daily"), "2026-01-02", (), ["2026-01-01", "2026-01-02"]),
    ],
)  # fmt: skip
def test_moments_in_common(
    tmp_path: Path, kinds: tuple[str, str], slice_: str, made: tuple[str, ...], expected: object
) -> None:
    edge = edge_of(tmp_path, *(f"-- partitioned {kind}" for kind in kinds))
    assert lacks(edge, Part(slice_), made=made).get(slice_, []) == expected


def test_a_day_has_as_many_hours_as_the_clocks_say(tmp_path: Path) -> None:
    zone = 'tz="Europe/Paris"'
    edge = edge_of(tmp_path, f"-- partitioned hourly {zone}", f"-- partitioned daily {zone}")
    now = datetime(2026, 12, 1, tzinfo=UTC)
    days = [Part(f"2026-{day}") for day in ("03-28", "03-29", "10-25")]
    found = lacking(edge, days, There(edge.upstream), now)
    # The hour that is there twice is one slice of two hours.
    assert [len(found[day]) for day in days] == [24, 23, 24]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM raw WHERE day = '{partition}'", ["2026-01-05"]),
        ("SELECT * FROM raw WHERE day >= date_sub('{partition}', 2) AND day <= '{partition}'",
         ["2026-01-03", "2026-01-04", "2026-01-05"]),
        ("SELECT * FROM raw WHERE _wm_partition = CAST('{partition}' AS DATE) - INTERVAL 1 DAY",
         ["2026-01-04"]),
        ("SELECT * FROM raw a JOIN raw b ON a.x = b.x AND b.day = '{partition}'::date - 1 "
         "WHERE a.day = '{partition}'", ["2026-01-04", "2026-01-05"]),
        ("SELECT * FROM raw WHERE day <= '{partition}'",
         ["2026-01-03", "2026-01-04", "2026-01-05"]),
    ],
)  # fmt: skip
def test_what_the_query_says(tmp_path: Path, query: str, expected: object) -> None:
    edge = edge_of(tmp_path, "-- partitioned daily", "-- partitioned daily", query)
    found = lacks(edge, Part("2026-01-05"), made=("2026-01-01", "2026-01-02")).values()
    assert [day for each in found for day in each if day > "2026-01-02"] == expected


@pytest.mark.parametrize(
    ("needs", "of_mart", "slice_", "expected"),
    [
        ("lag=1d", "-- partitioned daily", Part("2026-01-05"), ["2026-01-04", "2026-01-05"]),
        ("none", "-- partitioned daily", Part("2026-01-05"), []),
        ("same", "-- partitioned daily", Part("2026-01-05"), ["2026-01-05"]),
        ("all", "-- partitioned daily", Part("2026-01-02"), ["2026-01-03"]),
    ],
)
def test_what_the_model_says(
    tmp_path: Path, needs: str, of_mart: str, slice_: Slice, expected: object
) -> None:
    edge = edge_of(tmp_path, "-- partitioned daily", f"{of_mart}\n-- needs raw {needs}")
    found = lacks(edge, slice_, made=("2026-01-01", "2026-01-02"), failed=("2026-01-03",))
    assert found.get(slice_.text, []) == expected


def test_a_whole_table_needs_what_failed_and_the_holes_of_what_says_its_start(
    tmp_path: Path,
) -> None:
    edge = edge_of(tmp_path, "-- partitioned daily", "")
    made = (DAYS[0], DAYS[3])
    assert lacks(edge, WHOLE, made=made) == {}
    assert lacks(edge, WHOLE, made=made, failed=(DAYS[2],)) == {"": [DAYS[2]]}
    edge = edge_of(tmp_path, "-- partitioned daily start=2026-01-01", "")
    assert lacks(edge, WHOLE, made=made) == {"": [DAYS[1], DAYS[2]]}


def test_values_need_the_same_value(tmp_path: Path) -> None:
    line = '-- partitioned dynamic key="$.tenant"'
    edge = edge_of(tmp_path, line, line)
    assert lacks(edge, Part("acme"), Part("b"), made=("b",)) == {"acme": ["acme"]}
    edge = edge_of(tmp_path, '-- partitioned dynamic key="$.region"', line)  # carried down
    assert lacks(edge, Part("acme")) == {"acme": ["acme"]}


def test_what_the_run_makes_before_is_not_lacking(tmp_path: Path) -> None:
    edge = edge_of(tmp_path, "-- partitioned daily", "-- partitioned daily")
    there = There(edge.upstream)
    found = lacking(edge, [Part(day) for day in DAYS], there, NOW, [Part(DAYS[1])])
    assert [slice_.text for slice_ in found] == [DAYS[0], *DAYS[2:]]
    assert str(found[Part(DAYS[0])][0]) == "raw 2026-01-01 missing"


def test_what_is_the_same_is_not_waited_for_before_the_input_starts(tmp_path: Path) -> None:
    starts = "-- partitioned daily start=2026-01-03"
    edge = edge_of(tmp_path, starts, "-- partitioned daily\n-- needs raw same")
    assert lacks(edge, *map(Part, DAYS)) == {DAYS[2]: [DAYS[2]], DAYS[3]: [DAYS[3]]}


@pytest.mark.parametrize(
    ("kinds", "failed", "needing"),
    [
        (("daily", "monthly"), "2026-01-10", {"2026-01": False, "2026-02": False}),
        (("daily", "monthly"), "2026-01-09", {"2026-01": True, "2025-12": False}),
        (("daily", "hourly"), "2026-01-10", {"2026-01-10T05": True, "2026-01-09T05": False}),
        (("daily", "daily"), "2026-01-10", {"2026-01-10": True}),
    ],
)
def test_what_is_not_over_and_failed_is_missing_only_to_slices_within_it(
    tmp_path: Path, kinds: tuple[str, str], failed: str, needing: dict[str, bool]
) -> None:
    edge = edge_of(tmp_path, *(f"-- partitioned {kind}" for kind in kinds))
    is_needed = missing_to(edge, [Part(failed)], NOW)
    assert {text: is_needed(Part(text)) for text in needing} == needing


def test_a_whole_table_cannot_do_without_a_day_that_is_not_over(tmp_path: Path) -> None:
    edge = edge_of(tmp_path, "-- partitioned daily", "")
    assert missing_to(edge, [Part("2026-01-10")], NOW)(WHOLE)
