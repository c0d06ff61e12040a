"""Refuse requests: by address, host, number and token. Nothing of a token reaches a log.

The order of the checks is the order of their cost. The host and the number of requests are checked
before anything else is read, the token before the body.
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
_LONGEST_SECRET = 512
_CLOSE = {"Connection": "close"}
RETRY_LATER = {"Retry-After": "1"}

Verify = Callable[[Sequence[str], str], Awaitable[bool]]


class RefusedRequest(InputError):
    """A request that is answered with an error.

    Attributes:
        status: The status of the answer.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Create the refusal.

        Args:
            status: The status of the answer.
            message: What is wrong.
            hint: The next step.
            headers: Further headers of the answer.
        """
        super().__init__(message, hint=hint)
        self.status = status
        self.headers = dict(headers or {})


class Unauthorized(RefusedRequest):
    """A request without a token that may do what it asks for. It says nothing of names."""

    def __init__(self) -> None:
        """Create the refusal, which is the same for all requests."""
        super().__init__(
            401,
            "the request has no token that may do this",
            hint="send the header Authorization: Bearer TOKEN; `penstock events token` creates one",
            headers={"WWW-Authenticate": "Bearer"},
        )


def check_address(host: str, *, tokens_exist: bool, trusted_proxy: str | None) -> None:
    """Check that others reach the server only if they need a token, or pass a proxy.

    Args:
        host: The address or name that the server listens on.
        tokens_exist: Whether there is a token that was not revoked.
        trusted_proxy: The address of the proxy in front of the server.

    Raises:
        ConfigError: If the address is not loopback, and there is neither.
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
    """Return whether only this machine reaches an address.

    Args:
        host: An address, or a name. Of names, only ``localhost`` is known to be local.

    Returns:
        True for the addresses of the loopback interface.
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
    """Compare a ``Host`` header with those that are accepted. A name alone has no port.

    Args:
        header: The value of the header.
        hosts: The accepted values; ``{port}`` stands for the port.
        port: The port of the server.

    Returns:
        Whether the header is equal to one of them. Case makes no difference.
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
    if not is_bearer or not secret or len(secret) > _LONGEST_SECRET or not secret.isascii():
        raise Unauthorized()
    return secret


async def authorize(
    request: Request, verify: Verify, limits: TokenLimits, name: str | None = None
) -> None:
    """Check the token of a request. The answer is the same for unknown names and wrong tokens.

    An address that has shown too many wrong tokens is answered with 429, unless this one is right.

    Args:
        request: The request.
        verify: Compares a secret with the tokens of names.
        limits: Counts wrong tokens.
        name: The message that the request sends. None asks for a token of `ANY_NAME`.

    Raises:
        Unauthorized: If there is no token of that name, or of `ANY_NAME`.
        RefusedRequest: If the address has shown too many wrong tokens.
    """
    names = (ANY_NAME,) if name is None else (name, ANY_NAME)
    try:
        secret = read_token(request)
        if secret is not None and await verify(names, secret):
            return
    except Unauthorized:
        secret = ""  # which is no token either
    address = request.client.host if request.client is not None else ""
    seconds = None if secret is None else limits.count_wrong(address)
    if seconds is None:
        raise Unauthorized()
    raise RefusedRequest(
        429,
        "too many requests of this address have had a wrong token",
        hint="send a token that is right; `penstock events token` creates one",
        headers={"Retry-After": str(seconds)},
    )


def make_verify(tokens: TokenVerifier, run: Callable[..., Awaitable[Any]]) -> Verify:
    """Return a function that verifies secrets in a thread.

    Args:
        tokens: The tokens.
        run: Runs a function with arguments in a thread.

    Returns:
        The function. It refuses the request if the tokens cannot be read.
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
    """Log an error without the values in its message, which may hold a payload or a token.

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
    """Return an answer.

    Args:
        status: Its status.
        document: The object of its body.
        headers: Further headers.

    Returns:
        The response, as JSON.
    """
    from starlette.responses import Response

    from penstock.rendering.wire import to_json

    body = to_json(document) + "\n"
    return Response(body, status, dict(headers or {}), media_type="application/json")


def answer_error(error: PenstockError, status: int | None = None) -> Response:
    """Return the answer to a request that fails.

    Args:
        error: The error.
        status: Its status; None for that of a refused request, and 422 for other errors.

    Returns:
        The response: message and next step.
    """
    if status is None:
        status = error.status if isinstance(error, RefusedRequest) else 422
    headers = error.headers if isinstance(error, RefusedRequest) else {}
    if status in _UNREAD:  # the rest of the body is not read: the connection has no next request
        headers = {**headers, **_CLOSE}
    return answer_json(status, {"error": {"message": error.message, "hint": error.hint}}, headers)


_UNREAD = frozenset({400, 401, 404, 405, 408, 413, 415, 421, 429, 500, 503})


@dataclass(slots=True)
class _Exchange:
    """A request and what was sent for it."""

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
    """An ASGI application around another: host, number of requests, headers, access log."""

    def __init__(
        self,
        app: ASGIApp,
        read_settings: Callable[[], HttpSettings],
        count: Callable[[str, int], None],
    ) -> None:
        """Create the guard of an application.

        Args:
            app: The application that answers.
            read_settings: Returns the settings of the moment.
            count: Is called with the route and the status of each answer.
        """
        self._app = app
        self._read_settings = read_settings
        self._count = count
        self._requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
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
            response = answer_error(_gives_up())
        except Exception as error:
            log_error("a request failed", error)
            response = answer_error(_failed(), 500)
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


def _gives_up() -> RefusedRequest:
    return RefusedRequest(503, "the answer takes too long", hint="send it again later")


def _failed() -> PenstockError:
    return PenstockError("the request failed", hint="the log of penstock serve has the error")


def _route(scope: Scope) -> str:
    """Return the path of the route, which has no value of the request."""
    return str(scope.get("state", {}).get("route", "none"))


def _log_access(exchange: _Exchange, route: str) -> None:
    """Log a request. Paths and queries are left out: people put tokens into them by mistake."""
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
