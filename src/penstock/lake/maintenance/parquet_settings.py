"""How compacted files are written: by the lake's options, as other data files are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.lake.catalog.catalog import Catalog
from penstock.lake.files import Table

_ROW_GROUP = 122_880  # rows: DuckDB's default
_TARGET = 1 << 29  # bytes: DuckDB's default of target_file_size
_CODECS = {"lz4_raw": "lz4", "uncompressed": "none"}
_WITH_LEVEL = frozenset({"zstd", "gzip", "brotli"})


@dataclass(frozen=True, slots=True)
class ParquetSettings:
    """``row_group`` in rows, ``target`` (the size that files should come near) in bytes."""

    compression: str = "snappy"
    level: int | None = None
    data_page_version: str = "1.0"
    row_group: int = _ROW_GROUP
    target: int = _TARGET

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


def settings_of(catalog: Catalog, table: Table) -> ParquetSettings:
    """By the options in force for the table."""
    names = ("compression", "compression_level", "version", "row_group_size")
    codec, level, version, rows = (catalog.option(f"parquet_{one}", table) for one in names)
    target = catalog.option("target_file_size", table)
    codec = (codec or "snappy").lower()
    return ParquetSettings(
        compression=_CODECS.get(codec, codec),
        level=None if level is None else int(level),
        data_page_version="2.0" if version == "V2" else "1.0",
        row_group=int(rows) if rows else _ROW_GROUP,
        target=int(target) if target else _TARGET,
    )
