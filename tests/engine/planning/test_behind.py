"""Which slices are behind: what they read is compared with what they need. No Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.planning.behind import Changed, Input, Inputs
from penstock.model.slicing.needs import Edge
from penstock.model.time.slice import WHOLE, Part, Slice
from tests.engine.planning.test_needed import edge_of

DAILY = "-- partitioned daily"


def behind(edge: Edge, changed: dict[str, int], read: dict[Slice, int]) -> dict[str, str]:
    changes = [Changed(Part(text) if text else WHOLE, at) for text, at in changed.items()]
    inputs = Inputs((Input(edge, lambda: changes, max(changed.values())),))
    found = inputs.behind({slice_: {"main": at} for slice_, at in read.items()})
    return {slice_.text: str(why) for slice_, why in found.items()}


@pytest.mark.parametrize(
    ("kinds", "read", "expected"),
    [
        ((DAILY, DAILY), ("2026-01-02", 6), "raw 2026-01-02: snapshot 7, read 6"),
        ((DAILY, DAILY), ("2026-01-02", 7), None),
        ((DAILY, DAILY), ("2026-01-03", 6), None),
        ((DAILY, "-- partitioned monthly"), ("2026-01", 6), "raw 2026-01-02: snapshot 7, read 6"),
        ((DAILY, "-- partitioned hourly"), ("2026-01-02T23", 5),
         "raw 2026-01-02: snapshot 7, read 5"),
        ((DAILY, "-- partitioned hourly"), ("2026-01-03T00", 5), None),
        (("", DAILY), ("2026-01-02", 1), None),
    ],
)  # fmt: skip
def test_by_what_a_slice_needs(
    tmp_path: Path, kinds: tuple[str, str], read: tuple[str, int], expected: str | None
) -> None:
    changed = {"2026-01-01": 3, "2026-01-02": 7} if kinds[0] else {"": 9}
    found = behind(edge_of(tmp_path, *kinds), changed, {Part(read[0]): read[1]})
    assert found.get(read[0]) == expected


def test_a_whole_table_is_behind_any_slice_and_another_whole_table(tmp_path: Path) -> None:
    edge = edge_of(tmp_path, DAILY, "")
    changed = {"2026-01-01": 3, "2026-01-02": 7}
    assert behind(edge, changed, {WHOLE: 5}) == {"": "raw 2026-01-02: snapshot 7, read 5"}
    assert behind(edge, changed, {WHOLE: 7}) == {}
    assert behind(edge_of(tmp_path, "", ""), {"": 4}, {WHOLE: 3}) == {"": "raw: snapshot 4, read 3"}


def test_what_the_query_looks_back_at_counts(tmp_path: Path) -> None:
    query = "SELECT * FROM raw WHERE day >= date_sub('{partition}', 1) AND day <= '{partition}'"
    edge = edge_of(tmp_path, DAILY, DAILY, query)
    read: dict[Slice, int] = {Part(f"2026-01-0{day}"): 5 for day in range(1, 5)}
    assert list(behind(edge, {"2026-01-02": 6}, read)) == ["2026-01-02", "2026-01-03"]


def test_what_is_not_known_is_not_behind(tmp_path: Path) -> None:
    inputs = Inputs((Input(edge_of(tmp_path, DAILY, DAILY), list, 9),))
    assert inputs.behind({Part("2026-01-02"): {"other": 1}}) == {}


def test_a_view_that_has_another_query_since_puts_all_behind() -> None:
    inputs = Inputs(views=(("v", "main", 7),))
    read: dict[Slice, dict[str, int]] = {Part("2026-01-01"): {"main": 6}, WHOLE: {"main": 7}}
    found = inputs.behind(read)
    assert {slice_.text: str(why) for slice_, why in found.items()} == {
        "2026-01-01": "v: snapshot 7, read 6"
    }
    assert not Inputs(views=(("v", "other", 7),)).behind(read)
