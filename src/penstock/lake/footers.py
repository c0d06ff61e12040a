"""Parquet footers: exact counts and bounds of staged files, columns that a file lacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import UUID

import pyarrow.parquet as pq
from pyarrow import fs

from penstock.errors import DataFileMissing
from penstock.lake.bounds import base_type
from penstock.lake.files import DataFile
from penstock.lake.layouts import Layout, layout_of
from penstock.lake.schema import TableSchema
from penstock.lake.stats import from_footer, leaves

_T = TypeVar("_T")
_THREADS = 16
_FLOATS = {"float32", "float64"}


def list_files(directory: str) -> list[str]:
    """Paths of the Parquet files below ``directory``, sorted; hidden and ``_`` names left out."""
    system, root = _open(directory)
    found = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    names = [info.path for info in found if info.is_file and info.path.endswith(".parquet")]
    prefix = directory.rstrip("/")
    below = [name[len(root.rstrip("/")) :] for name in names]
    return sorted(prefix + path for path in below if not _hidden(path))


def describe(paths: Sequence[str], schema: TableSchema) -> list[DataFile]:
    """The files as values, with counts, sizes and statistics from their footers.

    The files are Spark's own: parquet-mr orders a NaN above every number, so a chunk whose bounds
    are present and no NaN holds none. That makes ``contains_nan`` exact without a look at the data.
    """
    return _each(lambda path: _describe(path, schema), paths)


def layouts(paths: Sequence[str], *, table: str) -> dict[str, Layout]:
    """What columns each of these files has. Raises DataFileMissing."""
    return dict(zip(paths, _each(lambda path: _layout(path, table), paths), strict=True))


def remove_directory(directory: str) -> None:
    """Remove a directory of staged files; what is not there is no error.

    Such directories are named by a UUID. Any other name is a mistake that would remove a table.
    """
    UUID(directory.rsplit("/", 1)[-1])
    system, root = _open(directory)
    if system.get_file_info(root).type != fs.FileType.NotFound:
        system.delete_dir(root)


def remove_file(path: str) -> None:
    """Remove one staged file, and the checksum that Spark keeps beside it on a local disk."""
    folder, _, name = path.rpartition("/")
    for one in (path, f"{folder}/.{name}.crc"):
        system, place = _open(one)
        if system.get_file_info(place).type == fs.FileType.File:
            system.delete_file(place)


def _each(read: Callable[[str], _T], paths: Sequence[str]) -> list[_T]:
    if len(paths) < 2:
        return [read(path) for path in paths]
    with ThreadPoolExecutor(min(_THREADS, len(paths)), "penstock-footers") as pool:
        return list(pool.map(read, paths))


def _open(path: str) -> tuple[fs.FileSystem, str]:
    if "://" in path:
        system, root = fs.FileSystem.from_uri(path)
        return system, root
    return fs.LocalFileSystem(), path


def _hidden(path: str) -> bool:
    return any(part.startswith((".", "_")) and "=" not in part for part in path.split("/"))


def _describe(path: str, schema: TableSchema) -> DataFile:
    system, name = _open(path)
    size = system.get_file_info(name).size
    metadata = pq.read_metadata(name, filesystem=system)
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
    system, name = _open(path)
    try:
        metadata = pq.read_metadata(name, filesystem=system)
    except FileNotFoundError:
        raise DataFileMissing(
            f"the catalog names {path} of {table}, which is not there",
            hint="restore the file, or read a snapshot that does not need it",
            data={"path": path, "table": table},
        ) from None
    return layout_of(metadata)
