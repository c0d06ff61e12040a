"""A run as a value: the selected steps, their slices and their order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from penstock.destinations.capabilities import Capabilities
from penstock.engine.planning.intervals import IntervalHistory, ModelIntervals
from penstock.engine.planning.made_from import AsAsked, MadeFrom
from penstock.engine.planning.ranges import SliceRange, SliceStates, Tally
from penstock.engine.planning.restatement_scope import BuildTimes, Cascade
from penstock.engine.planning.slices import RunRequest, bindings_of
from penstock.engine.planning.stages import Refuse, Stage
from penstock.engine.results import StaleSlices
from penstock.engine.state.records import InputRead
from penstock.errors import ArgumentError
from penstock.model.definition.graph import Graph, Makers
from penstock.model.definition.model import Model
from penstock.model.script.constants import Bindings
from penstock.model.slicing.needs import Edge
from penstock.model.slicing.query_facts import QueryFacts
from penstock.model.time.interval import Interval
from penstock.model.time.slice import WHOLE, Slice, described
from penstock.rendering.columns import html, read_columns
from penstock.rendering.text import count, line, listed

if TYPE_CHECKING:
    from penstock.engine.planning.freshness import OldTable
    from penstock.engine.planning.needed import NeededSlice
    from penstock.engine.planning.slice_reason import (
        Cause,
        DefinitionChange,
        ReasonedRange,
        RunInputs,
        Skip,
    )


class Condition(Enum):
    """A change that a run must make before it builds a slice."""

    ROWS = auto()  # rows of the slices that it needs
    INPUTS = auto()  # anything that it reads


@dataclass(frozen=True, slots=True)
class Work:
    """A decision about one slice of a step.

    Attributes:
        cause: Why the slice is built although its state does not require it.
        condition: What the run must change before it builds the slice, or None.
        waits_for: The missing input that the slice waits for, or None.
        lacks: The missing input that the slice is built without, or None.
        built_from: What the existing rows were built from, where they may be up to date.
        inputs: What a past run was given, where a retry builds slices of several runs.
    """

    cause: Cause | None = None
    condition: Condition | None = None
    waits_for: str | None = None
    lacks: str | None = None
    built_from: MadeFrom | None = None
    inputs: RunInputs | None = None


_PLAIN = Work()


@dataclass(frozen=True, slots=True, repr=False)
class PlannedStep:
    """A model and the slices of it to make, in the order of time.

    In a plan a model has one step with all its slices. `Plan.batches` cuts that into steps that are
    reconciled in one commit each.

    Attributes:
        model: The model.
        slices: The slices to make; those of a skipped step stay as they are.
        after: The models that must have ended before it.
        blocked: Why it cannot run. Its failure is then that.
        skipped: Why there is nothing for it to do. That is not a failure.
        tally: The numbers of slices, by their states, of the range that the run is for.
        apart: Why many slices are made one by one. Without it they are made together.
        bindings: What its script may refer to, in the first of its slices.
        goes_on: Whether the batch is not the first of its model.
        again: Why the slices are restated.
        anew: Whether the table is dropped in the commit of the first batch, unless another run has
            made rows of it after the snapshot ``as_of``.
        seen: The runs that had recorded slices of the model when slices were chosen because they
            are lacking.
        as_of: The snapshot that the states of slices are at least of.
        stages: What becomes of the table before.
        ranges: Why the slices are made, where a plan was asked to tell.
        works: What is decided about single slices; nothing about the others.
        for_readers: The slices that were not requested and are made because a reader needs them.
    """

    model: Model
    slices: tuple[Slice, ...] = (WHOLE,)
    after: tuple[str, ...] = ()
    blocked: str | None = None
    skipped: Skip | None = None
    tally: Tally | None = None
    apart: str | None = None
    bindings: Bindings = field(default_factory=Bindings)
    goes_on: bool = False
    again: str | None = None
    anew: bool = False
    seen: Mapping[str, str] | None = None
    as_of: int | None = None
    stages: tuple[Stage, ...] = ()
    ranges: tuple[ReasonedRange, ...] = ()
    works: Mapping[Slice, Work] = field(default_factory=dict)
    for_readers: Mapping[Slice, NeededSlice] = field(default_factory=dict)

    def __repr__(self) -> str:
        named = f"{self.name} {self.slice}" if self.slice else self.name
        return line(self, named, f"{self.model.strategy} {self.model.target}", self.note)

    @property
    def note(self) -> str | None:
        """Return why it does not run, why it runs once more, or what becomes of its table."""
        staged = "; ".join(map(str, self.stages))
        skipped = None if self.skipped is None else str(self.skipped)
        return self.blocked or skipped or self.again or staged or None

    @property
    def fails(self) -> str | None:
        """Return why it cannot work, as far as that is known before it runs."""
        refused = (str(stage) for stage in self.stages if isinstance(stage, Refuse))
        return self.blocked or next(refused, None)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def slice(self) -> str | None:
        """Its slices for people: None for a whole table."""
        return described(self.slices)

    @property
    def rebuilds(self) -> bool:
        """Return whether the table is made from nothing, by this batch of its slices."""
        return self.anew and not self.goes_on

    @property
    def only(self) -> Slice:
        """Its one slice."""
        (slice_,) = self.slices
        return slice_

    def work(self, slice_: Slice) -> Work:
        """Return the decision about one slice.

        Args:
            slice_: A slice of the step.

        Returns:
            The decision; a plain one where nothing is decided.
        """
        return self.works.get(slice_, _PLAIN)

    @property
    def waits(self) -> dict[Slice, str]:
        """Return the slices that cannot be made yet, each with what it waits for."""
        waiting = ((slice_, self.work(slice_).waits_for) for slice_ in self.slices)
        return {slice_: missing for slice_, missing in waiting if missing is not None}

    @property
    def without(self) -> dict[Slice, str]:
        """Return the slices that are made although they lack an input, each with that."""
        lacking = ((slice_, self.work(slice_).lacks) for slice_ in self.slices)
        return {slice_: missing for slice_, missing in lacking if missing is not None}

    def conditional(self, *conditions: Condition) -> frozenset[Slice]:
        """Return the slices that are made only if the run changes something.

        Args:
            *conditions: The conditions that are meant; without any of them, all are.

        Returns:
            Those of the step's slices that have one of the conditions.
        """
        wanted = frozenset(conditions or Condition)
        own = frozenset(s for s, work in self.works.items() if work.condition in wanted)
        return own.intersection(self.slices)

    def decide(self, slices: Iterable[Slice], **changes: Any) -> PlannedStep:
        """Return the step with the same decision about slices.

        Args:
            slices: The slices.
            **changes: Fields of `Work`.

        Returns:
            The step; what else is decided about the slices stays.
        """
        plain, works = Work(**changes), dict(self.works)
        for slice_ in slices:
            work = works.get(slice_)
            works[slice_] = plain if work is None else replace(work, **changes)
        return replace(self, works=works)

    def decide_each(self, name: str, values: Mapping[Slice, object]) -> PlannedStep:
        """Return the step with a decision of their own about each of some slices.

        Args:
            name: A field of `Work`.
            values: The values of the field, by the slices.

        Returns:
            The step; what else is decided about the slices stays.
        """
        changes: dict[Slice, dict[str, Any]] = {s: {name: value} for s, value in values.items()}
        works = {slice_: replace(self.work(slice_), **of) for slice_, of in changes.items()}
        return replace(self, works={**self.works, **works})

    def divided(self, slice_: Slice, parts: Sequence[Slice]) -> PlannedStep:
        """Return the step with what it decides about a slice decided about its parts as well.

        Args:
            slice_: A slice of the step.
            parts: The slices that it is divided into.

        Returns:
            The step; its slices stay.
        """
        works, for_readers = self.works, self.for_readers
        if slice_ in works:  # the rows of the whole are not those of a part
            works = {**works, **dict.fromkeys(parts, replace(works[slice_], built_from=None))}
        if slice_ in for_readers:
            for_readers = {**for_readers, **dict.fromkeys(parts, for_readers[slice_])}
        return replace(self, works=works, for_readers=for_readers)


@dataclass(frozen=True, slots=True)
class Seen:
    """Facts that a plan was made from: the ``snapshots`` of lakes, each with its time, and the
    ``runs`` that had recorded slices of models and the ``files`` of this machine that slices read,
    by the names of these.
    """

    snapshots: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    runs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, Sequence[InputRead]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """Steps in the order of the graph. ``notices`` are worth saying before it runs.

    ``args`` are the texts of declared arguments that the request has, by name or in its payload.
    ``makers`` are the project's models by their tables, those that are not planned among them;
    ``edges`` what models need of their inputs, by their names. ``seen`` is what it was made from,
    where a plan was asked to tell, and ``changes`` what changed definitions of its models touch.
    ``retry_of`` is the run that it carries on with. ``stale`` are the slices of other definitions
    that it leaves.
    """

    steps: tuple[PlannedStep, ...]
    request: RunRequest
    args: Mapping[str, str | None] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    makers: Makers = field(default_factory=dict)
    edges: Mapping[str, Sequence[Edge]] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    changes: tuple[DefinitionChange, ...] = ()
    retry_of: str | None = None
    stale: tuple[StaleSlices, ...] = ()

    def __repr__(self) -> str:
        names = [step.name for step in self.steps]
        return line(self, f"{count(len(names), 'step')}: {listed(names)}" if names else "no steps")

    def _repr_html_(self) -> str:
        headings = "step=name slice strategy=model.strategy.name table=model.target note"
        return html(read_columns(headings), self.steps, "; ".join(self.notices))

    def slice_of_step(self) -> str:
        """The slice of its one step. Raises ArgumentError where that is not partitioned."""
        (step,) = self.steps
        if step.only == WHOLE:
            raise without_slices(step.name, self.request.partition)
        return step.only.text

    def batches(self, step: PlannedStep) -> Iterator[PlannedStep]:
        """A step of the plan, cut into steps that are run one after the other.

        They are made when they are asked for: a plan of many slices stays small.
        """
        has_inputs = any(work.inputs is not None for work in step.works.values())
        if len(step.slices) < 2 and not has_inputs:
            yield step
            return
        together = step.apart is None and step.model.by_time is None
        size = TOGETHER if together else 1
        goes_on = False
        for _, alike in groupby(step.slices, lambda slice_: repr(step.work(slice_).inputs)):
            slices = tuple(alike)
            for first in range(0, len(slices), size):
                yield replace(self.narrowed(step, slices[first : first + size]), goes_on=goes_on)
                goes_on = True

    def with_inputs(self, step: PlannedStep) -> Plan:
        """Return the plan as a batch of one of its steps sees it: with the inputs of that batch."""
        inputs = step.work(step.slices[0]).inputs
        if inputs is None:
            return self
        request = replace(self.request, fire_time=inputs.fire_time, payload=inputs.payload)
        return replace(self, args=inputs.args, request=request)

    def narrowed(self, step: PlannedStep, slices: Sequence[Slice]) -> PlannedStep:
        """The step with some of its slices only."""
        narrowed = replace(step, slices=tuple(slices))
        if step.blocked is not None:
            return narrowed
        plan = self.with_inputs(narrowed)
        bindings = bindings_of(step.model, slices[0], plan.args, plan.request)
        return replace(narrowed, bindings=bindings)

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
            end = self.request.range.last or (
                self.request.fire_time if self.request.has_fire_time else None
            )
            return str(replace(self.request.range, last=end))
        values = dict.fromkeys(step.slice for step in self.steps if step.slice is not None)
        return ", ".join(values) or None


Made = Mapping[str, Mapping[Slice, MadeFrom]]  # by the names of models
TOGETHER = 400  # slices of one job: a year of days


@dataclass(frozen=True, slots=True)
class Known:
    """Known to the catalogs, by the names of models: the states of slices; of models by time what
    is painted on their lines; and when all that was made. ``as_of`` are the snapshots of lakes that
    all this is at least of, ``destinations`` what each lake can do, by their names, ``edges`` what
    models need of their inputs, ``views`` the VIEW models that they read.

    ``made_from`` tells what slices that are there were made from, and ``same_files`` whether a
    slice reads the files that are recorded; without it no slice is known to be up to date.
    ``why_apart`` tells why slices of a model are made one by one (`model.slicing.joint`), and
    ``old_tables`` which tables of others, too old at a moment, each model reads (`freshness`).
    """

    slices: Callable[[Sequence[Model]], Mapping[str, SliceStates]] = lambda _: {}
    intervals: Callable[[Sequence[Model]], Mapping[str, IntervalHistory]] = lambda _: {}
    pasts: Callable[[Sequence[Model]], Mapping[str, BuildTimes]] = lambda _: {}
    as_of: Mapping[str, int] = field(default_factory=dict)
    destinations: Mapping[str, Capabilities] = field(default_factory=dict)
    edges: Mapping[str, Sequence[Edge]] = field(default_factory=dict)
    views: Mapping[str, Sequence[Model]] = field(default_factory=dict)
    made_from: Callable[[AsAsked, Sequence[Model]], Made] | None = None
    same_files: Callable[[Model, Bindings, Sequence[InputRead]], bool] = lambda *_: False
    why_apart: Callable[[Model], str | None] = QueryFacts().why_apart
    old_tables: Callable[[datetime], Mapping[str, Sequence[OldTable]]] = lambda _: {}

    def can_make(self, model: Model) -> bool:
        """Tell whether the destinations can do what the model needs of them."""
        known = self.destinations
        return all(need in known[lake].can for lake, need in model.needs if lake in known)


@dataclass(frozen=True)  # no slots: cached_property needs `__dict__`
class PlanningContext:
    """Values that all steps of a plan share: ``steps`` are its models, in the order of ``order``,
    that of all; ``lines`` are those of models by time, ``cascade`` what is restated with them.
    ``roots`` are the names of the models that were selected; others may be added to ``steps``.
    Nothing adds models that are ``excluded``. ``first`` are slices that are made since readers lack
    them, by the names of models.
    """

    request: RunRequest
    order: Sequence[Model]
    graph: Graph
    steps: Sequence[Model]
    args: Mapping[str, str | None]
    known: Known
    lines: Mapping[str, ModelIntervals]
    cascade: Cascade = field(default_factory=Cascade)
    roots: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    first: Mapping[str, Mapping[Slice, NeededSlice]] = field(default_factory=dict)

    @property
    def range(self) -> SliceRange:
        """Return the range of the request. Only goals of ranges ask for it."""
        assert self.request.range is not None, "the request has a range"
        return self.request.range

    def above(self, model: Model) -> Iterator[Model]:
        """The models that one reads, however far."""
        by_name = self._by_name
        return (by_name[name] for name in self.graph.upstream(model.name) if name in by_name)

    def parents(self, model: Model) -> Iterator[Model]:
        """Return the models that one reads itself.

        Args:
            model: The reader.

        Returns:
            Its inputs that models make.
        """
        by_name = self._by_name
        return (by_name[name] for name in self.graph.parents[model.name] if name in by_name)

    @cached_property
    def _by_name(self) -> Mapping[str, Model]:
        return {model.name: model for model in self.order}

    def after(self, model: Model) -> tuple[str, ...]:
        """The models of the plan that must have ended before."""
        names = self._step_names
        return tuple(name for name in self.graph.upstream(model.name) if name in names)

    @cached_property
    def _step_names(self) -> frozenset[str]:
        return frozenset(model.name for model in self.steps)


def without_slices(name: str, partition: object) -> ArgumentError:
    """The error of who asks for a slice of a table that has none."""
    return ArgumentError(
        f"{name} is not partitioned: it has no slice {partition!r}", hint="leave out the partition"
    )


def count_of(model: Model, slices: Sequence[Slice]) -> int:
    """Return how many slices these are; of intervals, how many units."""
    if model.by_time is None:
        return len(slices)
    intervals = [slice_ for slice_ in slices if isinstance(slice_, Interval)]
    return sum(1 for _ in model.by_time.units(intervals))
