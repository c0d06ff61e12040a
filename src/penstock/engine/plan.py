"""A run as a value: which steps, for which slice, after which others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.engine.request import RunRequest
from penstock.engine.selection import select_steps
from penstock.engine.strategies.registry import STRATEGIES
from penstock.errors import ArgumentError, Location, PartitionError
from penstock.model import arguments
from penstock.model.constants import Bindings
from penstock.model.file_path import path_of
from penstock.model.graph import Graph
from penstock.model.model import Model
from penstock.model.not_taken import FIRST_MODEL
from penstock.model.partition import resolve, validate


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step. ``slice`` is None for a whole table.

    ``after`` are the planned steps that must have succeeded before it. ``bindings`` are what its
    script may refer to. ``blocked`` says why it cannot run; its failure is then that.
    """

    model: Model
    slice: str | None
    after: tuple[str, ...]
    bindings: Bindings = field(default_factory=Bindings)
    blocked: str | None = None

    @property
    def name(self) -> str:
        return self.model.name


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order of the graph. ``notices`` are worth saying before it runs."""

    steps: tuple[PlannedStep, ...]
    partition: str | None
    request: RunRequest
    notices: tuple[str, ...] = ()


def make_plan(models: Mapping[str, Model], graph: Graph, request: RunRequest) -> Plan:
    """Raises ArgumentError and PartitionError: what is wrong is said before anything runs."""
    if not models:
        raise ArgumentError("there is no model to run", hint=FIRST_MODEL)
    order = graph.order()
    chosen = select_steps(request.select, order, graph.upstream, graph.downstream)
    steps = [models[name] for name in order if name in chosen]
    _check_arguments(models.values(), request.args)
    partition, notices = _partition(steps, request)
    if request.full_refresh:
        notices = (*notices, *_refreshed(steps, request))
    return Plan(
        steps=tuple(_step(model, graph, chosen, partition, request) for model in steps),
        partition=partition,
        request=request,
        notices=notices,
    )


def _refreshed(steps: Sequence[Model], request: RunRequest) -> Iterator[str]:
    """What a full refresh drops that the run does not make again. Raises ArgumentError."""
    if not request.select:
        raise ArgumentError(
            "a full refresh drops what is there: it is for the models that you name",
            hint="for example: penstock run MODEL --full-refresh",
        )
    for model in steps:
        if model.partition is not None:
            yield f"{model.name}: full refresh drops every slice and makes this run's only"
        elif model.strategy in ("append", "merge"):
            yield f"{model.name}: full refresh leaves only what the SELECT returns now"


def _check_arguments(models: Iterable[Model], given: Mapping[str, str]) -> None:
    """Every name must be some script's; the partition has a way of its own, or it and the slice
    that is written could differ."""
    if arguments.PARTITION in given:
        raise ArgumentError(
            "the partition is no argument", hint="give it as the partition: --partition VALUE"
        )
    declared = {one.name: one for model in models for one in model.query.arguments}
    declared.pop(arguments.PARTITION, None)
    arguments.unknown(given, list(declared.values()))


def _partition(steps: list[Model], request: RunRequest) -> tuple[str | None, tuple[str, ...]]:
    """Resolved once, by the topmost partitioned step; all others must accept the value.

    (seeds/partitioned-pipelines.md, "How the value is resolved".)
    """
    partitioned = [model for model in steps if model.partition is not None]
    if not partitioned:
        if request.partition is not None:
            return request.partition, (
                "no selected step is partitioned: --partition has no effect",
            )
        return None, ()
    top = partitioned[0]
    assert top.partition is not None
    try:
        resolved = resolve(
            top.partition,
            explicit=request.partition,
            fire_time=request.fire_time,
            payload=request.payload,
        )
        if resolved.value is not None:
            for model in partitioned[1:]:
                top = model
                assert model.partition is not None
                validate(model.partition, resolved.value)
    except PartitionError as error:
        raise _placed(error, top) from None
    notices = (f"{top.name}: {resolved.warning}",) if resolved.warning else ()
    return resolved.value, notices


def _placed(error: PartitionError, model: Model) -> PartitionError:
    place = model.annotations.places.get("partitioned") or Location(model.path)
    return PartitionError(
        error.message, hint=error.hint, location=error.location or place, data=error.data
    )


def _step(
    model: Model,
    graph: Graph,
    chosen: frozenset[str],
    partition: str | None,
    request: RunRequest,
) -> PlannedStep:
    value = partition if model.partition is not None else None
    blocked = _why_blocked(model, value)
    bound = {} if blocked else arguments.bind(model.query.arguments, request.args, partition=value)
    bindings = Bindings(partition=value, arguments=bound)
    if not blocked:
        for source in model.query.files:
            path_of(source, bindings, model.query.arguments)  # refuses it before anything runs
    return PlannedStep(
        model=model,
        slice=value,
        after=tuple(name for name in graph.upstream(model.name) if name in chosen),
        bindings=bindings,
        blocked=blocked,
    )


def _why_blocked(model: Model, value: str | None) -> str | None:
    if model.strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        return f"the strategy {model.strategy} is not there yet; there are {known}"
    if model.partition is not None and value is None:
        return "the run has no partition: give one with --partition"
    return None
