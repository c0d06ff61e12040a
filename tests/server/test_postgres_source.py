"""Notifications of a real PostgreSQL server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice

import psycopg
import pytest

from penstock.server.postgres_source import PostgresSource
from penstock.server.sources import Message


@pytest.fixture
def conninfo(postgres_server: str) -> str:
    return f"{postgres_server} dbname=postgres"


@contextmanager
def reading(source: PostgresSource, count: int) -> Iterator[Future[list[Message]]]:
    """The next messages, read by another thread."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: list(islice(source.messages(), count)))
        try:
            assert source.wait_until_listening(30)
            yield future
        finally:
            source.close()


def notify(conninfo: str, channel: str, *payloads: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for payload in payloads:
            connection.execute("SELECT pg_notify(%s, %s)", (channel, payload))


@pytest.mark.postgres
@pytest.mark.parametrize("channel", ["orders", 'New "orders"; DROP TABLE t'])
def test_notifications_come_in_their_order(conninfo: str, channel: str) -> None:
    source = PostgresSource(conninfo, channel)
    with reading(source, 3) as future:
        notify(conninfo, "others", "not for us")
        notify(conninfo, channel, '{"tenant": "acme"}', "plain", "")
        messages = future.result(30)
    for message in messages:
        message.acknowledge()
    assert [each.payload for each in messages] == [
        {"tenant": "acme"},
        {"text": "plain"},
        {"text": ""},
    ]
    assert len({each.id for each in messages}) == 3
    assert all(each.id.startswith(f"postgres:{channel}/") for each in messages)


@pytest.mark.postgres
def test_connects_again_after_the_connection_broke(conninfo: str) -> None:
    source = PostgresSource(conninfo, "orders")
    with reading(source, 2) as future:
        notify(conninfo, "orders", "before")
        while not end_listeners(conninfo):
            time.sleep(0.05)
        while not future.done():  # what comes while nobody listens is lost
            notify(conninfo, "orders", "after")
            time.sleep(0.1)
        first, second = (message.payload["text"] for message in future.result(30))
    assert first in {"before", "after"}  # the connection may have ended before it was read
    assert second == "after"


def end_listeners(conninfo: str) -> int:
    """End the connections that have read the notification; return their number."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%%'"
        return len(connection.execute(query, ()).fetchall())


@pytest.mark.postgres
def test_a_source_that_is_closed_ends(conninfo: str) -> None:
    source = PostgresSource(conninfo, "orders")
    with reading(source, 1) as future:
        source.close()
        assert future.result(10) == []


def test_a_source_that_is_closed_ends_without_a_server() -> None:
    source = PostgresSource("host=127.0.0.1 port=1 connect_timeout=1", "orders")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: list(source.messages()))
        time.sleep(0.5)
        assert not future.done()
        source.close()
        assert future.result(10) == []
