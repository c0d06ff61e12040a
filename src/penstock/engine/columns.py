"""Columns as the state keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.results import ColumnInfo
from penstock.lake.schema import type_text

if TYPE_CHECKING:
    from penstock.lake.schema import TableSchema


def column_infos(schema: TableSchema) -> tuple[ColumnInfo, ...]:
    return tuple(
        ColumnInfo(column.name, type_text(column), column.nullable) for column in schema.columns
    )
