from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.time.cron import AutoRestatement, Cron, NeverDue
from penstock.model.time.interval import UNITS, Interval

YEAR = datetime(2026, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 3, 30, 10, 20, tzinfo=UTC)
KNOWN = (Interval(datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 3, 30, tzinfo=UTC)),)
moments = st.integers(0, 366 * 86_400 * 10).map(lambda tenth: YEAR + timedelta(0, tenth / 10))
crons = st.builds(
    Cron,
    st.sampled_from(
        ["@daily", "@hourly", "30 2 * * *", "*/15 * * * *", "0 0 1 * *", "0 8,20 * * *"]
    ),
    st.sampled_from(["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe"]),
)


@given(crons, moments)
def test_floor_and_next_are_due_one_after_the_other(cron: Cron, now: datetime) -> None:
    last, following = cron.floor(now), cron.next(now)
    assert last <= now < following
    assert cron.floor(following) == following
    assert cron.next(last) == following


@given(crons, moments)
def test_what_is_due_is_what_the_iterator_says(cron: Cron, now: datetime) -> None:
    local = now.astimezone(cron._zone)
    forward = (each.astimezone(UTC) for each in islice(CronSim(cron.fields, local), 3))
    assert cron.next(now) == min(each for each in forward if each > now)


@pytest.mark.parametrize(
    ("expression", "unit"),
    [
        ("@daily", "day"),
        ("@weekly", "day"),
        ("@monthly", "month"),
        ("@yearly", "year"),
        ("0 8,20 * * *", "hour"),
        ("*/30 * * * *", "half_hour"),
        ("*/20 * * * *", "quarter_hour"),
        ("*/7 * * * *", "five_minute"),
        ("*/5 * * * *", "five_minute"),
        ("0 0 29 2 *", "year"),
    ],
)
def test_the_unit_comes_from_the_shortest_gap(expression: str, unit: str) -> None:
    assert Cron(expression).unit.name == unit


def test_a_zone_shifts_when_it_is_due() -> None:
    cron = Cron("0 6 * * *", "Europe/Paris")
    assert cron.floor(datetime(2026, 1, 2, 4, 59, tzinfo=UTC)).day == 1
    assert cron.floor(datetime(2026, 1, 2, 5, tzinfo=UTC)) == datetime(2026, 1, 2, 5, tzinfo=UTC)
    assert cron.floor(datetime(2026, 7, 2, 4, tzinfo=UTC)) == datetime(2026, 7, 2, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "why"), [("every day", "not a cron"), ("0,3 * * * *", "every 5 minutes")]
)
def test_what_is_no_cron_or_too_often_is_refused(expression: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Cron(expression).check()


def test_it_is_due_by_its_cron_in_the_zone_of_the_model() -> None:
    assert AutoRestatement("@daily").due(NOW) == NOW.replace(hour=0, minute=0)
    paris = AutoRestatement("@daily", "Europe/Paris")
    assert paris.due(NOW) == datetime(2026, 3, 29, 22, tzinfo=UTC)


def test_it_is_about_the_last_intervals() -> None:
    last = AutoRestatement("@daily", intervals=3).window(KNOWN, UNITS["day"])
    assert last == (Interval(datetime(2026, 3, 27, tzinfo=UTC), KNOWN[0].end),)
    assert AutoRestatement("@daily").window(KNOWN, UNITS["day"]) == KNOWN
    assert AutoRestatement("@daily", intervals=3).window((), UNITS["day"]) == ()


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 12 31 2 *"])
def test_an_expression_of_a_day_that_never_comes(text: str) -> None:
    with pytest.raises(NeverDue, match="is never due"):
        Cron(text).check_fields()
    with pytest.raises(ValueError, match="is never due"):
        Cron(text).check()


@pytest.mark.parametrize("text", ["", "x", "0 6 * *", "61 * * * *", "0 0 32 1 *", "0 0 31 13 *"])
def test_what_is_no_expression_is_not_called_one_that_is_never_due(text: str) -> None:
    with pytest.raises(ValueError, match="is not a cron expression") as caught:
        Cron(text).check_fields()
    assert not isinstance(caught.value, NeverDue)


@pytest.mark.parametrize("text", ["* * * * *", "@daily", "0 0 29 2 *", "0 0 31 2 1"])
def test_an_expression_may_be_due_every_minute_or_every_fourth_year(text: str) -> None:
    Cron(text).check_fields()
    assert Cron(text).next(datetime(2026, 1, 1, tzinfo=UTC)).year >= 2026


SHORT = datetime(2026, 3, 28, 12, tzinfo=UTC)  # Berlin skips 02:00 to 03:00 on the next day
LONG = datetime(2026, 10, 24, 12, tzinfo=UTC)  # and repeats it
FIXED = ["30 2 * * *", "0 3 * * *", "0,30 2 * * *", "15 1-4 * * *", "30 2,3 * * *"]
BY_THE_HOUR = ["0 * * * *", "*/30 * * * *", "0 */2 * * *", "*/20 2 * * *"]


def _due_within(cron: Cron, start: datetime) -> list[datetime]:
    moments = [cron.next(start)]
    while moments[-1] < start + timedelta(days=1):
        moments.append(cron.next(moments[-1]))
    return moments[:-1]


@pytest.mark.parametrize(
    ("expression", "start", "times"),
    [
        ("30 2 * * *", SHORT, ["03:00"]),
        ("0,30 2 * * *", SHORT, ["03:00"]),
        ("30 2 * * *", LONG, ["02:30"]),
        ("0 2,3 * * *", LONG, ["02:00", "03:00"]),
        ("*/20 2 * * *", SHORT, []),
        ("*/20 2 * * *", LONG, ["02:00", "02:20", "02:40"] * 2),
    ],
)
def test_it_is_due_once_when_clocks_change(
    expression: str, start: datetime, times: list[str]
) -> None:
    cron = Cron(expression, "Europe/Berlin")
    local = [moment.astimezone(cron._zone) for moment in _due_within(cron, start)]
    assert [moment.strftime("%H:%M") for moment in local] == times
    assert all(moment.fold == 0 for moment in local if "*/" not in expression)


@pytest.mark.parametrize(
    "day", ["2026-03-08", "2026-03-29", "2026-04-05", "2026-04-24", "2026-10-25", "2026-11-01"]
)
@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "Africa/Cairo", "Pacific/Chatham"]
)
@pytest.mark.parametrize("expression", FIXED + BY_THE_HOUR)
def test_back_and_forth_are_the_same_times(expression: str, zone: str, day: str) -> None:
    cron = Cron(expression, zone)
    end = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=2)
    past = takewhile(lambda due: due > end - timedelta(days=3), cron.iterate_back(end))
    for later, sooner in pairwise(past):
        assert cron.next(sooner) == later
        assert cron.floor(later - timedelta(seconds=1)) == sooner
        assert cron.floor(sooner + (later - sooner) / 2) == sooner


def test_the_repeated_hour_keeps_what_was_due_in_the_hour_before() -> None:
    cron = Cron("30 2 * * *", "Europe/Berlin")
    due = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert [cron.floor(due + timedelta(minutes=late)) for late in (0, 31, 59, 61, 90)] == [due] * 5
