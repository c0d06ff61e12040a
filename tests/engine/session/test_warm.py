"""Servers are joined, started, listed and ended, without Spark.

The servers are processes that only live and have their files. Also tests
``engine/session/warm_servers.py`` and ``cli/spark.py``.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.engine.session import warm
from penstock.engine.session.spark import warm_address
from penstock.engine.session.warm import WarmSession, end_server, place_of, start_server
from penstock.engine.session.warm_files import ServerPlace
from penstock.engine.session.warm_servers import servers, stop
from penstock.errors import ArgumentError, ConfigError, EnvironmentMissing
from penstock.settings.config import SparkSettings

SETTINGS = SparkSettings(master="local[2]")
ROOT = Path(__file__).parents[3]
Fake = Callable[..., subprocess.Popen[str]]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerPlace:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return place_of(SETTINGS)


def test_a_client_has_the_server_of_a_process_that_is_none(place: ServerPlace) -> None:
    client = {
        "SPARK_REMOTE": warm_address(4711, place.key),
        "SPARK_CONNECT_MODE_ENABLED": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    assert place_of(replace(SETTINGS, environ=client)) == place
    assert place_of(replace(SETTINGS, environ={"PYSPARK_PYTHON": "/other"})) != place


@pytest.fixture
def fake(place: ServerPlace) -> Iterator[Fake]:
    with ExitStack() as ended:

        def start(*how: str, port: int = 1) -> subprocess.Popen[str]:
            command = [sys.executable, "-m", "tests.engine.session.fake_server", str(place.path)]
            process = ended.enter_context(
                subprocess.Popen(
                    [*command, str(port), *how],
                    stdout=subprocess.PIPE,
                    text=True,
                    cwd=ROOT,
                    start_new_session=True,
                )
            )
            ended.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "lives\n"
            return process

        yield start


def test_a_server_is_listed_and_stopped(fake: Fake, place: ServerPlace) -> None:
    process = fake()
    (server,) = servers()
    assert (server.key, server.state, server.pid) == (place.key, "idle", process.pid)
    assert [each.pid for each in stop()] == [process.pid]
    process.wait(5)
    assert servers() == ()


def test_a_server_that_is_used_is_stopped_by_force(fake: Fake, place: ServerPlace) -> None:
    process = fake()
    with place.use():
        assert servers()[0].state == "used"
        with pytest.raises(ArgumentError, match=f"process {process.pid}") as raised:
            stop()
        assert "--force" in str(raised.value.hint)
        assert process.poll() is None
        assert len(stop(force=True)) == 1
        process.wait(5)


def test_a_server_that_does_not_listen_to_reason_is_killed(fake: Fake, place: ServerPlace) -> None:
    process, record = fake("deaf"), place.record()
    assert record is not None
    end_server(place, record, seconds=0.2)
    assert process.wait(5) == -9


def test_a_dead_server_is_none(fake: Fake, place: ServerPlace) -> None:
    process = fake()
    process.kill()
    process.wait()
    assert servers() == ()
    assert place.record() is None


def test_a_server_that_nobody_hears_is_ended_before_another_starts(
    fake: Fake, place: ServerPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = fake()
    monkeypatch.setattr(warm, "_SERVER", "no.such.module")
    with pytest.raises(ConfigError, match=r"does not start: .*No module named"):
        WarmSession(SETTINGS, 900).open()
    process.wait(5)
    assert not place.is_used()


def test_a_server_that_is_silent_for_one_is_not_taken_from_others(
    fake: Fake, place: ServerPlace
) -> None:
    process = fake()
    with place.use(), pytest.raises(EnvironmentMissing, match="others use it") as raised:
        WarmSession(SETTINGS, 900).open()
    assert "penstock spark stop --force" in str(raised.value.hint)
    assert process.poll() is None


def test_who_accepts_and_says_nothing_is_no_server(
    fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that hangs, and a port that somebody else took."""
    monkeypatch.setattr(warm, "_ANSWER", 0.1)
    monkeypatch.setattr(warm, "connect", lambda _: time.sleep(5))
    monkeypatch.setattr(warm, "_SERVER", "no.such.module")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = fake(port=listener.getsockname()[1])
        with pytest.raises(ConfigError):
            WarmSession(SETTINGS, 900).open()
        process.wait(5)


def test_a_refused_token_is_another_server(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise PermissionError("UNAUTHENTICATED")

    monkeypatch.setattr(warm, "connect", refuse)
    monkeypatch.setattr(warm, "_SERVER", "no.such.module")
    monkeypatch.delenv("SPARK_CONNECT_MODE_ENABLED", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = fake(port=listener.getsockname()[1])
        with pytest.raises(ConfigError):
            WarmSession(SETTINGS, 900).open()
        process.wait(5)


@pytest.mark.parametrize("before", ["killed", "brief"])
def test_one_starts_where_another_was_killed_or_is_about_to_end(
    before: str, fake: Fake, place: ServerPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = fake(before)
    if before == "killed":  # its record stays
        process.kill()
        process.wait()
    monkeypatch.setattr(warm, "_SERVER", "tests.engine.session.fake_server")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'src'}")
    record = start_server(place, SETTINGS, 900)
    assert record.pid != process.pid
    assert place.record() == record
    end_server(place, record)


def test_a_server_that_takes_too_long_is_ended(
    place: ServerPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "_START", 0.1)
    monkeypatch.setattr(warm, "_SERVER", "tests.engine.session.fake_server")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'src'}")
    with pytest.raises(ConfigError, match="nor was there after"):
        start_server(place, SETTINGS, 900)
    assert not place.is_alive()


def test_why_a_server_does_not_start_is_said(
    place: ServerPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "_SERVER", "no.such.module")
    with pytest.raises(ConfigError, match="No module named") as raised:
        start_server(place, SETTINGS, 900)
    assert str(place.log) in str(raised.value.hint)


def test_a_full_disk_is_said(place: ServerPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(subprocess, "Popen", full)
    with pytest.raises(EnvironmentMissing, match="No space left on device"):
        start_server(place, SETTINGS, 900)


def test_settings_that_differ_are_another_server(place: ServerPlace) -> None:
    others = (
        SparkSettings(master="local[3]"),
        SparkSettings(master="local[2]", conf={"spark.driver.memory": "2g"}),
        SparkSettings(master="local[2]", conf={"spark.sql.session.timeZone": "CET"}),
        SparkSettings(master="local[2]", environ={"TZ": "CET"}),
    )
    assert len({place.key, *(place_of(each).key for each in others)}) == 5
    same = SparkSettings(master="local[2]", warm=5.0, path="/elsewhere", ci=True)
    assert place_of(same).key == place.key


def test_commands_list_and_stop_servers(fake: Fake) -> None:
    process = fake()
    listed = CliRunner().invoke(main, ["spark", "status"])
    assert f"{process.pid}" in listed.stdout
    (server,) = json.loads(CliRunner().invoke(main, ["spark", "status", "--json"]).stdout)[
        "servers"
    ]
    assert (server["pid"], server["state"], server["spark"]) == (process.pid, "idle", "4.3.0")
    assert "ended Spark 4.3.0" in CliRunner().invoke(main, ["spark", "stop"]).stdout
    for command in ("status", "stop"):
        assert CliRunner().invoke(main, ["spark", command]).stdout == "No Spark server runs.\n"
