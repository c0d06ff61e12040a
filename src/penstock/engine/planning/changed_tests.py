"""Name data tests that slices were not published under, which each plan does: it loads little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from penstock.engine.planning.definition_diff import definition_diff
from penstock.engine.planning.plan import count_of
from penstock.engine.planning.slice_reason import DefinitionChange
from penstock.engine.state.definitions import other_terms, parts_of
from penstock.engine.state.store import State
from penstock.model.definition.model import Model
from penstock.model.time.interval import interval_of
from penstock.model.time.slice import Part, Slice, moments_of, zone_of


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
    for by_target in by_lake.values():
        records = state(next(iter(by_target.values())))
        if records is None:
            continue
        terms = {target: model.terms for target, model in by_target.items()}
        ask, none = partial(other_terms, now=terms), dict[str, tuple[str, list[str]]]()
        for target, (old_terms, texts) in records.read(ask, none).items():
            ask_parts = partial(parts_of, target=target, definition=old_terms)
            model = by_target[target]
            diff = definition_diff(records.read(ask_parts, dict[str, str]()), model.test_parts)
            if diff.parts:
                slices = [interval_of(text) or Part(text) for text in texts]
                command = _rebuild_command(model, slices)
                yield DefinitionChange(
                    model.name,
                    count_of(model, slices),
                    refused=_TESTS.format(command),
                    parts=diff.parts,
                    diff=diff.lines,
                    rebuild=command,
                )


def _rebuild_command(model: Model, slices: Sequence[Slice]) -> str:
    """Return the command that rebuilds the slices, and any slice between the first and the last."""
    moments, zone = moments_of(slices, model.partition), zone_of(model.partition)
    if moments is None:  # values of a dynamic partition have no order
        value = slices[0] if len(slices) == 1 else "VALUE (for each)"
        return f"penstock run {model.name} --partition {value}"
    start, end = (time.astimezone(zone).date() for time in (moments[0].start, moments[-1].last))
    return f"penstock run {model.name} --from {start} --to {end} --all"


_TESTS = "data tests make no rows; {} makes the slices again under them"
