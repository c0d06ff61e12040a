"""``[project.defaults]`` as values: keys, types and folders."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from penstock.errors import ConfigError, Location
from penstock.settings.keys import SECTIONS
from penstock.settings.model_defaults import ModelDefaults, read_defaults

TYPES = {key.name: key.type for key in SECTIONS["project.defaults"].values()}


def place(key: tuple[str, ...]) -> Location:
    return Location(".".join(key))


def read(content: dict[str, Any]) -> tuple[ModelDefaults, ...]:
    return read_defaults(content, TYPES, place)


def test_outer_folders_come_before_inner_ones() -> None:
    content = {"a/b": {"owner": "x"}, "owner": "y", "/a/": {"tags": ["t"]}, "c": {}}
    assert [(defaults.folder, dict(defaults.values)) for defaults in read(content)] == [
        ("", {"owner": "y"}),
        ("a", {"tags": ("t",)}),
        ("a/b", {"owner": "x"}),
    ]


def test_a_date_and_a_number_count_as_texts() -> None:
    (defaults,) = read({"start": date(2024, 1, 1), "retry": 2})
    assert defaults.values == {"start": "2024-01-01", "retry": "2"}
    assert defaults.places["start"] == Location("project.defaults.start")


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        ({"ownr": "x"}, "unknown key in [project.defaults]: 'ownr'", "did you mean 'owner'?"),
        ({"zz": "x"}, "unknown key in [project.defaults]: 'zz'", "known are start, cron, "),
        ({"tags": "x"}, "project.defaults.tags must be a list of texts, not 'x'", ""),
        ({"owner": True}, "project.defaults.owner must be a text, not True", ""),
        ({"a": {"b": {}}}, "unknown key in [project.defaults.\"a\"]: 'b'", 'defaults."a/b"]'),
    ],
)
def test_a_wrong_default_is_named(content: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(content)
    assert caught.value.message == message
    assert hint in (caught.value.hint or "")
