"""Descriptions of a model's table and columns, as comments of the table, which DuckDB shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.model.definition.model import Model
from penstock.sql.identifiers import fold

if TYPE_CHECKING:
    from penstock.destinations.destination import StagedTable


def describe(table: StagedTable, model: Model) -> None:
    """Stage the comments that the model gives and the table does not have yet.

    A comment on what the model does not describe stays as a user wrote it; what it says of
    other columns is left out (`undescribable`).
    """
    if model.about.description is None and not model.about.column_descriptions:
        return
    own, columns = table.comments()
    if model.about.description not in (None, own):
        table.comment(model.about.description)
    names = {fold(name): name for name in table.schema.names}
    for column, text in model.about.column_descriptions:
        name = names.get(fold(column))
        if name is not None and columns.get(name) != text:
            table.comment(text, name)


def undescribable(model: Model, columns: Iterable[str]) -> str | None:
    """Find faults of the columns that the model describes, where its table has these."""
    known = set(map(fold, columns))
    others = [name for name, _ in model.about.column_descriptions if fold(name) not in known]
    if not others:
        return None
    return f"column_descriptions describes {', '.join(others)}, which the table does not have"
