"""Run the HTTP application in uvicorn, in a thread of the server process.

A silent connection uses a socket but no thread. uvicorn counts silent connections as requests, so
this module limits connections itself. The head of a request and its answer have a time limit. When
there are too many connections, a new one closes the oldest one without a request. So ``/health`` is
answered however many silent connections there are.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, EnvironmentMissing
from penstock.server.http_values import HttpSettings

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from uvicorn.protocols.http.h11_impl import H11Protocol

_MAX_HEAD = 16 << 10  # bytes of the request line and the headers
_KEEP_ALIVE = 5  # seconds
_GRACE = 1.0  # seconds after the request timeout, in which the application answers with an error
_SWEEP_INTERVAL = 0.5  # seconds
_START_TIMEOUT = 30.0  # seconds


@dataclass(slots=True)
class _Phase:
    """The phase of a connection: it is idle, or has a request, since a time."""

    request: object | None = None
    is_idle: bool = True
    since: float = field(default_factory=time.monotonic)


class ConnectionTable:
    """The open connections, the oldest first. Only the server thread uses it."""

    def __init__(self, settings: HttpSettings) -> None:
        """Create a table without connections.

        Args:
            settings: The limits.
        """
        self._settings = settings
        self._phases: dict[H11Protocol, _Phase] = {}
        self._is_sweeping = False

    def add(self, connection: H11Protocol) -> None:
        """Add a connection. If there are too many, close the oldest one without a request.

        Args:
            connection: The connection.
        """
        self._phases[connection] = _Phase()
        if len(self._phases) > self._settings.max_connections:
            idle = (item for item in self._phases if _find_request(item) is None)
            self._close(next(idle, connection))
        if not self._is_sweeping:
            self._is_sweeping = True
            connection.loop.call_later(_SWEEP_INTERVAL, self._close_late, connection.loop)

    def discard(self, connection: H11Protocol) -> None:
        """Remove a connection that has ended.

        Args:
            connection: The connection.
        """
        self._phases.pop(connection, None)

    def _close_late(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connections whose phase is over its time limit, and schedule the next call."""
        moment = time.monotonic()
        settings = self._settings
        for connection, phase in list(self._phases.items()):
            request = connection.cycle
            is_idle = _find_request(connection) is None
            limit = settings.head_timeout if is_idle else settings.request_timeout + _GRACE
            if (phase.request, phase.is_idle) != (request, is_idle):
                self._phases[connection] = _Phase(request, is_idle, moment)
            elif moment - phase.since > limit:
                self._close(connection)
        self._is_sweeping = bool(self._phases)
        if self._is_sweeping:
            loop.call_later(_SWEEP_INTERVAL, self._close_late, loop)

    def _close(self, connection: H11Protocol) -> None:
        self.discard(connection)
        connection.transport.abort()  # `close` would wait for a client that reads nothing


def _find_request(connection: H11Protocol) -> object | None:
    """Return the unanswered request of a connection; None if there is none."""
    cycle = connection.cycle
    return None if cycle is None or cycle.response_complete else cycle


def _build_protocol(connections: ConnectionTable) -> type[H11Protocol]:
    """Return uvicorn's protocol, extended to add its connections to a table."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class LimitedProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own signature
            super().connection_made(transport)
            connections.add(self)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.discard(self)
            super().connection_lost(exc)

    return LimitedProtocol


class HttpServer:
    """An HTTP server in a thread. It installs no signal handlers."""

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        """Create a server that does not listen yet.

        Args:
            app: The application from `create_app`. Its settings limit the connections.
            host: The address or name to listen on.
            port: The port; 0 for any free port.
        """
        self._app = app
        self._host = host
        self._port = port
        self._settings: HttpSettings = app.state.services.settings
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Return the port that the server listens on."""
        return self._port

    @property
    def url(self) -> str:
        """Return the URL of the server."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def start(self) -> None:
        """Start the server thread, and wait until it answers requests.

        An address or port that cannot be used is a ConfigError.

        Raises:
            EnvironmentMissing: If uvicorn is not installed.
        """
        try:
            import uvicorn
        except ImportError:
            raise EnvironmentMissing(
                "penstock serve needs uvicorn", hint="pip install 'penstock-spark[serve]'"
            ) from None
        self._socket = _listen(self._host, self._port)
        self._port = self._socket.getsockname()[1]
        server = uvicorn.Server(self._build_config())
        run = partial(server.run, sockets=[self._socket])
        thread = threading.Thread(target=run, name="penstock-http", daemon=True)
        self._server, self._thread = server, thread
        thread.start()
        _await_start(server, thread)

    def stop(self, seconds: float = 10.0) -> None:
        """Answer the open requests, and stop.

        Args:
            seconds: How long to wait for the end of the thread.
        """
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(seconds)
        if self._socket is not None:
            self._socket.close()

    def _build_config(self) -> uvicorn.Config:
        import uvicorn

        settings = self._settings
        options: dict[str, Any] = {
            "access_log": False,  # the application writes an access log
            "h11_max_incomplete_event_size": _MAX_HEAD,
            "http": _build_protocol(ConnectionTable(settings)),
            "lifespan": "on",
            "log_config": None,
            "log_level": "warning",  # no messages about the start and end of uvicorn
            "loop": "asyncio",
            "proxy_headers": False,  # the application reads them: see `client_address`
            "server_header": False,
            "timeout_graceful_shutdown": 5,
            "timeout_keep_alive": _KEEP_ALIVE,
            "ws": "none",
        }
        return uvicorn.Config(self._app, **options)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(host, port, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except (OSError, OverflowError) as error:
        listener.close()
        raise _cannot_listen(host, port, error) from None
    return listener


def _cannot_listen(host: str, port: int, error: Exception) -> ConfigError:
    return ConfigError(
        f"penstock serve cannot listen on {host}:{port}: {error}",
        hint="set another host or port in [serve], or stop the process that uses the port",
    )


def _await_start(server: uvicorn.Server, thread: threading.Thread) -> None:
    deadline = time.monotonic() + _START_TIMEOUT
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            server.should_exit = True
            raise ConfigError(
                "the HTTP server did not start", hint="the log of penstock serve has the error"
            )
        time.sleep(0.01)
