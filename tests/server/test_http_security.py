"""Addresses, hosts, tokens and the number of requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigError
from penstock.server.http_security import (
    Guard,
    RefusedRequest,
    check_address,
    is_allowed_host,
    is_loopback,
    read_token,
)
from penstock.server.http_values import LOOPBACK_HOSTS, HttpSettings

LOCAL = ["127.0.0.1", "127.8.0.1", "::1", "[::1]", "localhost", "LOCALHOST", "::ffff:127.0.0.1"]
REMOTE = [
    "0.0.0.0",
    "::",
    "",
    "10.0.0.1",
    "example.com",
    "localhost.example.com",
    "127.0.0.1.nip.io",
]


@pytest.mark.parametrize("host", LOCAL)
def test_a_local_address_needs_nothing(host: str) -> None:
    assert is_loopback(host)
    check_address(host, tokens_exist=False, trusted_proxy=None)


@pytest.mark.parametrize("host", REMOTE)
def test_another_address_needs_a_token_or_a_proxy(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ConfigError, match="no token yet") as caught:
        check_address(host, tokens_exist=False, trusted_proxy=None)
    assert "penstock events token" in str(caught.value.hint)
    check_address(host, tokens_exist=True, trusted_proxy=None)
    check_address(host, tokens_exist=False, trusted_proxy="10.0.0.2")


def test_a_host_is_accepted_with_the_port_of_the_server() -> None:
    hosts = (*LOOPBACK_HOSTS, "Penstock.Example.com")
    for header in ("localhost:80", "127.0.0.1:80", "[::1]:80", "penstock.example.com"):
        assert is_allowed_host(header, hosts, 80)
    for header in ("localhost", "localhost:81", "penstock.example.com:80", "x.localhost:80", ""):
        assert not is_allowed_host(header, hosts, 80)


@given(st.text())
def test_a_host_is_equal_or_refused(header: str) -> None:
    assert is_allowed_host(header, ("a:1",), 1) is (header.lower() == "a:1")


def request_with(*values: str) -> Any:
    from starlette.requests import Request

    headers = [(b"authorization", value.encode("latin-1")) for value in values]
    return Request({"type": "http", "headers": headers})


def test_a_token_follows_bearer() -> None:
    assert read_token(request_with()) is None
    assert read_token(request_with("bearer  abc ")) == "abc"


@pytest.mark.parametrize(
    "values", [("Bearer",), ("Token abc",), ("Bearer é",), ("Bearer a", "Bearer a"), ("",)]
)
def test_another_form_of_a_token_is_refused(values: tuple[str, ...]) -> None:
    with pytest.raises(RefusedRequest) as caught:
        read_token(request_with(*values))
    assert caught.value.status == 401


async def answer_all(paths: list[str], settings: HttpSettings) -> dict[str, list[int]]:
    """Return the statuses by path of requests at once to an application that takes long."""
    statuses: dict[str, list[int]] = {path: [] for path in paths}

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.2)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    guard = Guard(slow, lambda: settings, lambda route, status: None)

    async def ask(path: str) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses[path].append(message["status"])

        scope = {"type": "http", "path": path, "method": "GET", "headers": [(b"host", b"a")]}
        await guard(scope, asyncio.sleep, send)  # type: ignore[arg-type]  # nothing is received

    await asyncio.gather(*(ask(path) for path in paths for _ in range(3)))
    return statuses


def test_requests_over_the_limit_are_refused_but_those_to_health() -> None:
    settings = HttpSettings(hosts=("a",), max_requests=2)
    statuses = asyncio.run(answer_all(["/firings", "/health"], settings))
    assert sorted(statuses["/firings"]) == [200, 200, 503]
    assert statuses["/health"] == [200, 200, 200]


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    settings = HttpSettings(hosts=("a",), request_timeout=0.05)
    assert asyncio.run(answer_all(["/firings"], settings))["/firings"] == [503, 503, 503]


@pytest.mark.parametrize(
    ("host", "status"),
    [("penstock.example.com", 200), ("127.0.0.1:80", 200), ("evil.example", 421)],
)
def test_the_host_is_that_of_the_request_behind_a_proxy_too(host: str, status: int) -> None:
    settings = HttpSettings(
        hosts=(*LOOPBACK_HOSTS, "penstock.example.com"), trusted_proxy="10.0.0.0/8"
    )
    seen = list[Any]()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> list[int]:
        statuses = list[int]()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        headers = [
            (b"host", host.encode()),
            (b"x-forwarded-host", b"penstock.example.com"),
            (b"x-forwarded-for", b"203.0.113.1"),
        ]
        scope: dict[str, Any] = {"type": "http", "path": "/health", "method": "GET"}
        scope |= {"headers": headers}
        scope |= {"client": ("10.0.0.1", 4711), "server": ("127.0.0.1", 80)}
        guard = Guard(answer, lambda: settings, lambda route, status: None)
        await guard(scope, asyncio.sleep, send)  # type: ignore[arg-type]  # nothing is received
        return statuses

    assert asyncio.run(ask()) == [status]
    assert seen == (["203.0.113.1"] if status == 200 else [])
