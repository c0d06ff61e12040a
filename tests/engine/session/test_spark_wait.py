"""What is told while a session starts. Starts none."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from time import monotonic, sleep

import pytest

from penstock.engine.session.spark_wait import called, standing, told_start
from penstock.events import Event, SparkStarted, SparkStarting, SparkWaiting
from penstock.progress.lines import text_line


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def silent() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_a_master_is_asked_whether_it_answers(listening: int, silent: int) -> None:
    up, down = f"127.0.0.1:{listening}", f"127.0.0.1:{silent}"
    assert standing(f"spark://{up}") == f"{up} answers; the session is not ready yet"
    assert standing(f"spark://{up},{down}") == f"nothing answers at {down}"
    assert standing(f"sc://{down}") == f"nothing answers at {down}"
    assert standing(f"k8s://https://{up}") == f"{up} answers; the session is not ready yet"
    assert standing("yarn") == "it has not given the session its resources yet"


def test_a_master_is_named_without_its_token() -> None:
    assert called("sc://host:15002/;token=secret") == "sc://host:15002"
    assert [called(each) for each in (None, "local[*]", "yarn")] == [None, None, "yarn"]


def test_a_long_start_tells_where_it_stands(silent: int) -> None:
    told: list[Event] = []
    master, until = f"spark://127.0.0.1:{silent}", monotonic() + 10
    with told_start(master, told.append, every=0.02):
        while len(told) < 3 and monotonic() < until:
            sleep(0.01)
    first, second, *_, last = told
    assert first == SparkStarting(master)
    assert isinstance(second, SparkWaiting)
    assert isinstance(last, SparkStarted)
    assert text_line(first) == f"starting Spark on {master}"
    assert text_line(second) == (
        f"starting Spark on {master}: 0.0 s, nothing answers at 127.0.0.1:{silent}"
    )


def test_a_session_of_this_process_is_only_said_to_start_and_to_have_started() -> None:
    told: list[Event] = []
    with told_start("local[2]", told.append, every=0.001):
        sleep(0.05)
    assert [type(event) for event in told] == [SparkStarting, SparkStarted]
