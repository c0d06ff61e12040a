"""Compare the rows of a query with those that were expected, in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CellDifference:
    column: str
    expected: Any
    actual: Any


@dataclass(frozen=True, slots=True)
class RowDifference:
    """``expected`` is ``None`` for a row too many, ``actual`` for a missing one; ``number`` is the
    expected row's, from 1. ``cells`` are those that differ where both are there.
    """

    number: int | None
    expected: Row | None
    actual: Row | None
    cells: tuple[CellDifference, ...] = ()


def differences(
    expected: Sequence[Row],
    actual: Sequence[Row],
    columns: Sequence[str],
    same: Callable[[Any, Any], bool],
) -> tuple[RowDifference, ...]:
    """Return what is missing, too many, or not the same: nothing where the rows are the same in any
    order.

    Rows that are not the same are paired where they share at least half of the columns, the most
    alike first.
    """
    missing = list(enumerate(expected, start=1))
    extra = list(actual)
    for item in list(missing):
        equal = (row for row in extra if _alike(item[1], row, columns, same) == len(columns))
        match = next(equal, None)
        if match is not None:
            missing.remove(item)
            extra.remove(match)
    pairs = sorted(
        (
            (-_alike(row, other, columns, same), number, at)
            for number, row in missing
            for at, other in enumerate(extra)
        ),
    )
    rows, found = dict(missing), []
    used: set[int] = set()
    for alike, number, at in pairs:
        if -2 * alike >= len(columns) and number in rows and at not in used:
            found.append(_cells(number, rows.pop(number), extra[at], columns, same))
            used.add(at)
    found += [RowDifference(number, row, None) for number, row in rows.items()]
    found.sort(key=lambda difference: difference.number or 0)
    found += [RowDifference(None, None, row) for at, row in enumerate(extra) if at not in used]
    return tuple(found)


def _alike(a: Row, b: Row, columns: Sequence[str], same: Callable[[Any, Any], bool]) -> int:
    return sum(same(a.get(name), b.get(name)) for name in columns)


def _cells(
    number: int, a: Row, b: Row, columns: Sequence[str], same: Callable[[Any, Any], bool]
) -> RowDifference:
    cells = (
        CellDifference(name, a.get(name), b.get(name))
        for name in columns
        if not same(a.get(name), b.get(name))
    )
    return RowDifference(number, a, b, tuple(cells))
