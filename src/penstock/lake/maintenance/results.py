"""What maintenance answers: the columns that DuckDB's functions of the same name return."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compacted:
    """One file made of several: how many went, how many came (0 where no row was left)."""

    schema_name: str
    table_name: str
    files_processed: int
    files_created: int


@dataclass(frozen=True, slots=True)
class Expired:
    """One snapshot that went, or would go. ``changes`` is the catalog's text."""

    snapshot_id: int
    snapshot_time: dt.datetime
    schema_version: int
    changes: str
    author: str | None
    commit_message: str | None
    commit_extra_info: str | None


@dataclass(frozen=True, slots=True)
class Removed:
    """One file that was removed, or would be; or that was left, and why."""

    path: str
    left: str | None = None
