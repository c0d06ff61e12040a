"""To which types a column may be changed: those that hold each of its values as it is.

These are promotions that DuckDB makes too (measured, 1.5.5), by which its files and ours are read
alike, and pruned alike. It has more, which are refused here: those that round (BIGINT to DOUBLE,
DECIMAL(18,3) to DECIMAL(38,2)), that hang on the zone of a session (to TIMESTAMPTZ), and those to
types that Spark does not write (HUGEINT).
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
    "int8": ("float32", "float64"),
    "int16": ("float32", "float64"),
    "int32": ("float64",),
    "uint8": ("int16", "int32", "int64", "float32", "float64"),
    "uint16": ("int32", "int64", "float32", "float64"),
    "uint32": ("int64", "float64"),
    "date": ("timestamp",),
}


def can_become(old: str, new: str) -> bool:
    """Whether a column of type ``old`` may be made one of ``new``, another type."""
    if can_widen(old, new) or new in _MORE.get(old, ()):
        return True
    return base_type(new) == "decimal" and old != new and fits_decimal(old, new)


def can_become_text(old: str) -> str:
    """The types that `can_become` allows, for a message; empty for none."""
    known = [*wider_types(old), *_MORE.get(old, ())]
    if old in DIGITS:
        known.append(f"a decimal with {DIGITS[old]} digits before the point")
    elif base_type(old) == "decimal":
        known.append("a decimal with as many digits before the point and after it")
    return " or ".join(known)


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
