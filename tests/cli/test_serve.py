"""``penstock serve``: its simulation, its log, and what it refuses. No Spark."""

from __future__ import annotations

import json
import logging
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.serve import JsonFormatter
from tests.cli.served import as_json, make_served, penstock, refusal

SPAN = ("--simulate", "--from", "2026-12-01", "--to", "2026-12-01T02:00Z")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_served(tmp_path)


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """The log that `penstock serve` sets up, which is put back."""
    logger = logging.getLogger("penstock")
    saved = (logger.handlers[:], logger.level, logger.propagate)
    yield logger
    logger.handlers[:], logger.level, logger.propagate = saved


def test_a_simulation_says_what_would_run_and_why(root: Path) -> None:
    heading, *lines, total = penstock(root, "serve", *SPAN).stdout.splitlines()
    assert heading.split() == ["time", "model", "partition", "cause"]
    assert [line.split()[2] for line in lines] == ["hours", "reader", "hours", "reader"]
    assert lines[0].endswith("schedule 30 * * * *")
    assert lines[1].endswith("main.main.hours changed")
    assert total.startswith("4 runs from ")


def test_a_simulation_as_json(root: Path) -> None:
    rows = as_json(root, "serve", *SPAN)["firings"]
    assert rows[0]["time"] == "2026-12-01T00:30:00+00:00"
    assert rows[0]["partition"] is None


def test_a_simulation_of_nothing(root: Path) -> None:
    span = ("--simulate", "--from", "2026-12-01T00:00Z", "--to", "2026-12-01T00:10Z")
    assert penstock(root, "serve", *span).stdout.startswith("Nothing would run.\n0 runs from ")


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("--simulate",), "a simulation needs its end", "add --to"),
        (("--from", "2026-12-01"), "--from and --to are of --simulate", "add --simulate"),
        (("--simulate", "--to", "soon"), "'soon' is not a time", "write a day as 2026-12-01"),
        (
            ("--simulate", "--from", "2026-12-01T00:00", "--to", "2026-12-02"),
            "'2026-12-01T00:00' has no time zone",
            "a time as 2026-12-01T06:00Z",
        ),
        (
            ("--simulate", "--from", "2026-12-02", "--to", "2026-12-01"),
            "the end 2026-12-01 is not after the start",
            "swap --from and --to",
        ),
        (("--host", "0.0.0.0", "--port", "0"), "there is no token yet", "penstock events token"),
    ],
)
def test_wrong_options_are_refused(
    root: Path, log: logging.Logger, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    said = refusal(root, "serve", *arguments)
    assert message in said
    assert hint in said


def test_a_port_that_is_taken_is_refused(root: Path, log: logging.Logger) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        result = penstock(root, "serve", "--port", str(other.getsockname()[1]))
    assert result.exit_code != 0
    assert str(other) not in result.stderr
    assert "port" in result.stderr


def test_it_ends_when_nothing_is_left_to_run(root: Path, log: logging.Logger) -> None:
    result = penstock(root, "serve", "--until-idle", "--no-http", "--log-format", "json")
    assert result.exit_code == 0
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert lines[0]["message"] == "serves toy: 4 models, 2 slots"
    assert {line["level"] for line in lines} == {"info"}


def test_a_line_of_the_log_is_an_object_with_its_fields_and_traceback() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        record = logging.LogRecord(
            "penstock.serve", logging.ERROR, __file__, 1, "failed: %s", ("x",), sys.exc_info()
        )
    record.route = "/health"
    line = JsonFormatter().format(record)
    said = json.loads(line)
    assert "\n" not in line
    assert (said["level"], said["message"], said["route"]) == ("error", "failed: x", "/health")
    assert said["traceback"].endswith("ValueError: no")
