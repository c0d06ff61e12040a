"""Who is told how runs end: settings, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings.config import Settings, load_settings

LAKE = '[lakes.main]\ncatalog = "sqlite:lake/meta.sqlite"\n'
HOOK = "https://hooks.example.com/T9/Z8"


def load(root: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    (root / "penstock.toml").write_text(LAKE + text)
    return load_settings(root, environ=environ or {})


def test_each_table_is_one_who_is_told(tmp_path: Path) -> None:
    text = f'[notify.oncall]\nwebhook = "{HOOK}"\nselect = "tag:finance +marts/sales"\n'
    text += "[notify.pager]\ncommand = \"python3 'my page.py'\"\nrecovery = false\n"
    oncall, pager = load(tmp_path, text).notify
    assert oncall.name == "oncall"
    assert oncall.webhook == HOOK
    assert oncall.select == ("tag:finance", "+marts/sales")
    assert oncall.failure
    assert oncall.recovery
    assert pager.command == ("python3", "my page.py")
    assert not pager.recovery


def test_nobody_is_told_by_default(tmp_path: Path) -> None:
    assert load(tmp_path, "").notify == ()


def test_an_address_is_a_secret_and_comes_from_the_environment(tmp_path: Path) -> None:
    environ = {"PENSTOCK_NOTIFY_ONCALL_WEBHOOK": HOOK}
    (told,) = load(tmp_path, '[notify.oncall]\nselect = "tag:finance"\n', environ).notify
    assert told.webhook == HOOK
    assert HOOK not in repr(told)
    assert load(tmp_path, "", environ).notify[0].name == "oncall"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ('select = "a"', "notify.a has no webhook and command", 4),
        (f'webhook = "{HOOK}"\ncommand = "x"', "notify.a has both webhook and command", 4),
        ('webhook = "hooks.example.com"', "is no address", 4),
        ('webhook = "file:///etc/passwd"', "is no address", 4),
        ('command = ""', "notify.a.command is empty", 4),
        ('command = "python3 \'x"', "notify.a.command cannot be read: no closing quotation", 4),
        ('command = "x"\nfailure = "no"', "failure must be true or false", 5),
        ('command = "x"\nrecover = true', "unknown key in [notify.a]: 'recover'", 5),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(
    text: str, message: str, line: int, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"[notify.a]\n{text}\n")
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == line
    assert HOOK not in str(caught.value)
