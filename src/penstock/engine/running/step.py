"""A step of a run from its start to its result: retries, what other runs made, every way to end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.durations import seconds_of
from penstock.engine.planning.no_op import ended
from penstock.engine.planning.plan import PlannedStep
from penstock.engine.results import StepResult
from penstock.engine.running.attempt import Attempt
from penstock.engine.running.joint import JointAttempt
from penstock.engine.running.meanwhile import Meanwhile, meanwhile
from penstock.engine.running.publication import MadeSlice, tests_failed
from penstock.engine.running.taking_up import take_up
from penstock.engine.session.world import Cancelled, World
from penstock.engine.state.records import Publication, SliceRecord, StepRecord
from penstock.engine.state.store import State, now
from penstock.errors import (
    CommitConflict,
    CommitUnknown,
    DataTestFailed,
    PenstockError,
    PythonFailed,
    QueryFailed,
    StepError,
)
from penstock.events import Notice, StepFinished, StepStarted
from penstock.lake.spark.failures import explained
from penstock.model.joint.slice_condition import NotJoint
from penstock.model.time.interval import Interval
from penstock.model.time.slice import Slice
from penstock.model.values.strategy import strategy_named

# Conditions of Spark that a retry cannot change: the text, or a name in it, is wrong.
_HOPELESS = ("PARSE_", "UNRESOLVED_", "TABLE_OR_VIEW_NOT_FOUND", "DATATYPE_MISMATCH", "AMBIGUOUS_")
_CONFLICTS = 3  # how often a step is retried after a conflict before it fails
INTERRUPTED = "the run was interrupted"


@dataclass(frozen=True, slots=True)
class _Run:
    """A planned step in its run."""

    world: World
    planned: PlannedStep

    @property
    def state(self) -> State:
        return self.world.states[self.planned.model.target.lake]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.world.run_id, self.planned.name, self.planned.only.text

    def begin(self, state: str = "running", reason: str | None = None) -> None:
        run_id, step, target = self.world.run_id, self.planned.name, self.planned.model.target
        at = now()
        ends = None if state == "running" else at
        self.state.begin_step(
            *(
                StepRecord(
                    run_id, step, target.qualified, slice_.text, state, at, ends, reason=reason
                )
                for slice_ in self.planned.slices
            )
        )

    def singles(self) -> list[_Run]:
        """Each of its slices by itself."""
        return [
            _Run(self.world, replace(self.planned, slices=(slice_,)))
            for slice_ in self.planned.slices
        ]


Results = Mapping[Slice, StepResult]


def run_step(world: World, planned: PlannedStep) -> Results:
    """The result of each slice; of a range of time that was divided, of its parts. Never raises:
    whatever happens is in these, the state and the events.
    """
    if len(planned.slices) == 1:
        return _run_one(world, planned)
    began = time.monotonic()
    world.sink(StepStarted(planned.name, planned.slice))
    try:
        results = _together(_Run(world.for_step(planned.model), planned))
    except Exception as error:  # a fault here must not take other slices with it
        return _in_parts(world, planned, error)
    seconds = time.monotonic() - began
    _say_end(world, planned, results, seconds)
    return {
        slice_: replace(result, seconds=seconds / len(results))
        for slice_, result in zip(planned.slices, results, strict=True)
    }


def _together(run: _Run) -> list[StepResult]:
    """Many slices by one job and one commit. Raises what the attempt does, but for Cancelled."""
    run.begin()
    conflicts = 0
    while True:
        try:
            by_others = meanwhile(run.world, run.planned)
            results = _made_by_others(run, by_others.made)
            if by_others.left:
                left = run.world.plan.narrowed(run.planned, by_others.left)
                with explained():
                    made = JointAttempt(run.world, left).execute()
                own = (_result(run, each) for each in made)
                results |= zip(by_others.left, own, strict=True)
            return [results[slice_] for slice_ in run.planned.slices]
        except Cancelled:
            return _all_cancelled(run)
        except CommitConflict as error:
            conflicts += 1
            if conflicts > _CONFLICTS or run.world.cancelled.is_set():
                raise
            run.world.sink(Notice(f"retried, as {error.message}", run.planned.name))


def _made_by_others(run: _Run, records: Mapping[Slice, SliceRecord]) -> dict[Slice, StepResult]:
    """The results of slices that another run has made since the step was planned."""
    found: dict[Slice, StepResult] = {}
    for slice_, record in records.items():
        reason = f"made meanwhile by run {record.run_id}"
        run.state.end_step((run.world.run_id, run.planned.name, slice_.text), "unchanged", reason)
        step = replace(run.planned, slices=(slice_,))
        rows = record.rows if record.slice == slice_.text else None
        if not strategy_named(record.strategy).counts_rows:
            rows = None
        found[slice_] = replace(
            _ended(step, "unchanged", reason), rows=rows, snapshot_id=record.made_in
        )
    return found


def _result(run: _Run, made: MadeSlice) -> StepResult:
    what = made.publication
    step = replace(run.planned, slices=(_slice_of(run.planned, what.slice),))
    result = replace(_ended(step, what.state, what.reason), checks=what.checks)
    if made.failed:
        error = tests_failed(what.checks, what.columns, run.planned.model.target)
        return replace(result, error=error)
    rows = what.rows if strategy_named(what.strategy).counts_rows else None
    return replace(result, rows=rows, snapshot_id=made.made_in)


def _slice_of(planned: PlannedStep, text: str) -> Slice:
    """The slice of a step that a text for state is, or a part of a range."""
    for slice_ in planned.slices:
        if slice_.text == text:
            return slice_
    return Interval.parse(text)


def _in_parts(world: World, planned: PlannedStep, error: Exception) -> Results:
    """What the joint job could not do: by halves, down to single slices, so that one that fails
    stops no other. Nothing is tried again where the outcome of a commit is not known.
    """
    run = _Run(world, planned)
    if world.cancelled.is_set():
        return _each(planned, _all_cancelled(run))
    if isinstance(error, CommitUnknown):
        results = [_failed(each, error) for each in run.singles()]
        _say_end(world, planned, results, 0.0)
        return _each(planned, results)
    size = 1 if isinstance(error, NotJoint) or _is_hopeless(error) else -(-len(planned.slices) // 2)
    _say_parts(world, planned, "one by one" if size == 1 else "by halves", error)
    found: dict[Slice, StepResult] = {}
    for first in range(0, len(planned.slices), size):
        part = world.plan.narrowed(planned, planned.slices[first : first + size])
        if world.cancelled.is_set():
            found |= _each(part, _all_cancelled(_Run(world, part)))
        else:
            found |= run_step(world, part)
    return found


def _say_parts(world: World, planned: PlannedStep, way: str, error: Exception) -> None:
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    are = "is" if len(planned.slices) == 1 else "are"
    world.sink(Notice(f"{planned.slice} {are} made {way}: {why}", planned.name))


def _each(planned: PlannedStep, results: Sequence[StepResult]) -> Results:
    return dict(zip(planned.slices, results, strict=True))


def _halves(planned: PlannedStep) -> tuple[Interval, ...]:
    """The halves of a range of time that can be made by themselves, in the order of time; none for
    a single interval, and where rows do not say which interval they belong to.

    A table that is made anew is made by one commit, or not at all.
    """
    model, whole = planned.model, planned.only
    if planned.anew or model.ranges is None or not isinstance(whole, Interval):
        return ()
    units = list(model.ranges.units((whole,)))
    if len(units) < 2:
        return ()
    middle = units[len(units) // 2].start
    return Interval(whole.start, middle), Interval(middle, whole.end)


def _by_halves(world: World, planned: PlannedStep, error: Exception) -> Results:
    """A range of time whose query failed: that of an interval may be what fails."""
    _say_parts(world, planned, "by halves", error)
    return _divided(world, planned, _halves(planned))


def _divided(world: World, planned: PlannedStep, parts: Sequence[Slice]) -> dict[Slice, StepResult]:
    found: dict[Slice, StepResult] = {}
    for each in parts:
        part = world.plan.narrowed(planned, (each,))
        if world.cancelled.is_set():
            found |= _each(part, _all_cancelled(_Run(world, part)))
        else:
            found |= run_step(world, part)
    return found


def _is_hopeless(error: Exception) -> bool:
    return isinstance(error, QueryFailed) and not worth_retrying(error)


def _all_cancelled(run: _Run) -> list[StepResult]:
    with contextlib.suppress(PenstockError):
        return [_cancelled(each) for each in run.singles()]
    return list(ended(run.planned, "cancelled", INTERRUPTED))


def _say_end(
    world: World,
    planned: PlannedStep,
    results: Sequence[StepResult],
    seconds: float,
    parts: str = "slices",
) -> None:
    """One event for all slices of a batch, or parts of one."""
    failed = [result for result in results if result.state == "failed"]
    states = {result.state for result in results}
    state = next(iter(states)) if len(states) == 1 else "failed" if failed else "done"
    reason = None
    if failed:
        first = (failed[0].reason or "").splitlines()[0]
        reason = f"{len(failed):,} of {len(results):,} {parts}, {failed[0].slice}: {first}"
    world.sink(
        StepFinished(
            step=planned.name,
            state=state,
            seconds=seconds,
            rows=sum(result.rows or 0 for result in results),
            snapshot_id=max((r.snapshot_id for r in results if r.snapshot_id), default=None),
            reason=reason or results[0].reason,
            slice=planned.slice,
            slices=len(planned.slices),
            failed=min(len(failed), len(planned.slices)),
        )
    )


class _Halve(Exception):
    """What a range of time failed by, which its halves may not."""


class _MadeByOthers(Exception):
    """Another run has made a slice since it was planned, or some of its intervals."""

    def __init__(self, by_others: Meanwhile) -> None:
        self.by_others = by_others
        super().__init__()


def _run_one(world: World, planned: PlannedStep) -> Results:
    began = time.monotonic()
    world.sink(StepStarted(planned.name, planned.slice))
    try:
        results = _run(_Run(world.for_step(planned.model), planned))
    except _Halve as halve:
        return _by_halves(world, planned, halve.args[0])
    except _MadeByOthers as error:
        run = _Run(world, planned)
        results = _made_by_others(run, error.by_others.made)
        if error.by_others.left:
            run.state.end_step(run.key, "unchanged", "some of it was made by another run")
            return results | _divided(world, planned, error.by_others.left)
    except Exception as error:  # a fault here must not take other steps with it
        results = {planned.only: _broken(_Run(world, planned), error)}
    seconds = time.monotonic() - began
    if len(results) > 1:
        _say_end(world, planned, list(results.values()), seconds, parts="parts")
        return {at: replace(each, seconds=seconds / len(results)) for at, each in results.items()}
    ((slice_, result),) = results.items()
    world.sink(
        StepFinished(
            step=result.name,
            state=result.state,
            seconds=seconds,
            rows=result.rows,
            snapshot_id=result.snapshot_id,
            reason=result.reason,
            slice=planned.slice,
            failed=int(result.state == "failed"),
        )
    )
    return {slice_: replace(result, seconds=seconds)}


def skip(world: World, planned: PlannedStep, reason: str) -> None:
    """Record that a slice was not tried, so that the next run of its range makes it."""
    run = _Run(world, planned)
    run.begin("skipped", reason)


def _ended(planned: PlannedStep, state: str, reason: str | None = None) -> StepResult:
    (result,) = ended(planned, state, reason)
    return result


def _run(run: _Run) -> Results:
    only = run.planned.only
    try:
        run.begin()
        if run.planned.blocked is not None:
            raise StepError(run.planned.blocked, location=run.planned.model.place("target"))
        with explained():
            made = take_up(run.world, run.planned) or _attempts(run)
    except Cancelled:
        return {only: _cancelled(run)}
    except DataTestFailed as error:
        return {only: _tests_failed(run, error)}
    except PenstockError as error:
        if run.world.cancelled.is_set() and isinstance(error, QueryFailed):
            return {only: _cancelled(run)}
        return {only: _failed(run, error)}
    return {_slice_of(run.planned, each.publication.slice): _result(run, each) for each in made}


def _attempts(run: _Run) -> list[MadeSlice]:
    """The first attempt that succeeds.

    Retried are a query, or Python, that failed while running, as often as ``retry`` says, and a
    step whose commit conflicts with another run: nothing of it landed, and it starts from what that
    run left. A range of time is made by halves instead, and its single intervals are retried.
    """
    retry = run.planned.model.retry
    left = retry.count if retry else 0
    delay = seconds_of(retry.delay if retry else None)
    conflicts = 0
    while True:
        _require_lacking(run)
        try:
            return Attempt(run.world, run.planned).execute()
        except (QueryFailed, PythonFailed) as error:
            if not worth_retrying(error) or run.world.cancelled.is_set():
                raise
            if _halves(run.planned):
                run.state.end_step(run.key, "failed", str(error))
                raise _Halve(error) from error
            if left == 0:
                raise
            left -= 1
            message = (
                f"failed, tries again in {delay:g} s ({left} left): {error.message.splitlines()[0]}"
            )
            run.world.sink(Notice(message, run.planned.name))
            run.world.cancelled.wait(delay)
        except CommitConflict as error:
            conflicts += 1
            if conflicts > _CONFLICTS or run.world.cancelled.is_set():
                raise
            run.world.sink(Notice(f"retried, as {error.message}", run.planned.name))


def _require_lacking(run: _Run) -> None:
    """Raise _MadeByOthers where another run has made what was to be made. Of what can be made
    twice, a part of it does not matter.
    """
    by_others = meanwhile(run.world, run.planned)
    if by_others.made and (not by_others.left or run.planned.model.strategy.may_repeat):
        raise _MadeByOthers(by_others)


def worth_retrying(error: QueryFailed | PythonFailed) -> bool:
    if isinstance(error, PythonFailed):
        return True
    condition = error.data.get("condition")
    return bool(error.data) and not str(condition).startswith(_HOPELESS)


def _cancelled(run: _Run) -> StepResult:
    run.state.end_step(run.key, "cancelled", INTERRUPTED)
    return _ended(run.planned, "cancelled", INTERRUPTED)


def _failed(run: _Run, error: PenstockError) -> StepResult:
    run.state.end_step(run.key, "failed", str(error))
    return replace(_ended(run.planned, "failed", str(error)), error=error)


def _tests_failed(run: _Run, error: DataTestFailed) -> StepResult:
    """The results of the tests are recorded, with their samples; the slice is as it was."""
    results, columns = error.data["results"], error.data["columns"]
    model = run.planned.model
    what = Publication(
        run_id=run.world.run_id,
        step=model.name,
        state="failed",
        target=model.target.qualified,
        slice=run.planned.only.text,
        strategy=model.strategy.name,
        rows=0,
        fingerprint=None,
        definition_hash=model.definition_hash,
        columns=columns,
        checks=results,
        at=now(),
        reason=error.message,
    )
    run.state.fail_tests(what)
    return replace(_ended(run.planned, "failed", error.message), checks=results, error=error)


def _broken(run: _Run, error: Exception) -> StepResult:
    """A failure that has no message of its own: Spark's connection, or a fault of ours."""
    if run.world.cancelled.is_set():
        with contextlib.suppress(PenstockError):
            return _cancelled(run)
        return _ended(run.planned, "cancelled", INTERRUPTED)
    wrapped = error if isinstance(error, PenstockError) else _wrap(error)
    with contextlib.suppress(PenstockError):  # the catalog itself may be what is gone
        return _failed(run, wrapped)
    return replace(_ended(run.planned, "failed", str(wrapped)), error=wrapped)


def _wrap(error: Exception) -> StepError:
    if isinstance(error, ConnectionError):
        wrapped = StepError(
            "the connection to Spark is lost: its process has ended",
            hint='it may need more memory: "spark.driver.memory" = "4g" in [spark.conf]',
        )
    else:
        first = next(iter(str(error).splitlines()), "")
        wrapped = StepError(
            f"{type(error).__name__}: {first}",
            hint="this should have been a clear message: please report it",
        )
    wrapped.__cause__ = error
    return wrapped
