"""Why a model has run, or has not: the firing of its last run, and what it waits for.

Also tests what `penstock why` prints of it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.project.project import Project
from penstock.scheduler.values import (
    Decision,
    EventKind,
    Firing,
    FiringState,
    Outcome,
    OutcomeKind,
    Pause,
)
from penstock.server.agenda_store import AgendaStore
from penstock.server.backfill_store import Backfill, BackfillState
from penstock.server.explaining import Triggering, explain_triggers
from penstock.server.leases import LEADER, take
from penstock.server.opening import open_agenda
from tests.cli.served import as_json, make_served, penstock
from tests.engine.toy import write_project
from tests.server.agenda import NOON, at, event, firing

NOBODY = "no process serves the project: start `penstock serve`"
JOIN = """
-- pipeline
-- partitioned daily start="2026-01-01"
-- materialize ducklake://main/both
-- on ducklake://main/days
-- on ducklake://main/others
-- trigger all
SELECT day FROM days WHERE _wm_partition = '{partition}'
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.load(make_served(tmp_path))


@pytest.fixture
def store(project: Project) -> AgendaStore:
    return open_agenda(project.context)


def explain(project: Project, model: str, partition: str | None = None) -> Triggering:
    triggering = explain_triggers(project.context, model, partition, NOON)
    assert triggering is not None
    return triggering


def put(store: AgendaStore, item: Firing) -> Firing:
    """Record a firing with its events, decided."""
    events = [event(name, source="signup") for name in item.events]
    outcomes = tuple(Outcome(name, item.model, OutcomeKind.FIRED, item.id) for name in item.events)
    assert store.record(events, Decision(firings=(item,), outcomes=outcomes), fence=None)
    return item


def run(store: AgendaStore, item: Firing, state: FiringState, reason: str | None = None) -> None:
    put(store, replace(item, state=FiringState.QUEUED, queued_at=NOON))
    assert store.claim_firings([item.id]) == [item.id]
    assert store.finish_firing(item.id, state, reason)


def test_nothing_is_said_of_a_model_without_triggers(project: Project, store: AgendaStore) -> None:
    assert store.pauses() == []
    assert explain_triggers(project.context, "days", None, NOON) is None


def test_asking_creates_no_catalog(project: Project) -> None:
    assert explain_triggers(project.context, "hours", None, NOON) is None
    assert not (project.settings.root / "lake").exists()


def test_a_schedule_is_due_when_nobody_serves(project: Project, store: AgendaStore) -> None:
    assert store.pauses() == []
    triggering = explain(project, "hours")
    assert triggering == Triggering(False, None, None, (NOBODY,), at(30))


def test_the_last_firing_has_its_events_and_its_chain(project: Project, store: AgendaStore) -> None:
    cause = firing(
        "f1", model="reader", kind=EventKind.ASSET, events=("e1", "e2"), depth=1, models=("hours",)
    )
    run(store, cause, FiringState.FAILED, "no file")
    triggering = explain(project, "reader")
    latest = triggering.latest
    assert latest is not None
    assert (latest.firing, latest.kind, latest.state, latest.reason) == (
        "f1",
        "asset",
        "failed",
        "no file",
    )
    assert (latest.events, latest.chain, latest.partition) == (("e1", "e2"), ("hours",), None)
    assert latest.started_at is not None
    assert triggering.pending is None


def test_somebody_serves(project: Project, store: AgendaStore) -> None:
    store.pause(Pause("hours", NOON))  # which makes the tables
    store.resume("hours")
    with store.catalog.writing() as connection:
        take(connection, LEADER, "holder", 30)
    assert explain(project, "hours") == Triggering(True, None, None, (), at(30))


@pytest.mark.parametrize(
    ("changes", "wait"),
    [
        ({"ready_at": at(5)}, "debounced until 2026-01-01 12:05:00 UTC"),
        ({"missing": ("main.main.a",)}, "waits for main.main.a"),
        ({"state": FiringState.QUEUED, "queued_at": at(-1)}, "queued for the next free slot"),
        ({}, "its wait is over: the next round of `penstock serve` queues it"),
    ],
)
def test_a_firing_that_waits_says_why(
    project: Project, store: AgendaStore, changes: dict[str, object], wait: str
) -> None:
    waiting = firing("f1", model="tenants", key="acme", state=FiringState.WAITING, events=("e1",))
    put(store, replace(waiting, **changes))  # type: ignore[arg-type]  # of each field its type
    triggering = explain(project, "tenants", "acme")
    assert triggering.waits == (wait, NOBODY)
    assert triggering.pending is not None
    assert triggering.pending.partition == "acme"
    assert explain(project, "tenants", "other").pending is None


def test_a_join_waits_for_its_inputs(tmp_path: Path) -> None:
    days = JOIN.replace("both", "days").split("-- on")[0] + "SELECT '{partition}' AS day"
    scripts = {
        "models/both": JOIN,
        "models/days": days,
        "models/others": days.replace("main/days", "main/others"),
    }
    project = Project.load(write_project(tmp_path / "p", scripts))
    store = open_agenda(project.context)
    item = firing("f1", model="both", key="2026-01-01", state=FiringState.WAITING)
    put(store, replace(item, arrived=("main.main.days",), missing=("main.main.others",)))
    waits = explain(project, "both", "2026-01-01").waits
    assert waits == ("waits for main.main.others (trigger all)", NOBODY)


def test_a_queue_has_an_order(project: Project, store: AgendaStore) -> None:
    def queued(name: str, minutes: int, **changes: object) -> None:
        item = firing(name, state=FiringState.QUEUED, queued_at=at(minutes))
        put(store, replace(item, **changes))  # type: ignore[arg-type]  # of each field its type

    backfill = {"kind": EventKind.BACKFILL, "backfill": "b1"}
    store.add_backfill(Backfill("b1", "days", "2026-01-01", "2026-01-02", NOON))
    queued("f1", -5, model="days", key="2026-01-01", **backfill)
    queued("f2", -3, model="hours")
    queued("f3", -2, model="reader")
    queued("f4", -1, model="days", key="2026-01-02", **backfill)
    assert explain(project, "reader").waits[0] == "queued behind 1 firing"
    assert explain(project, "days", "2026-01-01").waits[0] == (
        "queued behind 2 firings, by backfill b1"
    )
    assert store.set_backfill_state("b1", BackfillState.PAUSED)
    assert explain(project, "days", "2026-01-02").waits == (
        "queued behind 3 firings, by backfill b1",
        "backfill b1 is paused",
        NOBODY,
    )


def test_a_pause_says_until_when_and_why(project: Project, store: AgendaStore) -> None:
    store.pause(Pause("tag:finance", NOON, at(60), "the source is repaired", "ann"))
    store.pause(Pause("reader", at(-60), at(-1)))  # which is over
    said = "paused by ann until 2026-01-01 13:00:00 UTC: the source is repaired"
    assert explain(project, "hours").waits == (f"{said}; its events are kept", NOBODY)
    put(store, firing("f1", model="hours", state=FiringState.WAITING))
    assert explain(project, "hours").waits == (said, NOBODY)
    assert explain(project, "reader").waits == (NOBODY,)


def test_an_event_that_was_ignored_says_why(project: Project, store: AgendaStore) -> None:
    ignored = event("e9", source="signup", partition="acme")
    outcome = Outcome("e9", "tenants", OutcomeKind.IGNORED, reason="the chain has 50 runs")
    assert store.record([ignored], Decision(outcomes=(outcome,)), fence=None)
    said = "event e9 was ignored: the chain has 50 runs"
    assert explain(project, "tenants").waits == (said, NOBODY)
    assert explain(project, "tenants", "acme").waits == (said, NOBODY)
    assert explain(project, "tenants", "other").waits == (NOBODY,)
    later = firing("f1", model="tenants", key="acme", queued_at=NOON + timedelta(days=9999))
    put(store, replace(later, state=FiringState.RUNNING))
    assert explain(project, "tenants").waits == (NOBODY,)


def test_a_message_that_nobody_has_decided_waits(project: Project, store: AgendaStore) -> None:
    store.accept_all([event("e1", source="signup"), event("e2", source="signup")])
    assert explain(project, "tenants").waits == (
        "event e1 and 1 more are not decided yet",
        NOBODY,
    )
    assert explain(project, "hours").waits == (NOBODY,)


def test_the_command_shows_it(project: Project, store: AgendaStore) -> None:
    cause = firing(
        "f1", model="reader", kind=EventKind.ASSET, events=("e1", "e2"), models=("hours",)
    )
    run(store, cause, FiringState.DONE)
    root = project.settings.root
    lines = penstock(root, "why", "reader").stdout.splitlines()
    assert lines[-3] == "triggers"
    assert lines[-2].startswith("  last fired by asset (e1 and 1 more), after hours at ")
    assert lines[-2].endswith(": done")
    assert lines[-1] == f"  {NOBODY}"
    triggers = as_json(root, "why", "reader")["triggers"]
    assert (triggers["is_served"], triggers["waits"]) == (False, [NOBODY])
    assert (triggers["latest"]["firing"], triggers["latest"]["chain"]) == ("f1", ["hours"])
    assert as_json(root, "why", "days")["triggers"] is None
    assert "  nothing has fired it yet" in penstock(root, "why", "hours").stdout
