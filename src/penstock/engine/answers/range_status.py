"""Narrow statuses to a selection of models, or to the slices in a range of time. Without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

from penstock.engine.planning.intervals import IntervalHistory, ModelIntervals
from penstock.engine.planning.ranges import Calendar, SliceRange
from penstock.engine.planning.selection import Selection
from penstock.engine.results import ModelStatus, SliceStatus, Statuses
from penstock.model.definition.graph import Graph
from penstock.model.definition.model import Model
from penstock.states import SliceState

Intervals = Callable[[Sequence[Model]], Mapping[str, IntervalHistory]]


def of_selection(
    selection: Selection,
    models: Mapping[str, Model],
    graph: Graph,
    statuses: Callable[[], Statuses],
) -> Statuses:
    """The statuses of the selected models. Raises ArgumentError, before it asks for any."""
    known = cache(statuses)

    def in_state(word: str) -> set[str]:
        # Late: only ``state:`` asks.
        from penstock.engine.planning.selectors import STATES

        return {
            each.model
            for each in known()
            if each.model
            and STATES[word] & ({of.state for of in each.slices} or {SliceState.MISSING})
        }

    names = selection.of(models, graph, in_state).names
    return Statuses(each for each in known() if each.model in names)


def in_range(
    known: Statuses,
    models: Sequence[Model],
    asked: SliceRange,
    intervals: Intervals,
    now: datetime | None = None,
    *,
    parents: Callable[[Model], Iterable[Model]] = lambda _: (),
) -> Statuses:
    """Of each model of ``models`` that is partitioned, or by time, the slices in a range, in the
    order of time.

    What was never tried is ``missing``. Raises PartitionError and ArgumentError for the range.
    """
    now = now or datetime.now(UTC)
    calendar = Calendar(asked, now, parents)
    dated = {m.name: m for m in models if m.partition is not None or m.by_time is not None}
    painted = intervals([model for model in dated.values() if model.by_time is not None])
    found: list[ModelStatus] = []
    for status in known:
        model = dated.get(status.model or "")
        if model is None:
            continue
        if model.by_time is None:
            slices = {each.slice: each for each in status.slices}
            values = (part.value for part in calendar.of(model).slices)
            missing = SliceState.MISSING
            ordered = tuple(slices.get(value) or SliceStatus(value, missing) for value in values)
        else:
            line = ModelIntervals(model.by_time, painted.get(model.name, IntervalHistory()), now)
            ordered = tuple(_of_intervals(status, line, asked))
        found.append(replace(status, slices=ordered))
    return Statuses(found)


def _of_intervals(
    status: ModelStatus, line: ModelIntervals, asked: SliceRange
) -> Iterator[SliceStatus]:
    """Yield what was made in one batch, and what is missing, is one slice of as many intervals."""
    slices = {each.slice: each for each in status.slices}
    for event in line.states_of(asked):
        text = str(event.interval)
        known = slices.get(text, SliceStatus(text, event.state))
        yield replace(
            known,
            state=event.state,
            outside_snapshot=event.since,
            intervals=line.count((event.interval,)),
        )
