"""Connect the HTTP side with the agenda of a project."""

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

_MOST_FIRINGS = 10_000  # that a filter by state looks through


class AgendaInbox:
    """Records events that arrive by HTTP, and wakes the service."""

    def __init__(self, store: AgendaStore, wake: Callable[[], None]) -> None:
        """Create an inbox.

        Args:
            store: The agenda.
            wake: Is called when an event was recorded.
        """
        self._store = store
        self._wake = wake

    def accept(self, event: TriggerEvent) -> bool:
        """Record an event.

        Args:
            event: The event.

        Returns:
            False if an event of its id was recorded before.
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
    """Compares secrets with the tokens in the catalog."""

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
            Whether it is a valid token of the name.
        """
        return self._tokens.verify(name, secret) is not None


class AgendaView:
    """Reads the agenda for people."""

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
            limit: The number of firings at most.

        Returns:
            The firings.
        """
        records = self._store.recent(limit if state is None else _MOST_FIRINGS, model)
        firings = (record.firing for record in records)
        return [item for item in firings if state is None or item.state is state][:limit]

    def read_firing(self, firing_id: str) -> Firing | None:
        """Read a firing.

        Args:
            firing_id: Its id.

        Returns:
            The firing; None if there is none.
        """
        record = self._store.firing(firing_id)
        return None if record is None else record.firing

    def read_outcomes(self, event_id: str) -> Sequence[Outcome] | None:
        """Read what became of an event.

        Args:
            event_id: Its id.

        Returns:
            Its outcomes; None if there is no such event.
        """
        if self._store.event(event_id) is None:
            return None
        return self._store.outcomes(event_id)


def measure_health(
    counts: Callable[[], AgendaCounts],
    lease: Callable[[], Lease | None],
    holder: str,
    service: Service,
) -> Health:
    """Return the health of this process.

    Args:
        counts: Counts what is in the agenda.
        lease: Returns who leads.
        holder: The id of this process.
        service: The service.

    Returns:
        The health. A catalog that cannot be read is a problem.
    """
    try:
        counted, held = counts(), lease()
    except PenstockError as error:
        return Health(is_leader=False, last_error=service.last_error, problem=str(error))
    oldest = counted.oldest_undecided
    age = None if oldest is None else (datetime.now(UTC) - oldest).total_seconds()
    return Health(
        is_leader=held is not None and held.holder == holder,
        holder=None if held is None else f"{held.process.host}:{held.process.pid}",
        queue_length=counted.firings.get(FiringState.QUEUED, 0),
        oldest_waiting=age,
        last_error=service.last_error,
        problem=service.project.problem,
    )


def read_lease(store: AgendaStore) -> Lease | None:
    """Return who leads the processes that serve a project.

    Args:
        store: The agenda.

    Returns:
        The lease; None if nobody serves it.
    """
    return store.ask(lambda connection: find_lease(connection, LEADER), None)


def read_http_settings(
    models: Iterable[Model], subscriptions: Mapping[str, Subscription], serve: ServeSettings
) -> HttpSettings:
    """Return the settings of the HTTP side of a project.

    Args:
        models: The models.
        subscriptions: What triggers each model.
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
        webhooks=_names_of("webhook", models, subscriptions),
        uploads=_names_of("data_upload", models, subscriptions),
        hosts=(*LOOPBACK_HOSTS, *_hosts_of(serve)),
        trusted_proxy="*" if proxy is True else proxy or None,
        max_body=serve.max_body,
    )


def _names_of(
    kind: str, models: Iterable[Model], subscriptions: Mapping[str, Subscription]
) -> dict[str, str]:
    return {
        model.name: name
        for model in models
        for trigger in model.schedule.triggers
        if trigger.kind == kind and (name := trigger.message(model.name)) is not None
        if name in subscriptions[model.name].messages
    }


def _hosts_of(serve: ServeSettings) -> tuple[str, ...]:
    """Return the accepted values of ``Host`` beside those of loopback: with and without a port."""
    return tuple(
        form
        for host in (serve.host, *serve.allowed_hosts)
        for form in ((host,) if ":" in host else (host, f"{host}:{{port}}"))
    )
