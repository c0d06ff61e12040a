"""Read how old the slices are of models that say how fresh they must be. Starts no Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.scheduler.values import WHOLE, Age
from penstock.states import SliceState

if TYPE_CHECKING:
    from penstock.engine.results import SliceStatus
    from penstock.model.definition.model import Model
    from penstock.project.context import ProjectContext

LOOK = 30.0  # seconds for which ages are taken to be as they were read
_CHANGED = frozenset({SliceState.BEHIND, SliceState.LATE, SliceState.FAILED, SliceState.SKIPPED})


def read_ages(context: ProjectContext) -> tuple[Age, ...]:
    """Return how old each slice is of the models with a ``freshness``.

    Args:
        context: The project.

    Returns:
        The ages. A slice whose attempts all failed was never built. Inputs of a slice changed if
        its state says so; the time is that of the last change of a table that the model reads.
    """
    from penstock.project.states import report_status

    models = [model for model in context.models if model.schedule.freshness is not None]
    if not models:
        return ()
    statuses = report_status(context, [model.name for model in models])
    by_name = {model.name: model for model in models}
    return tuple(
        age
        for status in statuses
        if status.model in by_name
        for age in _ages_of(context, by_name[status.model], status.slices)
    )


def _ages_of(
    context: ProjectContext, model: Model, slices: tuple[SliceStatus, ...]
) -> Iterator[Age]:
    changed_at = _last_change(context, model)
    if model.partition is None:
        # The newest one counts: intervals of the past stay old.
        yield _age(model.name, WHOLE, slices, changed_at)
        return
    for status in slices:
        yield _age(model.name, status.slice or WHOLE, [status], changed_at)


def _age(
    model: str,
    key: str,
    statuses: Sequence[SliceStatus],
    changed_at: datetime | None,
) -> Age:
    times = [item.time for item in statuses if item.time is not None and item.state.exists]
    built_at = max(times, default=None)
    has_changed = built_at is None or any(item.state in _CHANGED for item in statuses)
    return Age(model, key, built_at, changed_at if has_changed else None)


def _last_change(context: ProjectContext, model: Model) -> datetime | None:
    from penstock.engine.planning.table_changes import last_change

    changes = (last_change(context.catalog(table.lake), table) for table in model.reads)
    return max(
        (moment.astimezone(UTC) for moment in changes if isinstance(moment, datetime)), default=None
    )


class AgeReader:
    """Reads ages at most once in `LOOK` seconds."""

    def __init__(
        self,
        load: Callable[[], tuple[Age, ...]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a reader that has read nothing.

        Args:
            load: Reads the ages.
            clock: Returns seconds.
        """
        self._load = load
        self._clock = clock
        self._ages: tuple[Age, ...] = ()
        self._read_at: float | None = None

    def __call__(self) -> tuple[Age, ...]:
        """Return the ages as they were read last.

        Returns:
            The ages.
        """
        if self._read_at is None or self._clock() - self._read_at > LOOK:
            self._ages, self._read_at = self._load(), self._clock()
        return self._ages
