"""Decide what becomes of the columns of a table where a SELECT has others: by the model's
`SchemaChange`. A whole-table replace rebuilds its table, and needs none of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.errors import SchemaMismatch
from penstock.model.script.declaration import SchemaChange
from penstock.sql.identifiers import fold


@dataclass(frozen=True, slots=True)
class Difference:
    """Columns that only the SELECT has, and columns that only the table has."""

    added: tuple[str, ...]
    missing: tuple[str, ...]

    def with_fields(self, added: Sequence[str], missing: Sequence[str]) -> Difference:
        """Return the difference with fields of structs, by their paths: ``addr.zip``."""
        return Difference((*self.added, *added), (*self.missing, *missing))

    def __bool__(self) -> bool:
        return bool(self.added or self.missing)

    def __str__(self) -> str:
        parts = [f"{_list(self.added)} new"] if self.added else []
        if self.missing:
            parts.append(f"{_list(self.missing)} missing")
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class Fit:
    """Columns of the SELECT to leave out, columns of the table to drop, what to say.

    ``evolves``: the table takes new columns and wider types.
    """

    leave_out: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    evolves: bool = False
    notices: tuple[str, ...] = ()


def difference(
    selected: Sequence[str], table: Sequence[str], managed: Sequence[str] = ()
) -> Difference:
    """``managed`` are columns that the engine writes and no SELECT has."""
    have, want = {fold(name) for name in selected}, {fold(name) for name in table}
    have |= set(map(fold, managed))
    return Difference(
        added=tuple(name for name in selected if fold(name) not in want),
        missing=tuple(name for name in table if fold(name) not in have),
    )


def fit_columns(
    columns: Difference, change: SchemaChange, table: str, *, merges: bool = False
) -> Fit:
    """Raises SchemaMismatch when the model does not allow the difference.

    ``merges``: rows that the SELECT updates keep their values of columns that it lacks.
    """
    _refuse_columns(columns, change, table)
    adds, drops = change.added in _ACTS, change.missing in _ACTS
    drop = columns.missing if drops else ()
    return Fit(
        leave_out=() if adds else columns.added,
        drop=drop,
        evolves=adds or bool(drop),
        notices=tuple(_column_notices(columns, change, table, merges=merges)),
    )


_ACTS = ("allow", "warn")
_MISSING = (
    "return it again; or write on_schema_change=sync in a header, on_destructive_change allow in "
    "MODEL (...), and the table drops it; or on_schema_change=warn, on_destructive_change ignore, "
    "and it is NULL in the rows of later runs"
)
_ADDED = (
    "leave it out; or write on_schema_change=sync in a header, on_additive_change allow in "
    "MODEL (...), and the table gets it"
)


def _refuse_columns(columns: Difference, change: SchemaChange, table: str) -> None:
    added = columns.added if change.added == "error" else ()
    missing = columns.missing if change.missing == "error" else ()
    refused = Difference(added, missing)
    if refused:
        raise SchemaMismatch(
            f"the SELECT's columns are not those of {table}: {refused}",
            hint=_MISSING if missing else _ADDED,
            data={"added": added, "missing": missing},
        )


def _column_notices(
    columns: Difference, change: SchemaChange, table: str, *, merges: bool
) -> Iterator[str]:
    if columns.added and change.added == "warn":
        yield f"{table}: {_list(columns.added)} added; NULL in the rows of earlier runs"
    if columns.missing and change.missing == "warn":
        yield f"{table}: {_list(columns.missing)} dropped: the SELECT lacks {_it(columns.missing)}"
    if columns.missing and change.missing == "keep":
        now = "NULL from now on"
        if merges and not any("." in name for name in columns.missing):
            now = "NULL in new rows; rows that are updated keep what they have"
        yield f"{table}: {_list(columns.missing)} missing in the SELECT: {now}"


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {_is(names)}"


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"
