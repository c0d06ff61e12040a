"""Counts, durations and names as text that is safe to print."""

from __future__ import annotations

import re

# Control characters move the cursor, change a terminal's settings or turn text around;
# surrogates have no encoding.
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, *, keep: str = "") -> str:
    """``text`` with its control characters, but for those of ``keep``, written as escapes."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return _SHORT.get(character) or f"\\u{ord(character):04x}"


def count(number: int, noun: str) -> str:
    """``1 row``, ``1,842 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seconds(value: float | None) -> str:
    """A duration: ``0.4 s``, ``12 s``, ``3 min 05 s``."""
    if value is None:
        return ""
    if value < 10:
        return f"{value:.1f} s"
    if value < 100:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s"
