"""Rows that the format does not allow, found before they become a wrong result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row

from penstock.errors import CatalogCorrupt


def check(
    row: Row[*tuple[Any, ...]], what: str, *, numbers: Sequence[str] = (), texts: Sequence[str] = ()
) -> None:
    """Raise CatalogCorrupt unless each of ``numbers`` is an integer and each of ``texts`` a text.

    ``what`` names the row. SQLite keeps any value in any column.
    """
    kinds = ((numbers, int, "a number"), (texts, str, "a text"))
    for names, kind, called in kinds:
        for name in names:
            value = getattr(row, name)
            if not isinstance(value, kind):
                raise damaged(f"{what} has {_shown(value)} as its {name}, where {called} must be")


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
