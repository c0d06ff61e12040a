"""Metrics of a server process, in the text format of Prometheus.

Each `Metrics` has its own registry, so servers in one process do not share counters. Labels are the
names of models and routes, never values of a request.
"""

from __future__ import annotations

from penstock.scheduler.values import FiringState, OutcomeKind
from penstock.server.http_values import Health

RUN_SECONDS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400)


class Metrics:
    """The counters and gauges of a process. Its methods may be called from any thread."""

    def __init__(self) -> None:
        """Create the metrics and their registry."""
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = registry = CollectorRegistry()
        self._firings = Counter(
            "penstock_firings", "Firings by state", ["model", "state"], registry=registry
        )
        self._events = Counter(
            "penstock_events", "Outcomes of events", ["outcome"], registry=registry
        )
        self._messages = Counter(
            "penstock_messages", "Messages by answer", ["answer"], registry=registry
        )
        self._requests = Counter(
            "penstock_http_requests", "Requests", ["route", "status"], registry=registry
        )
        self._run_seconds = Histogram(
            "penstock_run_seconds",
            "Seconds of runs",
            ["model"],
            buckets=RUN_SECONDS,
            registry=registry,
        )
        self._queue = Gauge(
            "penstock_queue_length", "Firings that wait for a slot", registry=registry
        )
        self._oldest = Gauge(
            "penstock_oldest_waiting_seconds",
            "Age of the oldest event without an outcome",
            registry=registry,
        )
        self._leader = Gauge("penstock_leader", "1 in the process that decides", registry=registry)
        self._healthy = Gauge("penstock_healthy", "1 if /health answers 200", registry=registry)

    def count_firing(self, model: str, state: FiringState) -> None:
        """Count a firing that has entered a state.

        Args:
            model: Its model.
            state: The state.
        """
        self._firings.labels(model, state.value).inc()

    def count_outcome(self, outcome: OutcomeKind) -> None:
        """Count an outcome of an event.

        Args:
            outcome: The kind of the outcome.
        """
        self._events.labels(outcome.value).inc()

    def count_message(self, answer: str) -> None:
        """Count a message that was answered.

        Args:
            answer: ``accepted``, ``repeated``, ``refused`` or ``failed``.
        """
        self._messages.labels(answer).inc()

    def count_request(self, route: str, status: int) -> None:
        """Count a request.

        Args:
            route: The path of its route, without values.
            status: The status of the answer.
        """
        self._requests.labels(route, str(status)).inc()

    def observe_run(self, model: str, seconds: float) -> None:
        """Record the duration of a run.

        Args:
            model: The model of its firing.
            seconds: The duration.
        """
        self._run_seconds.labels(model).observe(seconds)

    def render(self, health: Health | None) -> tuple[bytes, str]:
        """Return all metrics.

        Args:
            health: The current health; None if it cannot be read.

        Returns:
            The text, and its content type.
        """
        from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

        self._healthy.set(health is not None and health.is_healthy)
        if health is not None:
            self._queue.set(health.queue_length)
            self._oldest.set(health.oldest_waiting or 0.0)
            self._leader.set(health.is_leader)
        return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4
