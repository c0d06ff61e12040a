"""Follow a table's columns from one version of its schema to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.engine.results import ColumnInfo, SchemaVersion
from penstock.sql.identifiers import fold


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """``kind`` is ``added``, ``dropped``, ``retyped``, ``moved`` or ``described``.

    ``before`` and ``after`` are types, positions from 1, or descriptions; ``None`` where there is
    none.
    """

    kind: str
    column: str
    before: str | int | None = None
    after: str | int | None = None


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """A version with what it changed; the first adds all of its columns."""

    version: SchemaVersion
    changes: tuple[ColumnChange, ...]


def schema_changes(versions: Sequence[SchemaVersion]) -> tuple[VersionChanges, ...]:
    """Of versions from the oldest on, the same with their changes."""
    columns = [(), *(version.columns for version in versions)]
    return tuple(
        VersionChanges(version, tuple(_changes(before, after)))
        for version, (before, after) in zip(versions, pairwise(columns), strict=True)
    )


def _changes(before: Sequence[ColumnInfo], after: Sequence[ColumnInfo]) -> Iterator[ColumnChange]:
    old = {fold(column.name): column for column in before}
    new = {fold(column.name): column for column in after}
    for key, column in old.items():
        if key not in new:
            yield ColumnChange("dropped", column.name, column.type)
    for key, column in new.items():
        known = old.get(key)
        if known is None:
            yield ColumnChange("added", column.name, None, column.type)
            continue
        if known.type != column.type:
            yield ColumnChange("retyped", column.name, known.type, column.type)
        if known.comment != column.comment:
            yield ColumnChange("described", column.name, known.comment, column.comment)
    yield from _moved([key for key in old if key in new], [key for key in new if key in old], new)


def _moved(
    before: Sequence[str], after: Sequence[str], columns: dict[str, ColumnInfo]
) -> Iterator[ColumnChange]:
    """The fewest columns that stand elsewhere among those that both versions have."""
    stay = _longest_run([before.index(key) for key in after])
    for place, key in enumerate(after):
        if before.index(key) not in stay:
            yield ColumnChange("moved", columns[key].name, before.index(key) + 1, place + 1)


def _longest_run(places: Sequence[int]) -> frozenset[int]:
    """The longest part of ``places`` that rises, in order; the others have moved."""
    runs: list[tuple[int, ...]] = [()]
    for place in places:
        lower = [run for run in runs if not run or run[-1] < place]
        runs.append((*max(lower, key=len), place))
    longest: tuple[int, ...] = max(runs, key=len)
    return frozenset(longest)
