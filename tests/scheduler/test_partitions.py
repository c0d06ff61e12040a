"""Which slices of a reader an event is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.time.partition import PartitionSpec, bounds, bucket_at, render
from penstock.scheduler.matching import Match
from penstock.scheduler.partitions import MAX_SLICES_OF_EVENT, find_slices
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import WHOLE
from tests.scheduler.building import NOON, change, due, message

HOURLY, DAILY = PartitionSpec("hourly"), PartitionSpec("daily")
WEEKLY, MONTHLY = PartitionSpec("weekly"), PartitionSpec("monthly")
SLASHES = PartitionSpec("daily", format="%d/%m/%Y")
PARIS = PartitionSpec("daily", tz="Europe/Paris")
TENANT = PartitionSpec("dynamic", key="$.tenant")
SINCE = PartitionSpec("daily", start="2026-05-10")


def match(
    spec: PartitionSpec | None, partition: str | None, origin: PartitionSpec | None = None
) -> Match:
    return Match(Subscription("m", partition=spec), Source("main.main.s"), partition, origin)


@pytest.mark.parametrize(
    ("value", "origin", "spec", "expected"),
    [
        ("2026-05-16", DAILY, None, [WHOLE]),
        ("2026-05-16", DAILY, DAILY, ["2026-05-16"]),
        ("2026-05-16", None, DAILY, ["2026-05-16"]),
        ("2026-05-16", DAILY, SLASHES, ["16/05/2026"]),
        ("16/05/2026", SLASHES, DAILY, ["2026-05-16"]),
        ("2026-05-16", DAILY, PARIS, ["2026-05-16"]),
        ("2026-05-16T09", HOURLY, DAILY, ["2026-05-16"]),
        ("2026-05-16T23", HOURLY, PARIS, ["2026-05-17"]),
        ("2026-05-16", DAILY, MONTHLY, ["2026-05"]),
        ("2026-05-31", PARIS, MONTHLY, ["2026-05"]),
        ("2026-W20", WEEKLY, DAILY, [f"2026-05-{day}" for day in range(11, 18)]),
        ("2026-W18", WEEKLY, MONTHLY, ["2026-04", "2026-05"]),
        ("2026-02", MONTHLY, DAILY, [f"2026-02-{day:02d}" for day in range(1, 29)]),
        ("2026-02", MONTHLY, WEEKLY, [f"2026-W{week:02d}" for week in range(5, 10)]),
        ("2026-05-16", DAILY, HOURLY, [f"2026-05-16T{hour:02d}" for hour in range(24)]),
        # the short day of Paris has 23 hours, the long one 25
        ("2026-03-29", PARIS, HOURLY, [
            "2026-03-28T23", *(f"2026-03-29T{hour:02d}" for hour in range(22))]),
        ("2026-10-25", PARIS, HOURLY, [
            "2026-10-24T22", "2026-10-24T23", *(f"2026-10-25T{hour:02d}" for hour in range(23))]),
        ("acme", TENANT, TENANT, ["acme"]),
        ("acme", None, TENANT, ["acme"]),
        ("2026-05-16", TENANT, DAILY, ["2026-05-16"]),
        ("2026-02", MONTHLY, PartitionSpec("daily", start="2026-02-27"),
            ["2026-02-27", "2026-02-28"]),
    ],
)  # fmt: skip
def test_a_slice_of_the_source_is_one_of_the_reader(
    value: str, origin: PartitionSpec | None, spec: PartitionSpec | None, expected: list[str]
) -> None:
    slices = find_slices(change("e", "s", value), match(spec, value, origin))
    assert (list(slices.keys), slices.reason) == (expected, None)


@pytest.mark.parametrize(
    ("value", "origin", "spec", "expected"),
    [
        ("acme", TENANT, DAILY, "'acme' is not a valid daily partition"),
        ("2026-5-16", None, DAILY, "though it can be read as 2026-05-16"),
        ("2026-05-16", MONTHLY, DAILY, "is not a valid monthly partition"),
        (
            "2026-05-16",
            DAILY,
            TENANT,
            "is a daily partition of main.main.s, but m is partitioned by $.tenant",
        ),
        ("2026-05-09", DAILY, SINCE, "2026-05-09 is before start 2026-05-10 of m"),
        ("2026-04", MONTHLY, SINCE, "before start 2026-05-10"),
        ("9999-12-31", None, DAILY, "outside of the calendar"),
        (
            "2026-03-29T02",
            HOURLY,
            PartitionSpec("hourly", tz="Europe/Paris"),
            "the clocks of Europe/Paris skip this hour",
        ),
    ],
)
def test_a_value_that_the_reader_does_not_have_is_ignored(
    value: str, origin: PartitionSpec | None, spec: PartitionSpec, expected: str
) -> None:
    slices = find_slices(change("e", "s", value), match(spec, value, origin))
    assert slices.keys == ()
    assert expected in (slices.reason or "")


def test_a_month_fires_a_limited_number_of_hours() -> None:
    slices = find_slices(change("e", "s"), match(HOURLY, "2026-05", MONTHLY))
    assert len(slices.keys) == MAX_SLICES_OF_EVENT
    assert slices.keys[-1] == "2026-05-31T23"
    assert f"{31 * 24 - MAX_SLICES_OF_EVENT} older slices did not" in (slices.reason or "")
    assert "penstock backfill m --from 2026-05-01T00 --to 2026-05-23T15" in (slices.reason or "")


LATE = datetime(2026, 5, 16, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spec", "times", "expected"),
    [
        (DAILY, {"time": LATE}, "2026-05-16"),
        (PARIS, {"time": LATE}, "2026-05-17"),
        (DAILY, {"time": LATE + timedelta(hours=1), "fire_time": LATE}, "2026-05-16"),
        (MONTHLY, {"time": LATE}, "2026-05"),
    ],
)
def test_the_time_of_the_chain_gives_the_partition(
    spec: PartitionSpec, times: dict[str, Any], expected: str
) -> None:
    for event in (change("e", "s", **times), due("e", "m", **times)):
        assert find_slices(event, match(spec, None)).keys == (expected,)


def test_a_partition_is_not_resolved_again_after_midnight() -> None:
    event = change("e", "s", "2026-05-16", time=NOON + timedelta(days=3))
    assert find_slices(event, match(DAILY, "2026-05-16")).keys == ("2026-05-16",)


@pytest.mark.parametrize(
    ("payload", "key", "expected"),
    [
        ({"tenant": "acme"}, "acme", None),
        ({"trigger": {"tenant": 7}}, "7", None),
        ({"name": "acme"}, None, "the payload has no $.tenant"),
        ({"tenant": ["acme"]}, None, "is not a text, number or boolean"),
        (None, None, "there is no payload"),
    ],
)
def test_a_payload_gives_a_dynamic_partition(
    payload: dict[str, Any] | None, key: str | None, expected: str | None
) -> None:
    reader = Match(Subscription("m", partition=TENANT))
    slices = find_slices(message("e", "sent", payload), reader)
    assert slices.keys == (() if key is None else (key,))
    assert (expected or "") in (slices.reason or "")
    assert (slices.reason is None) == (expected is None)


def test_a_change_of_no_partition_is_of_no_tenant() -> None:
    slices = find_slices(change("e", "s"), match(TENANT, None))
    assert slices.reason == "the change of main.main.s has no partition to take $.tenant from"


TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2037, 12, 31))  # noqa: DTZ001 - strategies want naive bounds
SPECS = st.builds(
    PartitionSpec,
    st.sampled_from(["hourly", "daily", "weekly", "monthly"]),
    tz=st.sampled_from(["UTC", "Europe/Paris", "Asia/Kolkata", "America/New_York"]),
)


@given(moment=TIMES, origin=SPECS, spec=SPECS)
def test_the_slices_of_a_reader_hold_the_slice_of_its_source(
    moment: datetime, origin: PartitionSpec, spec: PartitionSpec
) -> None:
    value = render(origin, bucket_at(origin, moment.replace(tzinfo=UTC)))
    slices = find_slices(change("e", "s"), match(spec, value, origin))
    if slices.reason is not None:  # an hour that does not exist, or a month of hours
        assert not slices.keys or len(slices.keys) == MAX_SLICES_OF_EVENT
        return
    start, end = bounds(origin, value)
    first, last = bounds(spec, slices.keys[0])[0], bounds(spec, slices.keys[-1])[1]
    if origin.kind != spec.kind and "hourly" in (origin.kind, spec.kind):
        assert first.astimezone(UTC) <= start.astimezone(UTC)
        assert end.astimezone(UTC) <= last.astimezone(UTC)
    else:
        assert first.replace(tzinfo=None) <= start.replace(tzinfo=None)
        assert end.replace(tzinfo=None) <= last.replace(tzinfo=None)
