"""Rounds of the service: what is seen is decided, recorded and run, and nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, cast

import pytest
from sqlalchemy import update

from penstock.engine.state.agenda_tables import FIRING
from penstock.engine.state.records import ProcessId
from penstock.errors import ClaimLost, PenstockError
from penstock.model.time.cron import Cron
from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.schedules import due_events
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import (
    Decision,
    EventKind,
    Firing,
    FiringState,
    OutcomeKind,
    Pause,
    TriggerEvent,
)
from penstock.server import service
from penstock.server.agenda_rows import LakePositions
from penstock.server.agenda_store import AgendaStore
from penstock.server.backfill_store import Backfill, BackfillState
from penstock.server.firing_pool import FiringPool
from penstock.server.firing_runner import FiringEnd
from penstock.server.leases import Leadership, release
from penstock.server.served_project import ServedProject
from penstock.server.service import Service, ServiceSettings
from penstock.server.watching import Detection

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDERS = "main.main.orders"


@dataclass
class FakeVersion:
    subscriptions: dict[str, Subscription]


@dataclass
class FakeProject:
    """A project that changes when it is told so."""

    version: FakeVersion
    problem: str | None = None
    is_new: bool = False

    def refresh(self) -> bool:
        is_new, self.is_new = self.is_new, False
        return is_new


@dataclass
class Script:
    """A watch that sees what it is told, once."""

    detections: list[Detection] = field(default_factory=list)

    def detect(self) -> Detection:
        return self.detections.pop(0) if self.detections else Detection()

    def reset(self) -> None:
        """What it is told is seen once."""


@dataclass
class World:
    """A service over a catalog, whose runs end as they are told."""

    service: Service
    store: AgendaStore
    watch: Script
    fence: int
    runs: list[Firing]
    time: list[datetime]

    def play(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.service.run_round(self.fence)
            self.service.pool.drain(5)


def asset(snapshot: int, partition: str | None = None) -> TriggerEvent:
    suffix = f"/{partition}" if partition else ""
    return TriggerEvent(
        f"asset:{ORDERS}@{snapshot}{suffix}",
        EventKind.ASSET,
        ORDERS,
        NOON,
        partition,
        snapshot_id=snapshot,
    )


SUBSCRIPTIONS = {
    "orders": Subscription("orders", ORDERS),
    "sums": Subscription(
        "sums", "main.main.sums", frozenset({"finance"}), sources=(Source(ORDERS),)
    ),
    "mails": Subscription("mails", messages=("signup",)),
}


@pytest.fixture
def world(store: AgendaStore) -> World:
    return build_world(store, SUBSCRIPTIONS)


def build_world(
    store: AgendaStore,
    subscriptions: dict[str, Subscription],
    fails: Callable[[Firing], bool] = lambda _: False,
    **options: Any,
) -> World:
    runs, time, watch = list[Firing](), [NOON], Script()

    def run(firing: Firing, _: threading.Event) -> FiringEnd:
        runs.append(firing)
        state = FiringState.FAILED if fails(firing) else FiringState.DONE
        return FiringEnd(replace(firing, state=state, reason=None))

    service = Service(
        project=cast("ServedProject", FakeProject(FakeVersion(subscriptions))),
        store=store,
        pool=FiringPool(2, run, lambda: None),
        watches=(watch,),
        clock=lambda: time[0],
        **options,
    )
    leadership = Leadership(store.catalog, "here")
    fence = leadership.take()
    leadership._stop()
    assert fence is not None
    return World(service, store, watch, fence, runs, time)


def test_a_change_fires_its_reader_once(world: World) -> None:
    detection = Detection((asset(7),), (LakePositions("main", 7, frozenset({("sums", ORDERS)})),))
    world.watch.detections += [detection, detection]  # as after a restart
    world.play(3)
    assert [firing.model for firing in world.runs] == ["sums"]
    (outcome,) = world.store.read_outcomes(asset(7).id)
    assert outcome.kind is OutcomeKind.FIRED
    assert world.store.position("sums", ORDERS) == 7
    record = world.store.read_firing(world.runs[0].id)
    assert record is not None
    assert record.firing.state is FiringState.DONE


def test_an_accepted_message_fires_and_is_decided_once(world: World) -> None:
    event = TriggerEvent(
        "message:signup/1", EventKind.MESSAGE, "signup", NOON, payload={"tenant": "acme"}
    )
    assert world.store.accept(event)
    assert not world.store.accept(event)
    world.play(2)
    assert [(one.model, one.payload) for one in world.runs] == [("mails", {"tenant": "acme"})]
    assert world.store.list_undecided(10) == []


def test_messages_for_one_slice_run_in_their_order(world: World) -> None:
    events = [
        TriggerEvent(
            f"message:signup/{number}", EventKind.MESSAGE, "signup", NOON, payload={"n": number}
        )
        for number in range(5)
    ]
    world.store.accept_all(events)
    world.play(7)
    assert [one.payload for one in world.runs] == [event.payload for event in events]


def test_what_the_run_of_a_firing_published_is_in_its_chain(world: World) -> None:
    world.watch.detections.append(Detection((asset(7),)))
    world.play()
    (firing,) = world.runs
    own = TriggerEvent(
        "asset:main.main.sums@8", EventKind.ASSET, "main.main.sums", NOON, run_id=firing.id
    )
    world.watch.detections.append(Detection((own,)))
    world.play(2)
    recorded = world.store.read_event(own.id)
    assert recorded is not None
    assert (recorded.depth, recorded.models) == (1, ("sums",))
    assert len(world.runs) == 1


def test_a_schedule_fires_at_its_time(store: AgendaStore) -> None:
    daily = Subscription("daily", cron=Cron("0 13 * * *"))
    world = build_world(store, {"daily": daily}, producers=(due_events,))
    world.play()
    assert world.runs == []
    world.time[0] = NOON + timedelta(hours=1, seconds=1)
    world.play(2)
    assert [one.fire_time for one in world.runs] == [NOON + timedelta(hours=1)]


def test_events_of_a_paused_model_are_kept(world: World) -> None:
    world.store.pause(Pause("tag:finance", NOON))
    world.watch.detections.append(Detection((asset(7),)))
    world.play(2)
    assert world.runs == []
    assert world.store.resume("tag:finance")
    world.service._next_decision_at = None
    world.play()
    assert [firing.model for firing in world.runs] == ["sums"]


def test_another_leader_is_obeyed(world: World) -> None:
    other = Leadership(world.store.catalog, "there")
    with world.store.catalog.writing() as connection:
        release(connection, "leader", world.fence)
    assert other.take() is not None
    other._stop()
    world.watch.detections.append(Detection((asset(7),)))
    with pytest.raises(ClaimLost):
        world.play()
    assert world.runs == []
    assert world.store.read_event(asset(7).id) is None


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_firing_whose_process_is_gone_runs_again(store: AgendaStore, has_begun: bool) -> None:
    world = build_world(store, SUBSCRIPTIONS, has_run=lambda _: has_begun)
    firing = Firing("f1", "sums", "", EventKind.ASSET, NOON, queued_at=NOON)
    store.record([], Decision((firing,)), fence=world.fence)
    dead = ProcessId("vm", 1 << 22, "gone")
    assert store.claim_firings(["f1"], dead) == ["f1"]
    with store.catalog.writing() as connection:
        connection.execute(update(FIRING).values(heartbeat_at="2026-01-01T00:00:00.000000+00:00"))
    world.service.recover()
    world.play(2)
    assert [one.id for one in world.runs] == ["f1"]
    record = store.read_firing("f1")
    assert record is not None
    assert record.firing.state is FiringState.DONE


@pytest.mark.parametrize("has_begun", [True, False])
def test_firings_of_a_model_that_is_gone_are_cancelled(
    store: AgendaStore, has_begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_SYNC_INTERVAL", 0.0)
    world = build_world(store, SUBSCRIPTIONS, has_run=lambda _: has_begun)
    store.pause(Pause("sums", NOON))
    world.watch.detections.append(Detection((asset(7),)))
    orphan = Firing("f1", "sums", "a", EventKind.ASSET, NOON, queued_at=NOON)
    store.record([], Decision((orphan,)), fence=world.fence)
    assert store.claim_firings(["f1"], ProcessId("elsewhere", 7, "1")) == ["f1"]
    with store.catalog.writing() as connection:
        connection.execute(update(FIRING).values(heartbeat_at="2026-01-01T00:00:00.000000+00:00"))
    project = cast("FakeProject", world.service.project)
    project.version = FakeVersion({"orders": SUBSCRIPTIONS["orders"]})
    project.is_new = True
    world.play()
    assert world.runs == []
    assert store.load().firings == {}
    ends = {(one.firing.state, one.firing.reason) for one in store.list_firings(9)}
    assert ends == {(FiringState.CANCELLED, "model sums is no longer in the project")}


def test_the_last_good_version_keeps_its_firings(world: World) -> None:
    store = world.store
    store.pause(Pause("sums", NOON))
    world.watch.detections.append(Detection((asset(7),)))
    world.play()
    project = cast("FakeProject", world.service.project)
    project.problem = "models/sums.sql does not load"
    world.play(2)
    (firing,) = store.load().firings.values()
    project.version, project.problem, project.is_new = FakeVersion({}), None, True
    world.play()
    (outcome,) = store.read_outcomes(asset(7).id)
    assert (outcome.model, outcome.firing) == ("sums", firing.id)
    record = store.read_firing(firing.id)
    assert record is not None
    assert record.firing.state is FiringState.CANCELLED
    assert record.finished_at is not None


def test_a_paused_backfill_starts_no_slices(world: World) -> None:
    store = world.store
    store.add_backfill(Backfill("b1", "sums", "2026-01-01", "2026-01-02", NOON))
    events = [
        TriggerEvent(f"backfill:b1/{n}", EventKind.BACKFILL, "sums", NOON, backfill="b1")
        for n in range(2)
    ]
    assert store.set_backfill_state("b1", BackfillState.PAUSED)
    store.accept_all(events)
    world.play(2)
    assert world.runs == []
    store.set_backfill_state("b1", BackfillState.ACTIVE)
    world.service.wake()
    world.service._next_decision_at = None
    world.play(3)
    assert [firing.backfill for firing in world.runs] == ["b1"]
    assert store.backfills()[0].backfill.state is BackfillState.DONE


def test_it_ends_when_nothing_is_open(store: AgendaStore) -> None:
    world = build_world(store, SUBSCRIPTIONS, settings=ServiceSettings(is_once=True, poll=0.01))
    world.watch.detections.append(Detection((asset(7), asset(8))))
    world.service.lead(world.fence, threading.Event())
    assert world.service.is_stopped
    assert [firing.model for firing in world.runs] == ["sums"]


def test_a_failed_firing_is_the_last_error(store: AgendaStore) -> None:
    world = build_world(store, SUBSCRIPTIONS, fails=lambda _: True)
    world.watch.detections.append(Detection((asset(7),)))
    world.play(2)
    assert world.service.last_error is not None
    assert world.service.last_error.startswith("sums")


def test_what_was_seen_and_not_recorded_is_seen_again(world: World) -> None:
    forgotten = list[bool]()
    world.watch.reset = lambda: forgotten.append(True)  # type: ignore[method-assign] # to see it
    with world.store.catalog.writing() as connection:
        release(connection, "leader", world.fence)
    other = Leadership(world.store.catalog, "there")
    assert other.take() is not None
    other._stop()
    world.watch.detections.append(Detection((asset(7),)))
    with pytest.raises(ClaimLost):
        world.play()
    assert forgotten == [True]


def test_a_leader_that_was_overtaken_starts_nothing(world: World) -> None:
    queued = Firing("f1", "sums", "", EventKind.ASSET, NOON, queued_at=NOON)
    world.store.record([], Decision((queued,)), fence=world.fence)
    with world.store.catalog.writing() as connection:
        release(connection, "leader", world.fence)
    other = Leadership(world.store.catalog, "there")
    assert other.take() is not None
    other._stop()
    lost = threading.Event()
    world.service.lead(world.fence, lost)  # it ends, though nobody has set the event
    assert lost.is_set()
    assert world.runs == []
    record = world.store.read_firing("f1")
    assert record is not None
    assert record.firing.state is FiringState.QUEUED


def test_the_end_of_a_firing_that_another_process_has_taken_is_not_recorded(world: World) -> None:
    queued = Firing("f1", "sums", "", EventKind.ASSET, NOON, queued_at=NOON)
    world.store.record([], Decision((queued,)), fence=world.fence)
    world.service.run_round(world.fence)  # it starts
    assert world.service.pool.wait(5)
    elsewhere = {"host": "elsewhere", "pid": 7, "machine": "m"}
    with world.store.catalog.writing() as connection:
        connection.execute(update(FIRING).values(**elsewhere))
    world.service.follow()
    record = world.store.read_firing("f1")
    assert record is not None
    assert record.firing.state is FiringState.RUNNING
    assert not world.service.pool.running


def test_an_end_that_cannot_be_recorded_is_recorded_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.watch.detections.append(Detection((asset(7),)))
    world.play()

    def fail(*_: object, **__: object) -> bool:
        raise PenstockError("the database is gone")

    with monkeypatch.context() as patch:
        patch.setattr(world.store, "finish_firing", fail)
        world.service.follow()
        assert world.service.last_error == "the database is gone"
    world.service.follow()
    record = world.store.read_firing(world.runs[0].id)
    assert record is not None
    assert record.firing.state is FiringState.DONE


def test_an_orphan_is_found_while_a_process_leads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.play()  # it has looked for orphans
    queued = Firing("f1", "sums", "", EventKind.ASSET, NOON, queued_at=NOON)
    world.store.record([], Decision((queued,)), fence=world.fence)
    assert world.store.claim_firings(["f1"], ProcessId("elsewhere", 7, "1")) == ["f1"]
    with world.store.catalog.writing() as connection:
        connection.execute(update(FIRING).values(heartbeat_at="2026-01-01T00:00:00.000000+00:00"))
    monkeypatch.setattr(service, "_SYNC_INTERVAL", 0.0)
    world.play(2)
    assert [one.id for one in world.runs] == ["f1"]


def test_the_end_of_a_pause_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_SYNC_INTERVAL", 0.0)
    world.store.pause(Pause("sums", NOON))
    world.watch.detections.append(Detection((asset(7),)))
    world.play(3)
    assert world.runs == []
    world.store.resume("sums")
    world.play()
    assert [firing.model for firing in world.runs] == ["sums"]


def test_a_join_that_waits_for_an_input_does_not_keep_it_from_ending(store: AgendaStore) -> None:
    sources = (Source(ORDERS, is_partitioned=True), Source("main.main.payments", True))
    joined = Subscription("sums", partition=PartitionSpec("daily"), sources=sources, joins=True)
    world = build_world(store, {"sums": joined}, settings=ServiceSettings(is_once=True, poll=0.01))
    world.watch.detections.append(Detection((asset(7, "2026-01-01"),)))
    world.service.lead(world.fence, threading.Event())
    assert world.service.is_stopped
    (firing,) = store.load().firings.values()
    assert (firing.state, firing.missing) == (FiringState.WAITING, ("main.main.payments",))


def test_it_ends_after_the_debounce_that_is_open(store: AgendaStore) -> None:
    quiet = Subscription("mails", messages=("signup",), debounce=timedelta(seconds=60))
    world = build_world(store, {"mails": quiet}, settings=ServiceSettings(is_once=True, poll=0.01))
    event = TriggerEvent("message:signup/1", EventKind.MESSAGE, "signup", NOON, payload={"a": 1})
    assert store.accept(event)
    moments = count(1)
    world.service.clock = lambda: NOON + next(moments) * timedelta(seconds=20)
    world.service.lead(world.fence, threading.Event())
    assert [firing.model for firing in world.runs] == ["mails"]


def test_a_running_slice_of_a_cancelled_backfill_stops(store: AgendaStore) -> None:
    world = build_world(store, SUBSCRIPTIONS)
    begun = threading.Event()

    def run(firing: Firing, cancelled: threading.Event) -> FiringEnd:
        begun.set()
        is_cancelled = cancelled.wait(20)
        state = FiringState.CANCELLED if is_cancelled else FiringState.DONE
        return FiringEnd(replace(firing, state=state, reason="the server was stopped"))

    world.service.pool = FiringPool(2, run, lambda: None)
    store.add_backfill(Backfill("b1", "sums", "a", "a", NOON))
    store.accept(TriggerEvent("backfill:b1/a", EventKind.BACKFILL, "sums", NOON, backfill="b1"))
    world.service.run_round(world.fence)
    assert begun.wait(5)
    (firing,) = world.service.pool.running.values()
    assert store.set_backfill_state("b1", BackfillState.CANCELLED)
    world.service.run_round(world.fence)
    assert world.service.pool.drain(5)
    world.service.run_round(world.fence)
    record = store.read_firing(firing.id)
    assert record is not None
    assert record.firing.state is FiringState.CANCELLED
    assert record.firing.reason == "its backfill was cancelled"
    assert store.backfills()[0].backfill.state is BackfillState.CANCELLED


def test_a_round_asks_for_cancelled_backfills_only_while_one_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> frozenset[str]:
        raise AssertionError("nothing of a backfill runs")

    monkeypatch.setattr(world.store, "cancelled_backfills", fail)
    world.watch.detections.append(Detection((asset(7),)))
    world.play(2)
    assert [firing.model for firing in world.runs] == ["sums"]


def test_a_chore_that_fails_stops_no_round(store: AgendaStore) -> None:
    moments: list[datetime] = []

    def fail(_: datetime) -> None:
        raise PenstockError("nobody answers")

    world = build_world(store, SUBSCRIPTIONS, periodic_tasks=(fail, moments.append))
    world.play(2)
    assert moments == [NOON, NOON]
