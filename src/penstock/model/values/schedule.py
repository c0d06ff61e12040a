"""The times when a step runs and is tried again: triggers, freshness, debounce, retries.

A duration (`penstock.settings.quantities`) is a text in these values, as it was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.model.values.asset import Asset

EVENTS = (
    *("schedule", "webhook", "email", "kafka", "mqtt", "nats", "postgres", "sqs", "gcp"),
    "data_upload",
)


@dataclass(frozen=True, slots=True)
class Trigger:
    """``kind`` is ``asset`` or one of :data:`EVENTS`; only an asset has a debounce."""

    kind: str
    asset: Asset | None = None
    debounce: str | None = None

    @property
    def bears_partition(self) -> bool:
        """Return whether it takes part in a join by partition (``trigger all``)."""
        return self.asset is not None and "{partition}" in self.asset.path

    def to_dict(self) -> dict[str, Any]:
        if self.asset is None:
            return {"kind": self.kind}
        found = {"kind": self.kind, "asset_kind": self.asset.kind, "path": self.asset.path}
        return found if self.debounce is None else {**found, "debounce": self.debounce}


@dataclass(frozen=True, slots=True)
class Schedule:
    """``join`` is how several triggers combine, ``all`` or ``any``; None where nothing says."""

    triggers: tuple[Trigger, ...] = ()
    join: str | None = None
    freshness: str | None = None
    debounce: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """``count`` >= 1 further attempts, ``delay`` between them as written."""

    count: int
    delay: str | None = None


@dataclass(frozen=True, slots=True)
class Cadence:
    """The times when a model of MODEL (...) is due, and the intervals that it has. All as written.

    ``cron`` None is ``@daily``; ``cron_tz`` shifts when it is due, not the intervals.
    """

    cron: str | None = None
    cron_tz: str | None = None
    interval_unit: str | None = None
    start: str | None = None
    end: str | None = None
    allow_partials: bool = False
