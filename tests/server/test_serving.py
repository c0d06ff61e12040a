"""A served project: changes of tables, schedules and messages become runs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.project.project import Project
from penstock.scheduler.values import EventKind, FiringState, TriggerEvent
from penstock.server.leases import LEADER, release
from penstock.server.opening import open_agenda
from penstock.server.serving import ServeOptions, Server
from tests import duck
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPTS = {
    "models/days": """
        -- pipeline
        -- on ducklake://main/events
        -- partitioned daily
        -- materialize ducklake://main/days
        SELECT id, '{partition}' AS day FROM events WHERE day = '{partition}'
        """,
    "models/sums": """
        -- pipeline
        -- on ducklake://main/days
        -- materialize ducklake://main/sums
        SELECT count(*) AS n FROM days
        """,
    "models/tenants": """
        -- pipeline
        -- on webhook name=signup
        -- partitioned dynamic key="$.tenant"
        -- materialize ducklake://main/tenants
        SELECT '{partition}' AS tenant
        """,
}


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    root = write_project(tmp_path / "p", SCRIPTS)
    project = Project.load(root, spark=spark)
    project.lake("main").sql("CREATE TABLE events (id INTEGER, day VARCHAR)")
    return project


def insert_by_duckdb(project: Project, *values: tuple[int, str]) -> None:
    with duck.attach(project.lake("main").catalog.uri) as connection:
        connection.executemany("INSERT INTO events VALUES (?, ?)", values)


def serve(project: Project) -> Server:
    server = Server(project.context, ServeOptions(has_http=False, is_once=True))
    server.run()
    return server


def test_a_commit_by_duckdb_cascades(project: Project) -> None:
    serve(project)  # it begins to look from here
    insert_by_duckdb(project, (1, "2026-01-01"), (2, "2026-01-01"))
    project.run("days", partition="2026-01-01")
    server = serve(project)
    fired = [record.firing for record in server.store.list_firings(10)]
    assert {one.model for one in fired} == {"days", "sums"}
    assert all(one.state is FiringState.DONE for one in fired), fired
    assert rows(project, "SELECT n FROM sums") == [(2,)]
    assert server.store.list_undecided(10) == []
    (sums,) = [one for one in fired if one.model == "sums" and one.key == ""][:1]
    assert sums.kind is EventKind.ASSET
    assert len(serve(project).store.list_firings(10)) == len(fired)  # nothing fires again
    insert_by_duckdb(project, (3, "2026-01-01"))  # a late row of a day that is there
    serve(project)
    assert rows(project, "SELECT n FROM sums") == [(3,)]


def test_a_message_builds_its_partition_once(project: Project) -> None:
    store = open_agenda(project.context)
    event = TriggerEvent(
        "message:signup/1",
        EventKind.MESSAGE,
        "signup",
        datetime.now(UTC),
        payload={"tenant": "acme"},
    )
    assert store.accept(event)
    assert not store.accept(event)
    server = serve(project)
    (firing,) = [record.firing for record in server.store.list_firings(10)]
    assert (firing.model, firing.key, firing.state) == ("tenants", "acme", FiringState.DONE)
    assert rows(project, "SELECT tenant FROM tenants") == [("acme",)]
    runs = project.runs()
    assert [(run.run_id, run.trigger) for run in runs] == [(firing.id, "event")]


def test_what_each_process_receives_is_recorded_by_the_leader(tmp_path: Path) -> None:
    script = "-- pipeline\n-- materialize ducklake://main/a\nSELECT 1 AS a"
    root = write_project(tmp_path / "p", {"models/a": script})
    servers = [Server(Project.load(root).context, ServeOptions(has_http=False)) for _ in range(2)]
    leader, follower = servers
    assert leader._leadership.take() is not None
    assert follower._leadership.take() is None
    for number, server in enumerate(servers):
        event = TriggerEvent(f"message:{number}", EventKind.MESSAGE, "a", datetime.now(UTC))
        assert server._accept_if_leading(event) == (server is leader)
    leader._leadership._stop()  # as a process that sleeps: it gives no more signs of life
    with leader.store.catalog.writing() as connection:
        release(connection, LEADER, leader._leadership.fence or 0)
    assert follower._leadership.take() is not None
    late = TriggerEvent("message:late", EventKind.MESSAGE, "a", datetime.now(UTC))
    assert not leader._accept_if_leading(late)
    assert [event.id for event in follower.store.list_undecided(10)] == ["message:0"]
    follower._leadership._stop()
