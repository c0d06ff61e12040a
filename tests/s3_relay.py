"""A relay in front of the S3 server: it passes bytes on as they are, and notes what was asked.

The head of a request begins where a client speaks first or after an answer: neither S3A nor
pyarrow asks for the next thing on a connection before it has the last.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_HEAD = re.compile(rb"(GET|PUT|POST|DELETE|HEAD) (\S+) HTTP/1\.1\r\n")
_PIECE = 1 << 16


@dataclass(slots=True)
class Asked:
    """One request, ``headers`` by their names in lower case, and the bytes of its answer."""

    method: str
    path: str
    headers: dict[str, str]
    answered: int = 0

    @property
    def is_copy(self) -> bool:
        return "x-amz-copy-source" in self.headers


@dataclass(slots=True)
class Relay:
    endpoint: str
    asked: list[Asked] = field(default_factory=list)

    def copies(self) -> list[Asked]:
        return [one for one in self.asked if one.is_copy]


@contextmanager
def relay(endpoint: str) -> Iterator[Relay]:
    """A relay to the server at ``endpoint``, a URL, on a port of its own."""
    url = urlsplit(endpoint)
    server = (str(url.hostname), int(url.port or 80))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = Relay(f"http://127.0.0.1:{listening.getsockname()[1]}")
        taking = threading.Thread(target=_take, args=(listening, server, found), daemon=True)
        taking.start()
        yield found
        listening.shutdown(socket.SHUT_RDWR)


def _take(listening: socket.socket, server: tuple[str, int], found: Relay) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:  # the test is over
            return
        try:
            _Talk(client, socket.create_connection(server), found).start()
        except OSError:  # the server is over
            client.close()


class _Talk:
    """One connection of a client, and its own to the server."""

    def __init__(self, client: socket.socket, server: socket.socket, found: Relay) -> None:
        self.client, self.server, self.found = client, server, found
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = b""
        self.last: Asked | None = None

    def start(self) -> None:
        ways = ((self.client, self.server, self._ask), (self.server, self.client, self._answer))
        for way in ways:
            threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    def _pass_on(
        self, source: socket.socket, target: socket.socket, note: Callable[[bytes], None]
    ) -> None:
        """Until one of both ends: then the other has no one to speak to either."""
        with source, target:
            with suppress(OSError):
                while piece := source.recv(_PIECE):
                    note(piece)
                    target.sendall(piece)
            for end in (source, target):
                with suppress(OSError):  # it has ended already
                    end.shutdown(socket.SHUT_RDWR)

    def _answer(self, piece: bytes) -> None:
        if self.last is not None:
            self.last.answered += len(piece)

    def _ask(self, piece: bytes) -> None:
        if self.head or _HEAD.match(piece):
            self.head += piece
        lines, end, _ = self.head.partition(b"\r\n\r\n")
        if not end:
            return
        first, *rest = lines.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.partition(":") for line in rest)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        self.last = Asked(method, path, headers)
        self.found.asked.append(self.last)
        self.head = b""
