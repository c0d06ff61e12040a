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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import ConfigError, Location
from penstock.settings.durations import duration_setting

NONE = "none"
LOGS: Mapping[str, type] = {"directory": str, "keep": str, "keep_runs": int}
RECORDS: Mapping[str, type] = {"keep": str, "keep_runs": int}
_DIRECTORY = ".penstock/logs"
_DAY = 86_400.0


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
    logs: Keep = Keep(30 * _DAY, 1_000)
    records: Keep = Keep(365 * _DAY, 10_000)


@dataclass(frozen=True, slots=True)
class Setting:
    """A raw value and where it was set, for messages."""

    value: Any = field(repr=False)
    origin: Location


def read_retention(root: Path, get: Callable[[str], Setting | None]) -> Retention:
    """Return what the settings by dotted key say. Raises ConfigError."""
    default, named = Retention(), get("logs.directory")
    directory = _DIRECTORY if named is None else str(named.value)
    return Retention(
        None if directory == NONE else root / directory,
        _keep("logs", get, default.logs),
        _keep("run", get, default.records),
    )


def _keep(section: str, get: Callable[[str], Setting | None], default: Keep) -> Keep:
    age, runs = get(f"{section}.keep"), get(f"{section}.keep_runs")
    return Keep(
        default.age if age is None else _age(f"{section}.keep", age),
        default.runs if runs is None else _runs(f"{section}.keep_runs", runs),
    )


def _age(key: str, setting: Setting) -> float | None:
    hint = 'write it as in "30d", "12h"; "none" for no limit'
    return duration_setting(key, setting.value, setting.origin, what="an age", hint=hint)


def _runs(key: str, setting: Setting) -> int | None:
    if setting.value < 0:
        raise ConfigError(
            f"{key} must be 0 or more, not {setting.value}",
            location=setting.origin,
            hint="0 sets no limit",
        )
    return int(setting.value) or None
