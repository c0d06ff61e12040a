"""Who makes a slice: claims of runs, on SQLite and PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, update

from penstock.engine.state import claims
from penstock.engine.state.claims import Asked, Claim, Claims, Held, Timing
from penstock.engine.state.records import this_process
from penstock.engine.state.store import State, StepRecords
from penstock.engine.state.tables import CLAIM
from penstock.errors import ClaimLost
from penstock.lakes.catalog.catalog import Catalog
from tests.engine.state.builders import publication, run_record
from tests.lakes.catalog.conftest import Place

QUICK = Timing(beat=0.1, lease=0.5, look=0.05)
DAYS = "2026-01-01T00:00:00Z/2026-01-04T00:00:00Z"
LAST = "2026-01-03T00:00:00Z/2026-01-04T00:00:00Z"
NEXT = "2026-01-04T00:00:00Z/2026-01-05T00:00:00Z"


@pytest.fixture
def state(catalog: Catalog) -> State:
    state = State(catalog)
    state.begin_run(run_record())
    return state


def take(state: State, run_id: str, *slices: str, some: bool = False) -> tuple[Claim | None, Held]:
    asked = Asked("main", "main.a", slices, run_id, all_or_none=not some)
    found: list[tuple[Claim | None, Held]] = []
    state.write(lambda connection: found.append(claims.take(connection, asked, 30)))
    return found[0]


def expire(state: State) -> None:
    expires_at(state, "2026-01-01T00:00:00.000000+00:00")


def expires_at(state: State, text: str) -> None:
    def act(connection: Connection) -> None:
        connection.execute(update(CLAIM).values(expires_at=text))

    state.write(act)


def commit(state: State, claim: Claim) -> None:
    what = publication(claim.run_id, slice=claim.slices[0])
    state.write(StepRecords((what,), 7, claim=claim).write)


@pytest.mark.parametrize(
    ("first", "second", "is_held"),
    [
        ("2026-01-01", "2026-01-01", True),
        ("2026-01-01", "2026-01-02", False),
        ("", "2026-01-01", True),  # a whole table
        ("2026-01-01", "", True),
        (DAYS, LAST, True),
        (DAYS, NEXT, False),
    ],
)
def test_slices_with_rows_in_common_are_held(
    state: State, first: str, second: str, is_held: bool
) -> None:
    assert take(state, "r1", first)[0] is not None
    claim, held = take(state, "r2", second)
    assert (claim is None, bool(held)) == (is_held, is_held)


def test_all_slices_of_a_batch_are_claimed_or_none(state: State) -> None:
    take(state, "r1", "2026-01-02")
    assert take(state, "r2", "2026-01-01", "2026-01-02")[0] is None
    assert take(state, "r3", "2026-01-01")[0] is not None


def test_a_run_that_does_not_wait_claims_what_is_free(state: State) -> None:
    take(state, "r1", "2026-01-02")
    claim, held = take(state, "r2", "2026-01-01", "2026-01-02", some=True)
    assert claim is not None
    assert (claim.slices, list(held)) == (("2026-01-01",), ["2026-01-02"])
    said = str(held["2026-01-02"])
    assert said.startswith("run r1 (")
    assert f"on {this_process().host}, pid {os.getpid()}) since 20" in said


def test_a_released_claim_is_free_and_the_next_has_a_higher_number(state: State) -> None:
    with Claims() as own:
        first, _ = own.take(state, Asked("main", "main.a", ("",), "r1"))
        own.release(first)
    second, _ = take(state, "r2", "")
    assert first is not None
    assert second is not None
    assert second.fence > first.fence
    with pytest.raises(ClaimLost, match=r"its claim of all of main\.a has ended"):
        commit(state, first)


def test_an_ended_run_holds_nothing(state: State) -> None:
    take(state, "r1", "")
    state.end_run("r1", "failed")
    assert take(state, "r2", "")[0] is not None


def test_a_claim_that_was_taken_over_publishes_nothing(state: State) -> None:
    paused, _ = take(state, "r1", "2026-01-01")
    expire(state)
    own, _ = take(state, "r2", "2026-01-01")
    assert paused is not None
    assert own is not None
    with pytest.raises(ClaimLost, match=r"its claim of 2026-01-01 of main\.a has ended"):
        commit(state, paused)
    assert state.slices("main.a") == []
    commit(state, own)
    assert [each.run_id for each in state.slices("main.a")] == ["r2"]


def test_an_expired_claim_that_nobody_wanted_still_publishes(state: State) -> None:
    claim, _ = take(state, "r1", "2026-01-01")
    expire(state)
    assert claim is not None
    commit(state, claim)
    assert [each.run_id for each in state.slices("main.a")] == ["r1"]


def test_a_claim_is_extended_while_its_run_lives(state: State) -> None:
    with Claims(timing=QUICK) as own:
        own.take(state, Asked("main", "main.a", ("",), "r1"))
        time.sleep(1.2)
        assert take(state, "r2", "")[0] is None
    assert "penstock-claims" not in {thread.name for thread in threading.enumerate()}
    time.sleep(0.7)
    assert take(state, "r2", "")[0] is not None


CHILD = """
import sys
from penstock.engine.state.claims import Asked, Claims, Timing
from penstock.engine.state.store import State, StepRecords
from penstock.errors import ClaimLost
from penstock.lakes.catalog.catalog import Catalog
from tests.engine.state.builders import publication, run_record
with Catalog.open(sys.argv[1], data_path=sys.argv[2]) as catalog:
    state = State(catalog)
    state.begin_run(run_record("child"))
    with Claims(timing=Timing(0.1, 0.5, 0.05)) as claims:
        claim, _ = claims.take(state, Asked("main", "main.a", ("",), "child"))
        print("holds", flush=True)
        sys.stdin.readline()
        try:
            state.write(StepRecords((publication("child", slice=""),), 7, claim=claim).write)
        except ClaimLost:
            print("lost", flush=True)
"""


def child(place: Place) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", CHILD, place.uri, str(place.data_path)]
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root)
    assert process.stdout is not None
    assert process.stdout.readline() == "holds\n"
    return process


def taken(state: State, seconds: float) -> Claim | None:
    """The claim of another run, as soon as it gets one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        claim, _ = take(state, "r2", "")
        if claim is not None:
            return claim
        time.sleep(0.05)
    return None


def test_a_process_that_was_paused_and_wakes_writes_nothing(place: Place, state: State) -> None:
    with child(place) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.send_signal(signal.SIGSTOP)
        claim = taken(state, 5)
        assert claim is not None
        process.send_signal(signal.SIGCONT)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "lost\n"
    assert state.slices("main.a") == []
    commit(state, claim)


def test_the_claim_of_a_killed_process_is_free_at_once(place: Place, state: State) -> None:
    with child(place) as process:
        assert take(state, "r2", "")[0] is None
        process.kill()
    expires_at(state, "2999-01-01T00:00:00.000000+00:00")
    assert taken(state, 5) is not None
    with state.reading() as connection:
        assert connection is not None
        assert connection.execute(select(CLAIM.c.run_id)).scalars().all() == ["r2"]
