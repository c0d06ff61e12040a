"""Who runs a firing: one process, until it ends or is gone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, update

from penstock.engine.state.agenda_tables import FIRING
from penstock.engine.state.records import ProcessId, this_process
from penstock.lakes.catalog.catalog import Catalog
from penstock.scheduler.values import Decision, FiringState
from penstock.server import firing_runs
from penstock.server.agenda_rows import FiringRecord
from penstock.server.agenda_store import AgendaStore
from penstock.server.state_access import StateAccess
from tests.server.agenda import ELSEWHERE, GONE, at, firing

RUNNING, QUEUED, DONE = FiringState.RUNNING, FiringState.QUEUED, FiringState.DONE


def put(store: AgendaStore, *states: FiringState) -> None:
    firings = tuple(firing(f"f{number}", state=state) for number, state in enumerate(states, 1))
    assert store.record([], Decision(firings=firings), fence=None)


def record_of(store: AgendaStore, firing_id: str = "f1") -> FiringRecord:
    record = store.read_firing(firing_id)
    assert record is not None
    return record


def orphan_ids(store: AgendaStore, seconds: float = 30.0) -> list[str]:
    return [each.id for each in store.list_orphans(None, seconds)]


def test_queued_firings_start_once(any_store: AgendaStore) -> None:
    put(any_store, QUEUED, QUEUED, FiringState.WAITING, DONE)
    assert any_store.claim_firings(["f2", "f1", "f3", "f4", "f5"]) == ["f2", "f1"]
    assert any_store.claim_firings(["f1", "f2"], ELSEWHERE) == []
    record = record_of(any_store)
    assert record.firing.state is RUNNING
    assert record.process == this_process()
    assert record.started_at == record.heartbeat_at
    assert record.finished_at is None


def test_a_firing_ends_once(any_store: AgendaStore) -> None:
    put(any_store, QUEUED)
    any_store.claim_firings(["f1"])
    assert any_store.finish_firing("f1", FiringState.FAILED, "a test\0 failed")
    assert not any_store.finish_firing("f1", DONE)
    assert not any_store.finish_firing("f2", DONE)
    record = record_of(any_store)
    assert record.firing.state is FiringState.FAILED
    assert record.firing.reason == "a test? failed"
    assert record.finished_at is not None
    assert any_store.load().firings == {}


def test_a_firing_that_waits_is_cancelled(store: AgendaStore) -> None:
    put(store, FiringState.WAITING)
    assert store.finish_firing("f1", FiringState.CANCELLED, "a person cancelled it")
    assert store.claim_firings(["f1"]) == []


def test_only_its_process_ends_a_firing(store: AgendaStore) -> None:
    put(store, QUEUED)
    store.claim_firings(["f1"], ELSEWHERE)
    assert not store.finish_firing("f1", DONE, process=this_process())
    assert store.finish_firing("f1", DONE, process=ELSEWHERE)


@pytest.mark.parametrize("state", [RUNNING, QUEUED, FiringState.WAITING])
def test_an_open_state_is_no_end(store: AgendaStore, state: FiringState) -> None:
    put(store, QUEUED)
    with pytest.raises(ValueError, match=f"does not end as {state.value}"):
        store.finish_firing("f1", state)
    assert record_of(store).firing.state is QUEUED


def test_a_sign_of_life_keeps_a_firing(any_store: AgendaStore, any_catalog: Catalog) -> None:
    put(any_store, QUEUED, QUEUED, QUEUED)
    any_store.claim_firings(["f1", "f2", "f3"], ELSEWHERE)
    silence(any_catalog)
    assert orphan_ids(any_store) == ["f1", "f2", "f3"]
    any_store.finish_firing("f3", DONE)
    assert any_store.record_heartbeat(["f1", "f3"], ELSEWHERE) == ["f1"]
    assert any_store.record_heartbeat(["f2"], this_process()) == []
    assert orphan_ids(any_store) == ["f2"]


def silence(catalog: Catalog) -> None:
    """Let all signs of life be old."""

    def act(connection: Connection) -> None:
        long_ago = "2026-01-01T00:00:00.000000+00:00"
        connection.execute(update(FIRING).values(heartbeat_at=long_ago))

    StateAccess(catalog).write(act)


@pytest.mark.parametrize(
    ("process", "is_orphan"), [(this_process(), False), (GONE, True), (ELSEWHERE, False)]
)
def test_a_firing_is_an_orphan_at_once_if_its_process_is_gone(
    store: AgendaStore, process: ProcessId, is_orphan: bool
) -> None:
    put(store, QUEUED)
    store.claim_firings(["f1"], process)
    assert bool(store.list_orphans()) == is_orphan


def test_a_firing_is_an_orphan_when_its_lease_ends(store: AgendaStore) -> None:
    put(store, QUEUED)
    store.claim_firings(["f1"], ELSEWHERE)
    heartbeat = record_of(store).heartbeat_at
    assert heartbeat is not None
    assert store.list_orphans(heartbeat + timedelta(seconds=29), 30) == []
    assert store.list_orphans(heartbeat + timedelta(seconds=30), 30) == [firing(state=RUNNING)]


def test_an_orphan_is_queued_again_once(any_store: AgendaStore) -> None:
    queued = firing(queued_at=at(0))
    assert any_store.record([], Decision(firings=(queued,)), fence=None)
    any_store.claim_firings(["f1"], GONE)
    assert any_store.requeue_firing("f1")
    assert not any_store.requeue_firing("f1")
    assert record_of(any_store) == FiringRecord(queued)  # at its place in the queue
    assert any_store.claim_firings(["f1"], ELSEWHERE) == ["f1"]


def test_a_firing_of_a_process_that_lives_is_not_queued_again(store: AgendaStore) -> None:
    put(store, QUEUED)
    store.claim_firings(["f1"], ELSEWHERE)
    assert not store.requeue_firing("f1")
    assert not store.take_over_firing("f1")
    assert record_of(store).process == ELSEWHERE


def test_a_process_queues_its_own_firing_again(store: AgendaStore) -> None:
    put(store, QUEUED, DONE)
    store.claim_firings(["f1"])
    assert store.requeue_firing("f1")
    assert not store.requeue_firing("f2")


def test_a_run_that_had_begun_is_taken_over_and_covers_no_later_events(
    any_store: AgendaStore,
) -> None:
    put(any_store, QUEUED)
    any_store.claim_firings(["f1"], GONE)
    began = record_of(any_store).started_at
    assert any_store.take_over_firing("f1")
    record = record_of(any_store)
    assert (record.process, record.started_at) == (this_process(), began)
    assert record.firing.state is RUNNING
    assert any_store.list_orphans() == []
    assert any_store.record_heartbeat(["f1"]) == ["f1"]
    joined = Decision(firings=(firing(events=("e2",)),))
    assert not any_store.record([], joined, fence=None)


def test_orphans_are_found_by_the_clock_of_the_database(any_catalog: Catalog) -> None:
    access = StateAccess(any_catalog)
    store = AgendaStore(any_catalog)
    put(store, QUEUED)
    access.write(lambda connection: firing_runs.claim_firings(connection, ["f1"], ELSEWHERE))
    assert orphan_ids(store, 0) == ["f1"]
