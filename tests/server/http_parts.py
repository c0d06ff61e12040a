"""An inbox, tokens and an agenda in memory, and the application over them, for tests of HTTP."""

from __future__ import annotations

import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.values import (
    EventKind,
    Firing,
    FiringState,
    Outcome,
    OutcomeKind,
    TriggerEvent,
)
from penstock.server.http_app import create_app
from penstock.server.http_server import HttpServer
from penstock.server.http_values import Health, HttpSettings, Inbox
from penstock.server.metrics import Metrics

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

BASE = "http://127.0.0.1:8765"
SECRETS = {"orders": "secret-of-orders", "tenants": "secret-of-tenants", "*": "secret-of-all"}
TENANT = PartitionSpec("dynamic", key="$.tenant")
SETTINGS = HttpSettings(
    names={"orders": (), "tenants": (TENANT, PartitionSpec("daily"))},
    webhooks={"shop": "orders"},
    uploads={"files": "tenants"},
)
FIRING = Firing(
    "0198f3a0-0000-7000-8000-000000000001",
    "orders",
    "",
    EventKind.MESSAGE,
    datetime(2026, 1, 1, tzinfo=UTC),
    payload={"card": "4111"},
)


class MemoryInbox:
    """An inbox that locks like a database and commits in the time that one takes."""

    def __init__(self, commit_seconds: float = 0.0) -> None:
        self.events: dict[str, TriggerEvent] = {}
        self.commits = 0
        self._lock = threading.Lock()
        self._seconds = commit_seconds

    def accept(self, event: TriggerEvent) -> bool:
        return self._commit([event])[0]

    def _commit(self, events: Sequence[TriggerEvent]) -> list[bool]:
        with self._lock:
            accepted = [event.id not in self.events for event in events]
            time.sleep(self._seconds)
            self.events |= {event.id: event for event in events if event.id not in self.events}
            self.commits += 1
            return accepted


class GroupMemoryInbox(MemoryInbox):
    def accept_many(self, events: Sequence[TriggerEvent]) -> Sequence[bool]:
        return self._commit(events)


class MemoryTokens:
    def verify(self, name: str, secret: str) -> bool:
        return hmac.compare_digest(SECRETS.get(name, "no such name"), secret)


@dataclass
class MemoryAgenda:
    firings: Mapping[str, Firing] = field(default_factory=lambda: {FIRING.id: FIRING})
    outcomes: Mapping[str, Sequence[Outcome]] = field(
        default_factory=lambda: {
            "message:orders/k/1": [Outcome("message:orders/k/1", "orders", OutcomeKind.FIRED)]
        }
    )

    def list_firings(
        self, *, model: str | None, state: FiringState | None, limit: int
    ) -> Sequence[Firing]:
        rows = [row for row in self.firings.values() if model in (None, row.model)]
        return [row for row in rows if state in (None, row.state)][:limit]

    def read_firing(self, firing_id: str) -> Firing | None:
        return self.firings.get(firing_id)

    def read_outcomes(self, event_id: str) -> Sequence[Outcome] | None:
        return self.outcomes.get(event_id)


HEALTHY = Health(True, "db1/4242", queue_length=3, oldest_waiting=1.5, last_error="orders: no file")


def make_app(
    inbox: Inbox | None = None,
    health: Health = HEALTHY,
    settings: HttpSettings = SETTINGS,
    metrics: Metrics | None = None,
) -> Starlette:
    return create_app(
        inbox or MemoryInbox(),
        MemoryTokens(),
        lambda: health,
        settings,
        agenda=MemoryAgenda(),
        metrics=metrics,
    )


@contextmanager
def client_of(app: Starlette) -> Iterator[TestClient]:
    from starlette.testclient import TestClient

    with TestClient(app, base_url=BASE) as client:
        yield client


@contextmanager
def serving(app: Starlette) -> Iterator[HttpServer]:
    server = HttpServer(app, "127.0.0.1", 0)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {SECRETS[name]}"}


def head(port: int, path: str, *lines: str, name: str = "orders") -> bytes:
    """The head of a POST as bytes, for sockets."""
    headers = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json"]
    headers += [f"Authorization: Bearer {SECRETS[name]}", *lines]
    return ("\r\n".join(headers) + "\r\n\r\n").encode()


def error_of(answer: Any) -> str:
    return str(json.loads(answer.content)["error"]["message"])
