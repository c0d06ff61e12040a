"""Durations and amounts of memory, as settings have them and people read them."""

from __future__ import annotations

import re

from penstock.errors import ConfigError, Location

_DURATION = re.compile(r"\+?(?P<count>\d+)(?P<unit>[smhd]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_FRACTION = re.compile(r"\+?(?P<count>\d+(?:\.\d+)?)(?P<unit>ms|[smhd]?)", re.ASCII)
_FRACTION_UNITS = {"ms": 0.001, **_UNITS}


def is_duration(text: str) -> bool:
    return _DURATION.fullmatch(text) is not None


def seconds_of(text: str | None) -> float:
    """The length of a duration; 0 for no duration, and for a text that check has reported."""
    match = _DURATION.fullmatch(text or "")
    return float(match["count"]) * _UNITS[match["unit"]] if match else 0.0


def fraction_of(text: str) -> float:
    """Return the seconds of a duration that may have fractions, as ``0.2s`` or ``500ms``.

    Args:
        text: The duration.

    Returns:
        The seconds; 0 for no duration.
    """
    match = _FRACTION.fullmatch(text)
    return float(match["count"]) * _FRACTION_UNITS[match["unit"]] if match else 0.0


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


MIB, GIB = 1 << 20, 1 << 30
_SIZE = re.compile(r"(?P<count>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt])(?:i?b)?", re.IGNORECASE)
_SIZE_UNITS = {unit: 1024**power for power, unit in enumerate("kmgt", 1)}


def bytes_of(text: str) -> int | None:
    """Return the bytes of ``3g``, ``1500m`` or ``2.5 GiB``; None for another text.

    >>> bytes_of("3g") == 3 * 1024**3
    True
    """
    match = _SIZE.fullmatch(text.strip())
    return match and int(float(match["count"]) * _SIZE_UNITS[match["unit"].lower()])


def size_text(size: int) -> str:
    """Return ``1.6 GiB`` or ``512 MiB``.

    >>> size_text(3 * 1024**3)
    '3 GiB'
    """
    unit, name = (GIB, "GiB") if size >= GIB else (MIB, "MiB")
    digits = 1 if unit == GIB else 0
    return f"{f'{size / unit:.{digits}f}'.removesuffix('.0')} {name}"


def size_setting(
    key: str, value: object, origin: Location, *, noun: str = "an amount of memory"
) -> int:
    """Return the bytes of a setting. Raises ConfigError."""
    size = bytes_of(value) if isinstance(value, str) else None
    if not size:
        raise ConfigError(
            f"{key} is {value!r}, which is not {noun}",
            location=origin,
            hint='write it as in "3g" or "1500m"',
        )
    return size
