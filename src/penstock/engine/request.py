"""What a run is asked to do, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class RunRequest:
    """``select``: names, patterns, ``+name`` (and upstream), ``name+`` (and downstream).

    ``args`` are texts as given, by name. ``payload`` is what a trigger brought, for ``dynamic``
    partitions; ``fire_time`` (aware) is when it fired. ``full_refresh``: the tables are made anew.
    """

    partition: str | None = None
    select: tuple[str, ...] = ()
    args: Mapping[str, str] = field(default_factory=dict)
    fire_time: datetime = field(default_factory=lambda: datetime.now(UTC))
    payload: Mapping[str, Any] | None = None
    trigger: str = "manual"
    full_refresh: bool = False
