"""``[project.variables]``: values that the models of a project share.

    [project.variables]
    region = "eu"
    min_orders = 5

A script reads them as ``@region`` and ``@VAR('region')``, and a macro in Python as
``evaluator.var("region")``. An environment overrides them one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from penstock.errors import ConfigError
from penstock.settings.retention import Setting

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
        values[name.lower()] = _value(name, value, setting)
    return values


def _value(name: str, value: Any, setting: Setting) -> Value:
    if isinstance(value, list):
        return tuple(_value(name, item, setting) for item in value)
    if isinstance(value, _SCALARS):
        return value
    raise ConfigError(
        f"the variable {name} is {value!r}",
        location=setting.origin,
        hint="write a text, a number, true, false, a date, or a list of these",
    )
