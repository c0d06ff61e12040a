"""Serve a project in this process: the HTTP server, the lease of the leader, and the service."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import ClaimLost, PenstockError
from penstock.scheduler.freshness import late_events
from penstock.scheduler.matching import Index
from penstock.scheduler.schedules import due_events
from penstock.scheduler.subscription import subscriptions_of
from penstock.server.ages import AgeReader, read_ages
from penstock.server.firing_pool import FiringPool
from penstock.server.firing_runner import find_attempt, find_original, run_firing
from penstock.server.late_notices import LateNoticeStore
from penstock.server.lateness import LatenessNotifier
from penstock.server.leases import Leadership
from penstock.server.opening import open_agenda
from penstock.server.retention import AgendaPruner
from penstock.server.served_project import ServedProject
from penstock.server.service import Service, ServiceSettings
from penstock.server.watching import FileWatches, LakeWatches, MessagePump, open_pumps
from penstock.uuid7 import new_uuid7

if TYPE_CHECKING:
    import threading

    from starlette.applications import Starlette

    from penstock.events import EventSink
    from penstock.project.context import ProjectContext
    from penstock.scheduler.subscription import Subscription
    from penstock.scheduler.values import Firing, Outcome, TriggerEvent
    from penstock.server.firing_runner import FiringEnd
    from penstock.server.http_server import HttpServer
    from penstock.server.http_values import HttpSettings
    from penstock.server.metrics import Metrics
    from penstock.settings.serve_settings import ServeSettings

LOG = logging.getLogger("penstock.serve")
_TAKE_INTERVAL = 1.0  # seconds between two attempts to take the lease
_FAREWELL = 10.0  # seconds that a notification may take at the end of the process


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of a server.

    Attributes:
        has_http: Whether the server answers HTTP.
        is_once: Whether the server ends when no firing can run any more.
        sink: Returns the sink for the events of a firing's run.
        clock: Returns the current time, for schedules and freshness.
    """

    has_http: bool = True
    is_once: bool = False
    sink: Callable[[Firing], EventSink] | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)


class Server:
    """Serves a project until it is stopped.

    Attributes:
        service: The service.
        store: The agenda.
        holder: The unique id of this process.
    """

    def __init__(self, context: ProjectContext, options: ServeOptions = ServeOptions()) -> None:
        """Open the agenda of a project.

        Args:
            context: The project.
            options: The options.

        Raises:
            PenstockError: If the catalog cannot be opened, or a trigger cannot be served.
        """
        self._options = options
        self._serve = context.settings.serve
        context.connections.serve_project(shares=self._serve.share)
        self.holder = new_uuid7()
        self.store = open_agenda(context)
        self._leadership = Leadership(self.store.catalog, self.holder)
        self._project = ServedProject(context, partial(_subscribe, self._serve))
        self._lateness = LatenessNotifier(
            LateNoticeStore(self.store.catalog),
            lambda: self._context,
            lambda: self._leadership.fence is not None,
        )
        self._metrics: Metrics | None = None
        self._app: Starlette | None = None
        self._files = FileWatches(self._project, self.store, self._serve.file_poll)
        self._ages = AgeReader(lambda: read_ages(self._context, self._options.clock()))
        self.service = self._build_service()

    def wake(self) -> None:
        """Start the next round at once."""
        self.service.wake()

    def stop(self) -> None:
        """Stop after the current round. Another thread or a signal handler may call it."""
        self.service.stop()

    def run(self, ready: Callable[[str | None], None] = lambda _: None) -> None:
        """Serve until `stop` is called.

        Args:
            ready: Called with the URL of the HTTP server when it answers; with None without HTTP.
        """
        with ExitStack() as stack:
            server = stack.enter_context(self._open_http()) if self._options.has_http else None
            for pump in self._open_pumps():
                pump.start()
                stack.callback(pump.stop)
            stack.callback(self._files.close)
            ready(None if server is None else server.url)
            with self._leadership:
                while not self.service.is_stopped:
                    self._lead_or_follow()
                self.service.drain()
                self._lateness.wait(_FAREWELL)

    def _lead_or_follow(self) -> None:
        """Lead while this process has the lease, or wait until the next attempt to take it."""
        fence = None
        try:
            fence = self._leadership.take()
        except PenstockError as error:
            self.service.last_error = str(error)
            LOG.error("the lease cannot be taken: %s", error)
        if fence is None:
            self.service.follow()
            self.service.wait(_TAKE_INTERVAL)
            return
        LOG.info("this process leads (fence %d)", fence)
        self.service.lead(fence, self._leadership.lost)

    def _build_service(self) -> Service:
        serve, project = self._serve, self._project
        return Service(
            project=project,
            store=self.store,
            pool=FiringPool(serve.slots, self._run_firing, self.wake),
            watches=(LakeWatches(project, self.store), self._files),
            producers=(due_events, late_events),
            settings=ServiceSettings(
                poll=serve.poll,
                backfill_share=serve.backfill_share,
                drain_timeout=serve.drain_timeout,
                idle_timeout=serve.idle_timeout,
                is_once=self._options.is_once,
            ),
            read_ages=self._ages,
            has_run=lambda run_id: find_attempt(self._context, run_id) is not None,
            find_original=lambda run_id: find_original(self._context, run_id),
            release=self._release_session,
            interrupt=self._interrupt_session,
            on_reload=self._replace_settings,
            listeners=(self, self._files),
            clock=self._options.clock,
            periodic_tasks=(
                AgendaPruner(self.store, lambda: self._context.settings.retention.records),
                self._lateness,
            ),
        )

    @property
    def _context(self) -> ProjectContext:
        return self._project.version.context

    def _release_session(self) -> None:
        self._context.connections.release_session()

    def _interrupt_session(self) -> None:
        self._context.connections.interrupt_session()

    def _run_firing(self, firing: Firing, cancelled: threading.Event) -> FiringEnd:
        sink = _log_event if self._options.sink is None else self._options.sink(firing)
        return run_firing(self._context, firing, cancelled, sink)

    def handle_decision(self, outcomes: Sequence[Outcome]) -> None:
        """Count the outcomes of a round in the metrics.

        Args:
            outcomes: The outcomes.
        """
        if self._metrics is not None:
            for outcome in outcomes:
                self._metrics.count_outcome(outcome.kind)

    def handle_end(self, end: FiringEnd) -> None:
        """Count the end of a firing in the metrics, and forget the ages that it has changed.

        Args:
            end: The end of the firing.
        """
        self._ages.reset()
        if self._metrics is None:
            return
        self._metrics.count_firing(end.firing.model, end.firing.state)
        if end.result is not None:
            self._metrics.observe_run(end.firing.model, end.result.seconds)

    def _open_pumps(self) -> list[MessagePump]:
        serve = self._serve
        names = {
            tuple(name.split(":", 1))
            for subscription in self._project.version.subscriptions.values()
            for name in subscription.messages
            if name.startswith(("kafka:", "postgres:"))
        }
        options = {
            "kafka": {
                "servers": ",".join(serve.kafka_servers),
                "group": f"penstock-{self._context.settings.name}",
            },
            "postgres": {"conninfo": serve.postgres_dsn or ""},
        }
        pairs = sorted((kind, name) for kind, name in names)
        accept = {"kafka": self.store.accept, "postgres": self._accept_if_leading}
        return open_pumps(pairs, options, accept, self.service.clock, self.service.wake)

    def _accept_if_leading(self, event: TriggerEvent) -> bool:
        """Record an event if this process leads: every process receives it, with different ids."""
        fence = self._leadership.fence
        if fence is None:
            return False
        try:
            return self.store.accept(event, fence=fence)
        except ClaimLost:
            return False

    @contextmanager
    def _open_http(self) -> Iterator[HttpServer]:
        from penstock.server.http_app import create_app
        from penstock.server.http_security import check_address
        from penstock.server.http_server import HttpServer
        from penstock.server.http_services import (
            AgendaInbox,
            AgendaView,
            TokenCheck,
            measure_health,
            read_lease,
        )
        from penstock.server.metrics import Metrics
        from penstock.server.tokens import TokenStore

        store, serve = self.store, self._serve
        tokens = TokenStore(store.catalog)
        valid = [token for token in tokens.list_tokens() if token.revoked_at is None]
        settings = self._read_http_settings()
        check_address(serve.host, tokens_exist=bool(valid), trusted_proxy=settings.trusted_proxy)
        self._metrics = Metrics()
        self._app = create_app(
            AgendaInbox(store, self.service.wake),
            TokenCheck(tokens),
            partial(
                measure_health, store.count, partial(read_lease, store), self.holder, self.service
            ),
            settings,
            agenda=AgendaView(store),
            metrics=self._metrics,
        )
        server = HttpServer(self._app, serve.host, serve.port)
        server.start()
        try:
            yield server
        finally:
            server.stop()

    def _replace_settings(self) -> None:
        if self._app is not None:
            from penstock.server.http_app import replace_settings

            replace_settings(self._app, self._read_http_settings())

    def _read_http_settings(self) -> HttpSettings:
        from penstock.server.http_services import read_http_settings

        version = self._project.version
        return read_http_settings(version.context.models, version.subscriptions, self._serve)


def _subscribe(serve: ServeSettings, context: ProjectContext) -> Mapping[str, Subscription]:
    return Index.of(subscriptions_of(context.models, serve))


def _log_event(event: object) -> None:
    LOG.debug("%s", event)
