"""Columns of a step: what the state keeps of them, and the one name that a SELECT may not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.engine.resolve import query_start
from penstock.engine.results import ColumnInfo
from penstock.errors import SchemaMismatch
from penstock.lake.naming import fold
from penstock.lake.schema import type_text
from penstock.model.model import Model

if TYPE_CHECKING:
    from penstock.lake.schema import TableSchema


def column_infos(schema: TableSchema) -> tuple[ColumnInfo, ...]:
    return tuple(
        ColumnInfo(column.name, type_text(column), column.nullable) for column in schema.columns
    )


def refuse_managed(columns: Sequence[str], managed: str, model: Model) -> None:
    """The partition column is the engine's to write (seeds/materialization.md)."""
    if fold(managed) not in map(fold, columns):
        return
    raise SchemaMismatch(
        f"the SELECT has a column {managed}, which Penstock writes itself",
        hint=f"leave it out: SELECT * EXCEPT ({managed}), or give it another name",
        location=query_start(model.query),
        data={"column": managed},
    )
