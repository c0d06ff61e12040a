"""``[logs]`` and ``[run] keep``: where logs of runs are, and how long logs and records stay.

    [logs]
    directory = ".penstock/logs"
    keep = "30d"
    keep_runs = 1000

    [run]
    keep = "365d"
    keep_runs = 10000

``none`` in place of an age sets no limit, 0 in place of a number; a directory ``none`` has no logs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import Location

NONE = "none"


@dataclass(frozen=True, slots=True)
class Keep:
    """Runs that stay: those younger than ``age`` seconds, at most ``runs``; None: all."""

    age: float | None
    runs: int | None


@dataclass(frozen=True, slots=True)
class Retention:
    """``logs`` stay in ``directory``, or are not written where that is None; ``records`` stay in
    the catalogs, and of each slice the latest one whatever its age.
    """

    directory: Path | None = None
    logs: Keep = Keep(None, None)
    records: Keep = Keep(None, None)


@dataclass(frozen=True, slots=True)
class Setting:
    """A raw value and where it was set, for messages."""

    value: Any = field(repr=False)
    origin: Location


def read_retention(root: Path, value: Callable[[str], Any]) -> Retention:
    """Return what the settings say; ``value`` returns one by its dotted key."""
    directory = value("logs.directory")
    return Retention(
        None if directory == NONE else root / directory,
        logs=Keep(value("logs.keep"), value("logs.keep_runs")),
        records=Keep(value("run.keep"), value("run.keep_runs")),
    )
