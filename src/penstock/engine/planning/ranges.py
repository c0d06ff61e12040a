"""The slices of a range of time, ``--from A --to B``, and which of them a run has to make. Pure.

What is missing, failed or was skipped is made, and what another writer changed where a rerun makes
it what the SELECT returns; with ``all`` everything is. A slice that is stale (the definition has
changed since) is there, so only ``all`` makes it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, lru_cache

from penstock.engine.planning.slice_reason import NOTHING_TO_DO, Skip, SkipKind
from penstock.errors import ArgumentError, PartitionError
from penstock.model.definition.model import Model
from penstock.model.time import partition
from penstock.model.time.partition import TIME_KINDS, Moment, PartitionSpec
from penstock.model.time.slice import WHOLE, Part, Slice
from penstock.states import SliceState

REBUILD = "penstock run --changed"  # of slices that another definition made


@dataclass(frozen=True)
class SliceStates(Mapping[str, SliceState]):
    """The states of slices that are there or were tried, by their texts.

    ``runs`` are those that recorded them. ``remakes``: what another writer changed, what is behind
    its input, and what was made before its time was over, is to be made. ``causes`` say of slices
    what put them behind, or who changed them; ``late`` are behind because of late rows.
    """

    of: Mapping[str, SliceState] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    remakes: bool = True
    causes: Mapping[str, str] = field(default_factory=dict)
    late: frozenset[str] = frozenset()

    @cached_property
    def kinds(self) -> frozenset[SliceState]:
        """Return the states that any slice has.

        Returns:
            The states, each once.
        """
        return frozenset(self.of.values())

    def __getitem__(self, text: str) -> SliceState:
        return self.of[text]

    def __iter__(self) -> Iterator[str]:
        return iter(self.of)

    def __len__(self) -> int:
        return len(self.of)

    def state(self, text: str) -> SliceState:
        """Return the state of a slice.

        Args:
            text: The text of the slice.

        Returns:
            Its state. A slice that nothing is known of is missing.
        """
        return self.of.get(text, SliceState.MISSING)

    def lacks(self, text: str) -> bool:
        """Return whether a run has to make a slice."""
        return self.state(text).is_due(can_rebuild=self.remakes)


@dataclass(frozen=True, slots=True)
class SliceRange:
    """``first`` and ``last`` as a user says them, both included; see `partition.wall_time`.

    Without ``first`` a model's own ``start`` is meant, without ``last`` the last slice that is
    over. ``all``: also slices that are made already.
    """

    first: Moment | None = None
    last: Moment | None = None
    all: bool = False

    @classmethod
    def of(cls, first: Moment | None, last: Moment | None, *, every: bool) -> SliceRange | None:
        """None where nobody asks for a range."""
        return None if first is None and last is None and not every else cls(first, last, every)

    def __str__(self) -> str:
        """As runs record it."""
        first, last = ("" if each is None else _text(each) for each in (self.first, self.last))
        return f"{first or 'start'} to {last or 'now'}{' (all)' if self.all else ''}"


@dataclass(frozen=True, slots=True)
class InRange:
    """The slices of one `partitioned` line in a range.

    ``early`` lie before its ``start``, or that of what it reads, ``later`` have not begun,
    ``current`` is not over and was not asked for: how many are left out for that.
    """

    slices: tuple[Part, ...]
    early: int = 0
    later: int = 0
    current: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of slices of a model in a range, by their states.

    ``early``, ``later`` and ``current`` are left out: before its ``start``, in the future, and not
    over; ``to_make`` is what a run would do.
    """

    states: Mapping[SliceState, int] = field(default_factory=dict)
    to_make: int = 0
    early: int = 0
    later: int = 0
    current: int = 0

    @property
    def total(self) -> int:
        return sum(self.states.values())

    def with_more(self, states: Iterable[SliceState], to_make: int) -> Tally:
        """Return it with slices outside of the range, which those in it need."""
        return replace(self, states=dict(Counter(self.states) + Counter(states)), to_make=to_make)


def require_range(request: SliceRange, *, partition_too: bool, full_refresh: bool) -> None:
    """Raises ArgumentError for what does not go with a range."""
    if request.first is None and request.last is None:
        raise ArgumentError(
            "--all needs a range: it makes the slices again that are made already",
            hint="for example: --from 2026-01-01 --to 2026-01-31 --all",
        )
    if partition_too:
        raise ArgumentError(
            "a run makes either one partition or a range of them",
            hint="leave out --partition, or --from and --to",
        )
    if full_refresh:
        raise ArgumentError(
            "--full-refresh rebuilds a table with one slice, not with a range",
            hint="penstock drop MODEL, then run the range; or make the slices again with --all",
        )


class Calendar:
    """The slices of each `partitioned` line in one range: computed once, shared by its models.

    ``parents`` are the models that one reads itself: what lies before the start of one of them, or
    of one above, that is partitioned has nothing to read.
    """

    def __init__(
        self,
        request: SliceRange,
        now: datetime,
        parents: Callable[[Model], Iterable[Model]] = lambda _: (),
    ) -> None:
        self._request = request
        self._now = now
        self._parents = parents
        self._known: dict[PartitionSpec, InRange] = {}
        self._early: dict[tuple[PartitionSpec, datetime], int] = {}
        self._last_starts: dict[str, datetime | None] = {}

    def of(self, model: Model) -> InRange:
        """Raises PartitionError, placed."""
        spec = model.partition
        assert spec is not None, "asked of partitioned models"
        try:
            if spec not in self._known:
                self._known[spec] = _in_range(spec, self._request, self._now)
            return self._since(model, spec, self._known[spec])
        except PartitionError as error:
            error.location = error.location or model.place("partition")
            raise

    def _since(self, model: Model, spec: PartitionSpec, found: InRange) -> InRange:
        """Without the slices before the last start of what the model reads."""
        last = self._last_start_above(model)
        if last is None or not found.slices:
            return found
        if (spec, last) not in self._early:
            ends = (partition.bounds(spec, part.value)[1] for part in found.slices)
            self._early[spec, last] = sum(end <= last for end in ends)
        early = self._early[spec, last]
        return replace(found, slices=found.slices[early:], early=found.early + early)

    def _last_start_above(self, model: Model) -> datetime | None:
        """Return the last start of all partitioned models above, from the topmost down."""
        known, waiting = self._last_starts, [model]
        while waiting:
            current = waiting[-1]
            parents = [above for above in self._parents(current) if above.name != current.name]
            unknown = [above for above in parents if above.name not in known]
            if unknown:
                waiting.extend(unknown)
                continue
            specs = (above.partition for above in parents)
            starts = [partition.start_of(spec) for spec in specs if spec is not None]
            starts += [known[above.name] for above in parents]
            known[current.name] = max((start for start in starts if start), default=None)
            waiting.pop()
        return known[model.name]


def _in_range(spec: PartitionSpec, request: SliceRange, now: datetime) -> InRange:
    if spec.kind not in TIME_KINDS:
        raise PartitionError(
            "a dynamic partition has no range: its values have no order",
            hint="run its values one by one with --partition, or leave it out with --select",
        )
    newest = partition.wall_time(spec, now)[0]
    first, current = _first(spec, request), 0
    if request.last is not None:
        last = partition.wall_time(spec, request.last)[1]
    else:
        last = TIME_KINDS[spec.kind].floor(newest) - timedelta(microseconds=1)
        current = int(first <= newest)
        if last < first <= newest:
            return InRange((), current=current)
    values = partition.values_between(spec, first, last)
    asked = [(value, partition.bucket_of(spec, value)) for value in values]
    early = sum(partition.is_before_start(spec, bucket) for _, bucket in asked)
    later = sum(bucket > newest for _, bucket in asked)
    kept = values[early : len(values) - later]
    return InRange(tuple(map(Part, kept)), early, later, current)


def _first(spec: PartitionSpec, request: SliceRange) -> datetime:
    if request.first is not None:
        return partition.wall_time(spec, request.first)[0]
    if spec.start is None:
        raise PartitionError(
            "the range has no beginning: the model has no start",
            hint="give it: --from 2026-01-01, or write start=2026-01-01 in the header",
        )
    return datetime.combine(date.fromisoformat(spec.start), time())


def choose(found: InRange, states: SliceStates, *, every: bool) -> tuple[tuple[Slice, ...], Tally]:
    """The slices to make, in order, and the count of all."""
    chosen: Sequence[Slice] = found.slices
    if states.kinds <= {SliceState.MATERIALIZED}:  # as most are
        missing = [part for part in found.slices if part.text not in states.of]
        chosen = chosen if every else missing
        there = len(found.slices) - len(missing)
        numbers = {SliceState.MATERIALIZED: there, SliceState.MISSING: len(missing)}
        counts = {state: number for state, number in numbers.items() if number}
    else:
        counts = dict(Counter(states.state(part.text) for part in found.slices))
        if not every:
            chosen = [part for part in found.slices if states.lacks(part.text)]
    tally = Tally(counts, len(chosen), found.early, found.later, found.current)
    return tuple(chosen), tally


def choose_whole(
    states: SliceStates, *, every: bool, inputs_change: bool
) -> tuple[tuple[Slice, ...], Tally]:
    """A whole table: made where it is missing or failed, and after slices that it reads are."""
    state = states.state(WHOLE.text)
    needed = every or inputs_change or states.lacks(WHOLE.text)
    return (WHOLE,) if needed else (), Tally({state: 1}, int(needed))


def said(tally: Tally) -> str:
    """``3 missing, 1 failed, 361 materialized``."""
    order = (
        SliceState.MISSING,
        SliceState.FAILED,
        SliceState.SKIPPED,
        SliceState.WAITING,
        SliceState.UNFINISHED,
        SliceState.RUNNING,
        SliceState.CHANGED_OUTSIDE,
        SliceState.BEHIND,
        SliceState.LATE,
        SliceState.STALE,
        SliceState.MATERIALIZED,
    )
    parts = [f"{tally.states[state]:,} {state}" for state in order if tally.states.get(state)]
    parts += [f"{tally.early:,} before start"] if tally.early else []
    parts += [f"{tally.later:,} in the future"] if tally.later else []
    parts += [f"{tally.current:,} not over"] if tally.current else []
    return ", ".join(parts) or "no slices"


def idle(tally: Tally, why_kept: str | None = None) -> Skip:
    """Return why nothing is made of a model: what is stale waits until a user asks for it.
    ``why_kept`` says why no run rebuilds it.
    """
    hint = ""
    if tally.states.get(SliceState.STALE):
        hint += f"; {REBUILD} rebuilds what is stale" if why_kept is None else ""
        hint += "" if why_kept is None else f"; what is stale stays: {why_kept}"
    if tally.states.get(SliceState.LATE):
        hint += "; penstock run --behind makes slices with late rows again"
    whose = {
        SliceState.CHANGED_OUTSIDE: "what another writer changed",
        SliceState.BEHIND: "what is behind its input",
    }
    left = " and ".join(what for state, what in whose.items() if tally.states.get(state))
    if left:
        hint += (
            f"; {left} stays as it is, since this kind of table cannot take a slice back: roll the "
            "table back, or drop the slices and run again"
        )
    return Skip(SkipKind.IDLE, NOTHING_TO_DO, f"{said(tally)}{hint}")


def by_others(snapshot: int) -> str:
    """Return what another writer did to a slice, for people."""
    return f"by another writer, snapshot {snapshot}"


def is_unfinished(text: str, published_at: datetime, model: Model) -> bool:
    """Return whether a partition was made before its time was over, so that rows may have come
    since. Not where making it again would add rows twice.
    """
    return unfinished_of(model)(text, published_at)


def unfinished_of(model: Model) -> Callable[[str, datetime], bool]:
    """Return what `is_unfinished` does, for many slices of a model."""
    spec = model.partition
    if spec is None or spec.kind not in TIME_KINDS or not model.strategy.restores:
        return lambda _, __: False
    current: dict[datetime, str | None] = {}  # by when slices were made

    def is_unfinished(text: str, published_at: datetime) -> bool:
        if published_at not in current:
            at = published_at.replace(second=0, microsecond=0)
            current[published_at] = _value_at(spec, at)
        value = current[published_at]
        if value is None or spec.format is not None:
            return text == value
        return text >= value  # its texts sort as times do

    return is_unfinished


@lru_cache(maxsize=4096)
def _value_at(spec: PartitionSpec, moment: datetime) -> str | None:
    """The value of the slice that a moment is in; None where its zone has none."""
    try:
        return partition.render(spec, partition.bucket_at(spec, moment))
    except PartitionError:
        return None


def _text(moment: Moment) -> str:
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).isoformat()
    return moment if isinstance(moment, str) else moment.isoformat()
