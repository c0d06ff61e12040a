"""What is known of each slice: state rows and models in, statuses out. Pure but for `read`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.engine.outside import Key, Outside
from penstock.engine.results import ModelStatus, SliceStatus
from penstock.engine.state import reading
from penstock.engine.state.records import (
    WHOLE,
    CheckRecord,
    ProcessId,
    RunRecord,
    SliceRecord,
    StepRecord,
)
from penstock.lake.format.naming import fold
from penstock.model.asset import TableName
from penstock.model.model import Model

if TYPE_CHECKING:
    from sqlalchemy import Connection


_PRESSING = ("running", "failed")  # attempts that say more than what was published before


@dataclass(frozen=True, slots=True)
class LakeState:
    """What one lake's state tables say, read at one moment."""

    slices: tuple[SliceRecord, ...] = ()
    attempts: tuple[StepRecord, ...] = ()
    checks: tuple[CheckRecord, ...] = ()
    running: tuple[RunRecord, ...] = ()
    outside: Outside = field(default_factory=Outside)

    @classmethod
    def read(cls, connection: Connection, target: str | None = None) -> LakeState:
        return cls(
            slices=tuple(reading.slices(connection, target)),
            attempts=tuple(reading.last_attempts(connection, target)),
            checks=tuple(reading.last_checks(connection, target)),
            running=tuple(reading.running(connection)),
        )


def model_status(
    model: Model, state: LakeState, is_gone: Callable[[ProcessId], bool]
) -> ModelStatus:
    """All slices that are there or were tried, in the order of their values."""
    target = model.target.qualified
    slices = {slice_.slice: slice_ for slice_ in state.slices if slice_.target == target}
    attempts = {attempt.slice: attempt for attempt in state.attempts if attempt.target == target}
    checks = _by_slice(check for check in state.checks if check.target == target)
    alive = {run.run_id for run in state.running if not is_gone(run.process)}
    values = {value for value, one in attempts.items() if one.state in _PRESSING}
    values |= slices.keys()
    if model.partition is None:
        values = {WHOLE, *slices}
    changed = state.outside.changed
    return ModelStatus(
        model=model.name,
        target=str(model.target),
        strategy=model.strategy,
        partitioned=model.partition.kind if model.partition else None,
        slices=tuple(
            _slice_status(
                value,
                slices.get(value),
                _telling(attempts.get(value), alive),
                checks.get(value, ()),
                _what_changed(slices.get(value), model, changed),
            )
            for value in sorted(values)
        ),
    )


def unmade(state: LakeState, lake: str, models: Iterable[Model]) -> list[ModelStatus]:
    """The tables that runs have made and no model makes any more, as far as they are there."""
    made = {fold(model.target.qualified) for model in models if model.target.lake == lake}
    by_target: dict[str, list[SliceRecord]] = defaultdict(list)
    for record in state.slices:
        if fold(record.target) not in made and record.target in state.outside.there:
            by_target[record.target].append(record)
    return [
        ModelStatus(
            model=None,
            target=str(TableName(lake, *target.split(".", 1))),
            strategy=records[-1].strategy,
            partitioned=None,
            slices=tuple(
                _slice_status(one.slice, one, None, (), ("no model", None)) for one in records
            ),
        )
        for target, records in sorted(by_target.items())
    ]


def _what_changed(
    known: SliceRecord | None, model: Model, changed: Mapping[Key, int | None]
) -> tuple[str, int | None]:
    """The state of a slice that no attempt presses, and the snapshot of others that made it so."""
    if known is None:
        return "missing", None
    if not known.is_slice_of(model.partition):
        return "other kind", None
    key = (known.target, known.slice)
    if key in changed:
        return "changed outside", changed[key]
    same = known.definition_hash == model.definition_hash
    return "materialized" if same else "stale", None


def _telling(attempt: StepRecord | None, alive: set[str]) -> StepRecord | None:
    """A step that still says it runs, of a run that was killed, says nothing."""
    if attempt is not None and attempt.state == "running" and attempt.run_id not in alive:
        return None
    return attempt


def _slice_status(
    value: str,
    known: SliceRecord | None,
    attempt: StepRecord | None,
    checks: Iterable[CheckRecord],
    found: tuple[str, int | None],
) -> SliceStatus:
    """``found`` is the state where no attempt presses, and the snapshot of others behind it."""
    results = [check.result for check in checks]
    pressing = attempt if attempt and attempt.state in _PRESSING else None
    state, outside = (pressing.state, None) if pressing is not None else found
    moment = (pressing.finished_at or pressing.started_at) if pressing else None
    return SliceStatus(
        slice=None if value == WHOLE else value,
        state=state,
        rows=known.rows if known else None,
        snapshot_id=known.made_in if known else None,
        time=moment or (known.published_at if known else None),
        tests=len(results),
        tests_failed=sum(not result.passed for result in results),
        run_id=pressing.run_id if pressing else known.run_id if known else None,
        reason=pressing.reason if pressing else None,
        outside_snapshot=outside,
    )


def _by_slice(checks: Iterable[CheckRecord]) -> Mapping[str, list[CheckRecord]]:
    found: dict[str, list[CheckRecord]] = defaultdict(list)
    for check in checks:
        found[check.slice].append(check)
    return found
