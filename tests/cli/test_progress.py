"""Events as lines, in a pipe and as JSON."""

from __future__ import annotations

import json
from threading import Thread

import pytest

from penstock.cli.output import fail, json_line, say, watch
from penstock.errors import CommitConflict, Location
from penstock.events import Notice, StepFinished, StepProgress, StepQuery
from penstock.sinks.progress.lines import lines, text_line
from tests.sinks.progress.events import RUN


def test_plain_lines_tell_the_run() -> None:
    assert [text_line(event) for event in RUN] == [
        "starting Spark",
        "run r1: 3 steps, partition 2013-01-02",
        "raw: started, slice 2013-01-02",
        "raw: writing",
        "raw: test not_null id passed",
        "raw: done, 1,842 rows, snapshot 3, 1.2 s",
        "clean: started",
        "clean: notice: no key in 2 rows",
        "clean: test unique id FAILED on 2 rows",
        "clean: failed: test unique id failed on 2 rows, 0.5 s",
        "mart: skipped (clean failed)",
        "run failed in 2.0 s",
    ]


def test_a_line_stays_a_line() -> None:
    event = StepFinished("raw", "failed", 1.0, reason="no key\n  → write one")
    assert text_line(event) == "raw: failed: no key, 1.0 s"


def test_json_lines_name_the_event_and_hold_its_fields() -> None:
    parsed = [json.loads(json_line(event) or "") for event in RUN]
    assert json_line(StepQuery("raw", None, "SELECT 1", {})) is None
    assert parsed[1] == {
        "schema_version": 1,
        "event": "RunStarted",
        "run_id": "r1",
        "steps": ["raw", "clean", "mart"],
        "partition": "2013-01-02",
        "slices": [],
    }
    assert [entry["event"] for entry in parsed] == [type(event).__name__ for event in RUN]


def test_lines_of_several_threads_stay_whole(capsys: pytest.CaptureFixture[str]) -> None:
    with lines(say, text_line) as sink:

        def talk(name: str) -> None:
            for _ in range(50):
                sink(StepProgress(name, "writing"))

        threads = [Thread(target=talk, args=(name,)) for name in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 150
    assert set(said) == {"a: writing", "b: writing", "c: writing"}


@pytest.mark.parametrize(
    ("as_json", "start"), [(False, "starting Spark"), (True, '{"schema_version": 1, "event"')]
)
def test_not_a_terminal_gets_lines(
    as_json: bool, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with watch(as_json=as_json) as sink:
        sink(RUN[0])
    assert capsys.readouterr().out.startswith(start)


def test_what_is_said_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    nasty = "a\x1b[2Jb\x9b"
    with lines(say, text_line) as sink:
        sink(Notice(nasty, nasty))
        sink(StepFinished(nasty, "failed", 0.0, reason=nasty))
    fail(CommitConflict(nasty, hint=nasty, location=Location(nasty, 1)))
    said = "".join(capsys.readouterr())
    assert not set(said) & set("\x1b\x9b")
    assert said.count("a\\u001b[2Jb\\u009b") == 7
