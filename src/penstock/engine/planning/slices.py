"""Find the slice that each partitioned step of a run makes. Pure.

A partition is resolved at the top of each chain (steps that partitioned inputs connect) and carried
down it: seeds/partitioned-pipelines.md, "How the value is resolved". Chains that happen to run
together have nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any

from penstock.engine.planning.ranges import SliceRange
from penstock.engine.planning.selection import Selection
from penstock.errors import PartitionError
from penstock.model.definition.model import Model
from penstock.model.script import arguments
from penstock.model.script.constants import Bindings
from penstock.model.time import partition
from penstock.model.time.interval import Interval
from penstock.model.time.moments import read_moment
from penstock.model.time.partition import TIME_KINDS, Moment, PartitionSpec
from penstock.model.time.slice import Part, Slice

Steps = Sequence[Model]
Upstream = Callable[[str], Sequence[str]]  # the names of everything that a step reads, however far


@dataclass(frozen=True, slots=True)
class StepSlice:
    """``early``: the slice lies before the step's ``start``, and nobody asked for it."""

    value: str
    early: bool = False


def resolve_slices(
    chains: Sequence[Steps], request: RunRequest, upstream: Upstream
) -> dict[str, StepSlice]:
    """The slice of each step, by the step's name. Each chain is in the order of the graph.

    Without a partition in the request, the kinds by time take the slice of its fire time and
    ``dynamic`` takes its value from the payload; a step below takes that of the step above. A
    partition that was asked for goes to the steps that can have it. Raises PartitionError, placed,
    when that leaves a step without a slice, or when what was asked for lies before its ``start``.
    """
    asked = request.partition
    slices: dict[str, StepSlice] = {}
    for chain in chains:
        timed = [model for model in chain if _spec(model).kind in TIME_KINDS]
        slices |= _timed(timed, request.fire_time if asked is None else asked, asked is not None)
    steps = [model for chain in chains for model in chain]
    tops: dict[str, Model] = {}
    for chain in chains:
        tops |= tops_of(chain, upstream)
    dynamic = [model for model in steps if model.name in tops]
    value = asked if isinstance(asked, str) and not slices else None
    slices |= _dynamic(dynamic, tops, request, value)
    if asked is not None and len(slices) < len(steps):
        raise _refusal(steps, slices, asked)
    return slices


def _timed(chain: Steps, moment: Partition, asked: bool) -> dict[str, StepSlice]:
    slices: dict[str, StepSlice] = {}
    for model, bucket in zip(chain, _buckets(chain, moment), strict=True):
        if bucket is None:
            continue
        spec = _spec(model)
        value = partition.render(spec, bucket)
        with _placed(model):
            partition.validate(spec, value)  # the clocks of its own zone may skip it
            early = partition.is_before_start(spec, bucket)
            if early and asked:
                raise PartitionError(
                    f"partition {value} is before start={spec.start} of {model.name}",
                    hint="ask for a later one, or set start to an earlier day",
                )
        slices[model.name] = StepSlice(value, early)
    return slices


def _buckets(chain: Steps, moment: Partition) -> list[datetime | None]:
    """The start of each step's slice in wall time; None for a step that has none at ``moment``.

    The topmost step of a kind resolves for all steps of this kind in the chain. When a value was
    asked for, steps of other kinds take the slice that holds all of it.
    """
    own = [_own_bucket(model, moment) for model in chain]
    known = {
        spec: bucket
        for spec, bucket in zip(map(_spec, chain), own, strict=True)
        if bucket is not None
    }
    by_kind = {spec.kind: bucket for spec, bucket in reversed(known.items())}
    first = next(iter(known.items()), None)
    around = partition.span(*first) if first else None
    return [
        by_kind.get(spec.kind) or (partition.bucket_around(spec, *around) if around else None)
        for spec in map(_spec, chain)
    ]


def _own_bucket(model: Model, moment: Partition) -> datetime | None:
    spec = _spec(model)
    if isinstance(moment, str):
        with suppress(PartitionError):
            return partition.bucket_of(spec, moment)
        return None
    with _placed(model):  # its zone may skip this day or hour
        if isinstance(moment, datetime):
            return partition.bucket_at(spec, moment)
        midnight = datetime.combine(moment, time())
        return partition.bucket_around(spec, midnight, midnight + timedelta(days=1))


def tops_of(steps: Steps, upstream: Upstream) -> dict[str, Model]:
    """Return the step whose value each dynamic step of a chain takes: one that reads no other of
    them. Raises PartitionError where steps with different keys meet in one.
    """
    by_name = {model.name: model for model in steps if _spec(model).kind not in TIME_KINDS}
    above = {name: [n for n in upstream(name) if n in by_name] for name in by_name}
    found: dict[str, Model] = {}
    for name, model in by_name.items():
        tops = [by_name[each] for each in above[name] if not above[each]] or [model]
        keys = {_spec(top).key: top for top in tops}
        if len(keys) > 1:
            first, second, *_ = keys.values()
            raise _at(
                model,
                PartitionError(
                    f"{name} reads {_named(first)} and {_named(second)}: a run carries one value "
                    "down to it",
                    hint="give both the same key, or run the steps above by themselves: "
                    f"{_select([first])}, then {_select([second])}",
                ),
            )
        found[name] = tops[0]
    return found


def _dynamic(
    steps: Steps, tops: Mapping[str, Model], request: RunRequest, asked: str | None
) -> dict[str, StepSlice]:
    """``asked`` is the value of one key: steps whose value is that of another have no part in
    it.
    """
    if asked is not None:
        key = _spec(tops[steps[0].name]).key if steps else None
        of_key = [model for model in steps if _spec(tops[model.name]).key == key]
        for model in of_key:
            with _placed(model):
                partition.validate(_spec(model), asked)
        return {model.name: StepSlice(asked) for model in of_key}
    slices: dict[str, StepSlice] = {}
    for model in steps:
        top = tops[model.name]
        try:
            with _placed(top):
                slices[model.name] = StepSlice(partition.value_from(_spec(top), request.inputs))
        except PartitionError:
            if request.partition is None:
                raise
    return slices


def _refusal(steps: Steps, slices: Mapping[str, StepSlice], asked: Partition) -> PartitionError:
    """Return the refusal of a slice that cannot be that of every step."""
    refused = [model for model in steps if model.name not in slices]
    takers = [model for model in steps if model.name in slices]
    if any(_spec(model).kind in TIME_KINDS for model in takers):
        takers = [model for model in takers if _spec(model).kind in TIME_KINDS]
    cause = _cause(_spec(refused[0]), asked)
    if not takers:
        return _at(refused[0], cause)
    hint = f"run them apart: {_select(takers)} with this partition, then {_select(refused)}"
    if _spec(refused[0]).key:
        hint += ", or say the value of the other in --payload"
    return _at(
        refused[0],
        PartitionError(
            f"partition {asked} is for {_names(takers)}, not for {_names(refused)}: "
            f"{cause.message}",
            hint=hint,
        ),
    )


def _cause(spec: PartitionSpec, asked: Partition) -> PartitionError:
    """Return why a step cannot have what was asked for."""
    if spec.kind not in TIME_KINDS:
        return PartitionError(
            f"its value is what {spec.key} of the payload is", hint="send it in the payload"
        )
    if isinstance(asked, str):
        try:
            partition.validate(spec, asked)
        except PartitionError as error:
            return error
    return PartitionError(
        f"{asked} is more than one {TIME_KINDS[spec.kind].unit}", hint="give a datetime"
    )


def _names(models: Steps) -> str:
    """``raw/orders (partitioned daily)``, and how many others."""
    others = f" and {len(models) - 1} more" if len(models) > 1 else ""
    return f"{_named(models[0])}{others}"


def _named(model: Model) -> str:
    spec = _spec(model)
    option = f' key="{spec.key}"' if spec.key else f' format="{spec.format}"' if spec.format else ""
    return f"{model.name} (partitioned {spec.kind}{option})"


def _select(models: Steps) -> str:
    return " ".join(f"--select {model.name}" for model in models)


def _at(model: Model, error: PartitionError) -> PartitionError:
    error.location = error.location or model.place("partition")
    return error


@contextmanager
def _placed(model: Model) -> Iterator[None]:
    try:
        yield
    except PartitionError as error:
        raise _at(model, error) from None


def _spec(model: Model) -> PartitionSpec:
    assert model.partition is not None
    return model.partition


# A value as a slice is called, or a moment: without a time zone it is wall time in the partition's.
Partition = Moment


@dataclass(frozen=True, slots=True)
class RunRequest:
    """``select``, ``exclude`` and ``to`` are of the selection language: see `Selection`.

    ``args`` are texts, or None for NULL, by name. ``payload`` is what a trigger sent; ``fire_time``
    (with a zone) is the time of the trigger. ``has_fire_time`` is true if the user passed
    ``--fire-time``. ``full_refresh``: the tables are rebuilt. ``range``: the slices of many days,
    in place of ``partition``. ``upstream``: of models that are not selected, what the selected ones
    need and is missing is made first; ``allow_missing``: they do without it; ``behind``: slices
    whose input has changed since are made again; ``late``: those with late rows too, and all of a
    model that is partitioned, not only the one that a run is for. ``changed``: the slices that
    other definitions made, with what reads them; ``force``: what is up to date is made too.
    """

    partition: Partition | None = None
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    args: Mapping[str, str | None] = field(default_factory=dict)
    fire_time: datetime = field(default_factory=lambda: datetime.now(UTC))
    payload: Mapping[str, Any] | None = None
    trigger: str = "manual"
    full_refresh: bool = False
    range: SliceRange | None = None
    upstream: bool = False
    allow_missing: bool = False
    behind: bool = True
    late: bool = False
    changed: bool = False
    force: bool = False
    has_fire_time: bool = False

    @property
    def selection(self) -> Selection:
        return Selection(self.select, self.exclude, self.to)

    @property
    def inputs(self) -> dict[str, Any]:
        """The run's arguments: those of the payload, overridden by those by name."""
        return {**(self.payload or {}), **self.args}


def bindings_of(
    model: Model, slice_: Slice, args: Mapping[str, str | None], request: RunRequest
) -> Bindings:
    """Return what a model's script may refer to, in one of its slices."""
    return bindings_at(model, slice_, args, request.fire_time.astimezone(UTC))


def bindings_at(
    model: Model, slice_: Slice, args: Mapping[str, str | None], now: datetime
) -> Bindings:
    """Return the same, of a run that is for the moment ``now``."""
    value = value_of(slice_)
    bound = arguments.bind(
        model.run_arguments,
        args,
        partition=value,
        spec=model.partition,
        interval=slice_ if isinstance(slice_, Interval) else _all_time(model, now),
        now=now,
    )
    return Bindings(partition=value, arguments=bound)


def _all_time(model: Model, now: datetime) -> Interval:
    """The interval of a whole table: from its start, or 1970, to the moment of the run."""
    start = model.cadence.start
    first = datetime(1970, 1, 1, tzinfo=UTC) if start is None else read_moment(start, now)
    return Interval(min(first, now - timedelta(microseconds=1)), now)


def value_of(slice_: Slice) -> str | None:
    """Return the partition value of a slice; None for a whole table and for intervals."""
    return slice_.value if isinstance(slice_, Part) else None
