"""Find the ages of the slices of models with a ``freshness``. It needs no Spark session.

The age of a slice is the age of its published rows. A failed build does not change it. `status` and
`penstock serve` use these ages. `scheduler.freshness` defines which slices are late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from penstock.engine.planning.slice_states import DerivedState, KnownSlices, Recorded
from penstock.engine.planning.table_changes import last_change
from penstock.engine.results import ModelStatus
from penstock.engine.state.records import WHOLE, SliceRecord
from penstock.engine.state.tables import to_moment
from penstock.model.definition.model import Model
from penstock.model.time.slice import Part, Slice, shown, span_of
from penstock.scheduler.freshness import is_overdue
from penstock.scheduler.values import Age
from penstock.settings.quantities import seconds_of
from penstock.states import SliceState

if TYPE_CHECKING:
    from penstock.engine.planning.intervals import IntervalHistory

_BEHIND = frozenset({SliceState.BEHIND, SliceState.LATE})
# A failed interval can be built, independent of the others.
_BUILDABLE = _BEHIND | {SliceState.FAILED, SliceState.SKIPPED}
_Change = Callable[[], datetime | None]


def freshness_of(model: Model) -> timedelta | None:
    """Return the maximum age of the slices of a model.

    Args:
        model: The model.

    Returns:
        The maximum age; None for a model without ``freshness``.
    """
    text = model.schedule.freshness if model.strategy.runs else None
    return None if text is None else timedelta(seconds=seconds_of(text))


def find_ages(
    knowledge: KnownSlices, model: Model, recorded: Recorded, moment: datetime
) -> tuple[Age, ...]:
    """Return the age of each slice of a model with a ``freshness``.

    Args:
        knowledge: The slices in the catalogs.
        model: The model.
        recorded: The records of its slices.
        moment: The current time.

    Returns:
        The ages of the slices that exist or were attempted. A model without partitions has one age.
        A model by time has one age, from its newest build. `Age.inputs_changed_at` is the time of
        the last change of a table that the model reads.
    """
    if freshness_of(model) is None:
        return ()

    @cache
    def change() -> datetime | None:
        changes = (last_change(knowledge.catalogs(table.lake), table) for table in model.reads)
        times = (time.astimezone(UTC) for time in changes if isinstance(time, datetime))
        return max(times, default=None)

    if model.by_time is not None:
        return tuple(_find_interval_age(model, recorded.painted(model), change, moment))
    states = recorded.states(model)
    if model.partition is None:
        states = {WHOLE: states.get(WHOLE, DerivedState.of(SliceState.MISSING))}
    records = recorded.lost.as_is(recorded.slices)
    behind = _find_behind(model, recorded, states, records)
    return tuple(
        _make_age(
            model,
            text,
            records.get(text) if state.recorded_state.exists else None,
            change,
            is_behind=text in behind,
        )
        for text, state in states.items()
        if state.state is not SliceState.OTHER_KIND
    )


def mark_overdue(
    knowledge: KnownSlices,
    status: ModelStatus,
    model: Model,
    recorded: Recorded,
    moment: datetime,
) -> ModelStatus:
    """Mark the overdue slices in the status of a model.

    Args:
        knowledge: The slices in the catalogs.
        status: The status.
        model: The model of the status.
        recorded: The records of its slices.
        moment: The current time.

    Returns:
        The status. For a model by time, only the last interval is marked.
    """
    freshness = freshness_of(model)
    if freshness is None:
        return status
    ages = find_ages(knowledge, model, recorded, moment)
    overdue = {shown(age.key) for age in ages if is_overdue(age, freshness, moment)}
    if model.by_time is not None and overdue:
        of_kind = [part for part in status.slices if part.state is not SliceState.OTHER_KIND]
        overdue = {part.slice for part in (of_kind or status.slices)[-1:]}
    slices = tuple(
        replace(part, is_overdue=True) if part.slice in overdue else part for part in status.slices
    )
    return replace(status, slices=slices, freshness=model.schedule.freshness)


def _find_behind(
    model: Model,
    recorded: Recorded,
    states: Mapping[str, DerivedState],
    records: Mapping[str, SliceRecord],
) -> frozenset[str]:
    """Return the slices with a changed input. Only unfinished slices need more than their state."""
    unfinished: dict[Slice, Mapping[str, int]] = {
        Part(text): lakes
        for text, state in states.items()
        if state.recorded_state is SliceState.UNFINISHED
        and model.looks_at_rows
        and (lakes := recorded.reads.get(records[text].read_id or "")) is not None
    }
    causes = recorded.inputs.behind(unfinished) if unfinished else {}
    behind = {slice_.text for slice_, cause in causes.items() if cause.state in _BEHIND}
    behind |= {slice_.text for slice_ in unfinished if slice_.text in recorded.inputs.files}
    behind |= {text for text, state in states.items() if state.recorded_state in _BEHIND}
    return frozenset(behind)


def _make_age(
    model: Model, text: str, record: SliceRecord | None, change: _Change, *, is_behind: bool
) -> Age:
    if record is None:
        span = span_of(Part(text), model.partition) if text else None
        return Age(model.name, text, None, change(), None if span is None else span.end)
    # Files and views have no time of their last change.
    changed_at = (change() or record.published_at) if is_behind else None
    return Age(model.name, text, record.published_at, changed_at)


def _find_interval_age(
    model: Model, history: IntervalHistory, change: _Change, moment: datetime
) -> Iterator[Age]:
    assert model.by_time is not None, "only models by time have intervals"
    events = history.events
    built = [to_moment(event.at) for event in events if event.state.exists]
    lacks = bool(model.by_time.missing(history.recorded, moment))
    if not built:
        if events or lacks:
            yield Age(model.name, WHOLE, None, change())
        return
    built_at, changed_at = max(built), None
    if any(event.state in _BUILDABLE for event in events):
        changed_at = change() or built_at
    elif lacks:
        latest = change()
        changed_at = latest if latest is not None and latest > built_at else None
    yield Age(model.name, WHOLE, built_at, changed_at)
