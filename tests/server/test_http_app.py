"""What is refused on every route; settings that change while the application answers."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from penstock.errors import CatalogUnreachable, EnvironmentMissing
from penstock.server.http_app import create_app, replace_settings
from penstock.server.routes import ROUTES
from tests.server.http_parts import (
    BASE,
    HEALTHY,
    SECRETS,
    SETTINGS,
    MemoryInbox,
    MemoryTokens,
    bearer,
    client_of,
    error_of,
    make_app,
)

if TYPE_CHECKING:
    from starlette.testclient import TestClient

PATHS = [(route.methods[0], route.path.replace("{name:path}", "orders")) for route in ROUTES]
GUARDED = [pair for pair in PATHS if pair[1] != "/health"]
MESSAGES = ["/events/orders", "/webhooks/shop", "/uploads/files"]


@pytest.fixture
def client() -> Iterator[TestClient]:
    with client_of(make_app()) as client:
        yield client


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_without_a_token(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("method", "path"), PATHS)
@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Basic b3JkZXJz", "Bearer", "Bearer ", "Bearer " + "x" * 600]
)
def test_with_a_wrong_token(client: TestClient, method: str, path: str, header: str) -> None:
    answer = client.request(method, path, headers={"Authorization": header})
    assert answer.status_code == 401


@pytest.mark.parametrize(("method", "path"), PATHS)
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", ""])
def test_with_a_wrong_host(client: TestClient, method: str, path: str, host: str) -> None:
    answer = client.request(method, path, headers=bearer("*") | {"Host": host})
    assert answer.status_code == 421


def test_a_name_of_the_server_is_accepted_with_its_port(client: TestClient) -> None:
    assert client.get("/health", headers={"Host": "LOCALHOST:8765"}).status_code == 200


@pytest.mark.parametrize("path", MESSAGES)
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_with_a_wrong_content_type(client: TestClient, path: str, kind: str) -> None:
    answer = client.post(path, content=b"{}", headers=bearer("*") | {"Content-Type": kind})
    assert answer.status_code == 415


@pytest.mark.parametrize("path", MESSAGES)
def test_with_a_body_of_100_mb(client: TestClient, path: str) -> None:
    headers = bearer("*") | {"Content-Type": "application/json"}
    for content in (b" " * 100_000_000, (b" " * 1_000_000 for _ in range(100))):
        answer = client.post(path, content=content, headers=headers)
        assert answer.status_code == 413
        assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("path", MESSAGES)
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\xfe",
        b'{"a": 1',
        b"",
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": "\\ud800"}',
    ],
)
def test_with_a_body_that_is_no_json(client: TestClient, path: str, body: bytes) -> None:
    headers = bearer("*") | {"Content-Type": "application/json"}
    assert client.post(path, content=body, headers=headers).status_code == 400


@pytest.mark.parametrize("path", MESSAGES)
def test_with_a_body_that_is_no_object(client: TestClient, path: str) -> None:
    assert client.post(path, json=[1], headers=bearer("*")).status_code == 422


def test_unknown_names_and_wrong_tokens_are_answered_alike(client: TestClient) -> None:
    answers = [
        client.post(path, json={}, headers={"Authorization": "Bearer wrong"})
        for path in ("/events/orders", "/events/nothing", "/webhooks/shop", "/webhooks/nothing")
    ]
    assert len({(answer.status_code, answer.content) for answer in answers}) == 1


def test_a_token_of_one_name_is_none_of_another(client: TestClient) -> None:
    answers = [
        client.post("/events/tenants", json={"tenant": "a"}, headers=bearer("orders")),
        client.get("/firings", headers=bearer("orders")),
    ]
    assert [answer.status_code for answer in answers] == [401, 401]


def test_every_answer_has_headers_of_security_and_none_of_cors(client: TestClient) -> None:
    for path in ("/health", "/metrics", "/nothing"):
        headers = client.get(path, headers={"Origin": "https://evil.example"}).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert not [name for name in headers if name.startswith("access-control")]


def test_other_pages_and_methods_are_errors_in_json(client: TestClient) -> None:
    assert error_of(client.get("/health/")) == "there is no such page"
    assert client.put("/events/orders").status_code == 405
    assert client.options("/events/orders").status_code == 405


def test_a_token_is_in_no_log_and_no_answer(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    class Careless(MemoryInbox):
        def accept(self, event: object) -> bool:
            raise RuntimeError(f"refused {SECRETS['orders']}")

    caplog.set_level(logging.DEBUG)
    secret = SECRETS["orders"]
    with client_of(make_app(Careless())) as careless:
        texts = [careless.post("/events/orders", json={}, headers=bearer("orders")).text]
    texts.append(client.get(f"/firings/{secret}?token={secret}", headers=bearer("orders")).text)
    texts += [record.getMessage() for record in caplog.records if record.name != "httpx2"]
    texts += [str(record.exc_info) for record in caplog.records]
    assert '"status": 401' in "".join(texts)
    assert secret not in "".join(texts)


def test_settings_change_while_it_answers() -> None:
    app = make_app()
    with client_of(app) as client:
        assert client.post("/events/fresh", json={}, headers=bearer("*")).status_code == 404
        replace_settings(app, replace(SETTINGS, names={"fresh": ()}, is_metrics_open=True))
        assert client.post("/events/fresh", json={}, headers=bearer("*")).status_code == 202
        assert client.get("/metrics").status_code == 200
        assert client.get(f"{BASE}/firings").status_code == 401


class LostTokens(MemoryTokens):
    def verify(self, name: str, secret: str) -> bool:
        raise CatalogUnreachable(f"cannot compare {secret}")


def test_tokens_that_cannot_be_read_permit_nothing() -> None:
    with client_of(create_app(MemoryInbox(), LostTokens(), lambda: HEALTHY, SETTINGS)) as client:
        answer = client.post("/events/orders", json={}, headers=bearer("orders"))
        assert answer.status_code == 503
        assert SECRETS["orders"] not in answer.text
        assert client.get("/health").status_code == 200


def test_a_process_without_an_agenda_has_no_firings() -> None:
    with client_of(create_app(MemoryInbox(), MemoryTokens(), lambda: HEALTHY, SETTINGS)) as client:
        assert client.get("/firings", headers=bearer("*")).status_code == 404


def test_without_starlette_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(EnvironmentMissing) as caught:
        create_app(MemoryInbox(), MemoryTokens(), lambda: HEALTHY, SETTINGS)
    assert "penstock-spark[serve]" in str(caught.value.hint)


def test_the_modules_load_no_server() -> None:
    program = (
        "import sys, penstock.server.http_app, penstock.server.http_server;"
        "print({'starlette', 'uvicorn', 'prometheus_client', 'pyspark'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
