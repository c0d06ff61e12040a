"""``[project.defaults]`` and ``[project.variables]``: settings that the models of a project share.

``[project.defaults]``: what models say that do not say it themselves, for all or by folder.

    [project.defaults]
    start = "2024-01-01"
    owner = "data"

    [project.defaults."marts"]
    data_tests = ["not_null id"]

What the values mean is for `penstock.model.project.defaults`; here are types and places.

``[project.variables]``: values that the models of a project share.

    [project.variables]
    region = "eu"
    min_orders = 5

A script reads them as ``@region`` and ``@VAR('region')``, and a macro in Python as
``evaluator.var("region")``. An environment overrides them one by one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import Any

from penstock.errors import ConfigError, Location
from penstock.settings.retention import Setting

TABLE = ("project", "defaults")


@dataclass(frozen=True, slots=True)
class ModelDefaults:
    """Defaults of the models below ``folder``, a path below the models directory; "" for all.

    ``values`` are texts and tuples of texts by key; ``places`` say where each is written.
    """

    folder: str
    values: Mapping[str, str | tuple[str, ...]]
    places: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)


def read_defaults(
    content: Mapping[str, Any],
    types: Mapping[str, type],
    place: Callable[[tuple[str, ...]], Location],
) -> tuple[ModelDefaults, ...]:
    """Return those of all models, then of folders, outer ones first.

    ``types`` are those of the keys, ``place`` says where a dotted key is written. Raises
    ConfigError for unknown keys and wrong types.
    """
    folders = {key: value for key, value in content.items() if isinstance(value, Mapping)}
    own = {key: value for key, value in content.items() if key not in folders}
    found = [_read("", own, types, lambda key: place((*TABLE, key)))]
    for name in sorted(folders, key=lambda name: name.strip("/").count("/")):
        found.append(_read(name, folders[name], types, partial(_of_folder, place, name)))
    return tuple(each for each in found if each.values)


def _of_folder(place: Callable[[tuple[str, ...]], Location], folder: str, key: str) -> Location:
    return place((*TABLE, folder, key))


def _read(
    folder: str,
    content: Mapping[str, Any],
    types: Mapping[str, type],
    place: Callable[[str], Location],
) -> ModelDefaults:
    values: dict[str, str | tuple[str, ...]] = {}
    places: dict[str, Location] = {}
    for key, value in content.items():
        at = place(key)
        table = ".".join((*TABLE, f'"{folder}"')) if folder else ".".join(TABLE)
        if key not in types:
            near = difflib.get_close_matches(key, types, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(types)}"
            if isinstance(value, Mapping):
                hint = f'a folder is one text: [project.defaults."{folder}/{key}"]'
            raise ConfigError(f"unknown key in [{table}]: {key!r}", location=at, hint=hint)
        values[key] = _value(f"{table}.{key}", types[key], value, at)
        places[key] = at
    return ModelDefaults(folder.strip("/"), values, places)


def _value(key: str, kind: type, value: Any, at: Location) -> str | tuple[str, ...]:
    """A date or a whole number is taken for its text: ``start = 2024-01-01``, ``retry = 2``."""
    if kind is str:
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, str) or (type(value) is int):
            return str(value)
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    expected = "a text" if kind is str else "a list of texts"
    raise ConfigError(f"{key} must be {expected}, not {value!r}", location=at)


_NAME = re.compile(r"[A-Za-z_]\w*")
_SCALARS = (str, bool, int, float, date, datetime)
Value = str | bool | int | float | date | datetime | tuple[Any, ...]


def read_variables(_key: str, setting: Setting) -> Mapping[str, Value]:
    """Return the values by their names in small letters.

    :raises ConfigError: a name that no macro can have, one name twice, or a table as a value
    """
    values: dict[str, Value] = {}
    for name, value in setting.value.items():
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"a variable cannot be called {name!r}",
                location=setting.origin,
                hint="use letters, digits and _, as in min_orders",
            )
        if name.lower() in values:
            raise ConfigError(
                f"there are two variables {name.lower()!r}",
                location=setting.origin,
                hint="macro names are case-insensitive: rename one of the two",
            )
        values[name.lower()] = _variable_value(name, value, setting)
    return values


def _variable_value(name: str, value: Any, setting: Setting) -> Value:
    if isinstance(value, list):
        return tuple(_variable_value(name, item, setting) for item in value)
    if isinstance(value, _SCALARS):
        return value
    raise ConfigError(
        f"the variable {name} is {value!r}",
        location=setting.origin,
        hint="write a text, a number, true, false, a date, or a list of these",
    )
