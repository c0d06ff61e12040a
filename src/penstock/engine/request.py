"""What a run is asked to do, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

# A value as a slice is called, or a moment: without a time zone it is wall time in the partition's.
Partition = str | date | datetime


@dataclass(frozen=True, slots=True)
class RunRequest:
    """``select``: names, patterns, ``+name`` (and upstream), ``name+`` (and downstream).

    ``args`` are texts, or None for NULL, by name. ``payload`` is what a trigger sent; ``fire_time``
    (aware) is when it fired. ``full_refresh``: the tables are made anew.
    """

    partition: Partition | None = None
    select: tuple[str, ...] = ()
    args: Mapping[str, str | None] = field(default_factory=dict)
    fire_time: datetime = field(default_factory=lambda: datetime.now(UTC))
    payload: Mapping[str, Any] | None = None
    trigger: str = "manual"
    full_refresh: bool = False

    @property
    def inputs(self) -> dict[str, Any]:
        """The run's arguments: what the payload holds and what was given by name, which wins."""
        return {**(self.payload or {}), **self.args}
