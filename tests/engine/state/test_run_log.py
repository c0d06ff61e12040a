"""Logs of runs as files: what they hold, how long they stay, and what they never do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.state import run_log
from penstock.engine.state.run_log import RunLog, began_at, expired, log_of, logs, read, remove
from penstock.errors import Location, StepError
from penstock.events import Event, Notice, RunStarted, StepFinished, StepOutput, StepQuery, ignore
from penstock.settings.retention import Keep
from penstock.uuid7 import new_uuid7

ALL = Keep(None, None)
_begun: list[RunLog] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while _begun:
        _begun.pop().close()


def begin(directory: Path, run_id: str = "r1", keep: Keep = ALL) -> RunLog:
    """The log of a run that has started: its first line is that."""

    def refuse(event: object) -> None:
        raise AssertionError(event)

    log = RunLog(directory, keep, refuse)
    _begun.append(log)
    log(RunStarted(run_id, ("a",)))
    return log


def lines(directory: Path) -> list[dict[str, Any]]:
    """The lines after the first, of the run ``r1``."""
    return read(log_of(directory, "r1"))[0][1:]


def test_events_are_lines_with_their_time(tmp_path: Path) -> None:
    log = begin(tmp_path / "logs")
    log(Notice("a\nb", "step"))
    log(StepOutput("step", "printed"))
    first, second = lines(tmp_path / "logs")  # before it is closed: a killed run leaves them too
    assert datetime.fromisoformat(first.pop("at")).tzinfo is not None
    assert first.pop("schema_version") == 1
    assert first == {"event": "Notice", "message": "a\nb", "step": "step"}
    assert second["line"] == "printed"
    log.close()
    log(Notice("late"))
    assert len(lines(tmp_path / "logs")) == 2


def test_an_error_is_whole(tmp_path: Path) -> None:
    log = begin(tmp_path)
    try:
        try:
            raise ValueError("deep")
        except ValueError as cause:
            raise StepError("it failed", hint="try", location=Location("a.sql", 3)) from cause
    except StepError as error:
        log(StepFinished("a", "failed", 1.0, errors=(("2026-01-01", error),)))
    line, finished = lines(tmp_path)
    assert (line["event"], line["step"], line["slice"]) == ("StepError", "a", "2026-01-01")
    assert (line["type"], line["message"], line["location"]) == (
        "StepError",
        "it failed",
        "a.sql:3",
    )
    assert finished["event"] == "StepFinished"
    assert "errors" not in finished
    assert "ValueError: deep" in line["traceback"]
    assert "test_an_error_is_whole" in line["traceback"]


def test_a_query_has_the_values_of_its_markers(tmp_path: Path) -> None:
    begin(tmp_path)(StepQuery("a", None, "SELECT :n", {"n": datetime(2026, 1, 1, tzinfo=UTC)}))
    (line,) = lines(tmp_path)
    assert (line["sql"], line["values"]) == ("SELECT :n", {"n": "2026-01-01 00:00:00+00:00"})


def test_a_line_that_is_not_whole_is_left_for_later(tmp_path: Path) -> None:
    path = log_of(tmp_path, "r1")
    path.write_text('{"event": "a"}\nno json\n{"event": "b"')
    found, offset = read(path)
    assert found == [{"event": "a"}]
    path.write_text(path.read_text() + "}\n")
    assert read(path, offset) == ([{"event": "b"}], path.stat().st_size)


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    reported: list[Event] = []
    log = RunLog(tmp_path / "file" / "logs", ALL, reported.append)
    log(RunStarted("r1", ("a",)))
    log(Notice("x"))
    log.close()
    (notice,) = reported
    assert isinstance(notice, Notice)
    assert "no log of this run is written" in notice.message


def test_what_comes_before_the_run_starts_has_no_log(tmp_path: Path) -> None:
    log = RunLog(tmp_path, ALL, ignore)
    log(Notice("x"))
    assert logs(tmp_path) == []
    assert logs(None) == []


def test_prints_of_a_loop_do_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "_MOST", 1 << 20)
    log = begin(tmp_path)
    for _ in range(20):
        log(StepOutput("a", "x" * 200_000))
    (_, *found), size = read(log_of(tmp_path, "r1"))
    assert size < 1.3 * (1 << 20)
    assert "(200,000 characters)" in found[0]["line"]
    assert found[-1]["message"] == "this log ends here: it has 1 MB"


def test_it_stays_out_of_git(tmp_path: Path) -> None:
    begin(tmp_path / "a" / "logs")
    assert (tmp_path / "a" / "logs" / ".gitignore").read_text() == "*\n"


def many(directory: Path, *ages: int) -> list[Path]:
    """Logs of so many days ago, oldest first."""
    now = datetime.now(UTC)
    ids = [int((now - timedelta(days=age)).timestamp() * 1000) for age in ages]
    paths = [log_of(directory, f"{id_:012x}"[:8] + "-" + f"{id_:012x}"[8:] + "-7") for id_ in ids]
    for path in paths:
        path.write_text(json.dumps({"event": "a"}) + "\n")
    return paths


def test_old_logs_and_too_many_go(tmp_path: Path) -> None:
    paths = many(tmp_path, 40, 31, 20, 10, 0)
    assert logs(tmp_path) == paths
    assert expired(tmp_path, Keep(None, None)) == []
    assert expired(tmp_path, Keep(30 * 86_400, None)) == paths[:2]
    assert expired(tmp_path, Keep(30 * 86_400, 2)) == paths[:3]
    begin(tmp_path, new_uuid7(), Keep(None, 3))
    assert logs(tmp_path)[:2] == paths[3:]


def test_what_cannot_be_removed_is_named_and_the_rest_goes(tmp_path: Path) -> None:
    (tmp_path / "dir.jsonl").mkdir()
    other = log_of(tmp_path, "r1")
    other.write_text("")
    (failed,) = remove([tmp_path / "dir.jsonl", other])
    assert failed.startswith(str(tmp_path / "dir.jsonl"))
    assert not other.exists()


def test_an_id_says_when_its_run_began() -> None:
    began = began_at(new_uuid7())
    assert began is not None
    assert abs((datetime.now(UTC) - began).total_seconds()) < 5
    assert began_at("no id") is None
