"""What starts a step: ``on`` lines (annotations.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.model.asset import Asset

EVENTS = (
    "schedule",
    "webhook",
    "email",
    "kafka",
    "mqtt",
    "nats",
    "postgres",
    "sqs",
    "gcp",
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
        """Whether it takes part in a join by partition (``trigger all``)."""
        return self.asset is not None and "{partition}" in self.asset.path

    def to_dict(self) -> dict[str, Any]:
        if self.asset is None:
            return {"kind": self.kind}
        found = {"kind": self.kind, "asset_kind": self.asset.kind, "path": self.asset.path}
        return found if self.debounce is None else {**found, "debounce": self.debounce}
