"""What the rows of a small table must be after each operation, in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

COLUMNS = ("k", "p", "x", "s")
DDL = "k INT, p STRING, x DOUBLE, s STRING"

Row = tuple[int | None, str | None, float | None, str | None]
State = tuple[Row, ...]


@dataclass(frozen=True)
class Append:
    rows: State


@dataclass(frozen=True)
class Replace:
    rows: State


@dataclass(frozen=True)
class ReplaceSlice:
    value: str | None
    rows: State


@dataclass(frozen=True)
class Merge:
    """``value`` is the slice if ``sliced`` is set."""

    rows: State
    sliced: bool = False
    value: str | None = None


@dataclass(frozen=True)
class DuckDelete:
    key: int


@dataclass(frozen=True)
class DuckUpdate:
    key: int
    text: str


Operation = Append | Replace | ReplaceSlice | Merge | DuckDelete | DuckUpdate


def after(state: State, operation: Operation) -> State:
    """The rows that ``operation`` leaves."""
    match operation:
        case Append(rows):
            return (*state, *rows)
        case Replace(rows):
            return rows
        case ReplaceSlice(value, rows):
            return (*(row for row in state if row[1] != value), *rows)
        case Merge(rows, sliced, value):
            keys = {row[0] for row in rows}
            remaining = (r for r in state if r[0] not in keys or (sliced and r[1] != value))
            return (*remaining, *rows)
        case DuckDelete(key):
            return tuple(row for row in state if row[0] != key)
        case DuckUpdate(key, text):
            return tuple((*r[:3], text) if r[0] == key else r for r in state)


def bag(rows: Sequence[Row]) -> Counter[str]:
    """Rows as a set with repetitions, in which NaN equals itself."""
    return Counter(repr(row) for row in rows)


def single_keys(state: State) -> set[int]:
    """Keys of one row each."""
    counts = Counter(row[0] for row in state)
    return {key for key, count in counts.items() if count == 1 and key is not None}
