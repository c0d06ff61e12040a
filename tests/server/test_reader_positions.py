"""Each reader fires for exactly the changes after it was seen first, whatever happens around it.

Tests ``server/watching.py`` with ``server/decision_records.py`` and ``server/service.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, select

from penstock.engine.state.agenda_tables import (
    EVENT,
    FIRING,
    LEASE,
    OUTCOME,
    POSITION,
)
from penstock.errors import CatalogLocked
from penstock.model.values.asset import TableName
from penstock.project.project import Project
from penstock.scheduler.matching import Index
from penstock.scheduler.subscription import Source, Subscription
from penstock.scheduler.values import Decision, Firing, FiringState
from penstock.server.agenda_rows import NO_SNAPSHOT, LakePositions
from penstock.server.agenda_store import AgendaStore
from penstock.server.firing_pool import FiringPool
from penstock.server.firing_runner import FiringEnd
from penstock.server.leases import Leadership
from penstock.server.opening import open_agenda
from penstock.server.served_project import ServedProject, Version
from penstock.server.service import Service
from penstock.server.watching import Detection, LakeWatches
from tests.engine.toy import CONFIG, write_project

TABLES = ("a", "b", "c")
READERS = ("r1", "r2", "r3")
OTHER = '[lakes.other]\ncatalog = "sqlite:other/meta.sqlite"\ndata_path = "other/data"\n'

Files = Mapping[str, frozenset[str]]  # the tables that each reader waits for
Fired = set[tuple[str, str]]  # events, and who fired for them
Step = tuple[Any, ...]


@dataclass
class Served:
    """A project that is loaded again when it is told so."""

    version: Version
    files: Version | None = None
    problem: str | None = None

    def refresh(self) -> bool:
        if self.files is None:
            return False
        self.version, self.files = self.files, None
        return True


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    loaded = Project.load(write_project(tmp_path_factory.mktemp("positions"), {}))
    for name in TABLES:
        loaded.lake("main").sql(f"CREATE TABLE {name} (n INTEGER)")
    open_agenda(loaded.context).replace_files({})  # it creates the tables
    return loaded


def version_of(project: Project, files: Files, lake: str = "main") -> Version:
    names = {name: TableName(lake, "main", name) for name in TABLES}
    subscriptions = {
        reader: Subscription(
            reader, sources=tuple(Source(names[t].full, table=names[t]) for t in sorted(tables))
        )
        for reader, tables in files.items()
    }
    return Version(project.context, Index.of(subscriptions), "")


class Play:
    """A service that commits, reloads, failures and restarts happen to, and what it should do."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.store = open_agenda(project.context)
        self.files: dict[str, frozenset[str]] = {}
        self.is_broken = False
        self.begun: set[tuple[str, str]] = set()
        self.pending: list[tuple[int, str]] = []
        self.expected: Fired = set()
        with self.store.catalog.writing() as connection:
            for table in (EVENT, FIRING, OUTCOME, POSITION, LEASE):
                connection.execute(delete(table))
        self.restart()

    def restart(self) -> None:
        """Another process serves the project; it does not start with a project that is broken."""
        self.is_broken = False
        self.served = Served(version_of(self.project, self.files))
        self.service, self.fence = serve(self.served, self.store)

    def commit(self, table: str) -> None:
        self.project.lake("main").sql(f"INSERT INTO {table} VALUES (1)")
        self.pending.append((self.project.lake("main").catalog.latest().id, table))

    def edit(self, reader: str, tables: frozenset[str]) -> None:
        """Write the file of a model, or remove it."""
        self.files = {**self.files, reader: tables} if tables else dict(self.files)
        if not tables:
            self.files.pop(reader, None)

    def break_files(self) -> None:
        self.is_broken = True

    def reload(self) -> None:
        """Write files that load; the next round sees them."""
        self.is_broken = False

    def look(self, *, fails: bool) -> None:
        """Play a round, which cannot be recorded if it fails."""
        if not self.is_broken:
            self.served.files = version_of(self.project, self.files)
            loaded = {(reader, table) for reader, names in self.files.items() for table in names}
        else:
            subscriptions = self.served.version.subscriptions
            loaded = {
                (reader, source.name[-1])
                for reader in subscriptions
                for source in subscriptions[reader].sources
            }
        if fails:
            with pytest.MonkeyPatch.context() as patch, suppress(CatalogLocked):
                patch.setattr(self.store, "record", refuse)
                self.service.run_round(self.fence)
            return
        self.service.run_round(self.fence)
        self.service.pool.drain(5)
        for snapshot_id, table in self.pending:
            self.expected |= {
                (f"asset:main.main.{table}@{snapshot_id}", reader)
                for reader, name in self.begun & loaded
                if name == table
            }
        self.begun, self.pending = loaded, []

    def fired(self) -> Fired:
        """The events that have an outcome, with the models."""
        with self.store.catalog.reading() as connection:
            rows = connection.execute(select(OUTCOME))
            return {(row.event_id, row.model) for row in rows if row.outcome in {"fired", "joined"}}


def refuse(*_: object, **__: object) -> bool:
    raise CatalogLocked("locked")


def serve(served: Served, store: AgendaStore) -> tuple[Service, int]:
    """Lead over a project whose runs do nothing."""

    def run(firing: Firing, _: threading.Event) -> FiringEnd:
        return FiringEnd(replace(firing, state=FiringState.DONE))

    of_service = cast("ServedProject", served)
    watches = (LakeWatches(of_service, store),)
    service = Service(of_service, store, FiringPool(2, run, lambda: None), watches)
    with store.catalog.writing() as connection:
        connection.execute(delete(LEASE))
    leadership = Leadership(store.catalog, "here")
    fence = leadership.take()
    leadership._stop()
    assert fence is not None
    return service, fence


def play(project: Project, steps: Sequence[Step]) -> None:
    world = Play(project)
    for name, *arguments in steps:
        if name == "look":
            world.look(fails=arguments[0])
        else:
            getattr(world, name)(*arguments)
    world.reload()
    world.look(fails=False)
    assert world.fired() == world.expected


steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.sampled_from(TABLES)),
        st.tuples(st.just("look"), st.sampled_from([False, False, True])),
        st.tuples(
            st.just("edit"), st.sampled_from(READERS), st.frozensets(st.sampled_from(TABLES))
        ),
        st.sampled_from([("restart",), ("break_files",), ("reload",)]),
    ),
    max_size=14,
)
A, AB = frozenset("a"), frozenset("ab")


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps)
@example(  # a reader that is added while nothing serves fires for no past
    [("edit", "r1", A), ("look", False), ("commit", "a"), ("edit", "r2", A), ("restart",)]
)
@example(  # one that was removed and put back begins anew
    [
        *[("edit", "r1", A), ("edit", "r2", A), ("look", False), ("edit", "r1", frozenset())],
        *[("commit", "a"), ("look", False), ("commit", "a"), ("edit", "r1", A), ("look", False)],
        ("commit", "a"),
    ]
)
@example(  # one whose file is broken for a while loses nothing
    [
        *[("edit", "r1", AB), ("look", False), ("break_files",), ("edit", "r1", A)],
        *[("commit", "b"), ("look", True), ("commit", "a"), ("look", False), ("reload",)],
    ]
)
def test_a_reader_fires_for_what_changes_after_it_was_seen(
    project: Project, steps: Sequence[Step]
) -> None:
    play(project, steps)


def record(store: AgendaStore, detection: Detection) -> None:
    assert store.record(detection.events, Decision(), detection.positions, fence=None)


def test_all_changes_of_a_lake_that_no_run_has_created_yet_are_to_come(tmp_path: Path) -> None:
    project = Project.load(write_project(tmp_path / "p", {}, CONFIG + OTHER))
    store, files = open_agenda(project.context), {"r1": frozenset("a")}
    served = Served(version_of(project, files, "other"))
    watches = LakeWatches(cast("ServedProject", served), store)
    detection = watches.detect()
    assert detection.positions == (
        LakePositions("other", NO_SNAPSHOT, frozenset({("r1", "other.main.a")})),
    )
    record(store, detection)
    assert watches.detect() == Detection()
    project.lake("other").sql("CREATE TABLE a (n INTEGER)")
    project.lake("other").sql("INSERT INTO a VALUES (1)")
    again = LakeWatches(cast("ServedProject", served), store).detect()
    assert [event.source for event in again.events] == ["other.main.a"]
    assert again == watches.detect()
    record(store, again)
    assert store.position("r1", "other.main.a") == again.events[-1].snapshot_id
    # A lake that the project has no more is forgotten.
    served.version = version_of(Project.load(write_project(tmp_path / "p", {})), {})
    record(store, watches.detect())
    assert store.positions() == {}


def test_an_idle_look_reads_no_positions(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Play(project)
    world.edit("r1", A)
    world.look(fails=False)
    (watch,) = world.service.watches

    def fail() -> NoReturn:
        raise AssertionError("nothing has moved")

    monkeypatch.setattr(world.store, "positions", fail)
    assert watch.detect() == Detection()
    watch.reset()
    with pytest.raises(AssertionError, match="nothing has moved"):
        watch.detect()


def test_a_reader_fires_again_where_its_lake_was_put_back(project: Project) -> None:
    world = Play(project)
    world.edit("r1", A)
    world.look(fails=False)
    newest = project.lake("main").catalog.latest().id
    ahead = LakePositions("main", newest + 5, frozenset({("r1", "main.main.a")}))
    world.store.record([], Decision(), [ahead], fence=None)
    (watch,) = world.service.watches
    watch.reset()
    detection = watch.detect()
    assert [look.snapshot_id for look in detection.positions] == [newest]
    assert detection.excluded == {}
