"""Wrong tokens are counted by address, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from starlette.testclient import TestClient

from penstock.server.http_values import HttpSettings
from penstock.server.token_limits import TokenLimits
from tests.server.http_parts import BASE, SETTINGS, bearer, make_app

WRONG = {"Authorization": "Bearer wrong"}


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_an_address_waits_until_its_window_is_over() -> None:
    clock = Clock()
    limits = TokenLimits(3, 60, clock=clock)
    assert [limits.count_wrong("192.0.2.1") for _ in range(4)] == [None, None, None, 60]
    clock.seconds = 59.5
    assert limits.count_wrong("192.0.2.1") == 1
    assert limits.count_wrong("192.0.2.2") is None
    clock.seconds = 60
    assert limits.count_wrong("192.0.2.1") is None
    clock.seconds = 1000
    limits.count_wrong("192.0.2.3")
    assert len(limits) == 1


def test_a_network_of_ipv6_is_one_client() -> None:
    limits = TokenLimits(1, clock=Clock())
    assert limits.count_wrong("2001:db8::1") is None
    assert limits.count_wrong("2001:db8::2") == 60
    assert limits.count_wrong("2001:db8:1::1") is None


def test_the_memory_is_bounded() -> None:
    limits = TokenLimits(max_addresses=10, clock=Clock())
    for number in range(1000):
        limits.count_wrong(f"192.0.{number // 250}.{number % 250}")
    assert len(limits) == 10


def client_at(address: str, settings: HttpSettings = SETTINGS) -> TestClient:
    return TestClient(make_app(settings=settings), base_url=BASE, client=(address, 4711))


def test_after_twenty_wrong_tokens_the_answer_is_429_but_a_right_one_is_accepted() -> None:
    with client_at("192.0.2.1") as client:
        answers = [client.get("/firings", headers=WRONG) for _ in range(21)]
        assert [answer.status_code for answer in answers] == [401] * 20 + [429]
        assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
        assert answers[-1].headers["Connection"] == "close"
        assert client.get("/firings", headers=bearer("*")).status_code == 200
        assert client.post("/events/orders", json={}, headers=bearer("orders")).status_code == 202
        # One that is of another name is as wrong as any, and one of another form, too.
        assert client.get("/firings", headers=bearer("orders")).status_code == 429
        assert client.get("/health", headers={"Authorization": "Basic x"}).status_code == 429
        # Who shows none does not try.
        assert client.get("/firings").status_code == 401
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("peer", "is_trusted"), [("10.0.0.1", True), ("192.0.2.1", False), ("2001:db8::1", False)]
)
def test_behind_a_proxy_its_clients_count(peer: str, is_trusted: bool) -> None:
    settings = replace(SETTINGS, trusted_proxy="10.0.0.0/8")
    with client_at(peer, settings) as client:
        statuses = [
            client.get("/firings", headers=WRONG | {"X-Forwarded-For": f"203.0.113.{number}"})
            for number in range(21)
        ]
        # Who is no proxy has one address, whatever it says.
        assert statuses[-1].status_code == (401 if is_trusted else 429)
        again = WRONG | {"X-Forwarded-For": "198.51.100.1, 203.0.113.1, 10.9.9.9"}
        for _ in range(20):
            status = client.get("/firings", headers=again).status_code
        assert status == 429
        other = WRONG | {"X-Forwarded-For": "203.0.113.1, 198.51.100.1"}
        assert client.get("/firings", headers=other).status_code == (401 if is_trusted else 429)
