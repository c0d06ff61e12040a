"""What is known of each slice: state rows and models in, statuses out. Pure but for `read`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from penstock.model.model import Model

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class LakeState:
    """What one lake's state tables say, read at one moment."""

    slices: tuple[SliceRecord, ...] = ()
    attempts: tuple[StepRecord, ...] = ()
    checks: tuple[CheckRecord, ...] = ()
    running: tuple[RunRecord, ...] = ()

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
    """All slices ever made or tried, in the order of their values."""
    target = model.target.qualified
    slices = {one.slice: one for one in state.slices if one.target == target}
    attempts = {one.slice: one for one in state.attempts if one.target == target}
    checks = _by_slice(one for one in state.checks if one.target == target)
    alive = {run.run_id for run in state.running if not is_gone(run.process)}
    values = sorted(slices.keys() | attempts.keys())
    if model.partition is None:
        values = [WHOLE]
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
                model.definition_hash,
            )
            for value in values
        ),
    )


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
    definition_hash: str,
) -> SliceStatus:
    results = [check.result for check in checks]
    pressing = attempt if attempt and attempt.state in ("running", "failed") else None
    if pressing is not None:
        state = pressing.state
    elif known is None:
        state = "missing"
    else:
        state = "materialized" if known.definition_hash == definition_hash else "stale"
    moment = (pressing.finished_at or pressing.started_at) if pressing else None
    return SliceStatus(
        slice=None if value == WHOLE else value,
        state=state,
        rows=known.rows if known else None,
        snapshot_id=known.snapshot_id if known and known.own_snapshot else None,
        time=moment or (known.published_at if known else None),
        tests=len(results),
        tests_failed=sum(not result.passed for result in results),
        run_id=pressing.run_id if pressing else known.run_id if known else None,
        reason=pressing.reason if pressing else None,
    )


def _by_slice(checks: Iterable[CheckRecord]) -> Mapping[str, list[CheckRecord]]:
    found: dict[str, list[CheckRecord]] = defaultdict(list)
    for check in checks:
        found[check.slice].append(check)
    return found
