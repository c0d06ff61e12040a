"""Settings for writing a table's files: the lake's options about files, by their scopes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.option_values import bytes_of
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type

TARGET_FILE_SIZE = 512_000_000  # bytes; the default of the real extension, '512MB'

_CODECS: Mapping[str, str] = {
    **{name: name for name in ("snappy", "gzip", "zstd", "uncompressed")},
    **dict.fromkeys(("lz4", "lz4_raw"), "lz4_raw"),  # "lz4" is Hadoop's, which DuckDB cannot read
}
_VERSIONS = {"V1": "PARQUET_1_0", "V2": "PARQUET_2_0"}
# The approximate bytes of a value in a file; types that are missing are like text.
_WIDTHS = {
    **dict.fromkeys(("boolean", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "date"), 4),
    **dict.fromkeys(("decimal", "uuid"), 16),
    **dict.fromkeys(("varchar", "json", "blob"), 32),
}
_ENTRIES = 8  # of a list or a map
# A single unusual row must not lead to tiny files.
_WIDEST_ROW = 65_536


@dataclass(frozen=True, slots=True)
class WriteSettings:
    """``parquet`` are Spark's options of its Parquet writer. ``target_file_size`` is in bytes.

    ``row_bytes`` is the size of a row of the table so far, ``None`` where it is unknown.
    """

    parquet: Mapping[str, str] = field(default_factory=lambda: parquet_options(None, None))
    target_file_size: int = TARGET_FILE_SIZE
    hive: bool = True
    sort: bool = True
    row_bytes: float | None = None

    def rows_per_file(self, schema: TableSchema) -> int:
        """The number of rows after which a task begins another file."""
        width = self.row_bytes or sum(map(_width, schema.columns))
        return max(1, int(self.target_file_size / min(max(width, 0.1), _WIDEST_ROW)))


def write_settings(
    option: Callable[[str], str | None], row_bytes: float | None = None
) -> WriteSettings:
    """The settings from ``option``, which returns an option's text or ``None``.

    Raises UnsupportedFeature naming an option whose value Spark's writer does not support.
    """
    codec, level = option("parquet_compression"), option("parquet_compression_level")
    size = option("target_file_size")
    return WriteSettings(
        parquet={**parquet_options(codec, level), **_layout(option)},
        target_file_size=(bytes_of(size) if size else None) or TARGET_FILE_SIZE,
        hive=option("hive_file_pattern") != "false",
        sort=option("sort_on_insert") != "false",
        row_bytes=row_bytes,
    )


def parquet_options(compression: str | None, level: str | None) -> dict[str, str]:
    """Spark's options for the lake's ``parquet_compression`` and ``parquet_compression_level``."""
    codec = (compression or "snappy").lower()
    if codec not in _CODECS:
        raise UnsupportedFeature(
            f"parquet_compression is {codec!r}, which Spark does not write",
            hint=f"set it to one of {', '.join(sorted(_CODECS))}",
        )
    options = {"compression": _CODECS[codec]}
    if level is not None and codec != "zstd":  # as DuckDB has it
        raise UnsupportedFeature(
            f"parquet_compression_level is {level}, and {codec} has no levels",
            hint="set parquet_compression to zstd, or take the level away",
        )
    if level is not None:
        options["parquet.compression.codec.zstd.level"] = level
    return options


def _layout(option: Callable[[str], str | None]) -> dict[str, str]:
    options: dict[str, str] = {}
    rows, size = option("parquet_row_group_size"), option("parquet_row_group_size_bytes")
    version = option("parquet_version")
    if rows:
        options["parquet.block.row.count.limit"] = rows
    if size and bytes_of(size):
        options["parquet.block.size"] = str(bytes_of(size))
    if version:
        options["parquet.writer.version"] = _VERSIONS[f"V{version.upper().removeprefix('V')}"]
    return options


def _width(column: Column) -> float:
    inside = sum(map(_width, column.children))
    if column.type in {"list", "map"}:
        return _ENTRIES * inside
    return inside if column.children else _WIDTHS.get(base_type(column.type), 8)
