"""Each route: messages and their keys, health, metrics, firings, outcomes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from penstock.errors import CatalogUnreachable
from penstock.scheduler.values import TriggerEvent
from penstock.server.http_values import Health
from penstock.server.routes import ROUTES, HealthProbe, Permission
from tests.server.http_parts import (
    FIRING,
    SETTINGS,
    MemoryInbox,
    bearer,
    client_of,
    error_of,
    make_app,
)

if TYPE_CHECKING:
    from starlette.testclient import TestClient


@pytest.fixture
def inbox() -> MemoryInbox:
    return MemoryInbox()


@pytest.fixture
def client(inbox: MemoryInbox) -> Iterator[TestClient]:
    with client_of(make_app(inbox)) as client:
        yield client


def test_an_accepted_message_is_recorded(client: TestClient, inbox: MemoryInbox) -> None:
    answer = client.post("/events/orders", json={"n": 1}, headers=bearer("orders"))
    assert answer.status_code == 202
    assert answer.json()["accepted"] is True
    event = inbox.events[answer.json()["event"]]
    assert (event.source, event.payload, event.partition) == ("orders", {"n": 1}, None)


def test_a_key_records_a_message_once(client: TestClient, inbox: MemoryInbox) -> None:
    headers = bearer("orders") | {"Idempotency-Key": "day/1"}
    answers = [client.post("/events/orders", json={"n": n}, headers=headers) for n in (1, 2)]
    assert [answer.status_code for answer in answers] == [202, 200]
    assert answers[1].json() == {"event": "message:orders/day~11", "accepted": False}
    assert [event.payload for event in inbox.events.values()] == [{"n": 1}]


def test_a_key_belongs_to_its_message(client: TestClient, inbox: MemoryInbox) -> None:
    for name in ("orders", "tenants"):
        headers = bearer("*") | {"Idempotency-Key": "1"}
        assert (
            client.post(f"/events/{name}", json={"tenant": "a"}, headers=headers).status_code == 202
        )
    assert set(inbox.events) == {"message:orders/1", "message:tenants/1"}


@pytest.mark.parametrize("key", ["", "two words", "k" * 201])
def test_a_key_that_cannot_be_used_is_refused(client: TestClient, key: str) -> None:
    headers = bearer("orders") | {"Idempotency-Key": key}
    assert client.post("/events/orders", json={}, headers=headers).status_code == 400


def test_webhooks_and_uploads_are_messages(client: TestClient, inbox: MemoryInbox) -> None:
    client.post("/webhooks/shop", json={"n": 1}, headers=bearer("orders"))
    client.post("/uploads/files", json={"tenant": "a"}, headers=bearer("tenants"))
    assert [event.source for event in inbox.events.values()] == ["orders", "tenants"]


def test_names_of_models_in_folders_have_slashes(inbox: MemoryInbox) -> None:
    settings = replace(
        SETTINGS, names={"raw/hook": (), "raw": ()}, webhooks={"raw/hook": "raw/hook"}
    )
    with client_of(make_app(inbox, settings=settings)) as client:
        for path in ("/webhooks/raw/hook", "/events/raw/hook", "/events/raw%2Fhook"):
            answer = client.post(path, json={}, headers=bearer("*") | {"Idempotency-Key": path})
            assert answer.status_code == 202
    assert {event.source for event in inbox.events.values()} == {"raw/hook"}
    assert len(inbox.events) == 3


def test_messages_of_two_names_never_share_an_id(inbox: MemoryInbox) -> None:
    settings = replace(SETTINGS, names={"raw/hook": (), "raw": ()})
    with client_of(make_app(inbox, settings=settings)) as client:
        for path, key in (("/events/raw/hook", "1"), ("/events/raw", "hook/1")):
            answer = client.post(path, json={}, headers=bearer("*") | {"Idempotency-Key": key})
            assert answer.status_code == 202
    assert set(inbox.events) == {"message:raw/hook/1", "message:raw/hook~11"}


def test_a_model_without_a_webhook_is_unknown(client: TestClient) -> None:
    answer = client.post("/webhooks/files", json={}, headers=bearer("*"))
    assert answer.status_code == 404
    assert "/webhooks/MODEL" in answer.json()["error"]["hint"]
    assert client.post("/webhooks/orders", json={}, headers=bearer("orders")).status_code == 401


def test_an_unknown_message_names_no_other(client: TestClient) -> None:
    answer = client.post("/events/nothing", json={}, headers=bearer("*"))
    assert answer.status_code == 404
    assert "/events/NAME" in answer.json()["error"]["hint"]
    assert "orders" not in answer.text
    assert "tenants" not in answer.text


def test_a_dynamic_partition_comes_from_the_payload(client: TestClient, inbox: MemoryInbox) -> None:
    client.post("/events/tenants", json={"tenant": "acme"}, headers=bearer("tenants"))
    assert [event.partition for event in inbox.events.values()] == ["acme"]


def test_a_payload_without_its_key_is_not_recorded(client: TestClient, inbox: MemoryInbox) -> None:
    answer = client.post("/events/tenants", json={"tenants": "acme"}, headers=bearer("tenants"))
    assert answer.status_code == 422
    assert "has no $.tenant" in error_of(answer)
    assert answer.json()["error"]["hint"] == "send $.tenant in the payload"
    assert not inbox.events


@pytest.mark.parametrize("value", ["a/b", "a\\b", "..", "../a", "a\x00", ".", ""])
def test_a_partition_is_one_segment(client: TestClient, inbox: MemoryInbox, value: str) -> None:
    answer = client.post("/events/tenants", json={"tenant": value}, headers=bearer("tenants"))
    assert answer.status_code == 422
    assert not inbox.events


def test_an_inbox_that_fails_is_no_acceptance() -> None:
    class Broken(MemoryInbox):
        def accept(self, event: TriggerEvent) -> bool:
            raise CatalogUnreachable("password=hunter2 is wrong")

    with client_of(make_app(Broken())) as client:
        answer = client.post("/events/orders", json={}, headers=bearer("orders"))
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "hunter2" not in answer.text


def test_health_has_details_for_a_token_only(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    details = client.get("/health", headers=bearer("*")).json()
    assert (details["is_leader"], details["holder"]) == (True, "db1/4242")
    assert (details["oldest_waiting"], details["last_error"]) == (1.5, "orders: no file")
    assert details["version"]
    assert client.get("/health", headers=bearer("orders")).status_code == 401


def test_errors_in_the_health_hold_no_password() -> None:
    problem = "cannot reach postgresql://ann:hunter2@db1/lake"
    with client_of(make_app(health=Health(True, "a", problem=problem))) as client:
        answer = client.get("/health", headers=bearer("*"))
    assert answer.json()["problem"] == "cannot reach postgresql://ann:***@db1/lake"


@pytest.mark.parametrize(
    ("health", "status"),
    [
        (Health(False, "db2/1"), 200),
        (Health(False, None), 503),
        (Health(True, "db1/1", problem="the catalog is not reached"), 503),
    ],
)
def test_health_is_503_if_nobody_decides(health: Health, status: int) -> None:
    with client_of(make_app(health=health)) as client:
        assert client.get("/health").status_code == status


def test_metrics_are_text(client: TestClient) -> None:
    client.post("/events/orders", json={}, headers=bearer("orders"))
    answer = client.get("/metrics", headers=bearer("*"))
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'penstock_messages_total{answer="accepted"} 1.0' in answer.text
    assert "penstock_queue_length 3.0" in answer.text
    assert 'route="/events/{name}",status="202"' in answer.text


def test_firings_are_listed_without_payloads(client: TestClient) -> None:
    answer = client.get("/firings?model=orders&state=queued&limit=1", headers=bearer("*")).json()
    assert [row["id"] for row in answer["firings"]] == [FIRING.id]
    assert answer["firings"][0]["payload"] is None
    assert client.get("/firings?state=done", headers=bearer("*")).json()["firings"] == []


@pytest.mark.parametrize("query", ["state=odd", "limit=0", "limit=1001", "limit=x", "model=%00"])
def test_a_filter_that_cannot_be_used_is_refused(client: TestClient, query: str) -> None:
    assert client.get(f"/firings?{query}", headers=bearer("*")).status_code == 400


def test_a_firing_is_read_by_its_id(client: TestClient) -> None:
    answer = client.get(f"/firings/{FIRING.id}", headers=bearer("*"))
    assert answer.json()["firing"]["payload"] == {"card": "4111"}
    assert client.get("/firings/none", headers=bearer("*")).status_code == 404
    assert client.get("/firings/a%00", headers=bearer("*")).status_code == 400


def test_outcomes_are_read_by_the_id_of_an_event(client: TestClient) -> None:
    answer = client.get("/events/message:orders/k/1", headers=bearer("*")).json()
    assert [row["kind"] for row in answer["outcomes"]] == ["fired"]
    assert client.get("/events/message:orders/k/2", headers=bearer("*")).status_code == 404


def test_every_route_but_health_needs_a_token() -> None:
    assert {route.path for route in ROUTES if route.permission is Permission.NONE} == {"/health"}


def test_requests_at_once_share_one_reading_of_the_health() -> None:
    calls = []

    def slow() -> Health:
        calls.append(time.monotonic())
        time.sleep(0.1)
        return Health(True, "a")

    async def read() -> list[Health]:
        probe = HealthProbe(slow)
        answers = await asyncio.gather(*(probe.read() for _ in range(5)))
        answers.append(await probe.read())
        probe.close()
        return answers

    assert asyncio.run(read()) == [Health(True, "a")] * 6
    assert len(calls) == 1


def test_a_health_that_is_late_is_a_problem_until_it_is_there() -> None:
    def slow() -> Health:
        time.sleep(0.2)
        return Health(True, "a")

    async def read() -> tuple[Health, Health]:
        probe = HealthProbe(slow, seconds=0.05)
        late = await probe.read()
        await asyncio.sleep(0.3)
        answers = late, await probe.read()
        probe.close()
        return answers

    late, later = asyncio.run(read())
    assert "cannot be read in 0.05 seconds" in str(late.problem)
    assert later.is_healthy


def test_a_health_that_fails_is_a_problem() -> None:
    def fail() -> Health:
        raise CatalogUnreachable("password=hunter2 is wrong")

    health = asyncio.run(HealthProbe(fail).read())
    assert health.problem == "the state of the process cannot be read: CatalogUnreachable"
