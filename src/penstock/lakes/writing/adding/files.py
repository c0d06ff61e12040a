"""Files of other tools as values that a commit can register, described by their footers.

They are named by a path, a directory or a pattern, on a local disk or in an object store. Patterns
are DuckDB's: ``*`` and ``?`` within a name, ``[ab]``, ``**`` across directories.

Values of columns in paths (``.../country=a%2Fb/year=2020/x.parquet``) are read as by DuckDB 1.5.5
(measured): names are case-sensitive, values are unescaped, ``__HIVE_DEFAULT_PARTITION__`` and
``NULL`` are NULL.
"""

from __future__ import annotations

import datetime as dt
import glob
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote

from pyarrow import fs

from penstock.errors import DataFileCorrupt, DataFileMissing, SchemaMismatch, UnsupportedFeature
from penstock.lakes.format.files import ColumnStats, DataFile, PartitionField, Table
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column
from penstock.lakes.format.statistics import leaf_stats
from penstock.lakes.format.values.bounds import base_type, compare_bounds, partition_to_text
from penstock.lakes.format.values.precision import rounded
from penstock.lakes.storage import list_files, open_system
from penstock.lakes.writing.adding.fit import Fit, Leaf, Rules, fit
from penstock.lazy import pa, pq

_THREADS = 16
_PARQUET_MR = re.compile(r"parquet-mr version (\d+)\.(\d+)")
_NAN_SAFE = (1, 10)  # since then parquet-mr gives a chunk with a NaN no bounds, or NaN as a bound
_MOMENT = re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?: (?P<hour>\d\d):.*)?")
Progress = Callable[[int, int], None]  # files read, files in all


@dataclass(slots=True)
class Reader:
    """Reads the footers of files for one table. Threads share it.

    If ``hive`` is ``None`` or true, columns and partition values come from the path where it has
    them; if false, never.
    """

    table: Table
    rules: Rules
    hive: bool | None = None
    _fits: dict[tuple[int, ...], list[tuple[pq.ParquetSchema, Fit]]] = field(default_factory=dict)
    _systems: dict[str, fs.FileSystem] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read_all(self, paths: Sequence[str], progress: Progress | None = None) -> list[DataFile]:
        """The files with rows, in order. Raises the error of the first file that does not fit."""
        files: list[DataFile] = []
        for done, file in enumerate(self._each(paths), 1):
            if file.record_count:
                files.append(file)
            if progress is not None and (done % 500 == 0 or done == len(paths)):
                progress(done, len(paths))
        return files

    def _each(self, paths: Sequence[str]) -> Iterator[DataFile]:
        if len(paths) < 2:
            yield from map(self.read, paths)
            return
        with ThreadPoolExecutor(min(_THREADS, len(paths)), "penstock-added") as pool:
            try:
                yield from pool.map(self.read, paths)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def texts(self, path: str) -> Mapping[str, str | None]:
        """The values of columns that are not in the file, by their names."""
        return {} if self.hive is False else hive_texts(path)

    def read(self, path: str) -> DataFile:
        """Describe one file. Raises SchemaMismatch, DataFileCorrupt."""
        metadata, size = self._footer(path)
        texts = self.texts(path)
        fitted = self._fit(path, metadata, texts)
        values = {c.id: hive_value(c, texts[c.name], path) for c in fitted.hive}
        stats = [_stats(metadata, leaf) for leaf in fitted.leaves]
        for leaf in fitted.own:
            _check_path(path, _stats(metadata, leaf), leaf.column, values[leaf.column.id])
        rows = metadata.num_rows
        stats += [_constant(column, values[column.id], rows) for column in fitted.hive]
        self._check_nulls(path, stats)
        return DataFile(
            path=path,
            record_count=rows,
            size_bytes=size,
            footer_size=metadata.serialized_size,
            mapping=fitted.mapping,
            stats=tuple(sorted(stats, key=lambda column_stats: column_stats.column_id)),
            partition_values=self._partition(path, texts, stats) if rows else None,
        )

    def _footer(self, path: str) -> tuple[pq.FileMetaData, int]:
        system, place = self._open(path)
        try:
            with system.open_input_file(place) as source:
                return pq.read_metadata(source), source.size()
        except FileNotFoundError:
            raise DataFileMissing(
                f"file {path} does not exist", hint="check the path", data={"path": path}
            ) from None
        except (pa.ArrowInvalid, OSError) as error:
            raise DataFileCorrupt(
                f"{path} cannot be read as a Parquet file: {str(error).splitlines()[0]}",
                hint="leave it out, or write it again",
                data={"path": path, "table": self.table.qualified_name},
            ) from error

    def _open(self, path: str) -> tuple[fs.FileSystem, str]:
        """One file system for a bucket: creating one takes longer than reading a footer."""
        scheme, mark, rest = path.partition("://")
        root = f"{scheme}://{rest.partition('/')[0]}" if mark else ""
        system = self._systems.get(root)
        if system is None:
            system, place = open_system(path)
            self._systems[root] = system
            return system, place
        return system, rest if mark else path

    def _fit(self, path: str, metadata: pq.FileMetaData, texts: Mapping[str, str | None]) -> Fit:
        """The mapping of a file, shared by files with the same schema and columns in the path."""
        columns = self.table.schema.columns
        hive = [c for c in columns if c.name in texts and not c.children]
        key = tuple(c.id or 0 for c in hive)
        with self._lock:
            for schema, fitted in self._fits.get(key, ()):
                if schema.equals(metadata.schema):
                    return fitted
            made = fit(
                metadata.schema,
                self.table.schema,
                hive,
                self.rules,
                file=path,
                table=self.table.qualified_name,
            )
            self._fits.setdefault(key, []).append((metadata.schema, made))
            return made

    def _check_nulls(self, path: str, stats: Sequence[ColumnStats]) -> None:
        """Check NOT NULL columns, by the counts in the footer or else by their data."""
        counted = {stat.column_id: stat.null_count for stat in stats}
        for column in self.table.schema.columns:
            if column.nullable or (not column.children and column.id not in counted):
                continue
            nulls = counted.get(column.id or 0)
            if nulls is None:
                nulls = self._count_nulls(path, column)
            if nulls:
                raise SchemaMismatch(
                    f"{path}: column {column.name!r} is NOT NULL in table "
                    f"{self.table.qualified_name}, and {nulls} of its values there are NULL",
                    hint="insert the rows that have a value, or drop NOT NULL from the column",
                    data={"path": path, "column": column.name, "nulls": nulls},
                )

    def _count_nulls(self, path: str, column: Column) -> int:
        system, place = self._open(path)
        with system.open_input_file(place) as source:
            file = pq.ParquetFile(source)
            names = [name for name in file.schema_arrow.names if fold(name) == fold(column.name)]
            batches = file.iter_batches(columns=names)
            return sum(batch.column(0).null_count for batch in batches) if names else 0

    def _partition(
        self, path: str, texts: Mapping[str, str | None], stats: Sequence[ColumnStats]
    ) -> tuple[str | None, ...] | None:
        """The partition values, which are only in the path."""
        fields = self.table.partition_by
        if not fields:
            return None
        known = {stat.column_id: stat for stat in stats}
        values: list[str | None] = []
        for key, name in zip(fields, partition_names(fields), strict=True):
            column = self.table.schema.find(key.column)
            if column is None or name not in texts:
                raise SchemaMismatch(
                    f"{path}: table {self.table.qualified_name} is partitioned by {name}, and the "
                    f"file's path has no directory {name}=...",
                    hint="put it in such directories with hive_partitioning on, or insert its rows",
                    data={"path": path, "partition": name},
                )
            kind = column if key.transform == "identity" else Column(name, "int64")
            value = hive_value(kind, texts[name], path)
            _check_part(path, key.transform, column, value, known.get(column.id or 0))
            values.append(value)
        return tuple(values)


def _stats(metadata: pq.FileMetaData, leaf: Leaf) -> ColumnStats:
    chunks = [metadata.row_group(g).column(leaf.index) for g in range(metadata.num_row_groups)]
    is_float = base_type(leaf.column.type) in {"float32", "float64"}
    nan = _nan(metadata.created_by or "", chunks, leaf.column) if is_float else frozenset[int]()
    stats = leaf_stats(chunks, leaf.column, nan)
    return stats if leaf.bounds else replace(stats, min_value=None, max_value=None)


def _nan(
    writer: str, chunks: Sequence[pq.ColumnChunkMetaData], column: Column
) -> frozenset[int] | None:
    """The column's id if it has a NaN, an empty set if not, ``None`` if that is unknown.

    Writers disagree on what a NaN does to the bounds; for parquet-mr it is known (`footers`).
    """
    version = _PARQUET_MR.match(writer)
    if version is None or (int(version[1]), int(version[2])) < _NAN_SAFE:
        return None
    for chunk in chunks:
        statistics = chunk.statistics
        if statistics is not None and statistics.null_count == chunk.num_values:
            continue
        if statistics is None or not statistics.has_min_max:
            return None
        if math.isnan(statistics.max) or math.isnan(statistics.min):
            return frozenset({column.id or 0})
    return frozenset()


def _constant(column: Column, value: str | None, rows: int) -> ColumnStats:
    """Statistics of a column in the path: one value for all rows, without bytes."""
    there = 0 if value is None else rows
    return ColumnStats(column.id or 0, 0, there, rows - there, value, value)


def _check_path(path: str, stats: ColumnStats, column: Column, value: str | None) -> None:
    """Check that the path, which takes precedence, does not contradict the file."""
    if value is None:
        agrees = stats.value_count == 0 or stats.null_count is None
    else:
        bounds = [bound for bound in (stats.min_value, stats.max_value) if bound is not None]
        agrees = not stats.null_count
        agrees = agrees and all(compare_bounds(column.type, b, value) in {0, None} for b in bounds)
    if not agrees:
        raise SchemaMismatch(
            f"{path}: column {column.name!r} is {value or 'NULL'} by the path and something else "
            f"in the file ({stats.min_value} to {stats.max_value}, {stats.null_count} NULLs)",
            hint="rename the directory, or set hive_partitioning off to take the file's values",
            data={"path": path, "column": column.name, "value": value},
        )


def _check_part(
    path: str, transform: str, column: Column, value: str | None, stats: ColumnStats | None
) -> None:
    """Check that a year, month, day or hour in the path agrees with the file's bounds.

    The time zone of a ``timestamptz`` partition is unknown; buckets are not checked.
    """
    if stats is None or value is None or base_type(column.type) == "timestamptz":
        return
    for bound in (stats.min_value, stats.max_value):
        match = _MOMENT.fullmatch(bound or "")
        if match is None or transform not in match.groupdict():
            continue
        if int(match[transform] or 0) != int(value):
            raise SchemaMismatch(
                f"{path}: the {transform} of {column.name!r} is {value} by the path, and the file "
                f"has {bound}",
                hint="rename the directory; readers skip files by these values",
                data={"path": path, "column": column.name, "value": value},
            )


_MAGIC = re.compile(r"[*?\[]")
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|[^*?\[]+|\[")


def expand(patterns: str | Sequence[str]) -> list[str]:
    """The files that the patterns name, each once, in the patterns' order and then by name.

    Paths are absolute. Raises DataFileMissing for a pattern without files.
    """
    listed = [patterns] if isinstance(patterns, str) else list(patterns)
    paths: dict[str, None] = {}
    for pattern in listed:
        files = _expand(_absolute(os.fspath(pattern)))
        if not files:
            raise DataFileMissing(
                f"file {pattern} does not exist",
                hint="check the path; patterns take *, ?, [ab] and ** for any directories",
                data={"path": pattern},
            )
        paths.update(dict.fromkeys(files))
    return list(paths)


def _absolute(pattern: str) -> str:
    if pattern.startswith("file:"):
        pattern = unquote("/" + pattern.removeprefix("file:").lstrip("/"))
    if "://" in pattern:
        return pattern
    return os.path.abspath(Path(pattern).expanduser())  # noqa: PTH100 - links stay what they are


def _expand(pattern: str) -> Iterable[str]:
    system, place = open_system(pattern)
    kind = system.get_file_info(place).type
    if kind == fs.FileType.File:
        return [pattern]
    if kind == fs.FileType.Directory:
        return list_files(pattern)
    if not _MAGIC.search(pattern):
        return []
    if "://" not in pattern:
        paths = glob.iglob(pattern, recursive=True)  # noqa: PTH207 - Path takes none that are absolute
        return sorted(path for path in paths if Path(path).is_file())
    return matching(system, pattern, place)


def matching(system: fs.FileSystem, pattern: str, place: str) -> list[str]:
    """List everything below the last plain directory and compare: stores have no directories."""
    match = _MAGIC.search(place)
    assert match is not None
    base = place[: match.start()].rpartition("/")[0]
    scheme = pattern[: len(pattern) - len(place)]
    wanted = re.compile("".join(map(_token, _TOKEN.findall(place))))
    infos = system.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
    return sorted(
        f"{scheme}{info.path}" for info in infos if info.is_file and wanted.fullmatch(info.path)
    )


def _token(token: str) -> str:
    fixed = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if token in fixed:
        return fixed[token]
    if len(token) > 2 and token.startswith("["):
        return token.replace("[!", "[^")
    return re.escape(token)


_NULLS = frozenset({"__HIVE_DEFAULT_PARTITION__", "NULL"})
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def hive_texts(path: str) -> Mapping[str, str | None]:
    """The ``name=value`` directories of a path; if a name occurs twice, the last one counts."""
    texts: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, mark, value = part.partition("=")
        if mark and name:
            text = unquote(value)
            texts[unquote(name)] = None if text.upper() in _NULLS else text
    return texts


def hive_value(column: Column, text: str | None, path: str) -> str | None:
    """The value as the catalog's text. Raises SchemaMismatch for text invalid for the type."""
    if text is None:
        return None
    reader = _READERS.get(base_type(column.type))
    if reader is None:
        raise UnsupportedFeature(
            f"{path}: the value of column {column.name!r}, which is {column.type}, cannot be taken "
            "from the file's path",
            hint="write the column into the file, or add it with hive_partitioning off",
            data={"path": path, "column": column.name},
        )
    try:
        value = reader(text, column.type)
    except (ValueError, ArithmeticError):
        raise SchemaMismatch(
            f"{path}: {column.name}={text} is not a valid {column.type}",
            hint="rename the directory, or add the file with hive_partitioning off",
            data={"path": path, "column": column.name, "value": text},
        ) from None
    return partition_to_text(column.type, value)


def partition_names(fields: Sequence[PartitionField]) -> tuple[str, ...]:
    """The names that the keys of a partitioning have in paths: a column's, or a transform's.

    If a transform occurs twice, the second has its column's name appended.
    """
    names: list[str] = []
    for part in fields:
        kind = part.transform.partition("(")[0]
        name = part.column if kind == "identity" else kind
        names.append(f"{kind}_{part.column}" if name in names else name)
    return tuple(names)


def _whole(text: str, type_text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError(text)
    value, kind = int(text), base_type(type_text)
    bits = _BITS.get(kind.removeprefix("u"), 64)
    low, high = (0, 1 << bits) if kind.startswith("u") else (-(1 << bits - 1), 1 << bits - 1)
    if not low <= value < high:
        raise ValueError(text)
    return value


def _boolean(text: str, _: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(text)
    return text.lower() == "true"


def _float(text: str, _: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _decimal(text: str, type_text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    precision, scale = map(int, type_text.partition("(")[2].rstrip(") ").split(","))
    value = rounded(Decimal(text), scale)
    if value.adjusted() + 1 + scale > precision and value:
        raise ValueError(text)
    return value


def _date(text: str, _: str) -> dt.date:
    return dt.datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a date has no zone


def _timestamp(text: str, _: str) -> dt.datetime:
    value = dt.datetime.fromisoformat(text)
    if value.tzinfo is not None:
        raise ValueError(text)
    return value


_WHOLES = (*_BITS, *(f"u{name}" for name in _BITS))
_READERS: Mapping[str, Callable[[str, str], object]] = {
    **dict.fromkeys(_WHOLES, _whole),
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms"), _timestamp),
    "boolean": _boolean,
    "float32": _float,
    "float64": _float,
    "decimal": _decimal,
    "date": _date,
    "varchar": lambda text, _: text,
}
