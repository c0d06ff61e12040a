"""A run as a value: the selected steps, their slices and their order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from penstock.engine.intervals import Due, Line, Painted, start_above
from penstock.engine.ranges import (
    Calendar,
    SliceRange,
    States,
    Tally,
    choose,
    choose_whole,
    require_range,
    said,
)
from penstock.engine.slices import RunRequest, StepSlice, resolve_slices
from penstock.errors import ArgumentError
from penstock.model import arguments
from penstock.model.constants import Bindings
from penstock.model.file_path import path_of
from penstock.model.graph import Graph, Makers, chains, makers_of
from penstock.model.interval import Interval
from penstock.model.kinds import EMBEDDED, FILES, TIME_RANGE, VIEW
from penstock.model.loader import FIRST_MODEL
from penstock.model.model import Model
from penstock.model.moments import read_moment
from penstock.model.slice import WHOLE, Part, Slice, described
from penstock.sql.identifiers import nearest

# Strategies: the engine has each in its registry, but for manual scripts, which write themselves.
RUNNABLE = (
    *("replace", "append", "merge", "partitions", TIME_RANGE, "custom", "history", "manual"),
    *(VIEW, FILES),
)


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A model and the slices of it to make, in the order of time.

    In a plan a model has one step with all its slices; `Plan.batches` cuts that into steps that are
    reconciled in one commit each. ``after`` are the models that must have ended before it.
    ``bindings`` are what its script may refer to, in the first of its slices. ``blocked`` says why
    it cannot run; its failure is then that. ``skipped`` says why there is nothing for it to do;
    that is not a failure. ``tally`` counts the slices of the range that the run is for. ``apart``
    says why many slices are made one by one; without it they are made together. A batch that
    ``goes_on`` is not the first of its model.
    """

    model: Model
    slices: tuple[Slice, ...] = (WHOLE,)
    after: tuple[str, ...] = ()
    blocked: str | None = None
    skipped: str | None = None
    tally: Tally | None = None
    apart: str | None = None
    bindings: Bindings = field(default_factory=Bindings)
    goes_on: bool = False

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def slice(self) -> str | None:
        """Its slices for people: None for a whole table."""
        return described(self.slices)

    @property
    def only(self) -> Slice:
        """Its one slice."""
        (slice_,) = self.slices
        return slice_


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order of the graph. ``notices`` are worth saying before it runs.

    ``args`` are the texts of declared arguments that the request has, by name or in its payload.
    ``makers`` are the project's models by their tables, those that are not planned among them.
    """

    steps: tuple[PlannedStep, ...]
    request: RunRequest
    args: Mapping[str, str | None] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    makers: Makers = field(default_factory=dict)

    def slice_of_step(self) -> str:
        """The slice of its one step. Raises ArgumentError where that is not partitioned."""
        (step,) = self.steps
        if step.only == WHOLE:
            raise ArgumentError(
                f"{step.name} is not partitioned: it has no slice {self.request.partition!r}",
                hint="leave out the partition",
            )
        return step.only.text

    def batches(self, step: PlannedStep) -> Iterator[PlannedStep]:
        """A step of the plan, cut into steps that are run one after the other.

        They are made when they are asked for: a plan of many slices stays small.
        """
        if len(step.slices) < 2:
            yield step
            return
        together = step.apart is None and step.model.by_time is None
        size = TOGETHER if together else 1
        for first in range(0, len(step.slices), size):
            batch = self.narrowed(step, step.slices[first : first + size])
            yield replace(batch, goes_on=first > 0)

    def narrowed(self, step: PlannedStep, slices: Sequence[Slice]) -> PlannedStep:
        """The step with some of its slices only."""
        bindings = step.bindings
        if step.blocked is None:
            bindings = _bindings(step.model, slices[0], self.args, self.request)
        return replace(step, slices=tuple(slices), bindings=bindings)

    @property
    def lakes(self) -> tuple[str, ...]:
        """The lakes that its steps read and write."""
        models = [step.model for step in self.steps]
        return tuple(
            sorted({lake for model in models for lake in (model.target.lake, *model.lakes)})
        )

    @property
    def partition(self) -> str | None:
        """The slice of the run; where chains have several, each of them; or its range."""
        if self.request.range is not None:
            return str(self.request.range)
        values = dict.fromkeys(step.slice for step in self.steps if step.slice is not None)
        return ", ".join(values) or None


TOGETHER = 400  # slices of one job: a year of days


@dataclass(frozen=True, slots=True)
class Known:
    """What the catalogs know: the states of slices, and of models by time what is painted on their
    lines, by the names of models.
    """

    slices: Callable[[Sequence[Model]], Mapping[str, States]] = lambda _: {}
    intervals: Callable[[Sequence[Model]], Mapping[str, Painted]] = lambda _: {}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What all steps of a plan have in common; ``lines`` are those of models by time."""

    request: RunRequest
    args: Mapping[str, str | None]
    known: Known
    lines: Mapping[str, Line]


def make_plan(
    models: Mapping[str, Model], graph: Graph, request: RunRequest, known: Known | None = None
) -> Plan:
    """``known`` is asked for ranges, and for models by time.

    Raises ArgumentError and PartitionError: what is wrong is said before anything runs.
    """
    if not models:
        raise ArgumentError("there is no model to run", hint=FIRST_MODEL)
    if request.fire_time.tzinfo is None:
        raise ArgumentError(
            f"fire_time {request.fire_time} has no time zone",
            hint="give one: datetime.now(UTC), or fire_time.replace(tzinfo=ZoneInfo(...))",
        )
    order = graph.order()
    chosen = _with_steps(
        select_steps(request.select, order, graph.upstream, graph.downstream), models, graph
    )
    steps = [models[name] for name in order if name in chosen]
    _check_arguments(models.values(), request.args)
    args = _args(steps, request)
    afters = {
        model.name: tuple(name for name in graph.upstream(model.name) if name in chosen)
        for model in steps
    }
    known = known or Known()
    asked = _Asked(request, args, known, _lines(models, graph, steps, request, known))
    if request.range is None:
        chains_ = _chains([models[name] for name in order], chosen)
        planned = _of_moment(steps, afters, resolve_slices(chains_, request), asked)
    else:
        planned = _of_range(steps, afters, request.range, asked)
    return Plan(
        tuple(planned),
        request,
        args,
        tuple(_notices(planned, request)),
        makers_of(models.values()),
    )


def _lines(
    models: Mapping[str, Model],
    graph: Graph,
    steps: Sequence[Model],
    request: RunRequest,
    known: Known,
) -> dict[str, Line]:
    """What is known of the intervals of models by time. A table that is made anew has none."""
    timed = [model for model in steps if model.by_time is not None]
    painted = known.intervals(timed) if timed and not request.full_refresh else {}
    now = request.fire_time.astimezone(UTC)
    return {
        model.name: Line(
            model.by_time,
            painted.get(model.name, Painted()),
            now,
            start_above(model, models, graph, now),
            restates=not model.disable_restatement,
        )
        for model in timed
        if model.by_time is not None
    }


def _of_intervals(model: Model, line: Line, due: Due, after: tuple[str, ...]) -> PlannedStep:
    """A slice for each evaluation of the query."""
    slices = line.by_time.batches(due.intervals)
    apart = None
    if len(slices) > 1:
        size = line.by_time.batch_size
        apart = "each range of missing intervals" if size is None else f"batch_size is {size}"
    late = line.out_of_order(slices[0]) if model.in_order and slices else None
    return PlannedStep(model, slices, after, late, due.idle, due.tally, apart)


Afters = Mapping[str, tuple[str, ...]]


def _of_moment(
    steps: Sequence[Model],
    afters: Afters,
    slices: Mapping[str, StepSlice],
    asked: _Asked,
) -> list[PlannedStep]:
    """One slice of each model; of models by time all that are due."""
    planned: dict[str, PlannedStep] = {}
    early: set[str] = set()
    for model in steps:
        after, own = afters[model.name], slices.get(model.name)
        skipped = _why_skipped(own, [name for name in after if name in early])
        early |= {model.name} if skipped else set()
        if model.name in asked.lines and skipped is None:
            line = asked.lines[model.name]
            step = _of_intervals(model, line, line.due(), after)
        else:
            made = (Part(own.value) if own else WHOLE,)
            step = PlannedStep(model, made, after, skipped=skipped)
        planned[model.name] = _step(step, asked.args, asked.request)
    return list(planned.values())


def _of_range(
    steps: Sequence[Model], afters: Afters, range_: SliceRange, asked: _Asked
) -> list[PlannedStep]:
    """The slices of a range that are to be made."""
    request, lines = asked.request, asked.lines
    require_range(
        range_, partition_too=request.partition is not None, full_refresh=request.full_refresh
    )
    if not lines and all(model.partition is None for model in steps):
        raise ArgumentError(
            "no selected model is partitioned: there is no range to make",
            hint="leave out --from and --to, or select models that are partitioned or by time",
        )
    calendar, planned = Calendar(range_, request.fire_time), dict[str, PlannedStep]()
    ranges = {model.name: calendar.of(model) for model in steps if model.partition is not None}
    states = asked.known.slices(steps)
    for model in steps:
        after, own = afters[model.name], states.get(model.name, {})
        if model.name in lines:
            line = lines[model.name]
            with _placed_at(model, "start"):
                step = _of_intervals(model, line, line.of(range_), after)
                if step.blocked:  # nothing is recorded of what was asked for in vain
                    raise ArgumentError(f"{model.name}: {step.blocked}")
            planned[model.name] = _step(step, asked.args, request)
            continue
        if model.partition is not None:
            chosen, tally = choose(ranges[model.name], own, every=range_.all)
        else:
            changes = any(not planned[name].skipped for name in after)
            chosen, tally = choose_whole(own, every=range_.all, inputs_change=changes)
        skipped = None if chosen else f"nothing to do: {said(tally)}"
        apart = _why_apart(model, range_) if len(chosen) > 1 else None
        step = PlannedStep(model, chosen, after, skipped=skipped, tally=tally, apart=apart)
        planned[model.name] = _step(step, asked.args, request)
    return list(planned.values())


@contextmanager
def _placed_at(model: Model, what: str) -> Iterator[None]:
    try:
        yield
    except ArgumentError as error:
        error.location = error.location or model.place(what)
        raise


def _why_apart(model: Model, asked: SliceRange) -> str | None:
    if model.strategy == "append" and asked.all:
        return "rows that an interrupted run has appended are not to be added again"
    # Late: it looks at trees, which a plan of single slices does without.
    from penstock.model.joint import why_apart

    return why_apart(model)


def _with_steps(
    chosen: frozenset[str], models: Mapping[str, Model], graph: Graph
) -> frozenset[str]:
    """The chosen models that a run makes. Raises ArgumentError where only EMBEDDED ones are."""
    found = frozenset(name for name in chosen if models[name].strategy != EMBEDDED)
    if chosen and not found:
        name = min(chosen)
        readers = [each for each in graph.downstream(name) if models[each].strategy != EMBEDDED]
        raise ArgumentError(
            f"{name} is EMBEDDED: its query stands in its readers, and there is nothing to run",
            hint=f"run a reader: penstock run {readers[0]}" if readers else "no model reads it",
            location=models[name].place("kind"),
        )
    return found


def _notices(steps: Iterable[PlannedStep], request: RunRequest) -> Iterator[str]:
    if request.partition is not None and all(step.slices == (WHOLE,) for step in steps):
        yield "no selected step is partitioned: --partition has no effect"
    for step in steps:
        if step.tally is not None and step.tally.later:
            later = f"{step.tally.later:,} slice{'' if step.tally.later == 1 else 's'}"
            yield f"{step.name}: {later} of the range have not begun yet, and are left out"
    if request.full_refresh:
        yield from _refreshed([step.model for step in steps if not step.skipped], request)


def _chains(models: Sequence[Model], chosen: Collection[str]) -> list[list[Model]]:
    """The chosen steps of each chain: what connects them may be left out of a run."""
    by_name = {model.name: model for model in models}
    selected = ([name for name in chain if name in chosen] for chain in chains(models))
    return [[by_name[name] for name in chain] for chain in selected if chain]


def _refreshed(steps: Sequence[Model], request: RunRequest) -> Iterator[str]:
    """What a full refresh drops that the run does not make again. Raises ArgumentError."""
    if not request.select:
        raise ArgumentError(
            "a full refresh drops what is there: it is for the models that you name",
            hint="for example: penstock run MODEL --full-refresh",
        )
    for model in steps:
        if model.disable_restatement:
            raise ArgumentError(
                f"{model.name} is excluded from being made anew: disable_restatement is true",
                hint="write disable_restatement false in its kind, or `penstock drop` the table",
                location=model.place("disable_restatement"),
            )
        if model.partition is not None:
            yield f"{model.name}: full refresh drops every slice and makes this run's only"
        elif model.strategy not in {"replace", TIME_RANGE}:
            yield f"{model.name}: full refresh leaves only what the SELECT returns now"


def _check_arguments(models: Iterable[Model], args: Mapping[str, str | None]) -> None:
    """Raise ArgumentError for names that no script declares, and for those of the slice: as
    arguments they could differ from the slice that is written."""
    given = [name for name in arguments.OF_SLICE if name in args]
    if given:
        raise ArgumentError(
            f"{given[0]} is not an argument: the run's slice says it",
            hint="give the partition: --partition VALUE",
        )
    models = list(models)
    declared = _declared(models)
    keys = {model.partition.key for model in models if model.partition}
    names = [*declared, *(key.split(".")[1] for key in keys if key)]
    arguments.unknown(args, names)


def _args(steps: Sequence[Model], request: RunRequest) -> dict[str, str | None]:
    """What the request says of the arguments that these steps declare."""
    declared = _declared(steps)
    return {
        name: arguments.text_of(declared[name], value)
        for name, value in request.inputs.items()
        if name in declared
    }


def _declared(models: Iterable[Model]) -> dict[str, arguments.Argument]:
    """What the scripts declare, without what comes of their slices."""
    return {
        argument.name: argument
        for model in models
        for argument in model.query.arguments
        if argument.name not in arguments.OF_SLICE and not argument.automatic
    }


def _why_skipped(own: StepSlice | None, early: Sequence[str]) -> str | None:
    """``early`` are the models above that are before their start."""
    if own is not None and own.early:
        return "before start"
    return f"{early[0]} is before its start" if early else None


def _step(step: PlannedStep, args: Mapping[str, str | None], request: RunRequest) -> PlannedStep:
    """The step with what its script may refer to; refuses what is wrong before anything runs."""
    model = step.model
    blocked = _why_blocked(model) or step.blocked
    first = step.slices[0] if step.slices else WHOLE
    if blocked or step.skipped:
        return replace(step, bindings=Bindings(partition=_value(first)), blocked=blocked)
    bindings = _bindings(model, first, args, request)
    for source in model.query.files:
        path_of(source, bindings, model.query.arguments)
    return replace(step, bindings=bindings)


def _bindings(
    model: Model, slice_: Slice, args: Mapping[str, str | None], request: RunRequest
) -> Bindings:
    value, now = _value(slice_), request.fire_time.astimezone(UTC)
    bound = arguments.bind(
        model.query.arguments,
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


def _value(slice_: Slice) -> str | None:
    return slice_.value if isinstance(slice_, Part) else None


def _why_blocked(model: Model) -> str | None:
    if model.strategy not in RUNNABLE:
        known = ", ".join(RUNNABLE)
        return f"the strategy {model.strategy} is not supported yet; supported are {known}"
    return None


Neighbours = Callable[[str], Collection[str]]


def select_steps(
    expressions: Sequence[str],
    names: Sequence[str],
    upstream: Neighbours,
    downstream: Neighbours,
) -> frozenset[str]:
    """The selected names; all of them when there are no expressions.

    ``upstream`` and ``downstream`` give everything before and after a step, however far.
    Raises ArgumentError for an expression that selects nothing, with the nearest name.
    """
    if not expressions:
        return frozenset(names)
    chosen: set[str] = set()
    for expression in expressions:
        pattern = expression.removeprefix("+").removesuffix("+")
        matched = [name for name in names if fnmatchcase(name, pattern)]
        if not matched:
            raise _nothing(expression, pattern, names)
        chosen.update(matched)
        if expression.startswith("+"):
            chosen.update(step for name in matched for step in upstream(name))
        if expression.endswith("+"):
            chosen.update(step for name in matched for step in downstream(name))
    return frozenset(chosen)


def _nothing(expression: str, pattern: str, names: Sequence[str]) -> ArgumentError:
    near = nearest(pattern, names)
    known = ", ".join(sorted(names))
    return ArgumentError(
        f"--select {expression}: there is no step {pattern!r}",
        hint=f"did you mean {near!r}?" if near else f"steps are: {known}",
    )
