"""Models by time that nothing tells where to begin: they begin yesterday, which is seldom meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from penstock.errors import Diagnostic
from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model

START_HINT = (
    "write start '2024-01-31' in MODEL (...), start=2024-01-31 in a line `partitioned`, or "
    "start in [project.defaults] of penstock.toml"
)


def begins(first: datetime) -> str:
    """Return what becomes of a model without a start."""
    return f"has no start: its first run begins yesterday, {first:%Y-%m-%d}"


def without_start(models: Sequence[Model]) -> Iterator[Diagnostic]:
    """Warnings; a model begins with the models that it reads, where one of these has a start."""
    by_time = [m for m in models if m.by_time is not None and m.cadence.start is None]
    if not by_time:
        return
    graph, starts = Graph.of(models), {m.name for m in models if m.cadence.start}
    for model in by_time:
        if not starts.intersection(graph.upstream(model.name)):
            message = "the model has no start: its first run begins yesterday"
            place = model.place("time_column")
            yield Diagnostic("warning", message, place, START_HINT, "no-start")
