"""Types of columns, and the values that stand for numbers in them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

KINDS = (
    *("INT", "INT", "BIGINT", "VARCHAR", "VARCHAR", "DATE", "DOUBLE", "FLOAT", "DECIMAL(9,2)"),
    *("TINYINT", "SMALLINT", "TIMESTAMP", "BOOLEAN"),
)
FIELDS = ("INT", "INT", "VARCHAR", "SMALLINT", "DATE")  # of structs
PLAIN = ("INT", "BIGINT", "VARCHAR", "DATE")  # types with the same literals in both dialects
NUMBERS = ("SMALLINT", "INT", "BIGINT")  # keys of merges
WIDER: Mapping[str, tuple[str, ...]] = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT"),
    "SMALLINT": ("INT", "BIGINT"),
    "INT": ("BIGINT",),
    "FLOAT": ("DOUBLE",),
}
TRANSFORMS: Mapping[str, tuple[str, ...]] = {
    "VARCHAR": ("{}", "{}", "bucket(3, {})"),
    "INT": ("{}", "{}", "bucket(2, {})"),
    "SMALLINT": ("{}",),
    "BIGINT": ("{}",),
    "FLOAT": ("{}",),
    "BOOLEAN": ("{}",),
    "DATE": ("{}", "year({})", "month({})"),
    "TIMESTAMP": ("year({})", "day({})"),
}


_LITERALS: Mapping[str, str] = {
    "VARCHAR": "'p{number:05}'",
    "DATE": "DATE '{day}'",
    "TIMESTAMP": "CAST('{day} 06:07:08' AS TIMESTAMP)",
    "DOUBLE": "{number}.5",
    "FLOAT": "{number}.5",
    "DECIMAL(9,2)": "{number}.25",
    "BOOLEAN": "{odd}",
    "TINYINT": "{small}",
}


def literal(kind: str, number: int) -> str:
    """The value of a type that stands for a number; in their order where they have one."""
    odd = "true" if number % 2 else "false"
    pattern = _LITERALS.get(kind, "{number}")
    return pattern.format(number=number, day=_day(number), odd=odd, small=number % 100)


def default(kind: str, number: int) -> str:
    """The literal of a column's DEFAULT."""
    if kind == "TIMESTAMP":
        return f"'{_day(number)} 06:07:08'"
    return literal(kind, number).removeprefix("DATE ")


def declared(fields: Mapping[str, str]) -> str:
    return "STRUCT(" + ", ".join(f"{name} {kind}" for name, kind in fields.items()) + ")"


def _day(number: int) -> dt.date:
    return dt.date(2020, 1, 1) + dt.timedelta(number)
