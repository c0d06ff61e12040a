"""The schedule by which a model restates itself, and how much of it (kinds.md,
``auto_restatement_cron`` and ``auto_restatement_intervals``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from penstock.model.time.cron import Cron
from penstock.model.time.interval import Interval, Intervals, IntervalUnit, intersect, union


@dataclass(frozen=True, slots=True)
class AutoRestatement:
    """``intervals`` is how many of a model by time; None for all, and for other models."""

    cron: str
    zone: str = "UTC"
    intervals: int | None = None

    def due(self, now: datetime) -> datetime:
        """Return when it was due last: what was made before that is made again."""
        return Cron(self.cron, self.zone).floor(now)

    def window(self, recorded: Iterable[Interval], unit: IntervalUnit) -> Intervals:
        """Return what of the recorded intervals it is about: the last
        ``intervals`` units, or all.
        """
        known = union(recorded)
        if self.intervals is None or not known:
            return known
        end = known[-1].end
        first = unit.next(unit.ceil(end), -self.intervals)
        return intersect(known, (Interval(first, end),)) if first < end else ()
