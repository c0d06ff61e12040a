"""A step of a run from start to result: retries, what other runs made, every way to end."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.engine.planning.no_op import ended
from penstock.engine.planning.plan import PlannedStep, count_of
from penstock.engine.results import StepResult
from penstock.engine.running.bisect import Divide, bisect, halves, singly
from penstock.engine.running.concurrent_runs import Meanwhile, claim, meanwhile, require_claim
from penstock.engine.running.publish import MadeSlice, execute, take_up, tests_failed
from penstock.engine.session.run_context import Cancelled, RunContext
from penstock.engine.state.records import SliceRecord, StepRecord
from penstock.engine.state.store import State, now
from penstock.errors import (
    ClaimLost,
    CommitConflict,
    CommitUnknown,
    PenstockError,
    PythonFailed,
    QueryFailed,
    StepError,
)
from penstock.events import Notice, StepFinished, StepStarted
from penstock.model.slicing.slice_condition import MadeApart, NotJoint
from penstock.model.time.interval import Interval, union
from penstock.model.time.slice import Slice
from penstock.model.values.strategy import strategy_named
from penstock.settings.quantities import seconds_of
from penstock.spark.failures import MORE_MEMORY, explained
from penstock.states import StepState

# Conditions of Spark that a retry cannot change: the text, or a name in it, is wrong.
_HOPELESS = ("PARSE_", "UNRESOLVED_", "TABLE_OR_VIEW_NOT_FOUND", "DATATYPE_MISMATCH", "AMBIGUOUS_")
_CONFLICTS = 3  # how often a step is retried after a conflict before it fails
INTERRUPTED = "the run was interrupted"

Results = Mapping[Slice, StepResult]
Group = Sequence[Slice]


@dataclass(frozen=True, slots=True)
class _Run:
    """A planned step in its run."""

    context: RunContext
    planned: PlannedStep

    @property
    def state(self) -> State:
        return self.context.states[self.planned.model.target.lake]

    def begin(self, state: str = "running", reason: str | None = None) -> None:
        run_id, step, target = self.context.run_id, self.planned.name, self.planned.model.target
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

    def end(self, slice_: Slice, state: str, reason: str) -> None:
        key = self.context.run_id, self.planned.name, slice_.text
        with contextlib.suppress(PenstockError):  # the catalog itself may be what is gone
            self.state.end_step(key, state, reason)

    def ended(self, state: str, reason: str, error: PenstockError | None = None) -> Results:
        """The results of all its slices, which end without a publication."""
        for slice_ in self.planned.slices:
            self.end(slice_, state, reason)
        results = ended(self.planned, state, reason)
        pairs = zip(self.planned.slices, results, strict=True)
        return {slice_: replace(result, error=error) for slice_, result in pairs}

    def notice(self, message: str) -> None:
        self.context.sink(Notice(message, self.planned.name))


def run_step(context: RunContext, planned: PlannedStep) -> Results:
    """The result of each slice; of a range of time that was divided, of its parts. Never raises:
    whatever happens is in these, the state and the events.

    What one batch cannot do is tried by halves, or one by one, so that a slice that fails stops no
    other.
    """
    context = replace(context, plan=context.plan.with_inputs(planned))
    run = _Run(context, planned)
    try:
        claimed = claim(context, planned)
    except Exception as error:  # the catalog, Ctrl-C
        return _told(run, 0.0, _failure(run, error))
    found = {slice_: _told_held(run, slice_, why) for slice_, why in claimed.held.items()}
    if not claimed.slices:
        return found
    if found:
        planned = context.plan.narrowed(planned, claimed.slices)
    try:
        return {**found, **_claimed(replace(context, claim=claimed.claim), planned)}
    finally:
        context.claims.release(claimed.claim)


def _told_held(run: _Run, slice_: Slice, why: str) -> StepResult:
    """The result of a slice that another run holds."""
    context, planned = run.context, replace(run.planned, slices=(slice_,))
    states = {StepState.WAITING.value: count_of(planned.model, planned.slices)}
    context.sink(
        StepFinished(
            planned.name, StepState.WAITING, 0.0, reason=why, slice=planned.slice, states=states
        )
    )
    return _ended(planned, slice_, StepState.WAITING, why)


def _claimed(context: RunContext, planned: PlannedStep) -> Results:
    """Make slices that the run holds."""
    found: dict[Slice, StepResult] = {}
    units = _units(planned)

    def make(group: Group) -> Results | Divide[Slice]:
        run = _Run(context, planned if group is units else _part(context, planned, group))
        if group is not units and context.cancelled.is_set():
            return run.ended("cancelled", INTERRUPTED)
        return _batch(run, group, found)

    for _, results in bisect([units], make):
        found |= results
    return found


def _units(planned: PlannedStep) -> Group:
    """Return what can be made on its own: the slices of a batch, or the intervals of a range of
    time whose rows say which they belong to. A table that is made from nothing is made by one
    commit.
    """
    ranges = planned.model.ranges
    if len(planned.slices) > 1 or planned.anew or ranges is None:
        return planned.slices
    only = planned.only
    return tuple(ranges.units((only,))) if isinstance(only, Interval) else (only,)


def _part(context: RunContext, planned: PlannedStep, group: Group) -> PlannedStep:
    """The step with some of its slices, or of the units of its range."""
    if len(planned.slices) > 1:
        return context.plan.narrowed(planned, group)
    return context.plan.narrowed(
        planned, union(each for each in group if isinstance(each, Interval))
    )


def _batch(run: _Run, group: Group, found: dict[Slice, StepResult]) -> Results | Divide[Slice]:
    """The results of a batch, or the groups of its slices to be tried instead. ``found`` gets those
    that are known then.
    """
    began = time.monotonic()
    run.context.sink(StepStarted(run.planned.name, run.planned.slice))
    try:
        own = replace(run, context=run.context.for_step(run.planned.model))
        own.begin()
        with explained():
            results: Results = _made(own, group)
    except _MadeByOthers as error:
        run.end(run.planned.only, "unchanged", "some of it was made by another run")
        found |= _made_by_others(run, error.by_others.made)
        return Divide([(each,) for each in error.by_others.left])
    except Exception as error:  # a fault here must not take other slices with it
        divided = _divided(run, group, error)
        if divided is not None:
            return divided
        results = _failure(run, error)
    return _told(run, time.monotonic() - began, results)


def _told(run: _Run, seconds: float, results: Results) -> Results:
    run.context.sink(_finished(run.planned, results, seconds))
    return {
        slice_: replace(result, seconds=seconds / len(results))
        for slice_, result in results.items()
    }


def skip(context: RunContext, planned: PlannedStep, state: str, reason: str) -> None:
    """Record that a slice was not tried, so that the next run of its range makes it."""
    _Run(context, planned).begin(state, reason)


class _MadeByOthers(Exception):
    """Another run has made some of the intervals of a slice since it was planned."""

    def __init__(self, by_others: Meanwhile) -> None:
        self.by_others = by_others
        super().__init__()


def _made(run: _Run, group: Group) -> dict[Slice, StepResult]:
    """The results of the first attempt that succeeds.

    Retried are a query, or Python, that failed while running, as often as ``retry`` says, and a
    step whose commit conflicts with another run: nothing of it landed, and it starts from what that
    run left. What can be divided is divided instead, and its single slices are retried.
    """
    planned, context = run.planned, run.context
    if planned.blocked is not None:
        raise StepError(planned.blocked, location=planned.model.place("target"))
    adds = planned.model.strategy.only_adds and not planned.model.reads_files
    adds = adds and len(planned.slices) == 1
    taken_up = take_up(context, planned) if adds else None
    if taken_up:
        return _results(run, taken_up)
    retry = planned.model.retry if len(group) == 1 else None
    left, conflicts = retry.count if retry else 0, 0
    while True:
        by_others = _by_others(run)
        results = _made_by_others(run, by_others.made)
        try:
            if by_others.left:
                some = context.plan.narrowed(planned, by_others.left) if results else planned
                results |= _results(run, execute(context, some))
            return {
                slice_: results[slice_] for slice_ in planned.slices if slice_ in results
            } or results
        except (QueryFailed, PythonFailed) as error:
            if left == 0 or not worth_retrying(error) or context.cancelled.is_set():
                raise
            left -= 1
            delay = seconds_of(retry.delay if retry else None)
            first = error.message.splitlines()[0]
            run.notice(f"failed, tries again in {delay:g} s ({left} left): {first}")
            context.cancelled.wait(delay)
        except CommitConflict as error:
            conflicts += 1
            if conflicts > _CONFLICTS or context.cancelled.is_set():
                raise
            require_claim(context, planned)
            run.notice(f"retried, as {error.message}")


def _by_others(run: _Run) -> Meanwhile:
    """Find what other runs have made of what was to be made. Raises _MadeByOthers where the rest
    is to be made apart; of what can be made twice, a part of it does not matter.
    """
    seen = run.planned.seen
    if seen is None or run.planned.anew:  # made whatever another run did
        return Meanwhile({}, run.planned.slices)
    by_others = meanwhile(run.context, run.planned, seen)
    if len(run.planned.slices) > 1 or not by_others.made or not by_others.left:
        return by_others
    if run.planned.model.strategy.may_repeat:
        raise _MadeByOthers(by_others)
    return Meanwhile({}, run.planned.slices)


def _made_by_others(run: _Run, records: Mapping[Slice, SliceRecord]) -> dict[Slice, StepResult]:
    """The results of slices that another run has made since the step was planned."""
    found: dict[Slice, StepResult] = {}
    for slice_, record in records.items():
        reason = f"made meanwhile by run {record.run_id}"
        run.end(slice_, "unchanged", reason)
        counted = record.slice == slice_.text and strategy_named(record.strategy).counts_rows
        rows = record.rows if counted else None
        result = _ended(run.planned, slice_, "unchanged", reason)
        found[slice_] = replace(result, rows=rows, snapshot_id=record.made_in)
    return found


def _results(run: _Run, made: Sequence[MadeSlice]) -> dict[Slice, StepResult]:
    by_text = {slice_.text: slice_ for slice_ in run.planned.slices}
    found: dict[Slice, StepResult] = {}
    for each in made:
        what = each.publication
        slice_ = by_text.get(what.slice) or Interval.parse(what.slice)  # a part of a range
        result = _ended(run.planned, slice_, what.state, what.reason)
        if each.failed:
            error = tests_failed(what.checks, what.columns, run.planned.model.target)
            found[slice_] = replace(result, checks=what.checks, error=error)
        else:
            rows, made_in = what.reported, each.made_in
            found[slice_] = replace(result, checks=what.checks, rows=rows, snapshot_id=made_in)
    return found


def _ended(planned: PlannedStep, slice_: Slice, state: str, reason: str | None) -> StepResult:
    (result,) = ended(replace(planned, slices=(slice_,)), state, reason)
    return result


def _divided(run: _Run, group: Group, error: Exception) -> Divide[Slice] | None:
    """The groups in which to try what failed as a whole; None where that would not help, or the
    outcome of a commit is not known.
    """
    stopped = run.context.cancelled.is_set() or isinstance(
        error, Cancelled | ClaimLost | CommitUnknown
    )
    if len(group) < 2 or stopped:
        return None
    hopeless = isinstance(error, QueryFailed) and not worth_retrying(error)
    divide = halves(group)
    if len(run.planned.slices) > 1:
        if isinstance(error, NotJoint) or hopeless:
            divide = singly(group)
    elif hopeless or not isinstance(error, QueryFailed | PythonFailed):
        return None
    else:
        run.end(run.planned.only, "failed", str(error))
    groups = _apart(group, error)
    divide = Divide(groups) if len(groups) > 1 else divide
    way = "one by one" if len(divide.groups) == len(group) else "by halves"
    way = way if len(groups) < 2 else f"in {len(groups)} parts"
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    are = "is" if len(run.planned.slices) == 1 else "are"
    run.notice(f"{run.planned.slice} {are} made {way}: {why}")
    return divide


def _apart(group: Group, error: Exception) -> list[Group]:
    """The groups of slices that the error itself says: those that can be made together, or all but
    that of a wrong file.
    """
    by_text = {slice_.text: slice_ for slice_ in group}
    if isinstance(error, MadeApart):
        groups: list[Group] = [tuple(by_text[text] for text in texts) for texts in error.groups]
        named = {slice_ for group_ in groups for slice_ in group_}
        empty = tuple(slice_ for slice_ in group if slice_ not in named)  # no file is theirs
        return [*groups, empty] if empty else groups
    wrong = error.data.get("slice") if isinstance(error, QueryFailed) else None
    if wrong not in by_text:
        return []
    others = tuple(slice_ for slice_ in group if slice_.text != wrong)
    return [others, (by_text[wrong],)]


def _failure(run: _Run, error: Exception) -> Results:
    """A failure of all slices; that may have no message of its own, as a fault of ours."""
    theirs = isinstance(error, PenstockError) and not isinstance(error, QueryFailed)
    if isinstance(error, Cancelled) or (run.context.cancelled.is_set() and not theirs):
        return run.ended("cancelled", INTERRUPTED)
    wrapped = error if isinstance(error, PenstockError) else _wrap(error)
    return run.ended("failed", str(wrapped), wrapped)


def _finished(planned: PlannedStep, by_slice: Results, seconds: float) -> StepFinished:
    """The event of one slice, of all slices of a batch, or of the parts of one."""
    results = list(by_slice.values())
    failed = [result for result in results if result.state == "failed"]
    counts = Counter[str]()
    for slice_, result in by_slice.items():
        counts[result.state] += count_of(planned.model, (slice_,))
    states = {result.state for result in results}
    state = next(iter(states)) if len(states) == 1 else "failed" if failed else "done"
    reason, rows = results[0].reason, results[0].rows
    if len(results) > 1:
        rows = sum(result.rows or 0 for result in results)
        parts = "slices" if len(planned.slices) > 1 else "parts"
        if failed:
            first = (failed[0].reason or "").splitlines()[0]
            reason = f"{len(failed):,} of {len(results):,} {parts}, {failed[0].slice}: {first}"
    return StepFinished(
        step=planned.name,
        state=state,
        seconds=seconds,
        rows=rows,
        snapshot_id=max((r.snapshot_id for r in results if r.snapshot_id), default=None),
        reason=reason,
        slice=planned.slice,
        slices=len(planned.slices),
        failed=min(len(failed), len(planned.slices)),
        states=dict(counts),
        errors=tuple(_errors(planned, results)),
    )


def _errors(
    planned: PlannedStep, results: Sequence[StepResult]
) -> Iterator[tuple[str | None, PenstockError]]:
    """Yield each error once, with the slice that it is of, or with all of the batch."""
    counts = Counter(result.error for result in results)
    for error, slice_ in {result.error: result.slice for result in results}.items():
        if error is not None:
            yield planned.slice if counts[error] > 1 else slice_, error


def worth_retrying(error: QueryFailed | PythonFailed) -> bool:
    if isinstance(error, PythonFailed):
        return True
    condition = error.data.get("condition")
    return bool(error.data) and not str(condition).startswith(_HOPELESS)


def _wrap(error: Exception) -> StepError:
    if isinstance(error, ConnectionError):
        wrapped = StepError(
            "the connection to Spark is lost: its process has ended",
            hint=f"it may need more memory: {MORE_MEMORY}",
        )
    else:
        first = next(iter(str(error).splitlines()), "")
        wrapped = StepError(
            f"{type(error).__name__}: {first}",
            hint="this should have been a clear message: please report it",
        )
    wrapped.__cause__ = error
    return wrapped
