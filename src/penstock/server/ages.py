"""Read how old the slices are of models that say how fresh they must be. Starts no Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.scheduler.values import Age

if TYPE_CHECKING:
    from penstock.project.context import ProjectContext

LOOK = 30.0  # seconds for which ages are taken to be as they were read


def read_ages(context: ProjectContext, moment: datetime) -> tuple[Age, ...]:
    """Return how old each slice is of the models with a ``freshness``.

    Args:
        context: The project.
        moment: The time.

    Returns:
        The ages.
    """
    from penstock.engine.answers.ages import find_ages, freshness_of

    models = [model for model in context.models if freshness_of(model) is not None]
    if not models:
        return ()
    knowledge = context.slices()
    recorded = knowledge.recorded(models)
    return tuple(
        age for model in models for age in find_ages(knowledge, model, recorded[model.name], moment)
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

    def reset(self) -> None:
        """Read the ages with the next call."""
        self._read_at = None

    def __call__(self) -> tuple[Age, ...]:
        """Return the ages as they were read last.

        Returns:
            The ages.
        """
        if self._read_at is None or self._clock() - self._read_at > LOOK:
            self._ages, self._read_at = self._load(), self._clock()
        return self._ages
