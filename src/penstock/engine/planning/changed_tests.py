"""Name data tests that slices were not published under, which each plan does: it loads little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from penstock.engine.planning.definition_diff import definition_diff
from penstock.engine.planning.slice_reason import DefinitionChange
from penstock.engine.state.definitions import other_terms, parts_of
from penstock.engine.state.store import State
from penstock.model.definition.model import Model


def changes_of_tests(
    models: Sequence[Model], state: Callable[[Model], State | None]
) -> Iterator[DefinitionChange]:
    """Yield data tests that slices were not published under, as far as records say it. They make no
    rows; of a whole table the plan says itself that it is made under them.
    """
    by_lake: dict[str, dict[str, Model]] = {}
    for model in models:
        if model.slicing:
            by_lake.setdefault(model.target.lake, {})[model.target.qualified] = model
    for of in by_lake.values():
        known = state(next(iter(of.values())))
        if known is None:
            continue
        now = {target: model.terms for target, model in of.items()}
        none = dict[str, tuple[str, int]]()
        for target, (terms, number) in known.read(partial(other_terms, now=now), none).items():
            old = known.read(partial(parts_of, target=target, definition=terms), dict[str, str]())
            diff = definition_diff(old, of[target].test_parts)
            if diff.parts:
                yield DefinitionChange(
                    of[target].name, number, refused=_TESTS, parts=diff.parts, diff=diff.lines
                )


_TESTS = "data tests make no rows; --all makes the slices again under them"
