"""A SELECT whose columns are not those of its table: what ``on_schema_change`` says to do.

A whole-table replace makes the table anew and needs none of this. Of the four values of
annotations.md: ``warn`` (the default) adds new columns and says so, ``sync`` also drops those that
the SELECT lacks, ``ignore`` leaves new columns out, ``fail`` fails the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import Location, SchemaMismatch
from penstock.lake.format.naming import fold

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
        parts = [f"{_list(self.added)} new"] if self.added else []
        if self.missing:
            parts.append(f"{_list(self.missing)} missing")
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class Fit:
    """What to do: columns of the SELECT to leave out, columns of the table to drop, what to say.

    ``evolves``: the table takes new columns and wider types.
    """

    leave_out: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    evolves: bool = False
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


def fit(found: Difference, policy: str, table: str, *, merges: bool = False) -> Fit:
    """Raises SchemaMismatch when the policy does not allow the difference.

    ``merges``: rows that the SELECT updates keep their values of columns that it lacks.
    """
    if policy == "warn":
        return _warn(found, table, merges=merges)
    return _POLICIES[policy](found, table)


def without(df: DataFrame, columns: Sequence[str]) -> DataFrame:
    return df.drop(*columns) if columns else df


def _warn(found: Difference, table: str, *, merges: bool) -> Fit:
    notices = []
    if found.added:
        notices.append(f"{table}: {_list(found.added)} added; NULL in the rows of earlier runs")
    if found.missing:
        now = "NULL from now on"
        if merges:
            now = "NULL in new rows; rows that are updated keep what they have"
        notices.append(f"{table}: {_list(found.missing)} missing in the SELECT: {now}")
    return Fit(evolves=True, notices=tuple(notices))


def _ignore(found: Difference, _table: str) -> Fit:
    return Fit(leave_out=found.added)


def _fail(found: Difference, table: str) -> Fit:
    if not found:
        return Fit()
    raise SchemaMismatch(
        f"the SELECT's columns are not those of {table}: {found}",
        hint="on_schema_change=fail is set: change the SELECT, or the option",
        data={"added": found.added, "missing": found.missing},
    )


def _sync(found: Difference, table: str) -> Fit:
    notices = (f"{table}: columns follow the SELECT: {found}",) if found else ()
    return Fit(drop=found.missing, evolves=True, notices=notices)


_POLICIES: Mapping[str, Callable[[Difference, str], Fit]] = {
    "ignore": _ignore,
    "fail": _fail,
    "sync": _sync,
}


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {_is(names)}"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
