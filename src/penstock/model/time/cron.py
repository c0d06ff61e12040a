"""Cron expressions, by which a model is due and restates itself: five fields, or a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from penstock.model.time.interval import (
    Interval,
    Intervals,
    IntervalUnit,
    intersect,
    union,
    unit_within,
)

SHORTCUTS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
SHORTEST = timedelta(minutes=5)
_SAMPLE = datetime(2023, 1, 1, tzinfo=UTC)  # gaps are those after it, the same every day
_RUNS = 6  # five gaps
_NO_FIELDS = ("", "", "")
_LONGEST = timedelta(days=50 * 366)


class TooOften(ValueError):
    """A cron expression that is due more often than `SHORTEST`."""


@dataclass(frozen=True, slots=True)
class Cron:
    """``expression`` as written, also ``@daily`` and its like, in the time of ``zone``.

    Where clocks change, an expression with fixed minutes and hours is due once for each time that
    it names. ``30 2 * * *`` is due at 03:00 if clocks skip 02:30, and at the earlier 02:30 if they
    repeat it. Two times that fall on 03:00 are due once. An expression whose minutes or hours begin
    with ``*`` follows the hours that pass: it is not due in hours that are skipped, and it is due
    again in hours that are repeated. Debian's cron has the same rules.
    """

    expression: str = "@daily"
    zone: str = "UTC"

    @property
    def fields(self) -> str:
        return SHORTCUTS.get(self.expression.casefold(), self.expression)

    def check(self) -> None:
        """Raise ValueError for what is not a cron expression, `TooOften` below `SHORTEST`."""
        self.check_fields()
        if self.shortest_gap < SHORTEST:
            raise TooOften("is more often than every 5 minutes")

    def check_fields(self) -> None:
        """Check the expression, however often it is due.

        Raises:
            NeverDue: No day is ever named by it, as by 31 February.
            ValueError: It is not a cron expression.
        """
        from cronsim import CronSim, CronSimError

        try:
            times = CronSim(self.fields, _SAMPLE)
        except CronSimError as error:
            *times_of_day, day, month, weekday = [*_NO_FIELDS, *self.fields.split()]
            with suppress(CronSimError):  # the day and the month are right, each on its own
                CronSim(" ".join((*times_of_day, day, "*", weekday)).strip(), _SAMPLE)
                CronSim(" ".join((*times_of_day, "1", month, weekday)).strip(), _SAMPLE)
                raise NeverDue("is never due: its months do not have such a day") from None
            raise ValueError(f"is not a cron expression: {error}") from None
        if next(times, None) is None:
            raise NeverDue("is never due")

    @property
    def shortest_gap(self) -> timedelta:
        """The least time between the next runs, whatever its zone."""
        from cronsim import CronSim

        runs = list(islice(CronSim(self.fields, _SAMPLE), _RUNS))
        return min((later - sooner for sooner, later in pairwise(runs)), default=timedelta(366))

    @property
    def unit(self) -> IntervalUnit:
        """The largest unit that is not longer than the shortest gap (kinds.md, interval_unit)."""
        return unit_within(self.shortest_gap)

    def floor(self, now: datetime) -> datetime:
        """Return the last time that it was due.

        Args:
            now: The moment, which is included.

        Returns:
            A moment in UTC.

        Raises:
            ValueError: It was not due in 50 years.
        """
        for due in self.iterate_back(now):
            return due
        raise ValueError(f"{self.expression} was never due")

    def iterate_back(self, moment: datetime) -> Iterator[datetime]:
        """Yield the times that it was due, the newest first.

        Args:
            moment: The times yielded are this one or before it.

        Yields:
            Moments in UTC, each once.
        """
        # Forwards in windows: the reversed iterator of cronsim 2.8 has no time in a repeated hour,
        # and does not end around some changes of clocks (``0 */2 * * *`` in Pacific/Chatham).
        width, end = max(2 * self.shortest_gap, timedelta(hours=6)), moment
        while end > moment - _LONGEST:
            start = end - width
            times = list(self._iterate(start, end))
            yield from reversed(times)
            width, end = width if times else 4 * width, start

    def _iterate(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the times after ``start``, up to and including ``end``."""
        from cronsim import CronSim

        sooner = start
        for moment in CronSim(self.fields, start.astimezone(self._zone)):
            due = moment.astimezone(UTC)
            if due > end:
                return
            if due > sooner:
                sooner = due
                yield due

    def next(self, now: datetime) -> datetime:
        """Return the first time after a moment at which it is due.

        Args:
            now: The moment, which is not included.

        Returns:
            A moment in UTC.

        Raises:
            ValueError: It is not due in 50 years.
        """
        from cronsim import CronSim

        for moment in CronSim(self.fields, now.astimezone(self._zone)):
            due = moment.astimezone(UTC)
            if due > now:
                return due
        raise ValueError(f"{self.expression} is never due")

    @property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone)


class NeverDue(ValueError):
    """A cron expression that names no time, as 31 February."""


@dataclass(frozen=True, slots=True)
class AutoRestatement:
    """The schedule by which a model restates itself, and how much of it.

    Kinds of SQLMesh have it as ``auto_restatement_cron`` and ``auto_restatement_intervals``.
    ``intervals`` is how many of a model by time; None for all, and for other models.
    """

    cron: str
    zone: str = "UTC"
    intervals: int | None = None

    def due(self, moment: datetime) -> datetime:
        """Return when it was due last: older intervals are restated.

        Args:
            moment: The moment of the run.

        Returns:
            A moment in UTC.
        """
        return Cron(self.cron, self.zone).floor(moment)

    def window(self, recorded: Iterable[Interval], unit: IntervalUnit) -> Intervals:
        """Return the recorded intervals that are restated.

        Args:
            recorded: The intervals that a model has.
            unit: The unit of its intervals.

        Returns:
            Those of the last ``intervals`` units, or all.
        """
        intervals = union(recorded)
        if self.intervals is None or not intervals:
            return intervals
        end = intervals[-1].end
        start = unit.next(unit.ceil(end), -self.intervals)
        return intersect(intervals, (Interval(start, end),)) if start < end else ()
