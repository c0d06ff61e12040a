"""How compacted files are written: by the lake's options, and within limits of memory and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import ArgumentError
from penstock.lake.catalog.catalog import Catalog
from penstock.lake.catalog.options import write_facts
from penstock.lake.format.files import Table
from penstock.lake.format.objects import SortKey
from penstock.lake.format.option_values import bytes_of
from penstock.lake.writing.settings import TARGET_FILE_SIZE

_ROW_GROUP = 122_880  # rows: DuckDB's default
_CODECS = {"lz4_raw": "lz4", "uncompressed": "none"}
_WITH_LEVEL = frozenset({"zstd", "gzip", "brotli"})


@dataclass(frozen=True, slots=True)
class ParquetSettings:
    """``row_group`` in rows, ``target`` (the size that files should come near) in bytes.

    ``sort_by`` are keys whose expressions are names of columns.
    """

    compression: str = "snappy"
    level: int | None = None
    data_page_version: str = "1.0"
    row_group: int = _ROW_GROUP
    target: int = TARGET_FILE_SIZE
    sort_by: tuple[SortKey, ...] = ()

    @property
    def writer(self) -> Mapping[str, Any]:
        """For `pyarrow.parquet.ParquetWriter`. Without Arrow's own copy of the schema: the types
        in the file are what others read."""
        return {
            "compression": self.compression,
            "compression_level": self.level if self.compression in _WITH_LEVEL else None,
            "data_page_version": self.data_page_version,
            "version": "2.6",
            "store_schema": False,
            "store_decimal_as_integer": True,
        }


def settings_of(catalog: Catalog, table: Table, snapshot_id: int) -> ParquetSettings:
    """By the options in force for the table, and its sort keys."""
    with catalog.reading() as connection:
        facts = write_facts(connection, table.schema_name, table, snapshot_id)
    told = facts.options
    codec = told.get("parquet_compression", "snappy").lower()
    level = told.get("parquet_compression_level")
    return ParquetSettings(
        compression=_CODECS.get(codec, codec),  # `checked` knows no other
        level=None if level is None else int(level),
        data_page_version="2.0" if told.get("parquet_version", "").upper() == "V2" else "1.0",
        row_group=int(told.get("parquet_row_group_size") or _ROW_GROUP),
        target=bytes_of(told.get("target_file_size", "")) or TARGET_FILE_SIZE,
        sort_by=_by_columns(facts.sort_by, table),
    )


def _by_columns(keys: tuple[SortKey, ...], table: Table) -> tuple[SortKey, ...]:
    """The keys where all are plain columns. By anything else nothing is sorted here: order is for
    the bounds of files, never for what a query answers."""
    names = [key.expression.strip('"') for key in keys]
    plain = [column for name in names if (column := table.schema.find(name)) is not None]
    if len(plain) < len(keys) or any(column.children for column in plain):
        return ()
    return tuple(
        replace(key, expression=column.name) for key, column in zip(keys, plain, strict=True)
    )


MEMORY = 256 << 20  # bytes
SPARK_FROM = 2 << 30  # bytes: the calling process is done with less before a session has started
_LEAST_MEMORY = 1 << 20


@dataclass(frozen=True, slots=True)
class Resources:
    """What compaction may use, in bytes: ``Resources(memory=2 * 1024**3, spark_from=None)``.

    Each process that writes holds about ``memory`` at once.

    Where the files of one table that are to be written anew have ``spark_from`` bytes or more in
    all, Spark's executors write them side by side; with ``None``, and in a lake without a session,
    the calling process always does. Raises ArgumentError for less memory than files are read in.
    """

    memory: int = MEMORY
    spark_from: int | None = SPARK_FROM

    def __post_init__(self) -> None:
        if self.memory < _LEAST_MEMORY:
            raise ArgumentError(
                f"memory is {self.memory} bytes, which is too little to read files in",
                hint=f"give {_LEAST_MEMORY} or more; {MEMORY} is the default",
            )


DEFAULT = Resources()
