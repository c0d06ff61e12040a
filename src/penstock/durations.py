"""Durations as settings and headers have them: seconds, or ``<n>s|m|h|d`` (annotations.md)."""

from __future__ import annotations

import re

_DURATION = re.compile(r"\+?(?P<count>\d+)(?P<unit>[smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def is_duration(text: str) -> bool:
    return _DURATION.fullmatch(text) is not None


def seconds_of(text: str | None) -> float:
    """The length of a duration; 0 for no duration, and for a text that check has reported."""
    match = _DURATION.fullmatch(text or "")
    return float(match["count"]) * _UNITS[match["unit"]] if match else 0.0
