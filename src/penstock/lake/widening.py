"""To which types a column may be changed: those that hold each of its values as it is.

DuckDB makes more promotions (measured, 1.5.5): to floats, decimals and timestamps. Only those of
integers are taken here, by which its files and ours are read alike, and pruned alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.lake.bounds import base_type
from penstock.lake.schema import can_widen, wider_types
from penstock.lake.types import parse

# Digits that an integer type may need, for decimals that are to hold it.
DIGITS: Mapping[str, int] = {
    "int8": 3,
    "int16": 5,
    "int32": 10,
    "int64": 19,
    "uint8": 3,
    "uint16": 5,
    "uint32": 10,
    "uint64": 20,
}
# Besides the format's own promotions (`can_widen`).
_MORE: Mapping[str, tuple[str, ...]] = {
    "uint8": ("int16", "int32", "int64"),
    "uint16": ("int32", "int64"),
    "uint32": ("int64",),
}


def can_become(old: str, new: str) -> bool:
    """Whether a column of type ``old`` may be made one of ``new``, another type."""
    return can_widen(old, new) or new in _MORE.get(old, ())


def can_become_text(old: str) -> str:
    """The types that `can_become` allows, for a message; empty for none."""
    return " or ".join((*wider_types(old), *_MORE.get(old, ())))


def fits_decimal(old: str, new: str) -> bool:
    """Whether a decimal type holds all values of an integer type or another decimal."""
    target = parse("decimal(20,0)" if new == "uint64" else new)
    if target.precision is None or target.scale is None:
        return False
    given = parse(old)
    if given.precision is not None and given.scale is not None:
        whole, scale = given.precision - given.scale, given.scale
    else:
        whole, scale = DIGITS.get(base_type(old), 99), 0
    return scale <= target.scale and whole <= target.precision - target.scale
