"""``[notify.NAME]``: who is told when a run fails, and when what had failed is made again.

[notify.oncall]
webhook = "https://hooks.example.com/T1/B2"
select = "tag:finance"

[notify.pager]
command = "python3 scripts/page.py"
recovery = false
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from penstock.errors import ConfigError
from penstock.settings.retention import Setting

SECTION = "notify"
#: by key: its type
KEYS: Mapping[str, type] = {
    "webhook": str,
    "command": str,
    "select": str,
    "failure": bool,
    "recovery": bool,
}


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """One who is told: by a POST to ``webhook``, which is a secret, or by a ``command``.

    ``select`` are words of the selection language; empty: all models. ``failure`` and ``recovery``
    say what is told.
    """

    name: str
    webhook: str | None = field(default=None, repr=False)
    command: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    failure: bool = True
    recovery: bool = True


def read_notify(name: str, settings: Mapping[str, Setting]) -> NotifySettings:
    """Return one table of settings, whose keys are known and of their types.

    :raises ConfigError: it has neither or both of webhook and command, or they are not what they
        should be
    """
    values = {key: setting.value for key, setting in settings.items()}
    if ("webhook" in values) == ("command" in values):
        raise ConfigError(
            f"{SECTION}.{name} has {'both' if 'webhook' in values else 'no'} webhook and command",
            location=next((setting.origin for setting in settings.values()), None),
            hint="write one of them: two tables tell two",
        )
    webhook = values.get("webhook")
    if webhook is not None and urlsplit(webhook).scheme not in {"http", "https"}:
        raise ConfigError(
            f"{SECTION}.{name}.webhook is no address that begins with https:// or http://",
            location=settings["webhook"].origin,
            hint='write it whole, as in "https://hooks.example.com/T1/B2"',
        )
    return NotifySettings(
        name,
        webhook,
        _words(name, "command", settings.get("command")),
        _words(name, "select", settings.get("select")),
        values.get("failure", True),
        values.get("recovery", True),
    )


def _words(name: str, key: str, setting: Setting | None) -> tuple[str, ...]:
    if setting is None:
        return ()
    try:
        words = tuple(shlex.split(setting.value))
    except ValueError as error:
        cause = str(error).lower()
        raise ConfigError(
            f"{SECTION}.{name}.{key} cannot be read: {cause}",
            location=setting.origin,
            hint="close what is quoted",
        ) from None
    if not words:
        raise ConfigError(
            f"{SECTION}.{name}.{key} is empty",
            location=setting.origin,
            hint="give it a value, or leave it out",
        )
    return words
