"""One process leads; another takes over when it is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from penstock.engine.state.agenda_tables import LEASE
from penstock.engine.state.claims import Timing
from penstock.errors import CatalogUnreachable
from penstock.lakes.catalog.catalog import Catalog
from penstock.server import leases
from penstock.server.leases import LEADER, Leadership
from penstock.server.state_access import StateAccess
from tests.lakes.catalog.conftest import Place

QUICK = Timing(beat=0.1, lease=0.6)


def take(catalog: Catalog, holder: str, seconds: float = 30) -> int | None:
    return StateAccess(catalog).write(lambda each: leases.take(each, LEADER, holder, seconds))


def renew(catalog: Catalog, fence: int) -> bool:
    return StateAccess(catalog).write(lambda each: leases.renew(each, LEADER, fence, 30))


def holder_of(catalog: Catalog) -> str | None:
    lease = StateAccess(catalog).read(lambda each: leases.find_lease(each, LEADER), None)
    return None if lease is None else lease.holder


def test_one_process_holds_a_lease(any_catalog: Catalog) -> None:
    assert holder_of(any_catalog) is None
    assert take(any_catalog, "a") == 1
    assert take(any_catalog, "b") is None
    assert holder_of(any_catalog) == "a"
    assert renew(any_catalog, 1)
    access = StateAccess(any_catalog)
    assert access.write(lambda each: leases.take(each, "another", "b", 30)) == 1


def test_a_lease_that_was_not_renewed_is_taken_over(any_catalog: Catalog) -> None:
    assert take(any_catalog, "a", seconds=0) == 1
    assert holder_of(any_catalog) is None
    assert renew(any_catalog, 1)  # nobody wanted it
    assert take(any_catalog, "b") is None
    assert take(any_catalog, "a", seconds=0) == 2
    assert take(any_catalog, "b") == 3
    assert not renew(any_catalog, 1)
    assert not renew(any_catalog, 2)


def test_a_released_lease_is_free_and_its_fence_grows(any_catalog: Catalog) -> None:
    access = StateAccess(any_catalog)
    take(any_catalog, "a")
    assert access.write(lambda each: leases.release(each, LEADER, 1))
    assert holder_of(any_catalog) is None
    assert take(any_catalog, "b") == 2
    assert not access.write(lambda each: leases.release(each, LEADER, 1))
    assert holder_of(any_catalog) == "b"


def test_a_leader_renews_until_it_ends(any_catalog: Catalog) -> None:
    with Leadership(any_catalog, "a", timing=QUICK) as own:
        fence = own.take()
        assert fence == own.take() == own.fence == 1
        time.sleep(1.5)
        assert take(any_catalog, "b") is None
        assert not own.lost.is_set()
    assert "penstock-lease" not in {thread.name for thread in threading.enumerate()}
    assert take(any_catalog, "b") == 2


def test_a_leader_hears_that_another_has_taken_over(catalog: Catalog) -> None:
    with Leadership(catalog, "a", timing=QUICK) as own:
        own.take()
        StateAccess(catalog).write(steal)
        assert own.lost.wait(10)
        assert [own.fence, own.take()] == [None, None]
        assert take(catalog, "thief", seconds=0) == 8
        assert [own.take(), own.fence] == [9, 9]
        assert not own.lost.is_set()
    assert holder_of(catalog) is None


def steal(connection: Connection) -> None:
    connection.execute(update(LEASE).values(holder="thief", fence=7, expires_at="2999-01-01T00Z"))


def test_a_leader_that_ends_late_leaves_the_lease_to_the_next(catalog: Catalog) -> None:
    with Leadership(catalog, "a", timing=Timing(beat=60, lease=0)) as own:
        own.take()
        assert take(catalog, "b") == 2
    assert holder_of(catalog) == "b"


class Flaky:
    """A catalog that cannot be reached for some time."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.is_down = False

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        if self.is_down:
            raise CatalogUnreachable("no route to the server")
        with self.catalog.writing() as connection:
            yield connection


def test_a_leader_bears_a_short_failure_and_gives_up_in_a_long_one(catalog: Catalog) -> None:
    flaky = Flaky(catalog)
    with Leadership(flaky, "a", timing=Timing(beat=0.05, lease=2)) as own:  # type: ignore[arg-type] # all that it uses
        own.take()
        flaky.is_down = True
        time.sleep(0.3)
        flaky.is_down = False
        assert not own.lost.wait(2.5)
        flaky.is_down = True
        assert own.lost.wait(10)


CHILD = """
import sys, time
from penstock.engine.state.claims import Timing
from penstock.lakes.catalog.catalog import Catalog
from penstock.server.leases import Leadership
with Catalog.open(sys.argv[1], data_path=sys.argv[2]) as catalog:
    with Leadership(catalog, "child", timing=Timing(beat=0.1, lease=float(sys.argv[3]))) as own:
        print(own.take(), flush=True)
        own.lost.wait(60)
        print("lost", own.fence, flush=True)
"""


@contextmanager
def leading_child(place: Place, lease: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CHILD, place.uri, str(place.data_path), str(lease)]
    root, pipe = Path(__file__).parents[2], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, text=True, cwd=root, env={**os.environ}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def taken(catalog: Catalog) -> int | None:
    """The fence, as soon as the lease is free."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        fence = take(catalog, "b")
        if fence is not None:
            return fence
        time.sleep(0.05)
    return None


@pytest.mark.slow
def test_the_lease_of_a_killed_process_is_free_at_once(place: Place) -> None:
    with place.open() as catalog, leading_child(place, 3600) as process:
        assert take(catalog, "b") is None
        process.kill()
        process.wait()
        assert taken(catalog) == 2


@pytest.mark.slow
def test_a_process_that_was_paused_loses_its_lease(place: Place) -> None:
    with place.open() as catalog, leading_child(place, 1) as process:
        process.send_signal(signal.SIGSTOP)
        assert taken(catalog) == 2
        process.send_signal(signal.SIGCONT)
        assert process.stdout is not None
        assert process.stdout.readline() == "lost None\n"
        assert holder_of(catalog) == "b"
