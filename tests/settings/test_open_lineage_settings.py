"""Where events of lineage go: settings, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.settings.config import Settings, load_settings

LAKE = '[project]\nname = "shop"\n[lakes.main]\ncatalog = "sqlite:lake/meta.sqlite"\n'


def load(root: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    (root / "penstock.toml").write_text(LAKE + text)
    return load_settings(root, environ=environ or {})


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
def test_what_cannot_be_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, f"[openlineage]\n{text}\n")
    assert message in caught.value.message
    assert caught.value.location is not None
    assert caught.value.location.line == 6
