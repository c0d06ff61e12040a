"""Reading a given list of Parquet files with Spark, whatever their paths look like.

Each file is checked to be the one that the catalog names: its size, its rows, its footer. A file of
another table in its place usually has the same field ids, so it would be read, deleted from and
compacted without an error. The catalog's facts about a file are joined to its rows: its key in a
scan, its first row id, its snapshots.

Many files need another way than a list of paths: Spark globs every path, requests its status and
sends each to the JVM separately, 2 s for 10,000. But if a directory has the log of a streaming
sink, Spark's reader takes the files from that log: 100,000 in 1.5 s. So such a log is written to a
temporary directory and read once: the DataFrame has the list in memory, and the directory is
removed before it is returned. (A process killed in between leaves the directory among the system's
temporary files.) Spark does not look at the files again, and a size that is too small would lose
rows, so the sizes come from the disk, never from a catalog.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from penstock.lakes.format.files import DataFile, DeleteFile
from penstock.lakes.storage import is_remote
from penstock.lazy import pa, pq
from penstock.spark.failures import explained, file_corrupt, file_missing
from penstock.spark.functions import arrow_frame, expr, fn
from penstock.spark.session import cache_of, is_connect

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

_GLOB = re.compile(r"[\[\]{}*?\\]")


def read_files(
    spark: SparkSession,
    schema: StructType,
    size_by_path: Mapping[str, int],
    *,
    table: str | None = None,
    snapshot_id: int | None = None,
) -> DataFrame:
    """The rows of these files, at least one, as ``schema``: fields with an id match by it.

    ``size_by_path`` are their sizes in bytes by path, as the catalog has them.

    Each file is named, so Spark infers no partition columns from directories. A path without a
    scheme is on the local disk, whatever Spark's default file system is. Raises DataFileMissing
    when a file is missing, DataFileCorrupt when one has another size (Spark would accept an empty
    file).
    """
    paths = list(size_by_path)
    elsewhere = is_connect(spark)  # its server need not have this disk
    sizes = _look(size_by_path, table, snapshot_id, elsewhere=elsewhere)
    with explained(table=table, snapshot_id=snapshot_id):
        if len(sizes) == len(paths) and takes_manifest(spark, len(paths)):
            return read_with_manifest(_reader(spark, schema), sizes)
        return _read(spark, schema, paths)


def _reader(spark: SparkSession, schema: StructType) -> DataFrameReader:
    """Spark's options against missing rows, whatever the session's settings are."""
    return spark.read.schema(schema).options(ignoreMissingFiles="false", mergeSchema="false")


def _look(
    size_by_path: Mapping[str, int],
    table: str | None,
    snapshot_id: int | None,
    *,
    elsewhere: bool,
) -> dict[str, int]:
    """Check the files on local disks, at 2 µs a file, and return their sizes. ``elsewhere``: those
    that are not here may be where they are read.
    """
    sizes: dict[str, int] = {}
    for path, wanted in size_by_path.items():
        if "://" in path:
            continue
        try:
            size = os.stat(path).st_size  # noqa: PTH116 - a Path costs more than the look
        except FileNotFoundError:
            if elsewhere:
                continue
            raise file_missing(path, table, snapshot_id) from None
        if size == 0:
            raise file_corrupt(path, "it is empty", table, snapshot_id)
        check_size(path, size, wanted, table, snapshot_id)
        sizes[path] = size
    return sizes


def _read(spark: SparkSession, schema: StructType, paths: Sequence[str]) -> DataFrame:
    """Escape the characters that have a meaning in glob patterns, as which Spark takes paths.

    Hadoop cannot glob a path with a colon, escaped or not. Such files are read one by one with
    globbing off (``__globPaths__``, internal to Spark): with several paths that option reads each
    file several times over.
    """
    # Options change a reader, so the cached one must not get any more of them.
    reader = cache_of(spark).get(("reader", schema), lambda: _reader(spark, schema))
    odd = [_with_scheme(path) for path in paths if _GLOB.search(path)]
    if not odd or not any(":" in path.split("://", 1)[1] for path in odd):
        return reader.parquet(*(_GLOB.sub(r"\\\g<0>", _with_scheme(path)) for path in paths))
    plain = [_with_scheme(path) for path in paths if not _GLOB.search(path)]
    parts = [reader.parquet(*plain)] if plain else []
    alone = _reader(spark, schema).option("__globPaths__", "false")
    parts += [alone.parquet(path) for path in odd]
    return reduce(lambda a, b: a.union(b), parts)


def _with_scheme(path: str) -> str:
    return f"file://{path}" if path.startswith("/") else path


_PLAIN = re.compile(
    r"[A-Za-z0-9_./~-]*"
).fullmatch  # needs no quoting, which takes ten times as long
_LEAST = 32  # files: for fewer it does not pay
_SETTING = "spark.sql.streaming.fileStreamSink.ignoreMetadata"


def takes_manifest(spark: SparkSession, count: int) -> bool:
    """Return whether a list is the faster way to read these files, which must be local.

    Not with Spark Connect: its server may not have this disk, and reads the list at every action.
    """
    if count < _LEAST or is_connect(spark):
        return False
    return str(spark.conf.get(_SETTING, "false")).lower() != "true"


def read_with_manifest(reader: DataFrameReader, sizes: Mapping[str, int]) -> DataFrame:
    """The rows of these files, by absolute local path, with their sizes in bytes."""
    with tempfile.TemporaryDirectory(prefix="penstock-files-") as folder:
        log = Path(folder) / "_spark_metadata"
        log.mkdir()
        lines = ["v1", *(_line(path, size) for path, size in sizes.items())]
        (log / "0").write_text("\n".join(lines))
        # The option keeps Spark from taking `country=x` in a path for a column.
        df = reader.option("recursiveFileLookup", "true").parquet(Path(folder).as_uri())
        df.schema  # noqa: B018 - the list is read while it is there
        return df


def _line(path: str, size: int) -> str:
    url = path if _PLAIN(path) else quote(path)  # neither has what JSON would escape
    return (
        f'{{"path":"file://{url}","size":{size},"isDir":false,"modificationTime":0,'
        '"blockReplication":1,"blockSize":33554432,"action":"add"}'
    )


_PATHS = "file_path"  # of a delete file: the data file that it is of


def check_size(
    path: str, size: int, wanted: int, table: str | None = None, snapshot_id: int | None = None
) -> None:
    """Raise DataFileCorrupt where a file has another size than in the catalog."""
    if size != wanted:
        why = f"it has {size} bytes where the catalog says {wanted}: another file is in its place"
        raise file_corrupt(path, why, table, snapshot_id)


def check_file(
    file: DataFile | DeleteFile,
    metadata: pq.FileMetaData,
    table: str | None = None,
    snapshot_id: int | None = None,
    size: int | None = None,
) -> None:
    """Raise DataFileCorrupt unless this is the footer of ``file``.

    ``size`` is the size of the file, if known; for a local file it is looked up.
    """
    if size is None and not is_remote(file.path):
        size = os.stat(file.path).st_size  # noqa: PTH116 - a Path costs more than the look
    if size is not None:
        check_size(file.path, size, file.size_bytes, table, snapshot_id)
    rows = file.record_count if isinstance(file, DataFile) else file.delete_count
    footer = metadata.serialized_size
    pairs = (
        ("rows", metadata.num_rows, rows),
        ("bytes of footer", footer, file.footer_size or footer),  # some writers leave it out
    )
    for what, there, registered in pairs:
        if there != registered:
            why = f"it has {there} {what} where the catalog says {registered}"
            raise file_corrupt(file.path, why, table, snapshot_id)


def check_owner(metadata: pq.FileMetaData, data_path: str) -> str | None:
    """Return why a delete file belongs to another data file, by its statistics; ``None`` if it may
    fit.

    Directories may be relative or have moved, so only the file's name and partition count.
    """
    for at in range(metadata.num_row_groups):
        chunk = metadata.row_group(at).column(0)
        statistics = chunk.statistics if chunk.path_in_schema == _PATHS else None
        if statistics is None or not statistics.has_min_max:
            continue
        for text in {statistics.min, statistics.max}:
            if str(text).endswith(".parquet") and _name(str(text)) != _name(data_path):
                return f"it deletes rows of {text}, not of {data_path}"
    return None


def _name(path: str) -> str:
    """The file's name with the directories ``name=value`` right above it."""
    *folders, name = path.replace("\\", "/").split("/")
    while folders and "=" in folders[-1]:
        name = f"{folders.pop()}/{name}"
    return name


_START, _FIRST = "_penstock_start", "_penstock_first"
_SNAPSHOTS, _ENDS = "_penstock_snapshots", "_penstock_ends"


def with_facts(
    spark: SparkSession,
    files: Sequence[DataFile],
    keys: FileKeys,
    df: DataFrame,
    column: str,
    *,
    path: str | None = None,
) -> DataFrame:
    """``df``, rows of files with their keys in ``column``, with the facts that the next need.

    With ``path`` a column of that name has the path of the file.
    """
    counts = [file.partial.counts if file.partial else () for file in files]
    paths = {} if path is None else {path: pa.array([file.path for file in files], pa.string())}
    table = pa.table(
        {
            column: pa.array([keys.key(file.path) for file in files], pa.string()),
            _START: pa.array([file.row_id_start for file in files], pa.int64()),
            _FIRST: pa.array([file.begin_snapshot for file in files], pa.int64()),
            _SNAPSHOTS: pa.array([[s for s, _ in c] or None for c in counts], pa.list_(pa.int64())),
            _ENDS: pa.array([[n for _, n in c] or None for c in counts], pa.list_(pa.int64())),
            **paths,
        }
    )
    return df.join(fn.broadcast(arrow_frame(spark, table)), column, "left")


def with_row_id(df: DataFrame, name: str, embedded: str, position: str) -> DataFrame:
    """With the row's id as ``name``: the one in the file, else the file's first plus the position.

    Call it last: it drops the columns that `with_facts` added.
    """

    row_id = expr(f"coalesce({embedded}, {_START} + {position})")
    return df.withColumn(name, row_id).drop(_START, _FIRST, _SNAPSHOTS, _ENDS)


def with_begin(df: DataFrame, name: str, embedded: str, position: str) -> DataFrame:
    """With the snapshot that made the row as ``name``, from the file or by the row's position."""
    return df.withColumn(name, fn.coalesce(embedded, _by_place(position), fn.col(_FIRST)))


def within_counts(df: DataFrame, position: str, snapshot_id: int | None) -> DataFrame:
    """Only the rows that existed at the snapshot; of a file without counts, all."""
    return df.where(fn.coalesce(_by_place(position) <= fn.lit(snapshot_id), fn.lit(True)))


def _by_place(position: str) -> SparkColumn:
    """The snapshot of the part of the file that the row is in; NULL where there are no counts."""
    before = fn.size(fn.filter(_ENDS, lambda end: end <= fn.col(position)))
    return fn.element_at(fn.col(_SNAPSHOTS), before + 1)


_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/+")


@dataclass(frozen=True, slots=True)
class FileKeys:
    """Keys of files: their names if these differ and are not quoted by Spark, else their paths."""

    by_name: bool

    @classmethod
    def of(cls, paths: Iterable[str]) -> FileKeys:
        names = [_file_name(path) for path in paths]
        return cls(by_name=len(set(names)) == len(names) and all(map(_PLAIN, names)))

    def key(self, path: str) -> str:
        return _file_name(path) if self.by_name else "/" + _SCHEME.sub("/", path).lstrip("/")

    def column(self, df: DataFrame) -> SparkColumn:
        """The key of the file that a row of ``df`` comes from, a frame just read from Parquet."""
        metadata = df.metadataColumn("_metadata")  # also where a table has a column of this name
        if self.by_name:
            return metadata["file_name"]
        # Spark gives a URI. url_decode takes + for a space, as forms do and paths do not.
        path = fn.replace(metadata["file_path"], fn.lit("+"), fn.lit("%2B"))
        return fn.regexp_replace(fn.url_decode(path), "^[A-Za-z][A-Za-z0-9+.-]*:/+", "/")


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
