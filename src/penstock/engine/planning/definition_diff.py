"""Compare two definitions of a model, part by part. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff

from penstock.model.definition.model import EXPANDED, SCRIPT


@dataclass(frozen=True, slots=True)
class DefinitionDiff:
    """The names of the ``parts`` that differ, and the difference as ``lines`` for people."""

    parts: tuple[str, ...]
    lines: tuple[str, ...] = ()


def definition_diff(old: Mapping[str, str], new: Mapping[str, str]) -> DefinitionDiff:
    """Return what differs between two definitions; see `Model.definition_parts`."""
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
