"""The slices of a model as a calendar, or as ranges."""

from __future__ import annotations

import pytest

from penstock.cli.status_grid import SIGNS, grid
from penstock.engine.results import SliceStatus
from penstock.states import SliceState


def of(*states: tuple[str, str]) -> list[str]:
    return list(grid([SliceStatus(text, SliceState(state)) for text, state in states]))


def test_days_are_months_of_signs() -> None:
    shown = of(
        ("2026-01-30", "materialized"),
        ("2026-01-31", "failed"),
        ("2026-02-01", "missing"),
        ("2026-02-02", "materialized"),
    )
    assert shown == [
        "        1234567890123456789012345678901",
        "2026-01                              #F",
        "2026-02 .#",
        "# materialized: 2",
        "F failed: 1",
        ". missing: 1",
    ]


def test_hours_are_days_and_months_are_years() -> None:
    assert of(("2026-01-30T00", "behind"), ("2026-01-30T23", "stale"))[1] == (
        "2026-01-30 b                      s"
    )
    assert of(("2025-12", "waiting"), ("2026-01", "running"))[1:3] == [
        "2025            w",
        "2026 r",
    ]


@pytest.mark.parametrize("state", ["no model", "other kind"])
def test_other_states_have_one_sign(state: str) -> None:
    assert of(("2026-01", state))[1:] == ["2026 ?", f"? {state}: 1"]


def test_other_values_are_ranges_of_one_state() -> None:
    values = [(f"v{n}", "materialized") for n in range(1_200)]
    assert of(*values, ("x", "failed"), ("y", "missing"), ("z", "missing")) == [
        "v0 to v1199: 1,200 materialized",
        "x: failed",
        "y to z: 2 missing",
    ]
    assert list(grid([SliceStatus(None, SliceState.MATERIALIZED)])) == ["whole table: materialized"]
    assert of() == []


def test_lines_fit_a_narrow_terminal() -> None:
    days = [(f"2026-01-{day:02}", "materialized") for day in range(1, 32)]
    assert max(map(len, of(*days))) <= 42
    assert len(set(SIGNS.values())) == len(SIGNS)
