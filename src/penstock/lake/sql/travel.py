"""Points in time as queries write them: values of clauses and arguments as snapshots to read at."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from penstock.errors import ArgumentError
from penstock.lake.snapshot import At
from penstock.lake.sql.references import Travel


def point(travel: Travel, args: Mapping[str, Any], zone: str) -> At:
    """The snapshot that a clause names; ``zone`` is that of times without one.

    Raises ArgumentError for a marker without a value and for what is no version or time.
    """
    value: Any = travel.value
    if travel.parameter is not None:
        if travel.parameter not in args:
            raise ArgumentError(
                f"there is no value for :{travel.parameter}", hint="pass it in args"
            )
        value = args[travel.parameter]
    if travel.kind == "version":
        return At(version=version(value))
    return At(timestamp=moment(value, zone))


def version(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{value!r} is not a snapshot's version", hint="versions are whole numbers"
        ) from None


def moment(value: Any, zone: str) -> datetime:
    """A time as the catalog compares it: aware, in UTC."""
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise ArgumentError(
            f"{value!r} is not a time", hint="write it as 2013-01-02 03:04:05"
        ) from None
    zoned: datetime = in_zone(found, zone)
    return zoned.astimezone(UTC)


def in_zone(value: Any, zone: str) -> Any:
    """A time without a zone in ``zone``: left to itself PySpark takes Python's own."""
    if not isinstance(value, datetime) or value.tzinfo is not None:
        return value
    return value.replace(tzinfo=ZoneInfo(zone))
