"""To which types a column may be changed: those that DuckDB changes it to, and answers right by.

All pairs of types were tried (DuckDB 1.5.5). Of those that it changes, these are refused here:
* to a finer type (integers and decimals to floats and to other scales, dates to timestamps):
  DuckDB compares older rows in their own type, so that 1 is in its answer for ``c = 1.4``;
* what it then cannot read, or not all values of: booleans to integers once they are inlined,
  dates to milliseconds, all times to nanoseconds, 128 bits to decimals;
* what becomes JSON or a VARIANT.
Where DuckDB made such a change its rows are read all the same (`promotions`).
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.lake.format.schema import can_widen, wider_types
from penstock.lake.format.types import parse
from penstock.lake.format.values.bounds import base_type

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

# Besides the format's own promotions (`can_widen`), and those to decimals.
_MORE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), ("int128",)),
    "uint8": ("int16", "int32", "int64", "int128", "uint128"),
    "uint16": ("int32", "int64", "int128", "uint128"),
    "uint32": ("int64", "int128", "uint128"),
    "uint64": ("int128", "uint128"),
    "date": ("timestamptz",),
    "timestamp": ("timestamptz",),
    "timestamp_s": ("timestamp", "timestamp_ms"),
    "timestamp_ms": ("timestamp",),
}


def can_become(old: str, new: str) -> bool:
    """Whether a column of type ``old`` may be made one of ``new``, another type."""
    if can_widen(old, new) or new in _MORE.get(old, ()):
        return True
    if base_type(new) != "decimal" or old == new or not fits_decimal(old, new):
        return False
    return (parse(old).scale or 0) == parse(new).scale


def can_become_text(old: str) -> str:
    """The types that `can_become` allows, for a message; empty for none."""
    known = [*wider_types(old), *_MORE.get(old, ())]
    if old in DIGITS:
        known.append(f"a decimal of {DIGITS[old]} digits or more, none after the point")
    if base_type(old) == "decimal":
        known.append("a decimal with more digits before the point and as many after it")
    return " or ".join(known)


def fits_decimal(old: str, new: str) -> bool:
    """Whether a decimal type holds all values of an integer type or another decimal."""
    wanted = "decimal(20,0)" if new == "uint64" else new
    target = parse(wanted)
    if target.precision is None or target.scale is None:
        return False
    return (parse(old).scale or 0) <= target.scale and _whole(old) <= _whole(wanted)


def _whole(kind: str) -> int:
    """Digits before the point; many of a type that is no number."""
    given = parse(kind)
    if given.precision is not None and given.scale is not None:
        return given.precision - given.scale
    return DIGITS.get(base_type(kind), 99)
