"""Rows of the catalog that go with each data file: its partition values and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.lake.files import DataFile

Numbered = Iterable[tuple[int, DataFile]]  # the id of each file


def partition_rows(numbered: Numbered, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file in numbered:
        for key, value in enumerate(file.partition_values or ()):
            yield {
                "data_file_id": file_id,
                "table_id": table_id,
                "partition_key_index": key,
                "partition_value": value,
            }


def stats_rows(numbered: Numbered, table_id: int) -> Iterator[dict[str, Any]]:
    for file_id, file in numbered:
        for one in file.stats:
            yield {
                "data_file_id": file_id,
                "table_id": table_id,
                "column_id": one.column_id,
                "column_size_bytes": one.size_bytes,
                "value_count": one.value_count,
                "null_count": one.null_count,
                "min_value": one.min_value,
                "max_value": one.max_value,
                "contains_nan": one.contains_nan,
            }
