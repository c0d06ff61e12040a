"""The table of keys of penstock.toml, and what else names keys: the guide and the templates."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ConfigError, Location
from penstock.lakes.storage import Storage
from penstock.settings.keys import KEYS, NAMED, SECTIONS, key_of, table_values, value_of
from penstock.settings.retention import Setting
from penstock.settings.settings_file import read_settings_file

ROOT = Path(__file__).parents[2]
HERE = Location("penstock.toml", 3)
TYPES = {
    str: "text",
    int: "number",
    bool: "true or false",
    dict: "table",
    list: "list",
    str | bool: "text or false",
    int | float: "number",
}


def rows_of_the_page() -> Iterator[tuple[str, str, str, str]]:
    """The keys of docs/settings.md: section, key, type and default."""
    section = ""
    for line in (ROOT / "docs" / "settings.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if heading := re.match(r"\*\*`\[([\w.]+)\]`\*\*", cells[0]):
            section = heading[1].removesuffix(".NAME").replace("environments", "environment")
        elif line.startswith("| `"):
            yield section, cells[0].strip("`"), cells[1], cells[2]


def test_the_page_lists_each_key_with_its_type_and_its_default() -> None:
    page = {(section, key): (kind, default) for section, key, kind, default in rows_of_the_page()}
    assert list(page) == [(key.section, key.name) for key in KEYS]
    for key in KEYS:
        kind, default = page[key.section, key.name]
        assert kind == TYPES[key.type], key
        if key.default is not None:
            assert default == f"`{json.dumps(key.default)}`", key
        assert key.default is not None or "`" not in default, key


def test_each_default_is_a_value_of_its_key() -> None:
    for key in KEYS:
        table = f"{key.section}.NAME" if key.section in NAMED else key.section
        if key.section != "project.defaults":
            assert (value_of({}, f"{table}.{key.name}") is None) == (key.default is None), key


def test_a_setting_is_parsed_and_a_wrong_one_has_its_place() -> None:
    assert value_of({"logs.keep": Setting("2h", HERE)}, "logs.keep") == 7200.0
    assert value_of({"run.keep_runs": Setting(0, HERE)}, "run.keep_runs") is None
    assert value_of({"project.models": Setting("", HERE)}, "project.models") == "models"
    with pytest.raises(ConfigError, match=r"run\.jobs must be 1 or more, not 0") as caught:
        value_of({"run.jobs": Setting(0, HERE)}, "run.jobs")
    assert caught.value.location == HERE


def test_a_table_has_its_own_values_and_the_defaults() -> None:
    values = {"notify.a.command": Setting("x y", HERE), "notify.b.select": Setting("z", HERE)}
    assert table_values(values, "notify.a") == {
        "command": ("x", "y"),
        "failure": True,
        "recovery": True,
        "late": True,
        "values": False,
    }
    assert table_values({}, "openlineage") == {}


def test_a_dotted_key_names_its_entry() -> None:
    assert key_of("lakes.main.catalog") is SECTIONS["lakes"]["catalog"]
    assert key_of("run.jobs") is SECTIONS["run"]["jobs"]


def test_a_lake_takes_the_settings_of_a_store() -> None:
    names = {f"s3_{name}" for name in Storage.__slots__}
    for section in ("lakes", "delta"):
        assert {name for name in SECTIONS[section] if name.startswith("s3_")} == names


def documents() -> list[Any]:
    """The blocks of TOML of the guide that have sections of a project, and the templates."""
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    blocks = [
        pytest.param(text, id=f"{page.name}-{number}")
        for page in sorted(pages)
        for number, text in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(), re.S))
    ]
    files = [
        *(ROOT / "src/penstock/cli/template").glob("*.toml"),
        *ROOT.glob("examples/*/penstock.toml"),
    ]
    return [*blocks, *(pytest.param(file.read_text(), id=str(file.parent.name)) for file in files)]


@pytest.mark.parametrize("text", documents())
def test_documents_and_templates_have_known_keys(text: str, tmp_path: Path) -> None:
    assert tomllib.loads(text)
    path = tmp_path / "penstock.toml"
    path.write_text(text)
    settings = read_settings_file(path)
    assert settings.base or settings.environments
