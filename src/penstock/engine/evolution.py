"""A SELECT whose columns are not those of its table: what ``on_schema_change`` says to do.

A whole-table replace makes the table anew and needs none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import Location, SchemaMismatch
from penstock.lake.naming import fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Difference:
    """Columns that only the SELECT has, and columns that only the table has."""

    added: tuple[str, ...]
    missing: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.missing)

    def __str__(self) -> str:
        parts = [f"{', '.join(self.added)} {_is(self.added)} new"] if self.added else []
        if self.missing:
            parts.append(f"{', '.join(self.missing)} {_is(self.missing)} missing")
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class Fit:
    """What to do: columns of the SELECT to leave out, and what to say."""

    drop: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def difference(selected: Sequence[str], table: Sequence[str], managed: str | None) -> Difference:
    """``managed`` is the partition column, which no SELECT has."""
    have, want = {fold(name) for name in selected}, {fold(name) for name in table}
    return Difference(
        added=tuple(name for name in selected if fold(name) not in want),
        missing=tuple(
            name
            for name in table
            if fold(name) not in have and (managed is None or fold(name) != fold(managed))
        ),
    )


def refuse_managed(columns: Sequence[str], managed: str, location: Location) -> None:
    """The partition column is the engine's to write (seeds/materialization.md)."""
    if fold(managed) in map(fold, columns):
        raise SchemaMismatch(
            f"the SELECT has a column {managed}, which Penstock writes itself",
            hint=f"leave it out, as in SELECT * EXCEPT ({managed}), or give it another name",
            location=location,
            data={"column": managed},
        )


def fit(found: Difference, policy: str, table: str) -> Fit:
    """Raises SchemaMismatch when the policy, or what the lake can do, does not allow it."""
    return _POLICIES[policy](found, table) if found else Fit()


def without(df: DataFrame, columns: Sequence[str]) -> DataFrame:
    return df.drop(*columns) if columns else df


def _warn(found: Difference, table: str) -> Fit:
    if found.added:
        raise _cannot_evolve(found, table)
    return Fit(notices=(f"{table}: {found} in the SELECT, and NULL from now on",))


def _ignore(found: Difference, _table: str) -> Fit:
    return Fit(drop=found.added)


def _fail(found: Difference, table: str) -> Fit:
    raise SchemaMismatch(
        f"the SELECT's columns are not those of {table}: {found}",
        hint="on_schema_change=fail is set: change the SELECT, or the option",
        data={"added": found.added, "missing": found.missing},
    )


def _sync(found: Difference, table: str) -> Fit:
    raise _cannot_evolve(found, table)


def _cannot_evolve(found: Difference, table: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"the SELECT's columns are not those of {table}: {found}; a table that keeps rows of other "
        "runs cannot change its columns yet",
        hint="set on_schema_change=ignore to leave new columns out, or make the table anew under "
        "another name",
        data={"added": found.added, "missing": found.missing},
    )


_POLICIES: Mapping[str, Callable[[Difference, str], Fit]] = {
    "warn": _warn,
    "ignore": _ignore,
    "fail": _fail,
    "sync": _sync,
}


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
