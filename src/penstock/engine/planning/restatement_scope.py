"""The scope of a restatement: of a model itself, and of what reads it, however far. Pure.

A wave begins at a model, when its ``auto_restatement_cron`` was due or because a user asked. It
continues to those who read what was made again, and is about what was made before the wave was due.
So the next run continues one that was interrupted, and nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from penstock.engine.planning.intervals import IntervalHistory
from penstock.engine.planning.ranges import REBUILD
from penstock.model.definition.graph import Edges
from penstock.model.definition.model import Model
from penstock.model.time.interval import Interval, Intervals, intersect, union
from penstock.model.time.partition import PartitionSpec
from penstock.model.time.slice import WHOLE, Part, Slice, in_time, meets, moments_of
from penstock.model.values.strategy import Restate


@dataclass(frozen=True, slots=True)
class BuildTimes:
    """The times of a table: ``built`` from nothing, and its slices: those of a model by time
    ``painted``, those of a partitioned model by their values.
    """

    built: datetime | None = None
    painted: IntervalHistory = field(default_factory=IntervalHistory)
    parts: tuple[tuple[Part, datetime], ...] = ()


@dataclass(frozen=True, slots=True)
class RestatementScope:
    """``why``, for people; what was made before ``due`` is made again, as far as it meets
    ``scope``, slices of a model with the `partitioned` line ``spec``. ``now``: by this very plan.
    """

    why: str
    due: datetime
    scope: tuple[Slice, ...]
    spec: PartitionSpec | None = None
    now: bool = False


@dataclass(frozen=True, slots=True)
class ModelRestatement:
    """The part of a model to rebuild; ``anew``: its table, from nothing."""

    why: str
    slices: tuple[Slice, ...]
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Cascade:
    """By the names of models: what is made again, why others that it reaches are left out, and the
    waves that continue to readers.
    """

    again: Mapping[str, ModelRestatement] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    passed: Mapping[str, tuple[RestatementScope, ...]] = field(default_factory=dict)


def why_not(model: Model) -> tuple[str, str, str] | None:
    """Return why a model is not restated, what to do instead, and where it says so."""
    if model.disable_restatement:
        hint = "write disable_restatement false in its kind"
        said = "" if "disable_restatement" in model.places else ", as its kind has it by default"
        return f"disable_restatement is true{said}", hint, "disable_restatement"
    reason = model.strategy.irreplaceable
    if reason is not None and model.disable_restatement is None:
        if model.partition is not None:  # a full refresh would drop all other slices
            hint = f"for each slice: penstock drop {model.name} --partition SLICE, then run again"
            return reason, hint, "target"
        return reason, f"to start it over: penstock run {model.name} --full-refresh", "target"
    return None


def why_kept(model: Model) -> str | None:
    """Return why no run rebuilds the stale slices of a model, with what to do instead; None where
    a run of what has changed rebuilds them.
    """
    why = why_not(model)
    if why is None:
        return None
    then = f", then {REBUILD}" if model.disable_restatement else ""
    return f"{why[0]}; {why[1]}{then}"


def rebuilds(model: Model) -> bool:
    """Return whether its restatement rebuilds the whole table."""
    by_intervals = model.strategy.restate is Restate.INTERVALS and model.by_time is not None
    rebuilt = model.strategy.restate is not Restate.SLICES and not by_intervals
    return rebuilt and model.partition is None


def cascade(
    models: Sequence[Model],
    parents: Edges,
    planned: Collection[str],
    pasts: Mapping[str, BuildTimes],
    *,
    first: Mapping[str, RestatementScope] = MappingProxyType({}),
    begun: Mapping[str, tuple[RestatementScope, ...]] = MappingProxyType({}),
) -> Cascade:
    """``models`` are in the order of the graph; a run makes those that are ``planned``. ``first``
    are the waves that begin at a model, by its name, and ``begun`` those that have gone on from one
    which is not among ``models``.
    """
    passed = dict(begun)
    again: dict[str, ModelRestatement] = {}
    left_out: dict[str, str] = {}
    for model in models:
        name = model.name
        own = [first[name]] if name in first else []
        above = [wave for parent in parents.get(name, ()) for wave in passed.get(parent, ())]
        waves = list(dict.fromkeys([*own, *above]))
        refusal = None if own else why_not(model)
        if refusal is not None:
            if name in planned and any(wave.now for wave in waves):
                left_out[name] = refusal[0]
            continue
        on: list[RestatementScope] = []
        for wave in waves:
            since, before = _reached(model, pasts.get(name, BuildTimes()), wave)
            if name not in planned:
                before = ()
                since = () if _waits(model, pasts.get(name, BuildTimes()), wave) else since
            if before:
                known = again.get(name)
                slices = together(*(known.slices if known else ()), *before)
                why = known.why if known else wave.why
                again[name] = ModelRestatement(why, slices, anew=rebuilds(model))
            if since or before:
                on.append(_passed_on(model, wave, together(*since, *before), now=bool(before)))
        passed[name] = tuple(on)
    return Cascade(again, left_out, passed)


def _is_made_each_time(model: Model) -> bool:
    """Return whether a run of it leaves nothing of what was there, or there is nothing."""
    return model.strategy.leaves_nothing and model.partition is None


def _waits(model: Model, past: BuildTimes, wave: RestatementScope) -> bool:
    """Return whether a table that is replaced by each run has not been since the wave was due."""
    is_late = past.built is None or past.built < wave.due
    return model.replaces_table and is_late


def _passed_on(
    model: Model, wave: RestatementScope, scope: tuple[Slice, ...], *, now: bool
) -> RestatementScope:
    if _is_made_each_time(model):
        return wave
    return replace(wave, scope=scope, spec=model.partition, now=wave.now or now)


def _reached(
    model: Model, past: BuildTimes, wave: RestatementScope
) -> tuple[tuple[Slice, ...], tuple[Slice, ...]]:
    """The slices that a wave is about: those made since it was due, and those made before."""
    if not wave.scope:
        return (), ()
    if _is_made_each_time(model):
        return wave.scope, ()
    if rebuilds(model):
        if past.built is None:
            return (), ()
        return ((), (WHOLE,)) if past.built < wave.due else ((WHOLE,), ())
    if model.by_time is not None:
        within, by_time = moments_of(wave.scope, wave.spec), model.by_time

        def clipped(intervals: Intervals) -> Intervals:
            whole = by_time.whole(intervals)
            return whole if within is None else intersect(whole, by_time.whole(within))

        made = past.painted
        return clipped(made.since(wave.due)), clipped(made.before(wave.due))
    needs = meets(model.partition, wave.scope, wave.spec)
    parts = [(part, at < wave.due) for part, at in past.parts if needs(part)]
    return (
        tuple(part for part, is_before in parts if not is_before),
        tuple(part for part, is_before in parts if is_before),
    )


def together(*slices: Slice, spec: PartitionSpec | None = None) -> tuple[Slice, ...]:
    """Slices of one model, each once and in the order of time; without the ``spec`` of partitions
    in that of their values.
    """
    if WHOLE in slices:
        return (WHOLE,)
    intervals = [each for each in slices if isinstance(each, Interval)]
    parts = {each.value: each for each in slices if isinstance(each, Part)}
    return (*union(intervals), *(parts[value] for value in sorted(parts, key=in_time(spec))))


def by_cron(
    models: Iterable[Model], pasts: Mapping[str, BuildTimes], now: datetime
) -> dict[str, RestatementScope]:
    """The waves of ``auto_restatement_cron``, as it was due last."""
    waves: dict[str, RestatementScope] = {}
    for model in models:
        auto = model.auto_restatement
        if auto is None:
            continue
        due, scope = auto.due(now), tuple[Slice, ...]((WHOLE,))
        if model.by_time is not None and not rebuilds(model):
            painted = pasts.get(model.name, BuildTimes()).painted
            scope = auto.window(painted.made, model.by_time.unit)
        why = f"auto_restatement_cron '{auto.cron}' of {model.name} was due {due:%Y-%m-%d %H:%M}"
        waves[model.name] = RestatementScope(why, due, scope)
    return waves
