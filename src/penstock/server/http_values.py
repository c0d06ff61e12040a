"""Values and protocols of the HTTP API: its settings, the health of the process, its services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.values import Firing, FiringState, Outcome, TriggerEvent

ANY_NAME = "*"
"""The name of tokens that permit all messages and all other requests."""
LOOPBACK_HOSTS = ("localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}")


class Inbox(Protocol):
    """Records events. Several threads call it."""

    def accept(self, event: TriggerEvent) -> bool:
        """Record an event. It is durable when the call returns.

        Args:
            event: The event.

        Returns:
            False if an event with its id was recorded before. Then nothing changes.
        """
        ...


@runtime_checkable
class GroupInbox(Inbox, Protocol):
    """An inbox that records many events in one transaction."""

    def accept_many(self, events: Sequence[TriggerEvent]) -> Sequence[bool]:
        """Record events in one transaction: all of them, or none if it fails.

        Args:
            events: The events. Their ids are distinct.

        Returns:
            The result of `Inbox.accept` for each event.
        """
        ...


class TokenVerifier(Protocol):
    """Verifies tokens. Several threads call it."""

    def verify(self, name: str, secret: str) -> bool:
        """Compare a secret with the tokens of a name, in constant time.

        Args:
            name: The name of a message, or `ANY_NAME`.
            secret: The secret of the request.

        Returns:
            Whether a valid token of the name has the secret.
        """
        ...


class AgendaReader(Protocol):
    """Reads the agenda. Several threads call it."""

    def list_firings(
        self, *, model: str | None, state: FiringState | None, limit: int
    ) -> Sequence[Firing]:
        """List firings, the newest first.

        Args:
            model: Only those of this model.
            state: Only those in this state.
            limit: The maximum number of firings.

        Returns:
            The firings.
        """
        ...

    def read_firing(self, firing_id: str) -> Firing | None:
        """Read a firing.

        Args:
            firing_id: The id of the firing.

        Returns:
            The firing; None if it does not exist.
        """
        ...

    def read_outcomes(self, event_id: str) -> Sequence[Outcome] | None:
        """Read the outcomes of an event.

        Args:
            event_id: The id of the event.

        Returns:
            An outcome for each model; empty before the decision. None if the event does not exist.
        """
        ...


@dataclass(frozen=True, slots=True)
class Health:
    """The health of a server process.

    Attributes:
        is_leader: Whether this process leads.
        holder: The process that leads; None if none does.
        queue_length: The number of firings that wait for a slot.
        oldest_waiting: The age in seconds of the oldest event without an outcome.
        last_error: The last error of a firing or of the process.
        problem: Why this process cannot work, for example because the catalog is unavailable.
    """

    is_leader: bool
    holder: str | None = None
    queue_length: int = 0
    oldest_waiting: float | None = None
    last_error: str | None = None
    problem: str | None = None

    @property
    def is_healthy(self) -> bool:
        """Return whether a process leads, and this process has no problem."""
        return self.holder is not None and self.problem is None


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The settings of the HTTP API. Times are in seconds, sizes in bytes.

    Attributes:
        names: The names of all messages, with the partition formats of the models that they
            trigger. A dynamic partition has its value in the payload.
        webhooks: The names of the messages of ``on webhook``, by model. `names` has them, too.
        uploads: The names of the messages of ``on data_upload``, by model. `names` has them, too.
        hosts: The accepted values of the header ``Host``. ``{port}`` is the port of the server.
        is_metrics_open: Whether ``/metrics`` needs no token.
        trusted_proxy: The address or network of proxies whose ``X-Forwarded-For`` names the client
            of a request; ``*`` for any, None for none.
        max_body: The maximum size of a body.
        body_timeout: The time limit for the arrival of a body.
        request_timeout: The time limit of a request.
        max_requests: The maximum number of concurrent requests, without those to ``/health``.
        head_timeout: The time limit for the arrival of the head of a request.
        max_connections: The maximum number of connections. One more closes the oldest connection
            without a request.
        accept_threads: The number of threads that record single events.
        group_window: How long the first event of a group waits for others.
        group_size: The maximum number of events in a group.
        max_waiting: The maximum number of events that wait to be recorded.
    """

    names: Mapping[str, tuple[PartitionSpec, ...]] = field(default_factory=dict)
    webhooks: Mapping[str, str] = field(default_factory=dict)
    uploads: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = LOOPBACK_HOSTS
    is_metrics_open: bool = False
    trusted_proxy: str | None = None
    max_body: int = 1 << 20
    body_timeout: float = 10.0
    request_timeout: float = 30.0
    max_requests: int = 200
    head_timeout: float = 10.0
    max_connections: int = 512
    accept_threads: int = 4
    group_window: float = 0.005
    group_size: int = 500
    max_waiting: int = 10_000
