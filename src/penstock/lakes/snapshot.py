"""Name a snapshot: by version, by time, or the latest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from penstock.errors import ArgumentError

Moment = str | date | datetime


@dataclass(frozen=True, slots=True, repr=False)
class Snapshot:
    """One row of ``ducklake_snapshot`` with its changes (format 1.0)."""

    id: int
    time: datetime  # aware, UTC
    schema_version: int
    next_catalog_id: int
    next_file_id: int
    changes: str = ""
    author: str | None = None
    message: str | None = None
    extra: str | None = None

    def __repr__(self) -> str:
        return f"Snapshot({self.id}, {self.time:%Y-%m-%d %H:%M:%S}, {self.changes!r})"


@dataclass(frozen=True, slots=True)
class At:
    """A point to read at. Both unset: the latest. ``timestamp`` is aware."""

    version: int | None = None
    timestamp: datetime | None = None

    @classmethod
    def of(cls, at_version: int | None, timestamp: Moment | None) -> At:
        """From a caller's arguments: a time may be a text, and a time without a zone is in UTC.

        Raises ArgumentError for both, and for what is neither a version nor a time.
        """
        if at_version is not None and timestamp is not None:
            raise ArgumentError(
                "a snapshot is named by a version or by a time, not by both",
                hint="leave out one of the two",
            )
        if timestamp is not None:
            return cls(timestamp=moment(timestamp))
        return cls() if at_version is None else cls(version(at_version))


LATEST = At()


def version(value: Any) -> int:
    """The id of a snapshot. Raises ArgumentError."""
    try:
        number = int(value)
        if isinstance(value, float | Decimal) and value != number:
            raise ValueError(value)
        return number
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{value!r} is not a snapshot's version", hint="versions are whole numbers"
        ) from None


def moment(value: Any, zone: str = "UTC") -> datetime:
    """A time as the catalog compares it: aware, in UTC. Times without a zone are in ``zone``.

    Raises ArgumentError.
    """
    parsed = time_of(value)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC)


def time_of(value: Any) -> datetime:
    """A datetime, a date (its midnight) or a text of ISO 8601, with a zone or without."""
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        raise ArgumentError(
            f"{value!r} is not a time", hint="write it as 2013-01-02 03:04:05"
        ) from None
