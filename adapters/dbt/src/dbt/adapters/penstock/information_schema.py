"""The information schema of a lake: its tables, views, columns and schemas as rows.

Packages look relations up there. The columns are those of the standard that packages read, of what
is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.penstock.types import type_name
from penstock.errors import ArgumentError
from penstock.lakes.lake import Lake
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = tuple[Any, ...]

_TABLE = "table_catalog STRING, table_schema STRING, table_name STRING"


def frame(lake: Lake, table: str) -> DataFrame:
    """Return ``information_schema.tables`` and the like. Raises ArgumentError for other tables."""
    if table not in _TABLES:
        raise ArgumentError(
            f"information_schema.{table} does not exist",
            hint=f"the information schema of a lake has {', '.join(_TABLES)}",
        )
    schema, rows = _TABLES[table]
    return lake.spark_source().createDataFrame(list(rows(lake)), schema)


def _relations(lake: Lake) -> Iterator[tuple[str, str, str]]:
    """The schema, name and type of each table and view."""
    for table in lake.tables():
        yield table.schema_name, table.name, "BASE TABLE"
    for view in lake.views():
        yield view.schema_name, view.name, "VIEW"


def _tables(lake: Lake) -> Iterator[Row]:
    return ((lake.name, *relation) for relation in _relations(lake))


def _views(lake: Lake) -> Iterator[Row]:
    return ((lake.name, view.schema_name, view.name, view.sql) for view in lake.views())


def _schemata(lake: Lake) -> Iterator[Row]:
    return ((lake.name, schema) for schema in lake.schemas())


def _columns(lake: Lake) -> Iterator[Row]:
    for schema, name, _ in _relations(lake):
        described = lake.sql(f"DESCRIBE {quoted(schema)}.{quoted(name)}").collect()
        for position, column in enumerate(described, 1):
            kind, comment = type_name(column.column_type), column.comment
            yield lake.name, schema, name, column.column_name, position, kind, comment


_TABLES: Mapping[str, tuple[str, Callable[[Lake], Iterator[Row]]]] = {
    "tables": (f"{_TABLE}, table_type STRING", _tables),
    "views": (f"{_TABLE}, view_definition STRING", _views),
    "columns": (
        f"{_TABLE}, column_name STRING, ordinal_position INT, data_type STRING, comment STRING",
        _columns,
    ),
    "schemata": ("catalog_name STRING, schema_name STRING", _schemata),
}
