"""Rows that the format does not allow, found before they become a wrong result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Row
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from penstock.errors import CatalogCorrupt

Record = Row[*tuple[Any, ...]]

_NUMBER: frozenset[type] = frozenset({int})
_OR_NULL = _NUMBER | {type(None)}


class NoNumber(FunctionElement[bool]):
    """Test that a BIGINT is not a number: NULL, or on SQLite, which stores any value, text."""

    type = Boolean()
    inherit_cache = True
    name = "no_number"

    def __init__(self, column: ColumnElement[Any]) -> None:
        super().__init__(column)


@compiles(NoNumber)
def _is_null(element: NoNumber, compiler: SQLCompiler, **kw: Any) -> str:
    return f"({compiler.process(*element.clauses, **kw)} IS NULL)"


@compiles(NoNumber, "sqlite")
def _is_no_integer(element: NoNumber, compiler: SQLCompiler, **kw: Any) -> str:
    return f"(typeof({compiler.process(*element.clauses, **kw)}) <> 'integer')"


def check(
    row: Record, what: str, *, numbers: Sequence[str] = (), texts: Sequence[str] = ()
) -> None:
    """Raise CatalogCorrupt unless each of ``numbers`` is an integer and each of ``texts`` a text.

    ``what`` names the row. SQLite stores any value in any column.
    """
    kinds = ((numbers, int, "a number"), (texts, str, "a text"))
    for names, kind, called in kinds:
        for name in names:
            value = getattr(row, name)
            if not isinstance(value, kind):
                raise damaged(f"{what} has {_shown(value)} as its {name}, where {called} must be")


def column_of(rows: Sequence[Record], name: str) -> list[Any]:
    """A column of all rows: for 100,000 rows, reading columns is three times as fast."""
    at = rows[0]._fields.index(name) if rows else 0
    return [row[at] for row in rows]


def check_counts(
    rows: Sequence[Record],
    what: Callable[[Record], str],
    *,
    numbers: Sequence[str] = (),
    optional: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> None:
    """Raise CatalogCorrupt unless ``numbers`` are integers and not negative; ``optional`` or NULL.

    For many rows: column by column, and ``what`` names a row only when it is damaged. ``labels``
    has what the catalog calls columns that have other names in the rows.
    """
    for names, kinds in ((numbers, _NUMBER), (optional, _OR_NULL)):
        for name in names:
            values = column_of(rows, name)
            bad = set(map(type, values)) - kinds
            if not bad and min(filter(None, values), default=0) >= 0:
                continue
            row = next(r for r in rows if not _is_count(getattr(r, name), kinds))
            value, called = _shown(getattr(row, name)), (labels or {}).get(name, name)
            raise damaged(f"{what(row)} has {value} as its {called}, where a number must be")


def _is_count(value: Any, kinds: frozenset[type]) -> bool:
    return type(value) in kinds and (value is None or value >= 0)


def check_begin(rows: Iterable[Record], table: str, key: str) -> None:
    """Raise CatalogCorrupt for a row of `visible` that does not say when it began.

    ``key`` is the column by which the row is named.
    """
    for row in rows:
        if not isinstance(row.begin_snapshot, int):
            check(row, f"row {getattr(row, key)} of ducklake_{table}", numbers=("begin_snapshot",))


def check_column(
    values: Sequence[Any], table: str, name: str, *, optional: bool = False
) -> Sequence[Any]:
    """``values`` of a column of ``table``.

    Raises CatalogCorrupt unless all are integers, or NULL where that may be.
    """
    kinds = _OR_NULL if optional else _NUMBER
    if set(map(type, values)) - kinds:
        bad = next(value for value in values if type(value) not in kinds)
        raise damaged(f"{table} has {_shown(bad)} as a {name}, where a number must be")
    return values


def check_unique(names: Iterable[str], what: str) -> None:
    """Raise CatalogCorrupt when two of ``names`` are the same; letter case counts."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise damaged(f"{what} {name!r} is there twice at one snapshot")
        seen.add(name)


def damaged(what: str) -> CatalogCorrupt:
    return CatalogCorrupt(
        f"the catalog is damaged: {what}", hint="restore the catalog from a backup"
    )


def _shown(value: Any) -> str:
    return "NULL" if value is None else repr(value)
