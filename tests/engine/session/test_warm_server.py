"""When a warm server ends, without Spark."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.engine.session.warm_files import ServerPlace, ServerRecord
from penstock.engine.session.warm_server import answers, free_port, order, server_conf, watch

RECORD = ServerRecord(os.getpid(), 4711, "secret", 1.0, "4.3.0", "local[2]")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerPlace]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = ServerPlace.of("0123")
    life = found.hold_server()
    assert life is not None
    with life:
        found.write_record(RECORD)
        yield found


class Clock:
    """A time that passes with each wait; ``steps`` happen before them, one each."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.now = 0.0
        self._steps = iter(steps)

    def wait(self, seconds: float) -> bool:
        self.now += 60 * seconds
        next(self._steps, lambda: None)()
        return self.now > 60 * 100

    def time(self) -> float:
        return self.now


def watched(place: ServerPlace, clock: Clock, lives: bool = True) -> str:
    return watch(place, RECORD, 600, clock.wait, clock=clock.time, lives=lambda _: lives)


def test_a_server_ends_when_it_is_idle(place: ServerPlace) -> None:
    clock = Clock()
    assert watched(place, clock) == "idle"
    assert clock.now == 600
    assert place.record() is None


def test_use_begins_the_time_again(place: ServerPlace) -> None:
    use = place.use()
    clock = Clock(*[lambda: None] * 5, use.close)
    assert watched(place, clock) == "idle"
    assert clock.now == 5 * 60 + 600


def test_a_client_may_change_the_time(place: ServerPlace) -> None:
    clock = Clock(lambda: place.set_idle(120))
    assert watched(place, clock) == "idle"
    assert clock.now == 120


def test_a_server_that_is_used_stays(place: ServerPlace) -> None:
    with place.use():
        assert watched(place, Clock()) == "stopped"
    assert place.record() == RECORD


def test_a_server_ends_with_java(place: ServerPlace) -> None:
    with place.use():
        assert watched(place, Clock(), lives=False) == "Java has ended"


def test_a_server_whose_files_are_gone_ends(place: ServerPlace) -> None:
    clock = Clock(lambda: None, place.remove_record)
    assert watched(place, clock) == "its files are gone"
    assert clock.now == 120


def test_plugins_of_the_project_stay(place: ServerPlace) -> None:
    conf = server_conf({"spark.plugins": "a.B", "spark.local.dir": "/d"}, place, 4711)
    assert conf["spark.plugins"] == "a.B,org.apache.spark.sql.connect.SparkConnectPlugin"
    assert conf["spark.local.dir"] == "/d"
    assert conf["spark.connect.grpc.binding.port"] == "4711"
    only = server_conf({}, place, 4711)["spark.plugins"]
    assert only == "org.apache.spark.sql.connect.SparkConnectPlugin"


def test_nobody_but_this_machine_reaches_a_server(place: ServerPlace) -> None:
    given = {"spark.connect.grpc.binding.address": "0.0.0.0"}
    assert server_conf(given, place, 1)["spark.connect.grpc.binding.address"] == "127.0.0.1"


def test_an_order_has_no_token_in_its_conf(place: ServerPlace) -> None:
    given = json.loads(order(place, {"a": "1"}, "secret", 9))
    assert given == {"place": str(place.path), "conf": {"a": "1"}, "token": "secret", "idle": 9}


def test_ports_that_answer() -> None:
    port = free_port()
    assert not answers(port)
    with socket.create_server(("127.0.0.1", port)):
        assert answers(port)
