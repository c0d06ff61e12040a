from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PartitionError
from penstock.model.time.partition import (
    MAX_SLICES,
    PartitionSpec,
    between,
    bounds,
    bucket_around,
    bucket_at,
    bucket_of,
    check_spec,
    is_before_start,
    render,
    validate,
    value_from,
)

FIRE = datetime(2026, 5, 16, 9, 30, tzinfo=UTC)
ZONES = ("UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
TIME_KINDS = ("daily", "hourly", "weekly", "monthly")

specs = st.builds(PartitionSpec, kind=st.sampled_from(TIME_KINDS), tz=st.sampled_from(ZONES))
#: clocks of New York, Paris and Lord Howe change at these instants
CHANGES = tuple(
    datetime.fromisoformat(f"{text}+00:00")
    for text in (
        *("2026-03-08T07:00", "2026-11-01T06:00", "2026-03-29T01:00", "2026-10-25T01:00"),
        *("2026-04-04T15:00", "2026-10-03T15:30"),
    )
)
instants = st.one_of(
    st.integers(min_value=631152000, max_value=2524607999).map(
        lambda second: datetime.fromtimestamp(second, UTC)
    ),
    st.builds(
        lambda change, minutes: change + timedelta(minutes=minutes),
        st.sampled_from(CHANGES),
        st.integers(min_value=-180, max_value=180),
    ),
)


def value_at(spec: PartitionSpec, moment: datetime) -> str:
    return render(spec, bucket_at(spec, moment))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("daily", "2026-05-16"),
        ("hourly", "2026-05-16T09"),
        ("weekly", "2026-W20"),
        ("monthly", "2026-05"),
    ],
)
def test_default_formats(kind: str, value: str) -> None:
    assert value_at(PartitionSpec(kind), FIRE) == value


def test_the_zone_moves_the_boundary() -> None:
    just_after_midnight = datetime(2026, 5, 16, 0, 30, tzinfo=UTC)
    assert (
        value_at(PartitionSpec("daily", tz="America/New_York"), just_after_midnight) == "2026-05-15"
    )
    assert value_at(PartitionSpec("daily"), just_after_midnight) == "2026-05-16"


def test_a_moment_may_be_in_any_zone_or_wall_time() -> None:
    tokyo = FIRE.astimezone(ZoneInfo("Asia/Tokyo"))
    assert value_at(PartitionSpec("hourly"), tokyo) == "2026-05-16T09"
    wall = datetime.fromisoformat("2026-05-16T00:30")
    assert value_at(PartitionSpec("daily", tz="America/New_York"), wall) == "2026-05-16"


@pytest.mark.parametrize(
    ("inner", "value", "outer", "around"),
    [
        ("hourly", "2026-05-16T09", "daily", "2026-05-16"),
        ("daily", "2026-05-16", "monthly", "2026-05"),
        ("weekly", "2026-W20", "monthly", "2026-05"),
        ("weekly", "2026-W27", "monthly", None),  # from 29 June to 5 July
        ("monthly", "2026-05", "daily", None),
        ("daily", "2026-05-16", "hourly", None),
    ],
)
def test_the_slice_around_another(inner: str, value: str, outer: str, around: str | None) -> None:
    bucket = bucket_around(PartitionSpec(outer), *bounds(PartitionSpec(inner), value))
    assert (bucket and render(PartitionSpec(outer), bucket)) == around


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        ((2024, 12, 30), "2025-W01"),
        ((2025, 12, 28), "2025-W52"),
        ((2025, 12, 29), "2026-W01"),
        ((2026, 12, 31), "2026-W53"),
        ((2027, 1, 3), "2026-W53"),
        ((2027, 1, 4), "2027-W01"),
    ],
)
def test_iso_weeks_at_year_ends(moment: tuple[int, int, int], week: str) -> None:
    assert value_at(PartitionSpec("weekly"), datetime(*moment, tzinfo=UTC)) == week
    start, end = bounds(PartitionSpec("weekly"), week)
    assert start <= datetime(*moment, tzinfo=UTC) < end


@pytest.mark.parametrize(
    ("kind", "pattern", "value"),
    [
        ("daily", "%Y/%m/%d", "2026/05/16"),
        ("daily", "%Y%m%d", "20260516"),
        ("daily", "%d.%m.%Y", "16.05.2026"),
        ("hourly", "%Y-%m-%d %H:00", "2026-05-16 09:00"),
        ("weekly", "%G%V", "202620"),
        ("weekly", "%Y-%m-%d", "2026-05-11"),
        ("monthly", "%b %Y", "May 2026"),
        ("monthly", "y%%%Y/%m", "y%2026/05"),
    ],
)
def test_own_formats(kind: str, pattern: str, value: str) -> None:
    spec = PartitionSpec(kind, format=pattern)
    assert value_at(spec, FIRE) == value
    validate(spec, value)


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("daily", "%Y-%m"),
        ("daily", "%m-%d"),
        ("daily", "x"),
        ("hourly", "%Y-%m-%d"),
        ("hourly", "%Y-%m-%d %I"),
        ("weekly", "%Y"),
        ("weekly", "%G-%m"),
        ("monthly", "%Y"),
        ("daily", "%G-%m-%d"),
        ("daily", "%Q"),
        ("daily", "%Y-%m-%d %"),
    ],
)
def test_a_format_must_tell_slices_apart(kind: str, pattern: str) -> None:
    with pytest.raises(PartitionError, match="does not tell one"):
        check_spec(PartitionSpec(kind, format=pattern))


@pytest.mark.parametrize(
    "zone", ["Nowhere", "", "Europe", "europe/pariss", "../etc/passwd", "\x00"]
)
def test_a_bad_zone_is_an_error(zone: str) -> None:
    if zone == "":
        return check_spec(PartitionSpec("daily", tz=zone))
    with pytest.raises(PartitionError, match="not a time zone"):
        check_spec(PartitionSpec("daily", tz=zone))
    return None


def test_a_zone_nearly_right() -> None:
    with pytest.raises(PartitionError) as error:
        check_spec(PartitionSpec("daily", tz="Europe/Pari"))
    assert error.value.hint == "did you mean Europe/Paris?"


@pytest.mark.parametrize(
    "start", ["yesterday", "2026-13-01", "2026-1-1", "20260101", "2026-01-01T00"]
)
def test_a_bad_start_is_an_error(start: str) -> None:
    with pytest.raises(PartitionError, match="not a date"):
        check_spec(PartitionSpec("daily", start=start))


@pytest.mark.parametrize(
    ("kind", "start", "value"),
    [
        ("daily", "2026-05-16", "2026-05-16"),
        ("daily", "2026-05-17", None),
        ("hourly", "2026-05-17", None),
        ("hourly", "2026-05-16", "2026-05-16T09"),
        ("weekly", "2026-05-17", "2026-W20"),
        ("weekly", "2026-05-18", None),
        ("monthly", "2026-05-31", "2026-05"),
        ("monthly", "2026-06-01", None),
    ],
)
def test_what_ends_before_start_is_before_it(kind: str, start: str, value: str | None) -> None:
    spec = PartitionSpec(kind, start=start)
    assert is_before_start(spec, bucket_at(spec, FIRE)) == (value is None)


@pytest.mark.parametrize(
    ("kind", "value", "canonical"),
    [
        ("daily", "2026-5-16", "2026-05-16"),
        ("daily", "2026-05-16 ", None),
        ("daily", "2026-02-29", None),
        ("daily", "x' OR '1'='1", None),
        ("daily", "", None),
        ("hourly", "2026-05-16T9", "2026-05-16T09"),
        ("hourly", "2026-05-16T24", None),
        ("weekly", "2026-W5", "2026-W05"),
        ("weekly", "2025-W53", None),
        ("weekly", "2026-20", None),
        ("monthly", "2026-13", None),
        ("monthly", "2026-05-01", None),
    ],
)
def test_values_are_validated(kind: str, value: str, canonical: str | None) -> None:
    with pytest.raises(PartitionError) as error:
        validate(PartitionSpec(kind), value)
    assert error.value.hint
    if canonical is not None:
        assert canonical in error.value.hint


@pytest.mark.parametrize(
    ("payload", "value"),
    [
        ({"a": {"b": 42}}, "42"),
        ({"a": {"b": "acme"}}, "acme"),
        ({"a": {"b": True}}, "true"),
        ({"a": {"b": 1.5}}, "1.5"),
        ({"trigger": {"a": {"b": "t"}}, "a": {"b": "no"}}, "t"),
        ({"a": {"b": "x' OR '1'='1"}}, "x' OR '1'='1"),
    ],
)
def test_dynamic_values(payload: dict[str, object], value: str) -> None:
    spec = PartitionSpec("dynamic", key="$.a.b")
    assert value_from(spec, payload) == value


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"a": 1},
        {"a": {}},
        {"a": {"b": None}},
        {"a": {"b": [1]}},
        {"a": {"b": {}}},
        {"a": {"b": ""}},
        {"a": [{"b": 1}]},
        {"trigger": {}, "a": {"b": 1}},
    ],
)
def test_a_payload_without_the_value_is_an_error(payload: dict[str, object]) -> None:
    spec = PartitionSpec("dynamic", key="$.a.b")
    with pytest.raises(PartitionError) as error:
        value_from(spec, payload)
    assert error.value.hint


@pytest.mark.parametrize("key", [None, "a.b", "$", "$.", "$.a[0]", "$.*", "$..a", "$.a[?(@.b)]"])
def test_a_key_is_a_plain_path(key: str | None) -> None:
    with pytest.raises(PartitionError, match="not a path"):
        check_spec(PartitionSpec("dynamic", key=key))


def test_a_dynamic_partition_takes_any_text_but_has_no_calendar() -> None:
    spec = PartitionSpec("dynamic", key="$.tenant")
    validate(spec, "acme")
    for ask in (lambda: bounds(spec, "acme"), lambda: between(spec, "a", "b")):
        with pytest.raises(PartitionError, match="no calendar"):
            ask()


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(PartitionError, match="not a kind"):
        check_spec(PartitionSpec("yearly"))


@pytest.mark.parametrize(
    ("kind", "first", "last", "expected"),
    [
        ("daily", "2024-02-28", "2024-03-01", ["2024-02-28", "2024-02-29", "2024-03-01"]),
        (
            "hourly",
            "2026-05-16T22",
            "2026-05-17T00",
            ["2026-05-16T22", "2026-05-16T23", "2026-05-17T00"],
        ),
        ("weekly", "2026-W52", "2027-W01", ["2026-W52", "2026-W53", "2027-W01"]),
        ("monthly", "2025-12", "2026-01", ["2025-12", "2026-01"]),
        ("daily", "2026-01-01", "2026-01-01", ["2026-01-01"]),
    ],
)
def test_between(kind: str, first: str, last: str, expected: list[str]) -> None:
    assert between(PartitionSpec(kind), first, last) == expected


def test_an_empty_or_endless_range_is_an_error() -> None:
    with pytest.raises(PartitionError, match="empty"):
        between(PartitionSpec("daily"), "2026-01-02", "2026-01-01")
    with pytest.raises(PartitionError, match=str(MAX_SLICES)):
        between(PartitionSpec("hourly"), "1900-01-01T00", "2026-01-01T00")


PARIS = PartitionSpec("hourly", tz="Europe/Paris")


def test_the_hour_that_a_clock_change_skips() -> None:
    hours = between(PARIS, "2026-03-29T01", "2026-03-29T03")
    assert hours == ["2026-03-29T01", "2026-03-29T03"]
    with pytest.raises(PartitionError, match="never was"):
        validate(PARIS, "2026-03-29T02")


def test_the_hour_that_a_clock_change_repeats_is_one_slice() -> None:
    start, end = bounds(PARIS, "2026-10-25T02")
    assert end.astimezone(UTC) - start.astimezone(UTC) == timedelta(hours=2)
    first, second = (datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1))
    assert value_at(PARIS, first) == value_at(PARIS, second) == "2026-10-25T02"


def test_days_of_23_and_25_hours() -> None:
    spec = PartitionSpec("daily", tz="Europe/Paris")
    for day, hours in (("2026-03-29", 23), ("2026-10-25", 25), ("2026-05-16", 24)):
        start, end = bounds(spec, day)
        assert end.astimezone(UTC) - start.astimezone(UTC) == timedelta(hours=hours)


def test_a_day_that_never_was() -> None:
    samoa = PartitionSpec("daily", tz="Pacific/Apia")
    assert between(samoa, "2011-12-29", "2011-12-31") == ["2011-12-29", "2011-12-31"]


@given(specs, instants)
def test_an_instant_lies_in_its_slice(spec: PartitionSpec, moment: datetime) -> None:
    start, end = bounds(spec, value_at(spec, moment))
    assert start.astimezone(UTC) <= moment < end.astimezone(UTC)


@given(specs, instants)
def test_slices_follow_each_other_without_gap(spec: PartitionSpec, moment: datetime) -> None:
    value = value_at(spec, moment)
    end = bounds(spec, value)[1].astimezone(UTC)
    following = value_at(spec, end)
    assert following != value
    assert bounds(spec, following)[0].astimezone(UTC) == end
    assert between(spec, value, following) == [value, following]


@given(specs, instants)
def test_every_value_is_valid_and_comes_back(spec: PartitionSpec, moment: datetime) -> None:
    value = value_at(spec, moment)
    validate(spec, value)
    assert render(spec, bucket_of(spec, value)) == value
    assert value_at(spec, bounds(spec, value)[0]) == value


@given(specs, instants, st.integers(min_value=0, max_value=40))
def test_a_range_is_sorted_by_time(spec: PartitionSpec, moment: datetime, days: int) -> None:
    first, last = value_at(spec, moment), value_at(spec, moment + timedelta(days=days))
    values = between(spec, first, last)
    starts = [bounds(spec, value)[0].astimezone(UTC) for value in values]
    assert (values[0], values[-1]) == (first, last)
    assert starts == sorted(set(starts))


@given(st.text(max_size=20))
def test_no_text_breaks_validation(value: str) -> None:
    for kind in TIME_KINDS:
        spec = PartitionSpec(kind)
        with suppress(PartitionError):
            validate(spec, value)
            assert between(spec, value, value) == [value]


@pytest.mark.parametrize(
    ("spec", "slicing"),
    [
        (PartitionSpec("daily", tz="UTC", format="%Y-%m-%d", start="2026-01-01"), "daily"),
        (PartitionSpec("daily", tz="Europe/Paris"), 'daily tz="Europe/Paris"'),
        (PartitionSpec("monthly", format="%Y%m"), 'monthly format="%Y%m"'),
        (PartitionSpec("dynamic", key="$.a.b"), 'dynamic key="$.a.b"'),
    ],
)
def test_slices_are_told_apart_by_what_they_are(spec: PartitionSpec, slicing: str) -> None:
    assert spec.slicing == slicing
