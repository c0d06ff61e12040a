"""Reasons for which a run makes slices: the closed list, ranges of slices with one of them, and the
changes of definitions behind some.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from penstock.model.time.interval import Interval
from penstock.model.time.slice import Slice

PLANNED, HELD = "planned", "held"  # with `ranges.WAITING` the states of ranges


class Reason(StrEnum):
    """A reason to make a slice. docs/plans.md explains each."""

    MISSING = "missing"
    FAILED = "failed"
    BEHIND = "behind"
    CHANGED = "changed"
    RESTATED = "restated"
    FORCED = "forced"
    LATE = "late"
    NOT_OVER = "not over yet"


class Cause(NamedTuple):
    """A reason, with what says more of it: ``behind``, ``raw.events: snapshot 4, read 2``."""

    reason: Reason
    why: str | None


@dataclass(frozen=True, slots=True)
class ReasonedRange:
    """Slices of one step that follow each other, and why they are made.

    ``count`` is in slices, or units of time. ``why`` says more of the reason. ``state`` is
    ``planned``, ``waiting`` or ``held``, and ``until`` what it waits for, or who holds it. Slices
    that were not asked for are made for a ``reader``.
    """

    first: Slice
    last: Slice
    count: int
    reason: Reason
    why: str | None = None
    state: str = PLANNED
    until: str | None = None
    reader: str | None = None

    @property
    def slices(self) -> str:
        """The range for people, without its number: ``2026-01-01 to 2026-01-09``."""
        first, last = self.first, self.last
        if isinstance(first, Interval) and isinstance(last, Interval):
            return str(Interval(first.start, last.end))
        return str(first) if first == last else f"{first} to {last}"

    @property
    def because(self) -> str:
        """The reason for people: ``behind (raw/orders 2026-01-02: snapshot 41, read 37)``."""
        more = "; ".join(filter(None, (self.why, self.reader and f"for {self.reader}")))
        return f"{self.reason} ({more})" if more else str(self.reason)

    def __str__(self) -> str:
        """``2026-01-01 to 2026-01-09 missing (9)``."""
        number = f" ({self.count:,})" if self.count > 1 else ""
        return f"{self.slices} {self.because}{number}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "slices": self.slices,
            "first": str(self.first),
            "last": str(self.last),
            "count": self.count,
            "reason": self.reason.value,
            "why": self.why,
            "state": self.state,
            "until": self.until,
            "reader": self.reader,
        }


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """A model whose definition is not that of its slices: ``slices`` of them, None for a whole
    table, and its ``readers`` that would be made again with them, each with how many slices.

    ``refused`` says why it is not rebuilt, and ``left_out`` so of readers. ``parts`` are the names
    of what differs between the two definitions, where that of the slices is recorded, and ``diff``
    the difference in lines. ``rebuild`` is a command where ``--changed`` does not rebuild them.
    """

    model: str
    slices: int | None
    readers: tuple[tuple[str, int | None], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    refused: str | None = None
    parts: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()
    rebuild: str | None = None

    def __str__(self) -> str:
        """``changed: ids (query); 5 slices; readers: dn (5), fu (whole)``."""
        parts = f" ({', '.join(self.parts)})" if self.parts else ""
        said = f"changed: {self.model}{parts}; {_number(self.slices)}"
        if self.readers:
            readers = (f"{name} ({_short(number)})" for name, number in self.readers)
            said += f"; readers: {', '.join(readers)}"
        for name, why in self.left_out:
            said += f"; not {name}: {why}"
        if self.refused is not None:
            return f"{said}; not rebuilt: {self.refused}"
        return said

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "model": self.model,
            "slices": self.slices,
            "readers": [{"model": name, "slices": number} for name, number in self.readers],
            "left_out": [{"model": name, "why": why} for name, why in self.left_out],
            "refused": self.refused,
            "parts": list(self.parts),
            "diff": list(self.diff),
        }


def _number(slices: int | None) -> str:
    return "whole table" if slices is None else f"{slices:,} slice{'' if slices == 1 else 's'}"


def _short(slices: int | None) -> str:
    return "whole" if slices is None else f"{slices:,}"
