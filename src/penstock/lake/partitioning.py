"""Partition transforms, values and directories."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from penstock.errors import ColumnNotFound, UnsupportedFeature
from penstock.lake.bounds import partition_to_text
from penstock.lake.files import PartitionField
from penstock.lake.schema import Column, TableSchema

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"


def partition_columns(schema: TableSchema, fields: Sequence[PartitionField]) -> tuple[Column, ...]:
    """The columns that a partitioning refers to, in key order; only identity may be written.

    Raises UnsupportedFeature naming the transform, ColumnNotFound naming the column.
    """
    columns: list[Column] = []
    for field in fields:
        if field.transform != "identity":
            raise UnsupportedFeature(
                f"partitioning by {field.transform}({field.column}) is not written yet",
                hint="partition by a column that holds the value",
                data={"column": field.column, "transform": field.transform},
            )
        column = schema.find(field.column)
        if column is None or column.children:
            raise ColumnNotFound(
                f"no column {field.column!r} to partition by",
                hint=f"the columns are {', '.join(schema.names)}",
                data={"column": field.column},
            )
        columns.append(column)
    return tuple(columns)


def partition_value(column: Column, value: object) -> str | None:
    """The text that the catalog keeps for a partition value; NULL stays NULL."""
    return partition_to_text(column.type, value)


def hive_segment(column: str, value: str | None) -> str:
    """One directory, ``country=a%2Fb``, escaped as the real extension does."""
    return f"{_escape(column)}={NULL_DIRECTORY if value is None else _escape(value)}"


def hive_directory(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """The directories of a partition, each with its ``/``."""
    return "".join(
        f"{hive_segment(column, value)}/" for column, value in zip(columns, values, strict=True)
    )


def _escape(text: str) -> str:
    return quote(text, safe="~")
