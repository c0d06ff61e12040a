"""HTTP over the agenda of a project."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from penstock.errors import CatalogUnreachable
from penstock.project.project import Project
from penstock.scheduler.subscription import subscriptions_of
from penstock.scheduler.values import Decision, EventKind, Firing, FiringState, TriggerEvent
from penstock.server.agenda_queries import AgendaCounts
from penstock.server.agenda_store import AgendaStore
from penstock.server.http_services import (
    AgendaInbox,
    AgendaView,
    TokenCheck,
    measure_health,
    read_http_settings,
    read_lease,
)
from penstock.server.leases import Leadership
from penstock.server.service import Service
from penstock.server.tokens import TokenStore
from tests.engine.toy import write_project

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCRIPTS = {
    "models/tenants": "-- pipeline\n-- on webhook name=signup\n"
    '-- partitioned dynamic key="$.tenant"\n-- materialize ducklake://main/tenants\n'
    "SELECT '{partition}' AS tenant",
    "models/files": "-- pipeline\n-- on data_upload\n-- materialize ducklake://main/files\n"
    "SELECT 1 AS a",
}


class FakeService:
    """What health asks of a service."""

    last_error: str | None = "orders: no memory"

    class project:  # noqa: N801 - an attribute of the service
        problem: str | None = None


def test_an_event_is_recorded_before_the_service_wakes(store: AgendaStore) -> None:
    waiting = list[int]()
    inbox = AgendaInbox(store, lambda: waiting.append(len(store.list_undecided(10))))
    event = TriggerEvent("message:signup/1", EventKind.MESSAGE, "signup", NOON, payload={})
    assert inbox.accept(event)
    assert inbox.accept_many([event]) == [False]
    assert waiting == [1, 1]


def test_tokens_are_those_of_the_catalog(store: AgendaStore) -> None:
    tokens = TokenStore(store.catalog)
    created, secret = tokens.create("signup")
    check = TokenCheck(tokens)
    assert check.verify("signup", secret)
    assert not check.verify("orders", secret)
    tokens.revoke(created.id)
    assert not check.verify("signup", secret)


def test_the_view_reads_firings_and_outcomes(store: AgendaStore) -> None:
    event = TriggerEvent("message:signup/1", EventKind.MESSAGE, "signup", NOON)
    firing = Firing("f1", "tenants", "acme", EventKind.MESSAGE, NOON, events=(event.id,))
    store.record([event], Decision((firing,)), fence=None)
    view = AgendaView(store)
    assert view.list_firings(model=None, state=FiringState.QUEUED, limit=5) == [firing]
    assert view.list_firings(model="orders", state=None, limit=5) == []
    assert view.read_firing("f1") == firing
    assert view.read_firing("f2") is None
    assert view.read_outcomes("message:signup/2") is None
    assert view.read_outcomes(event.id) is not None


def test_health_says_who_leads(store: AgendaStore) -> None:
    service = cast("Service", FakeService())
    assert read_lease(store) is None
    health = measure_health(store.count, lambda: read_lease(store), "here", service)
    assert not health.is_healthy
    with Leadership(store.catalog, "here") as leadership:
        assert leadership.take() is not None
        health = measure_health(store.count, lambda: read_lease(store), "here", service)
        assert health.is_leader
        assert health.is_healthy
        assert health.last_error == "orders: no memory"


def test_a_catalog_that_is_gone_is_a_problem() -> None:
    def counts() -> AgendaCounts:
        raise CatalogUnreachable("the catalog cannot be reached")

    health = measure_health(counts, lambda: None, "here", cast("Service", FakeService()))
    assert health.problem == "the catalog cannot be reached"
    assert not health.is_healthy


def test_names_of_messages_have_the_partitions_of_their_models(tmp_path: Path) -> None:
    project = Project.load(write_project(tmp_path / "p", SCRIPTS))
    subscriptions = subscriptions_of(project.models)
    settings = read_http_settings(project.models, subscriptions, project.settings.serve)
    assert sorted(settings.names) == ["files", "signup"]
    assert [spec.key for spec in settings.names["signup"]] == ["$.tenant"]
    assert (settings.webhooks, settings.uploads) == ({"tenants": "signup"}, {"files": "files"})
    assert "127.0.0.1:{port}" in settings.hosts
