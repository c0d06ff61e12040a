"""Two runs at once: slices are claimed before they are made, and what another run has made since a
step was planned to make what was lacking is known then.

Such slices are not made again: an append would add their rows twice. What a user asked for by name,
or with ``--all``, is made whatever another run did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.engine.planning.plan import PlannedStep
from penstock.engine.session.run_context import RunContext
from penstock.engine.state.claims import Asked, Claim, Held
from penstock.engine.state.records import WHOLE, SliceRecord
from penstock.events import Notice
from penstock.model.time.interval import Interval, Intervals, interval_of, minus
from penstock.model.time.slice import Slice


@dataclass(frozen=True, slots=True)
class Claimed:
    """The ``slices`` of a batch that the run holds, and why it does not hold others."""

    claim: Claim | None
    slices: tuple[Slice, ...]
    held: Mapping[Slice, str] = field(default_factory=dict)


def claim(context: RunContext, planned: PlannedStep) -> Claimed:
    """Claim the slices of a batch: all of them, waiting for other runs, or those that are free
    where the run does not wait. Raises Cancelled.
    """
    if planned.blocked is not None:  # it fails, whoever holds it
        return Claimed(None, planned.slices)
    claims, target, said = context.claims, planned.model.target, ""
    whole = planned.rebuilds or planned.model.in_order
    texts = (WHOLE,) if whole else tuple(slice_.text for slice_ in planned.slices)
    asked = Asked(target.lake, target.qualified, texts, context.run_id, claims.waits or whole)
    while True:
        context.check_cancelled()
        own, held = claims.take(context.states[target.lake], asked)
        if not held or not claims.waits:
            break
        now = _holders(held)
        if now != said:
            said = now
            what = " ".join(part for part in (str(target), planned.slice) if part)
            context.sink(Notice(f"waits for {what}: {now}", planned.name))
        context.cancelled.wait(claims.timing.look)
    why = {
        slice_: f"{_holders({text: held[text]})} is making it"
        for slice_ in planned.slices
        if (text := WHOLE if whole else slice_.text) in held
    }
    if own is None:
        return Claimed(None, (), why)
    return Claimed(own, tuple(each for each in planned.slices if each not in why), why)


def require_claim(context: RunContext, planned: PlannedStep) -> None:
    """Raise ClaimLost unless the run holds its slices still, before it makes them once more: its
    commit would find out as well, after all the work.
    """
    claim = context.claim
    if claim is not None:
        context.states[planned.model.target.lake].read(claim.check, None)


def _holders(held: Held) -> str:
    return ", ".join(dict.fromkeys(map(str, held.values())))


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """``made`` has the records of slices that need not be made any more; ``left`` what is still to
    be made.
    """

    made: Mapping[Slice, SliceRecord]
    left: tuple[Slice, ...]


def meanwhile(context: RunContext, planned: PlannedStep, seen: Mapping[str, str]) -> Meanwhile:
    """What other runs made of a step's slices since it was planned."""
    target = planned.model.target
    state = context.states[target.lake]
    records = [
        record
        for record in state.slices(target.qualified)
        if record.run_id != context.run_id
        and record.rolled_back is None
        and not _was_seen(record, seen)
        and record.slicing in (None, planned.model.slicing)
    ]
    made: dict[Slice, SliceRecord] = {}
    left: list[Slice] = []
    for slice_ in planned.slices:
        if isinstance(slice_, Interval):
            _divide(slice_, records, made, left)
            continue
        known = next((each for each in records if each.slice == slice_.text), None)
        if known is None:
            left.append(slice_)
        else:
            made[slice_] = known
    return Meanwhile(made, tuple(left))


def _divide(
    interval: Interval,
    records: Sequence[SliceRecord],
    made: dict[Slice, SliceRecord],
    left: list[Slice],
) -> None:
    rest: Intervals = (interval,)
    for record in records:
        own = interval_of(record.slice)
        part = None if own is None else own.overlap(interval)
        if part is not None:
            made[part] = record
            rest = minus(rest, (part,))
    left += rest


def _was_seen(record: SliceRecord, seen: Mapping[str, str]) -> bool:
    """Return whether the plan knew a record, or one that it is what is left of."""
    if seen.get(record.slice) == record.run_id:
        return True
    own = interval_of(record.slice)
    if own is None:
        return False
    of_run = (interval_of(text) for text, run_id in seen.items() if run_id == record.run_id)
    return any(each is not None and each.overlap(own) for each in of_run)
