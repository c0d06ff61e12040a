"""``penstock events``: messages to the models of a project, what became of them, and tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.options import common_options, limit_option, load_project
from penstock.cli.output import clock, print_json, print_table, say
from penstock.errors import ArgumentError
from penstock.sql.identifiers import nearest

if TYPE_CHECKING:
    from penstock.model.time.partition import PartitionSpec
    from penstock.project.context import ProjectContext
    from penstock.server.agenda_rows import FiringRecord

_FIRINGS = (
    "firing",
    "model",
    "partition",
    "cause",
    "state",
    "queued",
    "started",
    "ended",
    "reason",
)
_OUTCOMES = ("model", "outcome", "firing", "reason")
_TOKENS = ("token", "name", "created", "revoked", "user")


@click.group(
    "events",
    short_help="Send messages to models, list what fired, and create tokens.",
    epilog="""\b
Examples:
  penstock events list
  penstock events send signup '{"tenant": "acme"}'
  penstock events show message:signup/order-4711
  penstock events token create signup""",
)
def command() -> None:
    """Send messages, show the outcomes of events, and create tokens for POST /events/NAME."""


@command.command(
    "list",
    epilog="""\b
Examples:
  penstock events list
  penstock events list marts/revenue --limit 50 --json""",
)
@click.argument("model", required=False)
@limit_option(20, "firings")
@common_options
def list_firings(*, model: str | None, limit: int, project_dir: Path | None, as_json: bool) -> None:
    """List the firings of all models or of MODEL, the newest first."""
    from penstock.server.opening import open_agenda

    with load_project(project_dir) as project:
        name = None if model is None else project.context.model(model).name
        records = open_agenda(project.context).list_firings(limit, name)
    if as_json:
        print_json({"firings": records})
        return
    print_table(_FIRINGS, [_cells(record) for record in records], empty="Nothing has fired.")


def _cells(record: FiringRecord) -> tuple[object, ...]:
    firing = record.firing
    times = (firing.queued_at, record.started_at, record.finished_at)
    names = (firing.id[-12:], firing.model, firing.partition, firing.kind.value, firing.state.value)
    return (*names, *map(clock, times), firing.reason)


@command.command(
    "show",
    epilog="""\b
Examples:
  penstock events show message:signup/order-4711
  penstock events show asset:main.main.orders@12 --json""",
)
@click.argument("event")
@common_options
def show(*, event: str, project_dir: Path | None, as_json: bool) -> None:
    """Show the outcome of EVENT for each model: fired, joined, superseded or ignored."""
    from penstock.server.opening import open_agenda

    with load_project(project_dir) as project:
        store = open_agenda(project.context)
        recorded = store.read_event(event)
        if recorded is None:
            raise ArgumentError(
                f"no event {event!r} is recorded", hint="penstock events list has what fired"
            )
        outcomes = store.read_outcomes(event)
    if as_json:
        print_json({"event": recorded, "outcomes": outcomes})
        return
    rows = [
        (item.model, item.kind.value, (item.firing or "")[-12:], item.reason) for item in outcomes
    ]
    print_table(_OUTCOMES, rows, empty="It waits for a decision of penstock serve.")


@command.command(
    "send",
    epilog="""\b
Examples:
  penstock events send signup '{"tenant": "acme"}'
  penstock events send signup '{"tenant": "acme"}' --key order-4711""",
)
@click.argument("name")
@click.argument("payload")
@click.option("--key", metavar="TEXT", help="A message with the same key is recorded once.")
@common_options
def send(
    *, name: str, payload: str, key: str | None, project_dir: Path | None, as_json: bool
) -> None:
    """Record a message, as POST /events/NAME does. PAYLOAD is a JSON object.

    It needs access to the catalog, and no token. `penstock serve` fires the models that wait for
    NAME.
    """
    from penstock.engine.state.claims import user_name
    from penstock.scheduler.values import EventKind, TriggerEvent, make_message_id
    from penstock.server.opening import open_agenda
    from penstock.server.payloads import partitions_of
    from penstock.uuid7 import new_uuid7

    with load_project(project_dir) as project:
        specs = _require_name(project.context, name)
        value = _parse(payload)
        partitions = set(partitions_of(value, specs))
        event = TriggerEvent(
            id=make_message_id(name, key or new_uuid7()),
            kind=EventKind.MESSAGE,
            source=name,
            time=datetime.now(UTC),
            partition=partitions.pop() if len(partitions) == 1 else None,
            payload=value,
        )
        is_new = open_agenda(project.context).accept(event, user=user_name())
    if as_json:
        print_json({"event": event.id, "accepted": is_new})
    else:
        say(f"{event.id} is recorded" if is_new else f"{event.id} was recorded before")


def _parse(payload: str) -> dict[str, Any]:
    from penstock.server.http_security import RefusedRequest
    from penstock.server.payloads import parse_payload

    try:
        return parse_payload(payload.encode(errors="surrogateescape"))
    except RefusedRequest as error:
        raise ArgumentError(
            error.message.replace("the body", "the payload"),
            hint='write one JSON object, as \'{"name": "value"}\', or {} for none',
        ) from None


def _require_name(context: ProjectContext, name: str) -> tuple[PartitionSpec, ...]:
    """Return the partitions of the models that wait for a message."""
    from penstock.scheduler.subscription import subscriptions_of
    from penstock.server.http_services import read_http_settings

    serve = context.settings.serve
    subscriptions = subscriptions_of(context.models, serve)
    names = read_http_settings(context.models, subscriptions, serve).names
    if name in names:
        return names[name]
    near = nearest(name, names)
    listed = f"models wait for {', '.join(sorted(names))}" if names else "write `-- on webhook`"
    raise ArgumentError(
        f"no model waits for messages {name!r}",
        hint=f"did you mean {near!r}?" if near else listed,
    )


@command.group("token", epilog="\b\nExamples:\n  penstock events token list")
def token() -> None:
    """Create, list and revoke tokens of the HTTP API."""


@token.command(
    "create",
    epilog="""\b
Examples:
  penstock events token create signup
  penstock events token create '*'""",
)
@click.argument("name")
@common_options
def create_token(*, name: str, project_dir: Path | None, as_json: bool) -> None:
    """Create a token for the messages NAME, or with '*' for all routes of the HTTP API.

    The token is printed once. The catalog stores a hash of it.
    """
    from penstock.engine.state.claims import user_name
    from penstock.server.opening import open_agenda
    from penstock.server.tokens import EVERYTHING, TokenStore

    with load_project(project_dir) as project:
        if name != EVERYTHING:
            _require_name(project.context, name)
        tokens = TokenStore(open_agenda(project.context).catalog)
        created, secret = tokens.create(name, user_name())
    if as_json:
        print_json({"token": created.id, "name": name, "secret": secret})
        return
    say(secret)
    say(f"It is shown once. Revoke it by: penstock events token revoke {created.id}", err=True)


@token.command(
    "list",
    epilog="""\b
Examples:
  penstock events token list
  penstock events token list --json""",
)
@common_options
def list_tokens(*, project_dir: Path | None, as_json: bool) -> None:
    """List the tokens, without their secrets."""
    from penstock.server.opening import open_agenda
    from penstock.server.tokens import TokenStore

    with load_project(project_dir) as project:
        tokens = TokenStore(open_agenda(project.context).catalog).list_tokens()
    if as_json:
        print_json({"tokens": tokens})
        return
    rows = [
        (item.id, item.name, clock(item.created_at), clock(item.revoked_at), item.user)
        for item in tokens
    ]
    print_table(_TOKENS, rows, empty="There are no tokens.")


@token.command(
    "revoke",
    epilog="""\b
Examples:
  penstock events token revoke 0198c0de-7a11-7c3e-9d3f-21c07a118d3f""",
)
@click.argument("token_id", metavar="TOKEN")
@common_options
def revoke_token(*, token_id: str, project_dir: Path | None, as_json: bool) -> None:
    """Revoke TOKEN, an id of `penstock events token list`. It is refused at once."""
    from penstock.server.opening import open_agenda
    from penstock.server.tokens import TokenStore

    with load_project(project_dir) as project:
        tokens = TokenStore(open_agenda(project.context).catalog)
        if not tokens.revoke(token_id):
            raise ArgumentError(
                f"there is no valid token {token_id}", hint="penstock events token list has them"
            )
    if as_json:
        print_json({"revoked": token_id})
    else:
        say(f"{token_id} is revoked")
