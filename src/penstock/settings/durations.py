"""Durations as settings and headers have them: seconds, or ``<n>s|m|h|d`` (annotations.md)."""

from __future__ import annotations

import re

from penstock.errors import ConfigError, Location

_DURATION = re.compile(r"\+?(?P<count>\d+)(?P<unit>[smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def is_duration(text: str) -> bool:
    return _DURATION.fullmatch(text) is not None


def seconds_of(text: str | None) -> float:
    """The length of a duration; 0 for no duration, and for a text that check has reported."""
    match = _DURATION.fullmatch(text or "")
    return float(match["count"]) * _UNITS[match["unit"]] if match else 0.0


def duration_setting(
    key: str,
    value: object,
    origin: Location,
    *,
    hint: str,
    what: str = "a duration",
    none: str = "none",
) -> float | None:
    """Return the seconds of a setting, None where it is the word ``none``. Raises ConfigError."""
    shown = str(value).lower() if isinstance(value, bool) else value
    if shown == none:
        return None
    seconds = seconds_of(value) if isinstance(value, str) else 0.0
    if not seconds:
        raise ConfigError(
            f"{key} is {str(shown)!r}, which is not {what}", location=origin, hint=hint
        )
    return seconds
