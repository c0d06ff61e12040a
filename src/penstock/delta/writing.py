"""Rows as new files of a Delta table, by the writer of lakes; nothing names them before a commit.

Files hold their partition columns as well, which readers take from the log. Each write has a
directory of its own; a partition's files are in ``column=value`` above it, for people to find.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.delta.actions import Add, Metadata, encoded
from penstock.delta.schema import table_schema
from penstock.delta.statistics import stats_of
from penstock.errors import UnsupportedFeature
from penstock.lake import storage
from penstock.lake.format.files import DataFile, PartitionField
from penstock.lake.format.objects import SortKey
from penstock.lake.format.partitioning import PartitionKey, partition_keys
from penstock.lake.reading.conversions.align import align
from penstock.lake.writing import spark as spark_writing
from penstock.lake.writing.settings import WriteSettings
from penstock.sql.identifiers import quote_identifier

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Written:
    """New files; ``fingerprint`` is that of their rows, where it was asked for."""

    files: tuple[Add, ...] = ()
    rows: int = 0
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The table whose files are written, and the columns that rows are sorted by."""

    table: str
    uri: str
    metadata: Metadata
    sort_by: tuple[str, ...] = ()


def write(df: DataFrame, target: Target, *, fingerprint: bool = False) -> Written:
    """Write all rows of ``df``, whose columns match by name.

    Raises SchemaMismatch, QueryFailed, DataPathError, and UnsupportedFeature for an empty text as a
    partition value; no files are left then.
    """
    schema = table_schema(target.metadata.schema_text)
    fields = [PartitionField(name) for name in target.metadata.partition_by]
    keys = partition_keys(schema, fields)
    written = spark_writing.write(
        df,
        align(df, schema, table=target.table),
        spark_writing.Target(
            table=target.table,
            path=f"{target.uri.rstrip('/')}/",
            schema=schema,
            partition_by=keys,
            partition_id=0 if keys else None,
            sort_by=tuple(SortKey(quote_identifier(name)) for name in target.sort_by),
            settings=WriteSettings(),
        ),
        with_fingerprint=fingerprint,
    )
    now = time.time_ns() // 1_000_000
    try:
        adds = tuple(_added(file, target, keys, now) for file in written.files)
    except BaseException:
        remove(target.uri, (file.path for file in written.files))
        raise
    return Written(adds, written.rows, written.fingerprint)


def _added(file: DataFile, target: Target, keys: Sequence[PartitionKey], now: int) -> Add:
    texts = file.partition_values or ()
    return Add(
        path=encoded(target.uri, file.path),
        values=tuple(
            (key.column.name, _text(key, text)) for key, text in zip(keys, texts, strict=True)
        ),
        size=file.size_bytes,
        modified=now,
        stats=stats_of(file, table_schema(target.metadata.schema_text)),
    )


def _text(key: PartitionKey, text: str | None) -> str | None:
    """A partition value as Delta's log has it, from how a lake's catalog does."""
    if text == "":
        raise UnsupportedFeature(
            f"column {key.column.name} has an empty text, which Delta reads as NULL in a column "
            "that the table is partitioned by",
            hint=f"write nullif({key.column.name}, '') in the SELECT, or another text",
            data={"column": key.column.name},
        )
    if text is not None and key.column.type == "timestamptz":
        return text.removesuffix("+00").replace(" ", "T") + "Z"
    return text


def remove(uri: str, paths: Iterable[str]) -> None:
    """Remove files that no commit names, by their whole paths, and directories they leave empty."""
    root = Path(uri)
    for path in paths:
        storage.remove_file(path)
        if storage.is_remote(path):
            continue
        for folder in Path(path).parents:
            if folder == root or root not in folder.parents:
                break
            with suppress(OSError):  # another write has files there
                folder.rmdir()
