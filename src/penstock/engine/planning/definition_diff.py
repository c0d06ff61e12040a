"""Compare definitions of a model, part by part.

Each plan names the data tests that slices were not published under, so this module loads little.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial

from penstock.engine.planning.plan import count_of
from penstock.engine.planning.slice_reason import DefinitionChange
from penstock.engine.state.run_history import other_terms, parts_of
from penstock.engine.state.store import State
from penstock.model.definition.model import EXPANDED, SCRIPT, Model
from penstock.model.time.interval import interval_of
from penstock.model.time.slice import Part, Slice, moments_of, zone_of


@dataclass(frozen=True, slots=True)
class DefinitionDiff:
    """The names of the ``parts`` that differ, and the difference as ``lines`` for people."""

    parts: tuple[str, ...]
    lines: tuple[str, ...] = ()


def definition_diff(old: Mapping[str, str], new: Mapping[str, str]) -> DefinitionDiff:
    """Compare two definitions; see `Model.definition_parts`.

    Args:
        old: The parts of the definition that is recorded.
        new: The parts of the definition now.

    Returns:
        What differs.
    """
    every = (name for name in dict.fromkeys((*old, *new)) if name != SCRIPT)  # of which others are
    names = [name for name in every if old.get(name) != new.get(name)]
    names = [name for name in names if not _is_macro(name) or _other_calls(name, old, new)]
    if "query" in names:  # its macros say the same again
        names = [name for name in names if name != EXPANDED]
    lines = (line for name in names for line in _lines(name, old, new))
    told = [name for name in names if name != EXPANDED or not any(map(_is_macro, names))]
    return DefinitionDiff(tuple(told), tuple(lines))


def _is_macro(name: str) -> bool:
    return name.startswith(("macro ", "variable "))


def _other_calls(
    name: str, old: Mapping[str, str], new: Mapping[str, str]
) -> list[tuple[str, str, str]]:
    """Return the calls of a macro of which it made other text than it makes now, with both."""
    then, now = (json.loads(of.get(name, "{}")) for of in (old, new))
    both = [call for call in then if call in now]
    return [(call, then[call], now[call]) for call in both if then[call] != now[call]]


def _lines(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    if _is_macro(name):
        for call, then, now in _other_calls(name, old, new):
            yield f"{name}: {call}: {then} -> {now}"
        return
    before, after = old.get(name), new.get(name)
    if name in {"query", EXPANDED} or name.startswith("query of "):
        old_lines, new_lines = ((text or "").splitlines() for text in (before, after))
        yield from unified_diff(
            old_lines, new_lines, f"{name}, as recorded", f"{name} now", lineterm=""
        )
        return
    yield f"{name}: {_said(before)} -> {_said(after)}"


def _said(text: str | None) -> str:
    return "none" if text is None else text


def changes_of_tests(
    models: Sequence[Model], state: Callable[[Model], State | None]
) -> Iterator[DefinitionChange]:
    """Name the data tests that slices were not published under, as far as records say it.

    Such tests make no rows. A plan of a whole table says itself that it is made under them.

    Args:
        models: The models.
        state: Returns the records of a model's lake.

    Yields:
        A change for each model that has such slices.
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
