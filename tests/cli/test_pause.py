"""``penstock pause``: who is paused until when, and what is refused. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.cli.pause import read_end
from tests.cli.served import as_json, make_served, penstock, refusal

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_served(tmp_path)


def test_a_pause_is_recorded_and_listed_in_local_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert penstock(root, "pause").stdout == "Nothing is paused.\n"
    said = penstock(root, "pause", "hours", "--until", "2h", "--reason", "repairs").stdout
    assert said.startswith("hours is paused until 2")
    (pause,) = as_json(root, "pause")["pauses"]
    assert (pause["selector"], pause["reason"]) == ("hours", "repairs")
    length = datetime.fromisoformat(pause["until"]) - datetime.fromisoformat(pause["since"])
    assert length == timedelta(hours=2)
    heading, line = penstock(root, "pause").stdout.splitlines()
    assert heading.split() == ["paused", "since", "until", "user", "reason"]
    until = datetime.fromisoformat(pause["until"]).astimezone()
    assert f"{until:%Y-%m-%d %H:%M:%S}" in line


def test_a_pause_without_an_end_waits_for_resume(root: Path) -> None:
    said = penstock(root, "pause", "tag:finance").stdout
    assert said == "tag:finance is paused until penstock resume; its events are kept\n"
    assert as_json(root, "pause", "hours")["until"] is None
    assert [pause["selector"] for pause in as_json(root, "pause")["pauses"]] == [
        "hours",
        "tag:finance",
    ]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("hour",), "model 'hour' does not exist", "did you mean 'hours'?"),
        (("tag:fin",), "no model has the tag 'fin'", "tags are finance"),
        (("hours", "--until", "soon"), "'soon' is not a time", "2026-12-24T06:00Z, or a length"),
        (("hours", "--until", "2026-12-24T06:00"), "has no time zone", "a time as 2026-12-24T06"),
        (("hours", "--until", "2020-01-01T00:00Z"), "has passed", "give a later time"),
    ],
)
def test_a_wrong_pause_is_refused(
    root: Path, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    said = refusal(root, "pause", *arguments)
    assert message in said
    assert hint in said
    assert as_json(root, "pause")["pauses"] == []


def test_an_end_is_a_time_with_its_zone_or_a_length() -> None:
    assert read_end(None, NOON) is None
    assert read_end("90m", NOON) == NOON + timedelta(minutes=90)
    assert read_end("2026-01-01T15:00+02:00", NOON) == NOON + timedelta(hours=1)
