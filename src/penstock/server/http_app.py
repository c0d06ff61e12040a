"""Build the HTTP application of ``penstock serve``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.errors import EnvironmentMissing, InputError
from penstock.server.http_security import Guard, RefusedRequest, answer_error, make_verify
from penstock.server.http_values import AgendaReader, Health, HttpSettings, Inbox, TokenVerifier
from penstock.server.metrics import Metrics
from penstock.server.recording import make_recorder
from penstock.server.routes import ROUTES, HealthProbe, ServedRoute, Services, answer_route

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

_THREADS = 4
_MESSAGES = {404: "there is no such page", 405: "the page does not support this method"}
_PAGES_HINT = "docs/serve.md lists the pages and their methods"


def create_app(
    inbox: Inbox,
    tokens: TokenVerifier,
    health: Callable[[], Health],
    settings: HttpSettings,
    *,
    agenda: AgendaReader | None = None,
    metrics: Metrics | None = None,
) -> Starlette:
    """Create the HTTP application.

    Args:
        inbox: The inbox for events. A `GroupInbox` records events that arrive together in one
            transaction.
        tokens: The tokens.
        health: Returns the health of the process. It is called in a thread.
        settings: The settings. `replace_settings` changes them later.
        agenda: The agenda to read; None if the process has none.
        metrics: The metrics of the process; None for only those of HTTP.

    Returns:
        The application. Its lifespan ends the threads.

    Raises:
        EnvironmentMissing: If Starlette or the client of Prometheus is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware

        metrics = metrics or Metrics()
    except ImportError:
        raise EnvironmentMissing(
            "penstock serve needs Starlette, uvicorn and prometheus-client",
            hint="pip install 'penstock-spark[serve]'",
        ) from None
    pool = ThreadPoolExecutor(_THREADS, "penstock-http")
    run = partial(_run_in_pool, pool)
    services = Services(
        settings=settings,
        recorder=make_recorder(inbox, settings),
        verify=make_verify(tokens, run),
        run=run,
        probe=HealthProbe(health),
        metrics=metrics,
        agenda=agenda,
    )
    app = Starlette(
        routes=[_build_route(route, services) for route in ROUTES],
        middleware=[Middleware(Guard, lambda: services.settings, metrics.count_request)],
        exception_handlers={HTTPException: _answer_exception, InputError: _answer_refusal},
        lifespan=partial(_manage_lifespan, services, pool),
    )
    app.router.redirect_slashes = False  # a redirect would contain the host of the request
    app.state.services = services
    return app


def replace_settings(app: Starlette, settings: HttpSettings) -> None:
    """Replace the settings of an application, for example after the project was reloaded.

    Args:
        app: The application from `create_app`.
        settings: The settings. The numbers of threads and the limits of `HttpServer` stay.
    """
    app.state.services.settings = settings


async def _run_in_pool(
    pool: ThreadPoolExecutor, function: Callable[..., Any], *arguments: Any
) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, function, *arguments)


def _build_route(route: ServedRoute, services: Services) -> Route:
    from starlette.routing import Route

    async def answer(request: Request) -> Response:
        return await answer_route(route, request, services)

    return Route(route.path, answer, methods=list(route.methods))


@asynccontextmanager
async def _manage_lifespan(
    services: Services, pool: ThreadPoolExecutor, _: Starlette
) -> AsyncIterator[None]:
    try:
        yield
    finally:
        services.recorder.close()
        services.probe.close()
        pool.shutdown(wait=False, cancel_futures=True)


async def _answer_exception(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    message = _MESSAGES.get(status, "the request cannot be answered")
    headers = getattr(error, "headers", None)
    return answer_error(RefusedRequest(status, message, hint=_PAGES_HINT, headers=headers))


async def _answer_refusal(_: Request, error: Exception) -> Response:
    if not isinstance(error, InputError):
        raise error
    return answer_error(error)
