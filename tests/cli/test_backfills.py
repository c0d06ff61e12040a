"""``penstock backfills``: how far they are, and their states. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.cli.backfills import _COLUMNS, find_backfill
from penstock.errors import ArgumentError
from penstock.scheduler.values import Decision, FiringState
from penstock.server.backfill_store import Backfill
from tests.cli.served import agenda, as_json, make_served, penstock, refusal
from tests.server.agenda import firing

NIGHT = datetime(2026, 11, 3, 2, 30, tzinfo=UTC)
ID = "01a22b47-f115-7206-bb37-89d190b98257"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A backfill of three slices: one is done, one has failed, one waits."""
    root = make_served(tmp_path)
    with agenda(root) as store:
        store.add_backfill(Backfill(ID, "days", "2026-11-01", "2026-11-03", NIGHT, user="ann"))
        states = (FiringState.DONE, FiringState.FAILED, FiringState.QUEUED)
        firings = tuple(
            firing(f"f{n}", model="days", key=f"2026-11-0{n}", state=state, backfill=ID)
            for n, state in enumerate(states, start=1)
        )
        assert store.record([], Decision(firings=firings), fence=None)
    return root


def test_a_backfill_is_a_line(root: Path) -> None:
    heading, line = penstock(root, "backfills").stdout.splitlines()
    assert heading.split() == list(_COLUMNS)
    assert line.startswith("89d190b98257  days   2026-11-01  2026-11-03  active  2 of 3, 1 failed")
    assert line.endswith(f"{NIGHT.astimezone():%Y-%m-%d %H:%M:%S}")


def test_as_json_the_states_of_slices_are_counted(root: Path) -> None:
    (shown,) = as_json(root, "backfills", "b98257")["backfills"]
    assert shown["backfill"]["id"] == ID
    assert shown["firings"] == {"done": 1, "failed": 1, "queued": 1}


def test_a_backfill_is_paused_resumed_and_cancelled(root: Path) -> None:
    for option, state in (("--pause", "paused"), ("--resume", "active"), ("--cancel", "cancelled")):
        (shown,) = as_json(root, "backfills", "b98257", option)["backfills"]
        assert shown["backfill"]["state"] == state
    said = refusal(root, "backfills", "b98257", "--resume")
    assert "backfill b98257 is cancelled" in said
    assert "penstock backfill starts another" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pause",), "which backfill is meant"),
        (("nope",), "no backfill ends with nope"),
        (("nope", "--cancel"), "no backfill ends with nope"),
    ],
)
def test_an_unknown_backfill_is_refused(
    root: Path, arguments: tuple[str, ...], message: str
) -> None:
    said = refusal(root, "backfills", *arguments)
    assert message in said
    assert "penstock backfills lists their ids" in said


def test_the_end_of_an_id_names_one_backfill(root: Path) -> None:
    with agenda(root) as store:
        other = ID.replace("01a2", "01a3")
        store.add_backfill(Backfill(other, "days", "2026-11-01", "2026-11-01", NIGHT))
        assert find_backfill(store, other).backfill.id == other
        with pytest.raises(ArgumentError, match="2 backfills end with b98257"):
            find_backfill(store, "b98257")


def test_no_backfills(tmp_path: Path) -> None:
    assert penstock(make_served(tmp_path), "backfills").stdout == "There are no backfills.\n"
