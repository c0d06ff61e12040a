"""What the steps of one run share."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.config import Settings
from penstock.engine.plan import Plan
from penstock.engine.state.store import State
from penstock.events import EventSink
from penstock.model.model import Model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lake.lake import Lake


class Cancelled(Exception):
    """The run was asked to stop. Never leaves the engine."""


@dataclass(frozen=True, slots=True)
class World:
    """``lakes`` and ``states`` are by the names of penstock.toml."""

    run_id: str
    plan: Plan
    settings: Settings
    session: SparkSession
    lakes: Mapping[str, Lake]
    states: Mapping[str, State]
    sink: EventSink
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def tag(self) -> str:
        """What Spark knows the run's jobs by, to interrupt them."""
        return f"penstock-{self.run_id}"

    def lake_of(self, model: Model) -> Lake:
        return self.lakes[model.target.lake]

    def check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise Cancelled
