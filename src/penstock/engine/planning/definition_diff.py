"""Compare two definitions of a model, part by part. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff

from penstock.model.definition.model import SCRIPT

_MADE = "query with its macros"


@dataclass(frozen=True, slots=True)
class DefinitionDiff:
    """The names of the ``parts`` that differ, and the difference as ``lines`` for people."""

    parts: tuple[str, ...]
    lines: tuple[str, ...] = ()


def definition_diff(old: Mapping[str, str], new: Mapping[str, str]) -> DefinitionDiff:
    """Return what differs between two definitions; see `Model.definition_parts`."""
    every = (name for name in dict.fromkeys((*old, *new)) if name != SCRIPT)  # of which others are
    names = [name for name in every if old.get(name) != new.get(name)]
    if "query" in names:  # its macros say the same again
        names = [name for name in names if name != _MADE]
    lines = (line for name in names for line in _lines(name, old.get(name), new.get(name)))
    return DefinitionDiff(tuple(names), tuple(lines))


def _lines(name: str, old: str | None, new: str | None) -> Iterator[str]:
    if name in {"query", _MADE} or name.startswith("query of "):
        before, after = (text.splitlines() if text else [] for text in (old, new))
        yield from unified_diff(before, after, f"{name}, as recorded", f"{name} now", lineterm="")
        return
    yield f"{name}: {_said(old)} -> {_said(new)}"


def _said(text: str | None) -> str:
    return "none" if text is None else text
