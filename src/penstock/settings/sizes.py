"""Amounts of memory as settings have them and people read them, in binary units."""

from __future__ import annotations

import re

from penstock.errors import ConfigError, Location

MIB, GIB = 1 << 20, 1 << 30
_SIZE = re.compile(r"(?P<count>\d+(?:\.\d+)?)\s*(?P<unit>[kmgt])(?:i?b)?", re.IGNORECASE)
_UNITS = {unit: 1024**power for power, unit in enumerate("kmgt", 1)}


def bytes_of(text: str) -> int | None:
    """Return the bytes of ``3g``, ``1500m`` or ``2.5 GiB``; None for another text.

    >>> bytes_of("3g") == 3 * 1024**3
    True
    """
    match = _SIZE.fullmatch(text.strip())
    return match and int(float(match["count"]) * _UNITS[match["unit"].lower()])


def size_text(size: int) -> str:
    """Return ``1.6 GiB`` or ``512 MiB``.

    >>> size_text(3 * 1024**3)
    '3 GiB'
    """
    unit, name = (GIB, "GiB") if size >= GIB else (MIB, "MiB")
    digits = 1 if unit == GIB else 0
    return f"{f'{size / unit:.{digits}f}'.removesuffix('.0')} {name}"


def size_setting(key: str, value: object, origin: Location) -> int:
    """Return the bytes of a setting. Raises ConfigError."""
    size = bytes_of(value) if isinstance(value, str) else None
    if not size:
        raise ConfigError(
            f"{key} is {value!r}, which is not an amount of memory",
            location=origin,
            hint='write it as in "3g" or "1500m"',
        )
    return size
