"""The routes of the HTTP side: one table of paths, methods, handlers and permissions.

No route runs SQL or opens a path of the request. Messages are recorded, and answers are read by
ids that are compared as values.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from penstock.distribution import VERSION
from penstock.errors import InputError
from penstock.masking import masked
from penstock.rendering.wire import plain, versioned
from penstock.scheduler.values import EventKind, FiringState, TriggerEvent
from penstock.server.http_security import (
    RETRY_LATER,
    RefusedRequest,
    Verify,
    answer_json,
    authorize,
    log_error,
)
from penstock.server.http_values import AgendaReader, Health, HttpSettings
from penstock.server.metrics import Metrics
from penstock.server.payloads import check_content, parse_payload, partitions_of, read_body
from penstock.server.recording import Recorder
from penstock.server.token_limits import TokenLimits
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

KEY_HEADER = "idempotency-key"
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_LARGE_BODY = 64 << 10  # one that is parsed in a thread, beside other requests
MOST_FIRINGS = 1000


class Permission(Enum):
    """The token that a request needs."""

    NONE = "nothing"
    MESSAGE = "a token of the message"
    ALL = "a token of all names"
    METRICS = "a token of all names, unless the settings say otherwise"


class HealthProbe:
    """Read the health in a thread, at most once a second, however often it is asked for."""

    def __init__(self, health: Callable[[], Health], seconds: float = 2.0) -> None:
        """Create the probe.

        Args:
            health: Returns the health.
            seconds: How long the process has for an answer.
        """
        self._health = health
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(1, "penstock-health")
        self._answer: tuple[float, Health] | None = None
        self._reading: Future[Health] | None = None

    async def read(self) -> Health:
        """Read the health. Requests that ask while it is being read wait for the same answer.

        Returns:
            The health. One that cannot be read, or not in time, is a problem.
        """
        if self._answer is not None and time.monotonic() - self._answer[0] < 1:
            return self._answer[1]
        if self._reading is None or self._reading.done():
            self._reading = self._pool.submit(self._measure)
        answer = asyncio.shield(asyncio.wrap_future(self._reading))
        try:
            return await asyncio.wait_for(answer, self._seconds)
        except TimeoutError:
            return _unknown(f"cannot be read in {self._seconds:g} seconds")

    def _measure(self) -> Health:
        try:
            health = self._health()
        except Exception as error:
            log_error("the health cannot be read", error)
            health = _unknown(f"cannot be read: {type(error).__name__}")
        self._answer = (time.monotonic(), health)
        return health

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _unknown(reason: str) -> Health:
    return Health(is_leader=False, problem=f"the state of the process {reason}")


@dataclass(slots=True)
class Services:
    """The services that handlers use.

    Attributes:
        settings: The settings. `replace_settings` of the application changes them.
        recorder: Records events.
        verify: Compares secrets.
        run: Runs a function in a thread.
        probe: Reads the health.
        metrics: The metrics.
        agenda: The reads of the agenda.
        limits: Counts wrong tokens.
    """

    settings: HttpSettings
    recorder: Recorder
    verify: Verify
    run: Callable[..., Awaitable[Any]]
    probe: HealthProbe
    metrics: Metrics
    agenda: AgendaReader | None = None
    limits: TokenLimits = field(default_factory=TokenLimits)


Handler = Callable[["Request", Services], Awaitable["Response"]]
Names = Callable[[HttpSettings, str], str | None]


@dataclass(frozen=True, slots=True)
class ServedRoute:
    """A row of the table.

    Attributes:
        path: The path, as Starlette writes it.
        methods: The methods.
        handler: Answers a request.
        permission: What the request has to show before.
        name: Returns the name of the message by the last part of the path; None if there is none.
        form: How a path is written, for people.
    """

    path: str
    methods: tuple[str, ...]
    handler: Handler
    permission: Permission
    name: Names | None = None
    form: str = ""


async def send_message(request: Request, services: Services) -> Response:
    """Record the message of a request.

    Args:
        request: The request. Its token was checked.
        services: The services.

    Returns:
        202 with the id of the event, or 200 if the event was recorded before.

    Raises:
        RefusedRequest: If there is no such message, or its payload cannot be taken.
    """
    settings, name = services.settings, request.state.message
    if name is None or name not in settings.names:
        raise RefusedRequest(
            404,
            "the project has no such message",
            hint=f"send it to {request.state.form}, as the header of a model has it",
        )
    check_content(request)
    event_id = _event_id(request, name)
    body = await read_body(request, limit=settings.max_body, seconds=settings.body_timeout)
    is_large = len(body) > _LARGE_BODY
    payload = await services.run(parse_payload, body) if is_large else parse_payload(body)
    partitions = set(partitions_of(payload, settings.names[name]))
    event = TriggerEvent(
        id=event_id,
        kind=EventKind.MESSAGE,
        source=name,
        time=datetime.now(UTC),
        partition=partitions.pop() if len(partitions) == 1 else None,
        payload=payload,
    )
    request.state.logged = {"name": name, "event": event_id}
    is_accepted = await _record(event, services)
    document = {"event": event_id, "accepted": is_accepted}
    return answer_json(202 if is_accepted else 200, document)


def _event_id(request: Request, name: str) -> str:
    keys = request.headers.getlist(KEY_HEADER)
    if not keys:
        return f"message:{name}/{new_uuid7()}"
    if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
        raise RefusedRequest(
            400,
            "the header Idempotency-Key has no value that can be used",
            hint="send one key of 1 to 200 letters, digits and signs, without blanks",
        )
    return f"message:{name}/{keys[0]}"


async def _record(event: TriggerEvent, services: Services) -> bool:
    try:
        is_accepted = await services.recorder.record(event)
    except InputError:
        services.metrics.count_message("refused")
        raise
    except Exception as error:
        services.metrics.count_message("failed")
        log_error("an event was not recorded", error)
        raise RefusedRequest(
            503,
            "it is not known whether the event was recorded",
            hint="send it again with the same Idempotency-Key, which records it once",
            headers=RETRY_LATER,
        ) from None
    services.metrics.count_message("accepted" if is_accepted else "repeated")
    return is_accepted


async def show_health(request: Request, services: Services) -> Response:
    """Answer whether the process works.

    Args:
        request: The request. A token of all names adds details.
        services: The services.

    Returns:
        200 or 503.
    """
    has_token = "authorization" in request.headers
    if has_token:
        await authorize(request, services.verify, services.limits)
    health = await services.probe.read()
    document: dict[str, Any] = {"status": "ok" if health.is_healthy else "unavailable"}
    if has_token:
        details = {name: _masked(value) for name, value in plain(health).items()}
        document |= {"version": VERSION, **details}
    return answer_json(200 if health.is_healthy else 503, document)


def _masked(value: Any) -> Any:
    return masked(value) if isinstance(value, str) else value


async def show_metrics(_: Request, services: Services) -> Response:
    """Answer with the metrics.

    Args:
        services: The services.

    Returns:
        The text of Prometheus.
    """
    from starlette.responses import Response

    body, content_type = services.metrics.render(await services.probe.read())
    return Response(body, headers={"Content-Type": content_type})


async def list_firings(request: Request, services: Services) -> Response:
    """Answer with the newest firings, without their payloads.

    Args:
        request: The request, which may filter by ``model`` and ``state``.
        services: The services.

    Returns:
        The list.
    """
    query = request.query_params
    firings = await services.run(
        lambda: _agenda(services).list_firings(
            model=_text(query.get("model")), state=_state(query), limit=_limit(query)
        )
    )
    rows = [plain(replace(firing, payload=None)) for firing in firings]
    return answer_json(200, versioned({"firings": rows}))


def _agenda(services: Services) -> AgendaReader:
    if services.agenda is None:
        raise RefusedRequest(404, "this process has no agenda", hint="ask one that serves")
    return services.agenda


def _text(value: str | None) -> str | None:
    """Return a text that every catalog can compare: PostgreSQL has no NUL."""
    if value is not None and "\x00" in value:
        raise RefusedRequest(400, "a value holds NUL", hint="leave it out")
    return value


def _state(query: Mapping[str, str]) -> FiringState | None:
    text = query.get("state")
    try:
        return FiringState(text) if text is not None else None
    except ValueError:
        states = ", ".join(state.value for state in FiringState)
        raise RefusedRequest(400, "there is no such state", hint=f"one of: {states}") from None


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", "100")
    if text.isdecimal() and text.isascii() and len(text) < 6 and 1 <= int(text) <= MOST_FIRINGS:
        return int(text)
    hint = f"write a number from 1 to {MOST_FIRINGS}"
    raise RefusedRequest(400, "the limit is no number that can be used", hint=hint)


async def show_firing(request: Request, services: Services) -> Response:
    """Answer with one firing.

    Args:
        request: The request.
        services: The services.

    Returns:
        The firing, with its payload.

    Raises:
        RefusedRequest: If there is none.
    """
    firing = await services.run(_agenda(services).read_firing, _text(request.path_params["id"]))
    if firing is None:
        raise RefusedRequest(404, "there is no such firing", hint="GET /firings lists them")
    return answer_json(200, versioned({"firing": firing}))


async def show_event(request: Request, services: Services) -> Response:
    """Answer with the outcomes of an event.

    Args:
        request: The request.
        services: The services.

    Returns:
        An outcome for each model.

    Raises:
        RefusedRequest: If there is no such event.
    """
    event_id = _text(request.path_params["id"])
    outcomes = await services.run(_agenda(services).read_outcomes, event_id)
    if outcomes is None:
        hint = "use the id that was answered when the event was sent"
        raise RefusedRequest(404, "there is no such event", hint=hint)
    return answer_json(200, versioned({"event": event_id, "outcomes": list(outcomes)}))


def _event_name(_: HttpSettings, part: str) -> str | None:
    return part


def _webhook_name(settings: HttpSettings, part: str) -> str | None:
    return settings.webhooks.get(part)


def _upload_name(settings: HttpSettings, part: str) -> str | None:
    return settings.uploads.get(part)


def _message(path: str, name: Names, form: str) -> ServedRoute:
    return ServedRoute(path, ("POST",), send_message, Permission.MESSAGE, name, form)


def _read(path: str, handler: Handler, permission: Permission = Permission.ALL) -> ServedRoute:
    return ServedRoute(path, ("GET",), handler, permission)


ROUTES = (
    _message("/events/{name}", _event_name, "/events/NAME"),
    _message("/webhooks/{name}", _webhook_name, "/webhooks/MODEL"),
    _message("/uploads/{name}", _upload_name, "/uploads/MODEL"),
    _read("/health", show_health, Permission.NONE),
    _read("/metrics", show_metrics, Permission.METRICS),
    _read("/firings", list_firings),
    _read("/firings/{id}", show_firing),
    _read("/events/{id:path}", show_event),
)


async def answer_route(route: ServedRoute, request: Request, services: Services) -> Response:
    """Check the permission of a request, and answer it.

    Args:
        route: The row of the table.
        request: The request.
        services: The services.

    Returns:
        The answer of its handler.
    """
    request.state.route = route.path
    await _PERMIT[route.permission](route, request, services)
    return await route.handler(request, services)


async def _permit_message(route: ServedRoute, request: Request, services: Services) -> None:
    part = request.path_params["name"]
    name = route.name(services.settings, part) if route.name is not None else None
    request.state.message, request.state.form = name, route.form
    # A model without such a message has no tokens. They are looked up all the same, by a name that
    # no message has, so that neither the answer nor its time says which models there are.
    message = route.form if name is None else name
    await authorize(request, services.verify, services.limits, message)


async def _permit_all(_: ServedRoute, request: Request, services: Services) -> None:
    await authorize(request, services.verify, services.limits)


async def _permit_metrics(_: ServedRoute, request: Request, services: Services) -> None:
    if not services.settings.is_metrics_open:
        await authorize(request, services.verify, services.limits)


async def _permit(_: ServedRoute, __: Request, ___: Services) -> None:
    """Permit every request."""


_PERMIT: Mapping[Permission, Callable[[ServedRoute, Request, Services], Awaitable[None]]] = {
    Permission.NONE: _permit,
    Permission.MESSAGE: _permit_message,
    Permission.ALL: _permit_all,
    Permission.METRICS: _permit_metrics,
}
