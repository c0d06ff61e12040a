"""Tests ``model/values/schedule.py`` (triggers as values)."""

from __future__ import annotations

import pytest

from penstock.model.headers.annotation import parse
from penstock.model.values.asset import Asset
from penstock.model.values.schedule import EVENTS, Trigger


@pytest.mark.parametrize("event", EVENTS)
def test_events_stand_alone(event: str) -> None:
    assert parse(f"-- on {event}")[0].triggers == (Trigger(event),)
    annotations, (finding,) = parse(f"-- on {event} topic")
    assert annotations.triggers == ()
    assert finding.hint == f"write `-- on {event}`"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ducklake://main/t", Trigger("asset", Asset("ducklake", "main/t"))),
        ("ducklake://main/s.t", Trigger("asset", Asset("ducklake", "main/s.t"))),
        ("res://f/x", Trigger("asset", Asset("resource", "f/x"))),
        ("datatable://m/t debounce=5m", Trigger("asset", Asset("datatable", "m/t"), "5m")),
        ("s3:///a debounce=60", Trigger("asset", Asset("s3object", "/a"), "60")),
        ("s3://a b debounce=1h", Trigger("asset", Asset("s3object", "a b"), "1h")),
    ],
)
def test_assets(line: str, expected: Trigger) -> None:
    annotations, findings = parse(f"-- on {line}")
    assert annotations.triggers == (expected,)
    assert findings == ()


@pytest.mark.parametrize("path", ["main/t", "main/t_{partition}", "a/{partition}/b"])
def test_partition_bearing(path: str) -> None:
    (trigger,) = parse(f"-- on s3://{path}")[0].triggers
    assert trigger.bears_partition == ("{partition}" in path)
    assert not Trigger("schedule").bears_partition


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("ducklake", "on ducklake://main/table"),
        ("ducklake://", "on ducklake://main/table"),
        ("shedule", "on schedule"),
        ("web hook", "on webhook"),
        ("", "on ducklake://main/table"),
        ("the other hand", "on ducklake://main/table"),
    ],
)
def test_a_dropped_trigger_is_a_warning(line: str, form: str) -> None:
    annotations, (finding,) = parse(f"-- on {line}")
    assert annotations.triggers == ()
    assert finding.severity == "warning"
    assert finding.hint is not None
    assert finding.hint.startswith("write `-- on ")
    assert line == "web hook" or finding.hint == f"write `-- {form}`"


@pytest.mark.parametrize("duration", ["soon", "1w", "1.5h", "-1"])
@pytest.mark.parametrize("asset", ["s3://a", "schedule"])
def test_only_the_option_that_cannot_be_read_is_dropped(asset: str, duration: str) -> None:
    annotations, (finding,) = parse(f"-- on {asset} debounce={duration}")
    assert annotations.triggers[0].debounce is None
    assert (finding.severity, finding.rule) == ("warning", "debounce")


def test_an_event_has_no_debounce() -> None:
    annotations, (finding,) = parse("-- on schedule debounce=5m")
    assert annotations.triggers == (Trigger("schedule"),)
    assert finding.hint == "write `-- on schedule`"


def test_repeated_triggers_are_one() -> None:
    text = "-- on ducklake://m/t\n-- on ducklake://m/t debounce=1m\n-- on schedule\n-- on schedule"
    annotations, findings = parse(text)
    assert [trigger.kind for trigger in annotations.triggers] == ["asset", "schedule"]
    assert [finding.location.line for finding in findings] == [2, 4]


@pytest.mark.parametrize(
    ("text", "mode", "reports"),
    [
        ("-- trigger all", "all", 0),
        ("-- trigger any", "any", 0),
        ("-- trigger all\n-- trigger any", "any", 1),
        ("-- trigger all\n-- trigger all", "all", 0),
        ("-- trigger both", None, 1),
        ("-- trigger", None, 1),
    ],
)
def test_join_modes(text: str, mode: str | None, reports: int) -> None:
    annotations, findings = parse(text)
    assert annotations.join_mode == mode
    assert [finding.severity for finding in findings] == ["warning"] * reports
