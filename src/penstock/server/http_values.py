"""Values and protocols of the HTTP side: its settings, the health of the process, what it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from penstock.model.time.partition import PartitionSpec
from penstock.scheduler.values import Firing, FiringState, Outcome, TriggerEvent

ANY_NAME = "*"
"""The name of tokens that may send all messages and read all answers."""
LOOPBACK_HOSTS = ("localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}")


class Inbox(Protocol):
    """The record of events. It is called from several threads."""

    def accept(self, event: TriggerEvent) -> bool:
        """Record an event. It is durable when the call returns.

        Args:
            event: The event.

        Returns:
            False if an event of its id was recorded before; nothing has changed then.
        """
        ...


@runtime_checkable
class GroupInbox(Inbox, Protocol):
    """An inbox that records many events in one transaction."""

    def accept_many(self, events: Sequence[TriggerEvent]) -> Sequence[bool]:
        """Record events in one transaction: all of them, or none if it raises.

        Args:
            events: The events; no two have the same id.

        Returns:
            For each event, what `Inbox.accept` returns.
        """
        ...


class TokenVerifier(Protocol):
    """The tokens. It is called from several threads."""

    def verify(self, name: str, secret: str) -> bool:
        """Compare a secret with the tokens of a name, in constant time.

        Args:
            name: The name of a message, or `ANY_NAME`.
            secret: The secret, as it arrived.

        Returns:
            Whether it is a token of the name that was not revoked.
        """
        ...


class AgendaReader(Protocol):
    """The reads of the agenda. It is called from several threads."""

    def list_firings(
        self, *, model: str | None, state: FiringState | None, limit: int
    ) -> Sequence[Firing]:
        """List firings, the newest first.

        Args:
            model: Only those of this model.
            state: Only those in this state.
            limit: The number of firings at most.

        Returns:
            The firings.
        """
        ...

    def read_firing(self, firing_id: str) -> Firing | None:
        """Read a firing.

        Args:
            firing_id: Its id.

        Returns:
            The firing; None if there is none.
        """
        ...

    def read_outcomes(self, event_id: str) -> Sequence[Outcome] | None:
        """Read what became of an event.

        Args:
            event_id: Its id.

        Returns:
            An outcome for each model that has decided; None if there is no such event.
        """
        ...


@dataclass(frozen=True, slots=True)
class Health:
    """Hold the state of a process of ``penstock serve``.

    Attributes:
        is_leader: Whether this process decides.
        holder: The process that decides; None if none does.
        queue_length: The number of firings that wait for a slot.
        oldest_waiting: The age in seconds of the oldest event without an outcome.
        last_error: The last error of a firing or of the process.
        problem: What keeps this process from its work, as a catalog that is not reached.
    """

    is_leader: bool
    holder: str | None = None
    queue_length: int = 0
    oldest_waiting: float | None = None
    last_error: str | None = None
    problem: str | None = None

    @property
    def is_healthy(self) -> bool:
        """Return whether some process decides, and nothing keeps this one from its work."""
        return self.holder is not None and self.problem is None


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Hold the settings of the HTTP side.

    Attributes:
        names: The messages of the project (``on event``), each with the partitions of the models
            that it triggers. Dynamic ones take their value from the payload.
        webhooks: The names of the messages of ``on webhook``, by model. They are in `names`, too.
        uploads: The same of ``on data_upload``.
        hosts: The accepted values of the header ``Host``. ``{port}`` is the port of the server.
        is_metrics_open: Whether ``/metrics`` needs no token.
        trusted_proxy: The address or network of proxies whose ``X-Forwarded-For`` says where a
            request comes from; ``*`` for any, None for none.
        max_body: The size in bytes of a body at most.
        body_timeout: The seconds in which a body has to arrive.
        request_timeout: The seconds after which a request is given up.
        max_requests: The number of requests at once, without those to ``/health``.
        head_timeout: The seconds in which the head of a request has to arrive.
        max_connections: The number of connections at once. A further one closes the oldest that
            has sent no request.
        accept_threads: The number of threads that record events one by one.
        group_window: The seconds that events wait for others to be recorded with.
        group_size: The number of events of a transaction at most.
        max_waiting: The number of events that wait to be recorded at most.
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
