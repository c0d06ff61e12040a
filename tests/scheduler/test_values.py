"""The values of the scheduler."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from penstock.scheduler.values import WHOLE, EventKind, Firing, FiringState, Pause

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_pause_without_an_end_lasts() -> None:
    later = NOON + timedelta(days=400)
    assert Pause("orders", NOON).is_active_at(later)
    assert not Pause("orders", NOON, until=later).is_active_at(later)


def test_a_firing_of_the_whole_table_has_no_partition() -> None:
    firing = Firing("1", "orders", WHOLE, EventKind.ASSET, NOON)
    assert firing.partition is None
    assert firing.state.is_open
    assert not FiringState.FAILED.is_open
