"""Check requests: address, host, concurrency and token. Tokens are never logged.

Cheap checks come first: the host, the number of concurrent requests, the token, and then the body.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, InputError, PenstockError
from penstock.server.client_address import find_client
from penstock.server.http_values import ANY_NAME, HttpSettings, TokenVerifier

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from penstock.server.token_limits import TokenLimits

LOG = logging.getLogger("penstock.http")
HEALTH_PATH = "/health"
SECURITY_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
_MAX_SECRET_LENGTH = 512
_CLOSE = {"Connection": "close"}
RETRY_LATER = {"Retry-After": "1"}

Verify = Callable[[Sequence[str], str], Awaitable[bool]]


class RefusedRequest(InputError):
    """An error whose response has a given HTTP status.

    Attributes:
        status: The status of the response.
        headers: Additional headers of the response.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Create the error.

        Args:
            status: The status of the response.
            message: What is wrong.
            hint: The next step.
            headers: Additional headers of the response.
        """
        super().__init__(message, hint=hint)
        self.status = status
        self.headers = dict(headers or {})


class Unauthorized(RefusedRequest):
    """A request without a sufficient token. The message reveals no names of messages."""

    def __init__(self) -> None:
        """Create the error. It is the same for all requests."""
        super().__init__(
            401,
            "the request has no token that may do this",
            hint="send the header Authorization: Bearer TOKEN; `penstock events token` creates one",
            headers={"WWW-Authenticate": "Bearer"},
        )


def check_address(host: str, *, tokens_exist: bool, trusted_proxy: str | None) -> None:
    """Check that a public server has a token or a trusted proxy.

    Args:
        host: The address or name that the server listens on.
        tokens_exist: Whether there is a token that was not revoked.
        trusted_proxy: The address of the proxy in front of the server.

    Raises:
        ConfigError: If the address is not loopback, and there is neither token nor proxy.
    """
    if tokens_exist or trusted_proxy or is_loopback(host):
        return
    raise ConfigError(
        f"penstock serve does not listen on {host or 'all addresses'}: there is no token yet, and "
        "no trusted proxy",
        hint="create a token with `penstock events token`, set trusted_proxy in [serve], or listen "
        "on 127.0.0.1",
    )


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable only from this machine.

    Args:
        host: An address or a name.

    Returns:
        True for loopback addresses and the name ``localhost``.
    """
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def is_allowed_host(header: str, hosts: Sequence[str], port: int | None) -> bool:
    """Return whether a ``Host`` header is accepted. A value without a port matches exactly.

    Args:
        header: The value of the header.
        hosts: The accepted values; ``{port}`` stands for the port.
        port: The port of the server.

    Returns:
        True if the header is equal to an accepted value, ignoring case.
    """
    return header.lower() in {host.replace("{port}", str(port)).lower() for host in hosts}


def read_token(request: Request) -> str | None:
    """Read the token of a request.

    Args:
        request: The request.

    Returns:
        The secret; None if the request has no header ``Authorization``.

    Raises:
        Unauthorized: If the header is not of the form ``Bearer TOKEN``.
    """
    headers = request.headers.getlist("authorization")
    if not headers:
        return None
    scheme, _, secret = headers[0].partition(" ")
    secret = secret.strip()
    is_bearer = scheme.lower() == "bearer" and len(headers) == 1
    if not is_bearer or not secret or len(secret) > _MAX_SECRET_LENGTH or not secret.isascii():
        raise Unauthorized()
    return secret


async def authorize(
    request: Request, verify: Verify, limits: TokenLimits, name: str | None = None
) -> None:
    """Check the token of a request. The error is the same for unknown names and wrong tokens.

    After too many wrong tokens from an address, the status is 429 instead of 401.

    Args:
        request: The request.
        verify: Compares a secret with the tokens of names.
        limits: Counts wrong tokens.
        name: The message that the request sends; None if only a token of `ANY_NAME` is sufficient.

    Raises:
        Unauthorized: If the request has no token of this name or of `ANY_NAME`.
        RefusedRequest: If the address has sent too many wrong tokens.
    """
    names = (ANY_NAME,) if name is None else (name, ANY_NAME)
    try:
        secret = read_token(request)
        if secret is not None and await verify(names, secret):
            return
    except Unauthorized:
        secret = ""  # counts as a wrong token
    address = request.client.host if request.client is not None else ""
    seconds = None if secret is None else limits.count_wrong(address)
    if seconds is None:
        raise Unauthorized()
    raise RefusedRequest(
        429,
        "too many requests from this address had a wrong token",
        hint="send a valid token; `penstock events token` creates one",
        headers={"Retry-After": str(seconds)},
    )


def make_verify(tokens: TokenVerifier, run: Callable[..., Awaitable[Any]]) -> Verify:
    """Return a function that verifies secrets in a thread.

    Args:
        tokens: The tokens.
        run: Runs a function with arguments in a thread.

    Returns:
        The function. It raises `RefusedRequest` if the tokens cannot be read.
    """

    def compare(names: Sequence[str], secret: str) -> bool:
        return any(tokens.verify(name, secret) for name in names)

    async def verify(names: Sequence[str], secret: str) -> bool:
        try:
            return bool(await run(compare, names, secret))
        except Exception as error:
            log_error("the tokens cannot be read", error)
            raise RefusedRequest(
                503,
                "the tokens cannot be read",
                hint="try again; the log of penstock serve has the error",
                headers=RETRY_LATER,
            ) from None

    return verify


def log_error(subject: str, error: BaseException) -> None:
    """Log an error without its message, which may contain a payload or a token.

    Args:
        subject: What failed.
        error: The error.
    """
    frames = traceback.format_tb(error.__traceback__)
    record = {"error": subject, "type": type(error).__name__, "traceback": "".join(frames)}
    LOG.error("%s", json.dumps(record))


def answer_json(
    status: int, document: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response.

    Args:
        status: The status.
        document: The object in the body.
        headers: Additional headers.

    Returns:
        The response.
    """
    from starlette.responses import Response

    from penstock.rendering.wire import to_json

    body = to_json(document) + "\n"
    return Response(body, status, dict(headers or {}), media_type="application/json")


def answer_error(error: PenstockError, status: int | None = None) -> Response:
    """Return the response for an error.

    Args:
        error: The error.
        status: The status; None for the status of a `RefusedRequest`, and 422 for other errors.

    Returns:
        The response with message and hint.
    """
    if status is None:
        status = error.status if isinstance(error, RefusedRequest) else 422
    headers = error.headers if isinstance(error, RefusedRequest) else {}
    if status in _UNREAD:  # the body is not read completely, so the connection cannot be reused
        headers = {**headers, **_CLOSE}
    return answer_json(status, {"error": {"message": error.message, "hint": error.hint}}, headers)


_UNREAD = frozenset({400, 401, 404, 405, 408, 413, 415, 421, 429, 500, 503})


@dataclass(slots=True)
class _Exchange:
    """A request with the status of its response."""

    scope: MutableMapping[str, Any]
    send: Send
    started: float = field(default_factory=time.monotonic)
    status: int | None = None

    async def forward(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
        await self.send(message)


class Guard:
    """ASGI middleware: host check, limit of requests, security headers and access log."""

    def __init__(
        self,
        app: ASGIApp,
        read_settings: Callable[[], HttpSettings],
        count: Callable[[str, int], None],
    ) -> None:
        """Create the middleware of an application.

        Args:
            app: The application.
            read_settings: Returns the current settings.
            count: Called with the route and the status of each response.
        """
        self._app = app
        self._read_settings = read_settings
        self._count = count
        self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it to the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, send)
        is_counted = scope["path"] != HEALTH_PATH
        self._requests += is_counted
        try:
            await self._answer(exchange, receive)
        finally:
            self._requests -= is_counted
            route = _route(scope)
            self._count(route, exchange.status or 499)
            _log_access(exchange, route)

    async def _answer(self, exchange: _Exchange, receive: Receive) -> None:
        scope, settings = exchange.scope, self._read_settings()
        scope["client"] = (_client_of(scope, settings), 0)
        try:
            self._check(scope, settings)
            async with asyncio.timeout(settings.request_timeout):
                await self._app(scope, receive, exchange.forward)
            return
        except RefusedRequest as error:
            response = answer_error(error)
        except TimeoutError:
            response = answer_error(_timeout_error())
        except Exception as error:
            log_error("a request failed", error)
            response = answer_error(_internal_error(), 500)
        if exchange.status is None:
            await response(scope, receive, exchange.forward)

    def _check(self, scope: Scope, settings: HttpSettings) -> None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        port = (scope.get("server") or (None, None))[1]
        header = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not is_allowed_host(header, settings.hosts, port):
            raise RefusedRequest(
                421,
                "this server does not answer for the host of the request",
                hint="use the address that penstock serve prints, or list the name in "
                "allowed_hosts of [serve]",
            )
        if self._requests > settings.max_requests:  # never true in a request to /health
            raise RefusedRequest(
                503,
                f"{settings.max_requests} requests are being answered",
                hint="send it again later",
                headers=RETRY_LATER,
            )


def _client_of(scope: Scope, settings: HttpSettings) -> str:
    headers = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    forwarded = [value.decode("latin-1") for value in headers]
    peer = (scope.get("client") or (None,))[0]
    return find_client(peer, forwarded, settings.trusted_proxy)


def _timeout_error() -> RefusedRequest:
    return RefusedRequest(503, "the answer takes too long", hint="send it again later")


def _internal_error() -> PenstockError:
    return PenstockError("the request failed", hint="the log of penstock serve has the error")


def _route(scope: Scope) -> str:
    """Return the path template of the route. It contains no values of the request."""
    return str(scope.get("state", {}).get("route", "none"))


def _log_access(exchange: _Exchange, route: str) -> None:
    """Log a request without path and query. Users put tokens into them by mistake."""
    scope = exchange.scope
    record = {
        "method": scope["method"][:16],
        "route": route,
        "status": exchange.status,
        "seconds": round(time.monotonic() - exchange.started, 6),
        "client": (scope.get("client") or (None,))[0],
        **scope.get("state", {}).get("logged", {}),
    }
    LOG.info("%s", json.dumps(record))
