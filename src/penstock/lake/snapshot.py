"""Which snapshot: a version, a time, or the latest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class At:
    """A point to read at. Both unset: the latest. ``timestamp`` is aware."""

    version: int | None = None
    timestamp: datetime | None = None


LATEST = At()
