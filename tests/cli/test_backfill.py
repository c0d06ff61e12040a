"""``penstock backfill``: slices for whoever serves the project, and what is refused. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.backfill import command
from penstock.server.leases import Leadership
from tests.cli.served import agenda, as_json, make_served, penstock, refusal

RANGE = ("--from", "2026-11-02", "--to", "2026-11-04")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_served(tmp_path)


@pytest.fixture
def served(root: Path) -> Iterator[Path]:
    """The project, with a process that leads."""
    with agenda(root) as store, Leadership(store.catalog, "here") as leadership:
        assert leadership.take() is not None
        yield root


def test_whoever_serves_the_project_gets_the_slices(served: Path) -> None:
    said = penstock(served, "backfill", "days", *RANGE).stdout
    (shown,) = as_json(served, "backfills")["backfills"]
    backfill = shown["backfill"]
    assert said == f"3 slices queued: penstock backfills {backfill['id'][-12:]}\n"
    assert (backfill["start"], backfill["end"]) == ("2026-11-02", "2026-11-04")
    with agenda(served) as store:
        events = store.list_undecided(10)
    assert sorted(event.partition or "" for event in events) == [
        "2026-11-02",
        "2026-11-03",
        "2026-11-04",
    ]


def test_as_json_with_the_id(served: Path) -> None:
    said = as_json(served, "backfill", "days", *RANGE)
    (shown,) = as_json(served, "backfills", said["backfill"])["backfills"]
    assert said == {"schema_version": 1, "backfill": shown["backfill"]["id"], "slices": 3}


def test_a_backfill_needs_a_range_and_a_model(root: Path) -> None:
    said = refusal(root, "backfill", "days")
    assert "a backfill needs a range" in said
    assert "add --from, and --to for its end" in said
    assert "did you mean 'days'?" in refusal(root, "backfill", "dayz", *RANGE)


def test_a_wrong_range_is_refused_and_queues_nothing(served: Path) -> None:
    said = refusal(served, "backfill", "days", "--from", "yesterday-ish", "--to", "2026-11-04")
    assert "yesterday-ish" in said
    assert as_json(served, "backfills")["backfills"] == []


def test_its_model_completes() -> None:
    (model,) = (parameter for parameter in command.params if parameter.name == "model")
    assert model.required
