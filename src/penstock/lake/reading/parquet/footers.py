"""Parquet footers: exact counts and bounds of staged files, columns that a file lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import DataFileMissing
from penstock.lake.format.files import DataFile
from penstock.lake.format.schema import TableSchema
from penstock.lake.format.stats import from_footer, leaves
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.parquet.layouts import Layout, layout_of
from penstock.lake.storage import list_files, open_system, remove_directory, remove_file

__all__ = ["describe", "layouts", "list_files", "remove_directory", "remove_file"]

_T = TypeVar("_T")
_THREADS = 16
_FLOATS = {"float32", "float64"}


def describe(paths: Sequence[str], schema: TableSchema) -> list[DataFile]:
    """The files as values, with counts, sizes and statistics from their footers.

    The files are Spark's own: parquet-mr orders a NaN above every number, so a chunk whose bounds
    are present and no NaN holds none. That makes ``contains_nan`` exact without a look at the data.
    """
    return _each(lambda path: _describe(path, schema), paths)


def read_columns(paths: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """These top-level columns of staged files, all rows of them: for files of few rows."""
    return pa.concat_tables(_each(lambda path: _read_columns(path, columns), paths))


def _read_columns(path: str, columns: Sequence[str]) -> pa.Table:
    system, name = open_system(path)
    with system.open_input_file(name) as source, pq.ParquetFile(source) as file:
        return file.read(columns=list(columns))


def layouts(paths: Sequence[str], *, table: str) -> dict[str, Layout]:
    """What columns each of these files has. Raises DataFileMissing."""
    return dict(zip(paths, _each(lambda path: _layout(path, table), paths), strict=True))


def _each(read: Callable[[str], _T], paths: Sequence[str]) -> list[_T]:
    if len(paths) < 2:
        return [read(path) for path in paths]
    with ThreadPoolExecutor(min(_THREADS, len(paths)), "penstock-footers") as pool:
        return list(pool.map(read, paths))


def _describe(path: str, schema: TableSchema) -> DataFile:
    system, name = open_system(path)
    with system.open_input_file(name) as source:  # which asks a store for its size, once
        size = source.size()
        metadata = pq.read_metadata(source)
    return DataFile(
        path=path,
        record_count=metadata.num_rows,
        size_bytes=size,
        footer_size=metadata.serialized_size,
        stats=from_footer(metadata, schema, _nan_columns(metadata, schema)),
    )


def _nan_columns(metadata: pq.FileMetaData, schema: TableSchema) -> frozenset[int] | None:
    """Ids of the float columns that hold a NaN; ``None`` when a chunk's bounds do not say."""
    found: set[int] = set()
    for index, column in leaves(metadata.schema.to_arrow_schema(), schema):
        if base_type(column.type) not in _FLOATS or column.id is None:
            continue
        for group in range(metadata.num_row_groups):
            chunk = metadata.row_group(group).column(index)
            statistics = chunk.statistics
            if statistics is not None and statistics.null_count == chunk.num_values:
                continue
            if statistics is None or not statistics.has_min_max:
                return None
            if math.isnan(statistics.max) or math.isnan(statistics.min):
                found.add(column.id)
    return frozenset(found)


def _layout(path: str, table: str) -> Layout:
    system, name = open_system(path)
    try:
        metadata = pq.read_metadata(name, filesystem=system)
    except FileNotFoundError:
        raise DataFileMissing(
            f"the catalog names {path} of {table}, which is not there",
            hint="restore the file, or read a snapshot that does not need it",
            data={"path": path, "table": table},
        ) from None
    return layout_of(metadata)
