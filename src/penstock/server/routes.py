"""The routes of the HTTP API: one table of paths, methods, handlers and permissions.

No route runs SQL of a request or opens a path of a request. The ids of a request are bound as
values.
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
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.distribution import VERSION
from penstock.errors import InputError
from penstock.masking import masked
from penstock.rendering.wire import plain, versioned
from penstock.scheduler.values import EventKind, FiringState, TriggerEvent, make_message_id
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
_LARGE_BODY = 64 << 10  # bytes; a larger body is parsed in a thread, to not block other requests
MAX_FIRINGS = 1000


class Permission(Enum):
    """The permissions that a route requires."""

    NONE = "nothing"
    MESSAGE = "a token of the message"
    ALL = "a token of all names"
    METRICS = "a token of all names, unless the settings say otherwise"


class HealthProbe:
    """Measures the health in a thread, at most once a second for all requests."""

    def __init__(self, health: Callable[[], Health], seconds: float = 2.0) -> None:
        """Create the probe.

        Args:
            health: Returns the health.
            seconds: The time limit of a measurement, in seconds.
        """
        self._health = health
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(1, "penstock-health")
        self._answer: tuple[float, Health] | None = None
        self._reading: Future[Health] | None = None

    async def read(self) -> Health:
        """Return the health. Concurrent requests share a measurement.

        Returns:
            The health. It has a ``problem`` if the measurement fails or takes too long.
        """
        if self._answer is not None and time.monotonic() - self._answer[0] < 1:
            return self._answer[1]
        if self._reading is None or self._reading.done():
            self._reading = self._pool.submit(self._measure)
        answer = asyncio.shield(asyncio.wrap_future(self._reading))
        try:
            return await asyncio.wait_for(answer, self._seconds)
        except TimeoutError:
            return _report_problem(f"cannot be read in {self._seconds:g} seconds")

    def _measure(self) -> Health:
        try:
            health = self._health()
        except Exception as error:
            log_error("the health cannot be read", error)
            health = _report_problem(f"cannot be read: {type(error).__name__}")
        self._answer = (time.monotonic(), health)
        return health

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _report_problem(reason: str) -> Health:
    return Health(is_leader=False, problem=f"the state of the process {reason}")


@dataclass(slots=True)
class Services:
    """The services that handlers use.

    Attributes:
        settings: The settings. `http_app.replace_settings` replaces them.
        recorder: Records events.
        verify: Verifies the secret of a token.
        run: Runs a function in a thread.
        probe: Measures the health.
        metrics: The metrics.
        agenda: Reads the agenda; None if the process has no agenda.
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
    """A row of the route table.

    Attributes:
        path: The path, in the syntax of Starlette.
        methods: The methods.
        handler: Answers a request.
        permission: The required permission.
        name: Returns the name of a message from the last part of the path; None if it has none.
        form: The syntax of the path, for error messages.
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
        request: The request. Its token is verified.
        services: The services.

    Returns:
        202 with the id of the event, or 200 if the event was recorded before.

    Raises:
        RefusedRequest: If the project has no such message, or the payload is not valid.
    """
    settings, name = services.settings, request.state.message
    if name is None or name not in settings.names:
        raise RefusedRequest(
            404,
            "the project has no such message",
            hint=f"send it to {request.state.form}, with the name in the header of a model",
        )
    check_content(request)
    event_id = _read_event_id(request, name)
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
    is_accepted = await _record_event(event, services)
    document = {"event": event_id, "accepted": is_accepted}
    return answer_json(202 if is_accepted else 200, document)


def _read_event_id(request: Request, name: str) -> str:
    keys = request.headers.getlist(KEY_HEADER)
    if not keys:
        return make_message_id(name, new_uuid7())
    if len(keys) > 1 or not _KEY.fullmatch(keys[0]):
        raise RefusedRequest(
            400,
            "the header Idempotency-Key is not valid",
            hint="send one key of 1 to 200 printable ASCII characters without blanks",
        )
    return make_message_id(name, keys[0])


async def _record_event(event: TriggerEvent, services: Services) -> bool:
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
            "the event may not have been recorded",
            hint="send it again with the same Idempotency-Key: it is recorded only once",
            headers=RETRY_LATER,
        ) from None
    services.metrics.count_message("accepted" if is_accepted else "repeated")
    return is_accepted


async def show_health(request: Request, services: Services) -> Response:
    """Answer with the health of the process.

    Args:
        request: The request. With a token for all names, the answer has details.
        services: The services.

    Returns:
        200 if the process is healthy, else 503.
    """
    has_token = "authorization" in request.headers
    if has_token:
        await authorize(request, services.verify, services.limits)
    health = await services.probe.read()
    document: dict[str, Any] = {"status": "ok" if health.is_healthy else "unavailable"}
    if has_token:
        details = {
            name: masked(value) if isinstance(value, str) else value
            for name, value in plain(health).items()
        }
        document |= {"version": VERSION, **details}
    return answer_json(200 if health.is_healthy else 503, document)


async def show_metrics(_: Request, services: Services) -> Response:
    """Answer with the metrics.

    Args:
        services: The services.

    Returns:
        The metrics in the text format of Prometheus.
    """
    from starlette.responses import Response

    body, content_type = services.metrics.render(await services.probe.read())
    return Response(body, headers={"Content-Type": content_type})


async def list_firings(request: Request, services: Services) -> Response:
    """Answer with the newest firings, without their payloads.

    Args:
        request: The request. The query may have ``model``, ``state`` and ``limit``.
        services: The services.

    Returns:
        The list of firings.
    """
    query = request.query_params
    read_firings = partial(
        _require_agenda(services).list_firings,
        model=_check_text(query.get("model")),
        state=_read_state(query),
        limit=_read_limit(query),
    )
    firings = await services.run(read_firings)
    rows = [plain(replace(firing, payload=None)) for firing in firings]
    return answer_json(200, versioned({"firings": rows}))


def _require_agenda(services: Services) -> AgendaReader:
    if services.agenda is None:
        raise RefusedRequest(
            404, "this process has no agenda", hint="send the request to penstock serve"
        )
    return services.agenda


def _check_text(value: str | None) -> str | None:
    """Return the value, unless it contains NUL: PostgreSQL cannot compare such a value."""
    if value is not None and "\x00" in value:
        raise RefusedRequest(400, "a value contains NUL", hint="send it without NUL")
    return value


def _read_state(query: Mapping[str, str]) -> FiringState | None:
    text = query.get("state")
    try:
        return FiringState(text) if text is not None else None
    except ValueError:
        states = ", ".join(state.value for state in FiringState)
        raise RefusedRequest(400, "there is no such state", hint=f"one of: {states}") from None


def _read_limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", "100")
    if text.isdecimal() and text.isascii() and len(text) < 6 and 1 <= int(text) <= MAX_FIRINGS:
        return int(text)
    hint = f"send a number from 1 to {MAX_FIRINGS}"
    raise RefusedRequest(400, "the limit is not valid", hint=hint)


async def show_firing(request: Request, services: Services) -> Response:
    """Answer with one firing.

    Args:
        request: The request.
        services: The services.

    Returns:
        The firing, with its payload.

    Raises:
        RefusedRequest: If there is no such firing.
    """
    firing_id = _check_text(request.path_params["id"])
    firing = await services.run(_require_agenda(services).read_firing, firing_id)
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
    event_id = _check_text(request.path_params["id"])
    outcomes = await services.run(_require_agenda(services).read_outcomes, event_id)
    if outcomes is None:
        hint = "use the id in the answer to the request that sent the event"
        raise RefusedRequest(404, "there is no such event", hint=hint)
    return answer_json(200, versioned({"event": event_id, "outcomes": list(outcomes)}))


def _define_post(path: str, name: Names, form: str) -> ServedRoute:
    return ServedRoute(path, ("POST",), send_message, Permission.MESSAGE, name, form)


def _define_get(
    path: str, handler: Handler, permission: Permission = Permission.ALL
) -> ServedRoute:
    return ServedRoute(path, ("GET",), handler, permission)


ROUTES = (
    _define_post("/events/{name:path}", lambda _, name: name, "/events/NAME"),
    _define_post(
        "/webhooks/{name:path}",
        lambda settings, model: settings.webhooks.get(model),
        "/webhooks/MODEL",
    ),
    _define_post(
        "/uploads/{name:path}",
        lambda settings, model: settings.uploads.get(model),
        "/uploads/MODEL",
    ),
    _define_get("/health", show_health, Permission.NONE),
    _define_get("/metrics", show_metrics, Permission.METRICS),
    _define_get("/firings", list_firings),
    _define_get("/firings/{id}", show_firing),
    _define_get("/events/{id:path}", show_event),
)


async def answer_route(route: ServedRoute, request: Request, services: Services) -> Response:
    """Check the permission of a request, and answer it.

    Args:
        route: The route.
        request: The request.
        services: The services.

    Returns:
        The answer of the handler.
    """
    request.state.route = route.path.replace(":path}", "}")
    await _CHECKS[route.permission](route, request, services)
    return await route.handler(request, services)


async def _authorize_message(route: ServedRoute, request: Request, services: Services) -> None:
    part = request.path_params["name"]
    name = route.name(services.settings, part) if route.name is not None else None
    request.state.message, request.state.form = name, route.form
    # If the model has no such message, verify the token against a name that no message has. So
    # neither the answer nor its duration reveals which models exist.
    message = route.form if name is None else name
    await authorize(request, services.verify, services.limits, message)


async def _authorize_all(_: ServedRoute, request: Request, services: Services) -> None:
    await authorize(request, services.verify, services.limits)


async def _authorize_metrics(_: ServedRoute, request: Request, services: Services) -> None:
    if not services.settings.is_metrics_open:
        await authorize(request, services.verify, services.limits)


async def _permit_everyone(_: ServedRoute, __: Request, ___: Services) -> None:
    """Permit every request."""


_CHECKS: Mapping[Permission, Callable[[ServedRoute, Request, Services], Awaitable[None]]] = {
    Permission.NONE: _permit_everyone,
    Permission.MESSAGE: _authorize_message,
    Permission.ALL: _authorize_all,
    Permission.METRICS: _authorize_metrics,
}
