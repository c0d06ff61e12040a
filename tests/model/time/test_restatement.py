"""When a model restates itself, and how much of it."""

from __future__ import annotations

from datetime import UTC, datetime

from penstock.model.time.interval import UNITS, Interval
from penstock.model.time.restatement import AutoRestatement

NOW = datetime(2026, 3, 30, 10, 20, tzinfo=UTC)
KNOWN = (Interval(datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)),)


def test_it_is_due_by_its_cron_in_the_zone_of_the_model() -> None:
    assert AutoRestatement("@daily").due(NOW) == NOW.replace(hour=0, minute=0)
    paris = AutoRestatement("@daily", "Europe/Paris")
    assert paris.due(NOW) == datetime(2026, 3, 29, 22, tzinfo=UTC)


def test_it_is_about_the_last_intervals() -> None:
    last = AutoRestatement("@daily", intervals=3).window(KNOWN, UNITS["day"])
    assert last == (Interval(datetime(2026, 3, 27, tzinfo=UTC), KNOWN[0].end),)
    assert AutoRestatement("@daily").window(KNOWN, UNITS["day"]) == KNOWN
    assert AutoRestatement("@daily", intervals=3).window((), UNITS["day"]) == ()
