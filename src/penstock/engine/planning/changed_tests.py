"""Name data tests that slices were not published under, which each plan does: it loads little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.engine.planning.definition_diff import DefinitionDiff, definition_diff
from penstock.engine.planning.plan import count_of
from penstock.engine.planning.slice_reason import DefinitionChange
from penstock.engine.results import StaleSlices
from penstock.engine.state.definitions import other_terms, parts_of
from penstock.engine.state.store import State
from penstock.model.definition.model import Model
from penstock.model.time.interval import interval_of
from penstock.model.time.slice import Part, Slice, moments_of, zone_of

States = Callable[[Model], State | None]  # the records of a model's lake


def changes_of_tests(models: Sequence[Model], state: States) -> Iterator[DefinitionChange]:
    """Yield data tests that slices were not published under, as far as records say it. They make no
    rows; of a whole table the plan says itself that it is made under them.
    """
    for each in _untested(models, state):
        refused = f"data tests make no rows; {each.command} makes the slices again under them"
        name, diff = each.model.name, each.diff
        yield DefinitionChange(
            name, each.number, refused=refused, parts=diff.parts, diff=diff.lines
        )


def left_untested(models: Sequence[Model], state: States) -> tuple[StaleSlices, ...]:
    """Count the slices that `changes_of_tests` yields, with the commands that rebuild them."""
    found = _untested(models, state)
    return tuple(StaleSlices(each.model.name, each.number, each.command) for each in found)


@dataclass(frozen=True, slots=True)
class _Untested:
    """Slices of a model that were published under other data tests, and what differs."""

    model: Model
    slices: Sequence[Slice]
    diff: DefinitionDiff

    @property
    def number(self) -> int:
        return count_of(self.model, self.slices)

    @property
    def command(self) -> str:
        """The command that makes all of them again, and others only between them."""
        spec = self.model.partition
        moments = moments_of(self.slices, spec)
        if moments is None:  # values of a dynamic partition have no order
            return f"penstock run {self.model.name} --partition {self.slices[0]}"
        zone = zone_of(spec)
        first, last = moments[0].start.astimezone(zone), moments[-1].last.astimezone(zone)
        return f"penstock run {self.model.name} --from {first:%Y-%m-%d} --to {last:%Y-%m-%d} --all"


def _untested(models: Sequence[Model], state: States) -> Iterator[_Untested]:
    by_lake: dict[str, dict[str, Model]] = {}
    for model in models:
        if model.slicing:
            by_lake.setdefault(model.target.lake, {})[model.target.qualified] = model
    for of in by_lake.values():
        known = state(next(iter(of.values())))
        if known is None:
            continue
        now = {target: model.terms for target, model in of.items()}
        none = dict[str, tuple[str, list[str]]]()
        for target, (terms, texts) in known.read(partial(other_terms, now=now), none).items():
            old = known.read(partial(parts_of, target=target, definition=terms), dict[str, str]())
            diff = definition_diff(old, of[target].test_parts)
            if diff.parts:
                slices = [interval_of(text) or Part(text) for text in texts]
                yield _Untested(of[target], slices, diff)
