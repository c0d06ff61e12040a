"""Two lakes for the same statements: one that Penstock changes, one that DuckDB does."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.lakes.catalog.database.sqlite_indexes import NULL_COLUMN
from penstock.lakes.lake import Lake
from tests import duck

# What differs by nature: ids of tables, moments, where the files are.
_OWN = {"table_uuid", "schema_uuid", "view_uuid", "snapshot_time", "file_size_bytes"}
_OWN |= {"path", "footer_size", "column_size_bytes", NULL_COLUMN}  # the last: of our indexes
DEFINITIONS = (
    *("ducklake_snapshot", "ducklake_snapshot_changes", "ducklake_schema", "ducklake_table"),
    *("ducklake_column", "ducklake_tag", "ducklake_column_tag", "ducklake_sort_info"),
    *("ducklake_sort_expression", "ducklake_partition_info", "ducklake_partition_column"),
    *("ducklake_macro", "ducklake_macro_parameters", "ducklake_schema_versions"),
)


def uri(folder: Path) -> str:
    return f"ducklake:sqlite:{folder / 'meta.sqlite'}"


def by_duckdb(folder: Path, statements: Iterable[str]) -> None:
    folder.mkdir()
    with closing(duck.attach(uri(folder), folder / "data", inline=10)) as connection:
        for statement in statements:
            connection.execute(statement)


def by_penstock(
    folder: Path,
    statements: Iterable[str],
    spark: Any = None,
    *,
    dialect: str = "spark",
    **options: Any,
) -> None:
    folder.mkdir()
    options |= {"data_path": f"{folder}/data", "spark": spark, "name": "lk"}
    with Lake.attach(uri(folder), **options) as lake:
        for statement in statements:
            lake.sql(statement, dialect=dialect)


def catalog(folder: Path, table: str) -> list[tuple[Any, ...]]:
    """The rows of one of the catalog's tables, without what differs by nature."""
    with closing(sqlite3.connect(folder / "meta.sqlite")) as connection:
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in cursor.description]
        records = [dict(zip(names, row, strict=True)) for row in cursor]
    for row in records:
        if row.get("parent_column") is not None:
            # DuckDB has 0 for a field that was added to a struct, and '' for one renamed.
            row["nulls_allowed"], row["default_value_type"] = 1, "literal"
    compared = [name for name in names if name not in _OWN]
    return sorted((tuple(row[name] for name in compared) for row in records), key=repr)


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """What DuckDB reads."""
    return duck.rows(uri(folder), query)
