"""Connect the HTTP API with the agenda of a project."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.scheduler.values import Firing, FiringState, Outcome, TriggerEvent
from penstock.server.http_values import LOOPBACK_HOSTS, Health, HttpSettings
from penstock.server.leases import LEADER, find_lease

if TYPE_CHECKING:
    from penstock.model.definition.model import Model
    from penstock.model.time.partition import PartitionSpec
    from penstock.scheduler.subscription import Subscription
    from penstock.server.agenda_queries import AgendaCounts
    from penstock.server.agenda_store import AgendaStore
    from penstock.server.leases import Lease
    from penstock.server.service import Service
    from penstock.server.tokens import TokenStore
    from penstock.settings.serve_settings import ServeSettings

_MAX_SCANNED = 10_000  # firings; a filter by state reads at most this many


class AgendaInbox:
    """Records events that arrive by HTTP, and starts the next round of the service."""

    def __init__(self, store: AgendaStore, wake: Callable[[], None]) -> None:
        """Create an inbox.

        Args:
            store: The agenda.
            wake: Called after events are recorded, to start the next round.
        """
        self._store = store
        self._wake = wake

    def accept(self, event: TriggerEvent) -> bool:
        """Record an event.

        Args:
            event: The event.

        Returns:
            False if an event with its id was recorded before.
        """
        return self.accept_many([event])[0]

    def accept_many(self, events: Sequence[TriggerEvent]) -> Sequence[bool]:
        """Record events in one transaction.

        Args:
            events: The events.

        Returns:
            For each event, whether it is new.
        """
        accepted = self._store.accept_all(events)
        self._wake()
        return accepted


class TokenCheck:
    """Verifies the secrets of requests by the tokens in the catalog."""

    def __init__(self, tokens: TokenStore) -> None:
        """Create a check.

        Args:
            tokens: The tokens.
        """
        self._tokens = tokens

    def verify(self, name: str, secret: str) -> bool:
        """Compare a secret with the tokens of a name.

        Args:
            name: The name of a message, or ``*``.
            secret: The secret.

        Returns:
            Whether a valid token of the name has the secret.
        """
        return self._tokens.verify(name, secret) is not None


class AgendaView:
    """Reads the agenda for the HTTP API."""

    def __init__(self, store: AgendaStore) -> None:
        """Create a view.

        Args:
            store: The agenda.
        """
        self._store = store

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
        records = self._store.list_firings(limit if state is None else _MAX_SCANNED, model)
        firings = (record.firing for record in records)
        return [item for item in firings if state is None or item.state is state][:limit]

    def read_firing(self, firing_id: str) -> Firing | None:
        """Read a firing.

        Args:
            firing_id: The id of the firing.

        Returns:
            The firing; None if it does not exist.
        """
        record = self._store.read_firing(firing_id)
        return None if record is None else record.firing

    def read_outcomes(self, event_id: str) -> Sequence[Outcome] | None:
        """Read the outcomes of an event.

        Args:
            event_id: The id of the event.

        Returns:
            The outcomes; None if the event does not exist.
        """
        if self._store.read_event(event_id) is None:
            return None
        return self._store.read_outcomes(event_id)


def measure_health(
    load_counts: Callable[[], AgendaCounts],
    load_lease: Callable[[], Lease | None],
    holder: str,
    service: Service,
) -> Health:
    """Return the health of this process.

    Args:
        load_counts: Counts the entries of the agenda.
        load_lease: Returns the lease of the leader.
        holder: The id of this process.
        service: The service of this process.

    Returns:
        The health. A catalog that cannot be read is a problem.
    """
    try:
        counts, lease = load_counts(), load_lease()
    except PenstockError as error:
        return Health(is_leader=False, last_error=service.last_error, problem=str(error))
    oldest = counts.oldest_undecided
    age = None if oldest is None else (datetime.now(UTC) - oldest).total_seconds()
    return Health(
        is_leader=lease is not None and lease.holder == holder,
        holder=None if lease is None else f"{lease.process.host}:{lease.process.pid}",
        queue_length=counts.firings.get(FiringState.QUEUED, 0),
        oldest_waiting=age,
        last_error=service.last_error,
        problem=service.project.problem,
    )


def read_lease(store: AgendaStore) -> Lease | None:
    """Return the lease of the leader of the processes that serve a project.

    Args:
        store: The agenda.

    Returns:
        The lease; None if no process serves the project.
    """
    return store.read(lambda connection: find_lease(connection, LEADER), None)


def read_http_settings(
    models: Iterable[Model], subscriptions: Mapping[str, Subscription], serve: ServeSettings
) -> HttpSettings:
    """Return the settings of the HTTP API of a project.

    Args:
        models: The models.
        subscriptions: The subscriptions by model.
        serve: The section ``[serve]``.

    Returns:
        The settings.
    """
    names: dict[str, list[PartitionSpec]] = defaultdict(list)
    for subscription in subscriptions.values():
        for name in subscription.messages:
            names[name] += [] if subscription.partition is None else [subscription.partition]
    proxy = serve.trusted_proxy
    return HttpSettings(
        names={name: tuple(dict.fromkeys(specs)) for name, specs in names.items()},
        webhooks=_find_names("webhook", models, subscriptions),
        uploads=_find_names("data_upload", models, subscriptions),
        hosts=(*LOOPBACK_HOSTS, *_list_hosts(serve)),
        trusted_proxy="*" if proxy is True else proxy or None,
        max_body=serve.max_body,
    )


def _find_names(
    kind: str, models: Iterable[Model], subscriptions: Mapping[str, Subscription]
) -> dict[str, str]:
    """Return the names of the messages of a kind of trigger, by model."""
    return {
        model.name: name
        for model in models
        for trigger in model.schedule.triggers
        if trigger.kind == kind and (name := trigger.message(model.name)) is not None
        if name in subscriptions[model.name].messages
    }


def _list_hosts(serve: ServeSettings) -> tuple[str, ...]:
    """Return the values of ``Host`` that the settings accept, with and without the port."""
    return tuple(
        form
        for host in (serve.host, *serve.allowed_hosts)
        for form in ((host,) if ":" in host else (host, f"{host}:{{port}}"))
    )
