"""Where notifications and events of lineage go: settings, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings.config import Settings, load_settings

LAKE = '[project]\nname = "shop"\n[lakes.main]\ncatalog = "sqlite:lake/meta.sqlite"\n'
HOOK = "https://hooks.example.com/T9/Z8"


def load(root: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    (root / "penstock.toml").write_text(LAKE + text)
    return load_settings(root, environ=environ or {})


def test_each_table_is_one_who_is_told(tmp_path: Path) -> None:
    text = f'[notify.oncall]\nwebhook = "{HOOK}"\nselect = "tag:finance +marts/sales"\n'
    text += "[notify.pager]\ncommand = \"python3 'my page.py'\"\nrecovery = false\n"
    text += "values = true\nlate = false\n"
    oncall, pager = load(tmp_path, text).notify
    assert oncall.name == "oncall"
    assert oncall.webhook == HOOK
    assert oncall.select == ("tag:finance", "+marts/sales")
    assert oncall.failure
    assert oncall.recovery
    assert pager.command == ("python3", "my page.py")
    assert not pager.recovery
    assert (oncall.late, oncall.values) == (True, False)
    assert (pager.late, pager.values) == (False, True)


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
def test_a_wrong_table_of_notify_is_refused_with_its_line(
    text: str, message: str, line: int, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"[notify.a]\n{text}\n")
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == line + 2
    assert HOOK not in str(caught.value)


def test_nothing_is_sent_by_default(tmp_path: Path) -> None:
    assert load(tmp_path, "").open_lineage is None


def test_a_server_and_its_key_from_the_environment(tmp_path: Path) -> None:
    text = '[openlineage]\nurl = "http://marquez:5000"\n'
    to = load(tmp_path, text, {"PENSTOCK_OPENLINEAGE_API_KEY": "hush"}).open_lineage
    assert to is not None
    assert (to.url, to.namespace, to.api_key) == ("http://marquez:5000", "shop", "hush")
    assert "hush" not in repr(to)


def test_a_file_is_below_the_project(tmp_path: Path) -> None:
    to = load(tmp_path, '[openlineage]\nfile = "out/l.jsonl"\nnamespace = "prod"\n').open_lineage
    assert to is not None
    assert (to.file, to.namespace) == (tmp_path / "out/l.jsonl", "prod")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('namespace = "a"', "[openlineage] has no url and file"),
        ('url = "http://a"\nfile = "b"', "[openlineage] has both url and file"),
        ('url = "marquez:5000"', "openlineage.url is no address"),
        ('uri = "http://a"', "unknown key in [openlineage]: 'uri'"),
    ],
)
def test_a_wrong_section_of_openlineage_is_refused_with_its_line(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"[openlineage]\n{text}\n")
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == 6
