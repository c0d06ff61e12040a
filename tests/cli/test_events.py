"""``penstock events``: messages, what became of them, and tokens. No Spark."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.cli.events import command
from penstock.server.tokens import TokenStore
from tests.cli.served import agenda, as_json, make_served, penstock, refusal
from tests.server.agenda import decide, firing

NIGHT = datetime(2026, 11, 3, 2, 30, tzinfo=UTC)
ACME = '{"tenant": "acme"}'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_served(tmp_path)


def test_a_message_is_recorded_once_by_its_key(root: Path) -> None:
    send = ("events", "send", "signup", ACME, "--key", "k1")
    assert penstock(root, *send).stdout == "message:signup/k1 is recorded\n"
    assert penstock(root, *send).stdout == "message:signup/k1 was recorded before\n"
    assert as_json(root, *send) == {
        "schema_version": 1,
        "event": "message:signup/k1",
        "accepted": False,
    }
    shown = as_json(root, "events", "show", "message:signup/k1")
    assert (shown["event"]["payload"], shown["outcomes"]) == ({"tenant": "acme"}, [])
    said = penstock(root, "events", "show", "message:signup/k1").stdout
    assert said == "It waits for a decision of penstock serve.\n"


def test_a_message_without_a_key_is_one_of_its_own(root: Path) -> None:
    ids = {as_json(root, "events", "send", "signup", ACME)["event"] for _ in range(2)}
    assert len(ids) == 2
    assert all(event_id.startswith("message:signup/") for event_id in ids)


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (("signpu", "{}"), "no model waits for messages 'signpu'", "did you mean 'signup'?"),
        (("xyz", "{}"), "no model waits for messages 'xyz'", "models wait for signup"),
        (("signup", "{"), "the payload is not valid JSON: line 1", "or {} for none"),
        (("signup", "[1]"), "is not a JSON object", """'{"name": "value"}'"""),
        (
            ("signup", "{}"),
            "no payload to take the partition $.tenant from",
            "send $.tenant in the payload",
        ),
        (("signup", '{"tenant": "a/b"}'), "$.tenant", "send $.tenant in the payload"),
        (("signup", '{"tenant": NaN}'), "NaN", "write one JSON object"),
    ],
)
def test_a_wrong_message_is_refused(
    root: Path, arguments: tuple[str, ...], message: str, hint: str
) -> None:
    said = refusal(root, "events", "send", *arguments)
    assert message in said
    assert hint in said
    with agenda(root) as store:
        assert store.list_undecided(10) == []


def test_what_fired_is_listed_and_an_event_leads_to_its_firing(root: Path) -> None:
    assert penstock(root, "events", "list").stdout == "Nothing has fired.\n"
    penstock(root, "events", "send", "signup", ACME, "--key", "k1")
    with agenda(root) as store:
        (event,) = store.list_undecided(10)
        by = firing(
            "01a22b47-9b04-7f4e-bf64-671db42530e7",
            model="tenants",
            key="acme",
            queued_at=NIGHT,
            fire_time=NIGHT,
        )
        assert store.record([event], decide(event, by), fence=None)
    heading, line = penstock(root, "events", "list").stdout.splitlines()
    assert heading.startswith("firing        model    partition  cause    state   queued")
    queued = f"{NIGHT.astimezone():%Y-%m-%d %H:%M:%S}"
    assert line.split("  ")[0] == "671db42530e7"
    assert line.endswith(f"tenants  acme       message  queued  {queued}")
    assert penstock(root, "events", "list", "days").stdout == "Nothing has fired.\n"
    (record,) = as_json(root, "events", "list", "tenants")["firings"]
    assert (record["firing"]["key"], record["firing"]["state"]) == ("acme", "queued")
    shown = penstock(root, "events", "show", event.id).stdout.splitlines()
    assert shown[1].split() == ["tenants", "fired", "671db42530e7"]


def test_unknown_events_and_models_are_refused(root: Path) -> None:
    said = refusal(root, "events", "show", "message:signup/none")
    assert "no event 'message:signup/none' is recorded" in said
    assert "penstock events list has what fired" in said
    assert "did you mean 'days'?" in refusal(root, "events", "list", "dayz")


def test_a_token_is_shown_once_and_revoked(root: Path) -> None:
    created = penstock(root, "events", "token", "create", "signup")
    secret = created.stdout.strip()
    assert "It is shown once. Revoke it by: penstock events token revoke " in created.stderr
    (listed,) = as_json(root, "events", "token", "list")["tokens"]
    assert secret not in str(listed)
    assert secret not in penstock(root, "events", "token", "list").stdout
    with agenda(root) as store:
        assert TokenStore(store.catalog).verify("signup", secret) is not None
    assert penstock(root, "events", "token", "revoke", listed["id"]).exit_code == 0
    with agenda(root) as store:
        assert TokenStore(store.catalog).verify("signup", secret) is None
    said = refusal(root, "events", "token", "revoke", listed["id"])
    assert "there is no valid token" in said
    assert "penstock events token list has them" in said


def test_a_token_is_of_a_message_or_of_all(root: Path) -> None:
    assert as_json(root, "events", "token", "create", "*")["name"] == "*"
    assert "did you mean 'signup'?" in refusal(root, "events", "token", "create", "sinup")
    assert penstock(root, "events", "token", "list").stdout.startswith("token")


def test_the_commands_of_events() -> None:
    assert sorted(command.commands) == ["list", "send", "show", "token"]
