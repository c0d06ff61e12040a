"""What watches of a served project see, from the positions in its agenda."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.errors import CatalogLocked, ConfigError
from penstock.project.context import ProjectContext
from penstock.project.project import Project
from penstock.scheduler.subscription import Subscription, subscriptions_of
from penstock.scheduler.values import Decision, EventKind, Firing, TriggerEvent
from penstock.server.agenda_rows import LakePositions
from penstock.server.agenda_store import AgendaStore
from penstock.server.file_watch import FileChanges
from penstock.server.firing_runner import FiringEnd
from penstock.server.opening import open_agenda
from penstock.server.served_project import ServedProject
from penstock.server.sources import Message
from penstock.server.watching import Detection, FileWatches, LakeWatches, MessagePump, open_pumps
from tests.engine.toy import write_project

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCRIPTS = {
    "models/sums": "-- pipeline\n-- on ducklake://main/events\n-- on s3://in/{partition}.csv\n"
    "-- partitioned daily\n-- materialize ducklake://main/sums\nSELECT count(*) AS n FROM events",
}


def subscribe(context: ProjectContext) -> dict[str, Subscription]:
    return subscriptions_of(context.models)


@pytest.fixture
def served(tmp_path: Path) -> tuple[Project, ServedProject, AgendaStore]:
    project = Project.load(write_project(tmp_path / "p", SCRIPTS))
    project.lake("main").sql("CREATE TABLE events (id INTEGER)")
    return project, ServedProject(project.context, subscribe), open_agenda(project.context)


def record(store: AgendaStore, detection: Detection) -> None:
    store.record(detection.events, Decision(), detection.positions, fence=None)


def test_nothing_is_seen_of_the_past(
    served: tuple[Project, ServedProject, AgendaStore],
) -> None:
    project, version, store = served
    project.lake("main").sql("INSERT INTO events VALUES (1)")
    watches = LakeWatches(version, store)
    detection = watches.detect()
    assert detection.events == ()
    newest = project.lake("main").catalog.latest().id
    assert detection.positions == (
        LakePositions("main", newest, frozenset({("sums", "main.main.events")})),
    )


def test_a_change_is_seen_until_it_is_recorded(
    served: tuple[Project, ServedProject, AgendaStore],
) -> None:
    project, version, store = served
    record(store, LakeWatches(version, store).detect())
    project.lake("main").sql("INSERT INTO events VALUES (1)")
    lost = LakeWatches(version, store).detect()  # its process dies before it records that
    again = LakeWatches(version, store).detect()
    assert [event.source for event in again.events] == ["main.main.events"]
    assert again == lost
    record(store, again)
    assert store.position("sums", "main.main.events") == again.events[0].snapshot_id
    assert LakeWatches(version, store).detect().events == ()


def test_files_are_listed_at_times(served: tuple[Project, ServedProject, AgendaStore]) -> None:
    _, version, store = served
    assert version.version.files == ("s3://in/{partition}.csv",)
    seconds = [0.0]
    watches = FileWatches(version, store, 30.0, lambda: seconds[0])
    watches._listed_at = -1.0
    assert watches.detect() == Detection()
    watches.close()


def test_a_file_that_a_run_wrote_continues_its_chain(
    served: tuple[Project, ServedProject, AgendaStore],
) -> None:
    _, version, store = served
    watches = FileWatches(version, store, 30.0)
    yesterday = NOON - timedelta(days=1)
    export = Firing("f1", "export", "a", EventKind.ASSET, yesterday, depth=2, models=("raw",))
    other = replace(export, model="other")
    writers = {
        "export": SimpleNamespace(files_written=("out/{partition}.csv",)),
        "other": SimpleNamespace(files_written=("else/*.csv",)),
    }
    loaded = SimpleNamespace(
        files=("out/{partition}.csv",),
        writers_of_files=frozenset(writers),
        context=SimpleNamespace(by_name=writers),
    )
    event = TriggerEvent("asset:out/a.csv@1", EventKind.ASSET, "out/a.csv", NOON, "a")
    changes = FileChanges((event,), {"out/a.csv": "1"})
    watches._project = cast(Any, SimpleNamespace(version=loaded))
    watches._watch = cast(Any, SimpleNamespace(changes=lambda *_: changes, close=lambda: None))
    assert watches.detect().events == (event,)
    for firing in (other, export):
        watches.handle_end(FiringEnd(firing))
    (continued,) = watches.detect().events
    assert continued == replace(event, fire_time=export.fire_time, depth=3)
    assert watches.detect() == Detection()  # it is too soon
    watches.reset()  # it was not recorded
    assert watches.detect().events == (continued,)
    watches._listed_at = None
    assert watches.detect().events == (event,)  # somebody else wrote it again
    for firing in (export, export):  # it is not known which of them wrote it
        watches.handle_end(FiringEnd(firing))
    assert watches.detect().events == (event,)
    watches.close()


@dataclass
class Source:
    """A source of two messages."""

    acknowledged: list[str] = field(default_factory=list)

    def messages(self) -> Iterator[Message]:
        for name in ("a", "b"):
            yield Message(name, {"n": name}, partial(self.acknowledged.append, name))

    def close(self) -> None:
        pass


def test_messages_are_acknowledged_when_they_are_recorded() -> None:
    recorded = list[TriggerEvent]()
    source, wakened = Source(), threading.Event()

    def accept(event: TriggerEvent) -> bool:
        assert source.acknowledged == [one.id.rpartition("/")[2] for one in recorded]
        recorded.append(event)
        return True

    pump = MessagePump("kafka:orders", source, accept, lambda: NOON, wakened.set)
    pump.start()
    assert wakened.wait(5)
    pump.stop()
    assert [(one.id, one.source, one.kind) for one in recorded] == [
        ("message:kafka:orders/a", "kafka:orders", EventKind.MESSAGE),
        ("message:kafka:orders/b", "kafka:orders", EventKind.MESSAGE),
    ]
    assert source.acknowledged == ["a", "b"]


def test_a_message_waits_until_the_catalog_can_be_written() -> None:
    source, wakened = Source(), threading.Event()
    failures = [CatalogLocked("locked"), CatalogLocked("locked")]
    recorded = list[str]()

    def accept(event: TriggerEvent) -> bool:
        assert len(source.acknowledged) == len(recorded)
        if failures:
            raise failures.pop()
        recorded.append(event.id)
        return True

    def wake() -> None:
        if len(recorded) == 2:
            wakened.set()

    pump = MessagePump("kafka:orders", source, accept, lambda: NOON, wake)
    pump.start()
    assert wakened.wait(10)
    pump.stop()
    assert recorded == ["message:kafka:orders/a", "message:kafka:orders/b"]
    assert source.acknowledged == ["a", "b"]


def test_a_message_that_was_not_recorded_is_not_acknowledged() -> None:
    source, tried = Source(), threading.Event()

    def accept(_: TriggerEvent) -> bool:
        tried.set()
        raise CatalogLocked("locked")

    pump = MessagePump("kafka:orders", source, accept, lambda: NOON, lambda: None)
    pump.start()
    assert tried.wait(5)
    pump.stop()
    assert source.acknowledged == []


def test_a_source_needs_its_options() -> None:
    with pytest.raises(ConfigError):
        open_pumps([("kafka", "orders")], {}, {}, lambda: NOON, lambda: None)
