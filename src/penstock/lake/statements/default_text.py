"""The word DEFAULT in an expression."""

from __future__ import annotations

from penstock.lake.format.schema import Column
from penstock.sql.statement import Reader


def default_text(reader: Reader, column: Column, at: int) -> str:
    """The default of a column in Spark's SQL."""
    if column.default is None:
        return "NULL"
    if not column.has_plain_default:
        raise reader.unsupported(
            f"the default {column.default} of {column.name}, which only DuckDB evaluates",
            "write the value",
            at,
        )
    escaped = column.default.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
