"""Reasons for which a run makes slices or skips a step.

These are the closed list, ranges of slices with one reason, and changes of definitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import Any, NamedTuple

from penstock.model.time.interval import Interval
from penstock.model.time.slice import Slice
from penstock.states import StepState

PLANNED, HELD = "planned", "held"  # with `ranges.WAITING` the states of ranges
UP_TO_DATE = "up to date"
NOTHING_TO_DO = "nothing to do"


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
class RunInputs:
    """Arguments of a run, as texts, its time and its payload: all but its slices."""

    args: Mapping[str, str | None]
    fire_time: datetime
    payload: Mapping[str, Any] | None = None


class SkipKind(Enum):
    """A kind of reason for which a step builds nothing."""

    CURRENT = auto()  # a run would build each of its slices as it is
    IDLE = auto()  # nothing of it is due
    EARLY = auto()  # its slice is before a start
    NOT_NEEDED = auto()  # no selected model needs anything of it
    UNTOUCHED = auto()  # no change of a definition reaches it
    LEFT_OUT = auto()  # it cannot be rebuilt with what it reads


@dataclass(frozen=True, slots=True)
class Skip:
    """The reason for which a step builds nothing. It is not a failure.

    Attributes:
        kind: The kind of the reason.
        reason: The reason for people.
        detail: More of the reason, such as the number of slices in each state.
        outdated_input: An input that is not up to date, with its state.
    """

    kind: SkipKind
    reason: str
    detail: str | None = None
    outdated_input: str | None = None

    def __str__(self) -> str:
        is_outdated = self.reason == UP_TO_DATE and self.outdated_input is not None
        reason = NOTHING_TO_DO if is_outdated else self.reason
        text = reason if self.detail is None else f"{reason}: {self.detail}"
        return text if self.outdated_input is None else f"{text}; {self.outdated_input}"

    @property
    def ends_as(self) -> StepState:
        """Return the state in which the slices of the step end."""
        is_current = self.kind is SkipKind.CURRENT
        return StepState.UNCHANGED if is_current else StepState.SKIPPED


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
