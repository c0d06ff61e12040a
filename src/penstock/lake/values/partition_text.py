"""Partition values as Spark casts them to text, as the text that the catalog keeps."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping

from penstock.lake.values.bounds import base_type, bound_to_text

_DATE = re.compile(r"([+-]?)(\d{4,})(-\d\d-\d\d)(.*)", re.DOTALL)
_YEARS_BC = " (BC)"


def catalog_text(type_text: str, text: str) -> str:
    """``text`` (Spark's cast of a value to string) as the real extension writes it (measured)."""
    turn = _TURNS.get(base_type(type_text))
    return text if turn is None else turn(type_text, text)


def _float(type_text: str, text: str) -> str:
    value = float(text)
    if math.isnan(value):
        return "nan"
    if base_type(type_text) == "float32" and math.isfinite(value):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return str(bound_to_text(type_text, value + 0.0))  # -0.0 and 0.0 are one value


def _time(_: str, text: str) -> str:
    """Spark signs years before 0 and beyond 9999; the extension counts years before Christ."""
    match = _DATE.fullmatch(text)
    if match is None or not match[1]:
        return _before_christ(match) if match and int(match[2]) == 0 else text
    return text[1:] if match[1] == "+" else _before_christ(match)


def _before_christ(match: re.Match[str]) -> str:
    year = int(match[2]) + 1
    return f"{year:04d}{match[3]}{match[4]}{_YEARS_BC}"


_TURNS: Mapping[str, Callable[[str, str], str]] = {
    **dict.fromkeys(("float32", "float64"), _float),
    **dict.fromkeys(("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamptz"), _time),
    "uuid": lambda _, text: text.lower(),
}
