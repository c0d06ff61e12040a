"""A server on a port: silent and slow clients, bodies without end, keys at once."""

from __future__ import annotations

import http.client
import json
import logging
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.server.http_server import HttpServer
from tests.server.http_parts import (
    SETTINGS,
    GroupMemoryInbox,
    MemoryInbox,
    bearer,
    head,
    make_app,
    serving,
)

SILENT = 1000
HASTY = replace(SETTINGS, body_timeout=0.5, head_timeout=0.5, request_timeout=2.0)


def get(port: int, path: str, name: str | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={} if name is None else bearer(name))
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def post(port: int, path: str, body: str, headers: dict[str, str]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", path, body, {"Content-Type": "application/json"} | headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


@contextmanager
def many_files(number: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(number, hard)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def read_all(client: socket.socket) -> bytes:
    content = b""
    with suppress(ConnectionError):
        while part := client.recv(65536):
            content += part
    return content


def test_silent_connections_do_not_stop_the_health() -> None:
    with many_files(4 * SILENT), serving(make_app()) as server, ExitStack() as stack:
        for _ in range(SILENT):
            stack.enter_context(connect(server.port))
        started = time.monotonic()
        assert get(server.port, "/health").status == 200
        assert time.monotonic() - started < 5  # none of them is cut off before


def test_a_connection_over_the_limit_closes_the_oldest() -> None:
    app = make_app(settings=replace(SETTINGS, max_connections=20))
    with serving(app) as server, ExitStack() as stack:
        clients = [stack.enter_context(connect(server.port)) for _ in range(30)]
        assert get(server.port, "/health").status == 200
        for client in clients[:10]:
            assert read_all(client) == b""
        clients[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            clients[-1].recv(1)


def test_silent_connections_are_closed() -> None:
    with serving(make_app(settings=HASTY)) as server, connect(server.port) as client:
        client.sendall(b"POST /events/orders HTTP/1.1\r\nHost:")
        started = time.monotonic()
        assert read_all(client) == b""
        assert time.monotonic() - started < 5


def test_a_head_byte_by_byte_is_cut_off() -> None:
    with serving(make_app(settings=HASTY)) as server, connect(server.port) as client:
        sent = send_slowly(client, head(server.port, "/events/orders"))
        assert sent < 100


def send_slowly(client: socket.socket, content: bytes) -> int:
    """Send a byte each 20 ms until the server closes; return their number."""
    for number, byte in enumerate(content):
        try:
            client.sendall(bytes([byte]))
        except ConnectionError:
            return number
        time.sleep(0.02)
    return len(content)


def test_a_body_byte_by_byte_is_cut_off() -> None:
    inbox = MemoryInbox()
    with serving(make_app(inbox, settings=HASTY)) as server, connect(server.port) as client:
        client.sendall(head(server.port, "/events/orders", "Content-Length: 400"))
        assert send_slowly(client, b'{"a": ' + b"1" * 394) < 100
        assert b" 408 " in read_all(client)
    assert not inbox.events


def test_other_requests_are_answered_while_a_body_is_slow() -> None:
    with serving(make_app()) as server, ExitStack() as stack:
        for _ in range(100):
            client = stack.enter_context(connect(server.port))
            client.sendall(head(server.port, "/events/orders", "Content-Length: 9") + b"{")
        assert post(server.port, "/events/orders", "{}", bearer("orders"))[0] == 202


def memory_in_use() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if "VmRSS" in line)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("coding", ["Content-Length: 100000000", "Transfer-Encoding: chunked"])
def test_a_long_body_is_refused_and_not_held(coding: str) -> None:
    with serving(make_app()) as server, connect(server.port) as client:
        before = memory_in_use()
        client.sendall(head(server.port, "/events/orders", coding))
        megabyte = b" " * (1 << 20)
        part = b"%x\r\n%b\r\n" % (len(megabyte), megabyte) if "chunked" in coding else megabyte
        with suppress(ConnectionError):
            for _ in range(100):
                client.sendall(part)
        assert b" 413 " in read_all(client)
        assert memory_in_use() - before < 20 << 20


def test_a_body_that_is_announced_too_long_is_not_awaited() -> None:
    with serving(make_app()) as server, connect(server.port) as client:
        client.sendall(head(server.port, "/events/orders", "Content-Length: 100000000"))
        assert b" 413 " in read_all(client)


def test_a_body_without_a_token_is_not_awaited() -> None:
    with serving(make_app()) as server, connect(server.port) as client:
        request = head(server.port, "/events/orders", "Content-Length: 100")
        client.sendall(request.replace(b"Bearer ", b"Bearer x"))
        assert b" 401 " in read_all(client)


@pytest.mark.parametrize("inbox", [MemoryInbox(0.01), GroupMemoryInbox(0.01)])
def test_a_key_at_once_is_accepted_once(inbox: MemoryInbox) -> None:
    headers = bearer("orders") | {"Idempotency-Key": "1"}
    with serving(make_app(inbox)) as server, ThreadPoolExecutor(8) as pool:
        posts = [pool.submit(post, server.port, "/events/orders", "{}", headers) for _ in range(8)]
        answers = [done.result() for done in posts]
    assert sorted(status for status, _ in answers) == [200] * 7 + [202]
    assert {json.loads(content)["event"] for _, content in answers} == set(inbox.events)


def test_requests_of_one_connection_are_answered_in_order() -> None:
    inbox = MemoryInbox()
    with serving(make_app(inbox)) as server, connect(server.port) as client:
        for lines in (["Idempotency-Key: 1"], ["Idempotency-Key: 2", "Connection: close"]):
            client.sendall(head(server.port, "/events/orders", *lines, "Content-Length: 2") + b"{}")
        assert read_all(client).count(b" 202 ") == 2
    assert list(inbox.events) == ["message:orders/1", "message:orders/2"]


def test_a_port_in_use_is_an_error() -> None:
    with serving(make_app()) as server:
        second = HttpServer(make_app(), "127.0.0.1", server.port)
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{server.port}"):
            second.start()


@pytest.mark.parametrize(("host", "port"), [("no such host", 0), ("192.0.2.1", 0)])
def test_an_address_that_is_not_here_is_an_error(host: str, port: int) -> None:
    with pytest.raises(ConfigError, match="cannot listen"):
        HttpServer(make_app(), host, port).start()


def test_the_server_ends_with_its_thread_and_leaves_signals_alone() -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with serving(make_app()) as server, connect(server.port):
        assert server.url == f"http://127.0.0.1:{server.port}"
        assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert not [thread for thread in threading.enumerate() if thread.name == "penstock-http"]
    with pytest.raises(ConnectionError):
        connect(server.port)


def test_the_server_ends_while_a_body_is_awaited() -> None:
    with serving(make_app()) as server, connect(server.port) as client:
        client.sendall(head(server.port, "/events/orders", "Content-Length: 9") + b"{")
        time.sleep(0.1)
        started = time.monotonic()
        server.stop()
        assert time.monotonic() - started < 9
        assert b" 202 " not in read_all(client)


def test_a_head_that_is_too_long_is_refused() -> None:
    with serving(make_app()) as server, connect(server.port) as client:
        with suppress(ConnectionError):
            client.sendall(head(server.port, "/events/orders", "X-Long: " + "x" * 100_000))
        assert b" 400 " in read_all(client)


def test_the_access_log_is_json(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "penstock.http")
    with serving(make_app()) as server:
        headers = bearer("orders") | {"Idempotency-Key": "7"}
        post(server.port, "/events/orders?token=abc", "{}", headers)
    (record,) = [json.loads(r.getMessage()) for r in caplog.records if r.name == "penstock.http"]
    assert (record["route"], record["status"]) == ("/events/{name}", 202)
    assert (record["event"], record["client"]) == ("message:orders/7", "127.0.0.1")
    assert "abc" not in caplog.text
