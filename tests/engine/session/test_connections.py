"""Threads of a served project share one Spark session, and each lake."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from penstock.engine.session import open_session
from penstock.engine.session.connections import Connections
from penstock.events import ignore
from penstock.project.project import Project
from tests.engine.toy import write_project

ORDERS = {"models/orders": "-- pipeline\n-- materialize ducklake://main/orders\nSELECT 1 AS id"}


@pytest.fixture
def connections(tmp_path: Path) -> Connections:
    return Project.load(write_project(tmp_path / "p", ORDERS)).context.connections


def test_threads_start_one_session(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[object]()

    def open_slowly(*_: Any, **__: Any) -> object:
        time.sleep(0.1)
        started.append(object())
        return started[-1]

    monkeypatch.setattr(open_session, "open_session", open_slowly)
    with ThreadPoolExecutor(4) as pool:
        sessions = list(pool.map(lambda _: connections.session(ignore), range(4)))
    assert len(started) == 1
    assert all(session is started[0] for session in sessions)


def test_threads_attach_a_lake_once(connections: Connections) -> None:
    barrier = threading.Barrier(4)

    def attach(_: int) -> object:
        barrier.wait()
        return connections.lake("main", lambda: pytest.fail("no query needs Spark"))

    with ThreadPoolExecutor(4) as pool:
        lakes = set(map(id, pool.map(attach, range(4))))
    assert len(lakes) == 1


def test_a_session_that_was_given_is_not_released(tmp_path: Path) -> None:
    given: Any = object()
    root = write_project(tmp_path / "p", ORDERS)
    project = Project.load(root, spark=given)
    project.context.connections.release_session()
    assert project.context.connections.session(ignore) is given


class InterruptedSession:
    """Counts how often it is interrupted, and fails as one does that has ended."""

    interruptions = 0

    def interruptAll(self) -> None:  # noqa: N802 - Spark's spelling
        self.interruptions += 1
        raise RuntimeError("Spark has ended")


def test_a_session_that_was_started_is_interrupted(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = InterruptedSession()
    monkeypatch.setattr(open_session, "open_session", lambda *_, **__: session)
    connections.interrupt_session()  # there is none yet
    connections.session(ignore)
    connections.interrupt_session()
    assert session.interruptions == 1


def test_a_session_that_was_given_is_not_interrupted(tmp_path: Path) -> None:
    given: Any = InterruptedSession()
    project = Project.load(write_project(tmp_path / "p", ORDERS), spark=given)
    project.context.connections.interrupt_session()
    assert given.interruptions == 0


@pytest.mark.parametrize(
    ("warm", "shares", "opens_with"),
    [
        (None, True, (None, True)),
        (True, True, (True, True)),
        (False, True, (False, False)),
        (None, False, (False, False)),
        (True, False, (True, False)),
    ],
)
def test_who_serves_shares_its_session(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    warm: bool | None,
    shares: bool,
    opens_with: tuple[bool | None, bool],
) -> None:
    opened = list[tuple[object, object]]()

    def open_nothing(_: Any, warm: Any, *__: Any, is_serving: bool) -> object:
        opened.append((warm, is_serving))
        return object()

    monkeypatch.setattr(open_session, "open_session", open_nothing)
    connections = Project.load(write_project(tmp_path / "p", ORDERS), warm=warm).context.connections
    connections.serve_project(shares=shares)
    connections.session(ignore)
    assert opened == [opens_with]
