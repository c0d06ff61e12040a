"""Models by time: which intervals they have, which are missing, and how those are grouped.

Source of the rules: kinds.md, "INCREMENTAL_BY_TIME_RANGE" and the properties cron to lookback.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from penstock.model.time.cron import Cron
from penstock.model.time.interval import (
    UNITS,
    Interval,
    Intervals,
    IntervalUnit,
    intersect,
    minus,
    split,
    union,
)
from penstock.model.time.moments import read_end, read_moment
from penstock.model.values.schedule import Cadence


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """The column of the output that says the time of a row: its name, or where ``by_expression`` an
    expression in the model's dialect. ``format`` is how its texts and numbers say it.
    """

    name: str
    format: str | None = None
    by_expression: bool = False

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Return what rows are written by, for the definition's hash."""
        return (self.name, self.format)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The intervals of a model. Moments are UTC; those of the model itself are as written.

    A model without a ``column`` only reads by intervals, as a merge does that filters its input.
    """

    column: TimeColumn | None = None
    partition_by_time_column: bool = True
    batch_size: int | None = None
    batch_concurrency: int | None = None
    lookback: int = 0
    cadence: Cadence = field(default_factory=Cadence)

    @property
    def cron(self) -> Cron:
        return Cron(self.cadence.cron or "@daily", self.cadence.cron_tz or "UTC")

    @property
    def unit(self) -> IntervalUnit:
        name = self.cadence.interval_unit
        return self.cron.unit if name is None else UNITS[name]

    def start(self, now: datetime) -> datetime | None:
        """The first moment that may be in an interval; None where the model says nothing."""
        text = self.cadence.start
        return None if text is None else self.unit.floor(read_moment(text, now))

    def expected(
        self, now: datetime, *, start: datetime | None = None, ignore_cron: bool = False
    ) -> Intervals:
        """All that is due at ``now``: from the model's start, else from ``start``, else from
        yesterday, up to the last time that its cron was due; whole units, unless
        ``allow_partials``. With ``ignore_cron`` up to ``now``.
        """
        first = self.start(now) or (None if start is None else self.unit.floor(start))
        if first is None:
            first = self.unit.floor(read_moment("yesterday", now))
        end = now if ignore_cron else self.cron.floor(now)
        if self.cadence.end is not None:
            end = min(end, read_end(self.cadence.end, now))
        if not self.cadence.allow_partials:
            end = self.unit.floor(end)
        return (Interval(first, end),) if first < end else ()

    def missing(
        self,
        recorded: Iterable[Interval],
        now: datetime,
        *,
        start: datetime | None = None,
        ignore_cron: bool = False,
    ) -> Intervals:
        """Return what is due and not recorded, with the units that ``lookback`` does again.

        Without a start of its own a model continues from the first interval that was recorded. A
        unit that was recorded in part is missing as a whole.
        """
        known = union(recorded)
        if start is None and known:
            start = known[0].start
        expected = self.expected(now, start=start, ignore_cron=ignore_cron)
        lacking = intersect(self.whole(minus(expected, known)), expected)
        return self.with_lookback(lacking, expected)

    def whole(self, intervals: Iterable[Interval]) -> Intervals:
        """The units that these intervals touch."""
        unit = self.unit
        return union(Interval(unit.floor(i.start), unit.ceil(i.end)) for i in intervals)

    def with_lookback(self, intervals: Intervals, within: Intervals) -> Intervals:
        """Each interval with the ``lookback`` units before it, as far as they are in ``within``."""
        if not self.lookback:
            return intervals
        unit, back = self.unit, -self.lookback
        wider = (Interval(unit.next(unit.floor(i.start), back), i.end) for i in intervals)
        return intersect(union(wider), within)

    def units(self, intervals: Iterable[Interval]) -> Iterator[Interval]:
        for interval in intervals:
            yield from split(interval, self.unit)

    def batches(self, intervals: Intervals) -> tuple[Interval, ...]:
        """The intervals of one evaluation of the query each: at most ``batch_size`` units of what
        is without a gap. In order.
        """
        if self.batch_size is None:
            return intervals
        batches: list[Interval] = []
        for interval in intervals:
            units = split(interval, self.unit)
            while batch := list(islice(units, self.batch_size)):
                batches.append(Interval(batch[0].start, batch[-1].end))
        return tuple(batches)
