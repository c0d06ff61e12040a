"""The source of a merge, read by Arrow from the Parquet files that it is.

``spark.read.parquet(...)`` is what most large merges are given. Collecting its rows through
Spark takes longer than half of all else. Arrow reads them as Spark does where they are flat columns
under their own names and of the table's own types, and nothing in the files is to be turned.

That a DataFrame is no more than such files is asked of Spark by its public comparison of queries:
it is compared with a scan that is made of the path that its files seem to come from. Where that
was written otherwise (relative, say) the answer is no, and Spark gives the rows. As that takes a
call to Spark, and a look at each footer, it is asked last, by merges into large tables alone, and
is no fact of each change that `route` knows.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from penstock.lake.format.inlined.values import arrow_schema
from penstock.lake.format.naming import fold
from penstock.lake.format.values.bounds import base_type
from penstock.lake.reading.arrow_files import PLAIN, has_old_days
from penstock.lake.reading.conversions.spark_types import spark_type
from penstock.lazy import pa, pc, pq

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.format.schema import TableSchema

_FIELD_ID = "parquet.field.id"  # Spark finds the column by it, whatever its name
_VERSION = b"org.apache.spark.version"
_YEAR_1901 = -25_202  # days from 1970


def is_bare_scan(spark: SparkSession, df: DataFrame) -> bool:
    """Return whether ``df`` is the scan of one Parquet file or directory, and no more than that.

    Such rows cost no more to read again than to keep, and are the same each time.
    """
    from pyspark.errors import PySparkException

    files = [unquote(uri) for uri in df.inputFiles()]
    folders = {file.rpartition("/")[0] for file in files}
    if len(folders) != 1:
        return False
    paths = [path for uri in (*folders, files[0]) for path in (uri.removeprefix("file://"), uri)]
    # Names do not count in the comparison; a scan by other names has another schema, though.
    read = spark.read.schema(df.schema)
    try:
        return any(df.sameSemantics(read.parquet(path)) for path in dict.fromkeys(paths))
    except PySparkException:  # of files that went meanwhile: who reads them says so
        return False


def local_files(df: DataFrame, most: int, rows: int) -> list[Path] | None:
    """The files that ``df`` reads, where they are on this disk and have ``most`` bytes and ``rows``
    at most.

    Not those in directories such as ``day=1``, which Spark takes columns from.
    """
    found: list[Path] = []
    total = 0
    for uri in df.inputFiles():
        parts = urlsplit(uri)
        if parts.scheme not in {"", "file"}:
            return None
        found.append(Path(unquote(parts.path)))
        if "=" in str(found[-1].parent):
            return None
        try:
            total += found[-1].stat().st_size
        except OSError:
            return None
    try:
        is_small = total <= most and sum(pq.read_metadata(file).num_rows for file in found) <= rows
    except (pa.ArrowException, OSError):
        return None
    return found if is_small else None


def read_source(df: DataFrame, schema: TableSchema, files: list[Path]) -> pa.Table | None:
    """The rows of ``df``, a bare scan, with the columns of ``schema``, in its order and types.

    ``None`` where they are left to Spark.
    """
    fields = {field.name: field for field in df.schema.fields}
    given = {fold(name): name for name in fields}
    names = [given.get(fold(column.name), "") for column in schema.columns]
    if not all(
        name in fields
        and column.nullable
        and base_type(column.type) in PLAIN
        and fields[name].dataType == spark_type(column)
        and _FIELD_ID not in fields[name].metadata
        for name, column in zip(names, schema.columns, strict=True)
    ):
        return None
    wanted = arrow_schema(schema)
    with ThreadPoolExecutor(2, "penstock-source") as pool:
        parts = list(pool.map(lambda file: _read(file, names, wanted), files))
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return pa.concat_tables([wanted.empty_table(), *known])


def _read(file: Path, names: list[str], wanted: pa.Schema) -> pa.Table | None:
    try:
        with pq.ParquetFile(file, memory_map=True, coerce_int96_timestamp_unit="us") as content:
            fields, notes = content.schema_arrow, content.metadata.metadata or {}
            folded = [fold(name) for name in fields.names]
            if has_old_days(content.metadata) or any(
                name not in fields.names or folded.count(fold(name)) > 1 for name in names
            ):
                return None
            utc = pa.timestamp("us", "UTC")
            by_spark = _is_new(notes[_VERSION]) if _VERSION in notes else None
            instants = _int96(content) if by_spark else ()
            kinds = [utc if name in instants else fields.field(name).type for name in names]
            if by_spark is False or kinds != wanted.types:
                return None
            rows = content.read(names, use_threads=False)
        found = pa.table([rows[name] for name in names], names=wanted.names).cast(wanted)
        found.validate(full=True)  # invalid UTF-8 is left to Spark
    except (pa.ArrowException, OSError):
        return None
    return found if by_spark or _are_of_late(found) else None


def _is_new(version: bytes) -> bool:
    """Return whether this Spark wrote dates and times as they are read now (3.1 and later)."""
    numbers = re.match(rb"(\d+)\.(\d+)", version)
    return numbers is not None and tuple(map(int, numbers.groups())) >= (3, 1)


def _int96(content: pq.ParquetFile) -> frozenset[str]:
    """Columns that hold instants as Spark writes them by default."""
    schema = content.schema
    columns = (schema.column(at) for at in range(len(schema)))
    return frozenset(column.path for column in columns if column.physical_type == "INT96")


def _are_of_late(rows: pa.Table) -> bool:
    """Return whether dates and times are of years in which all calendars and settings agree."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type):
            lowest = pc.min(column.cast(pa.date32()).cast(pa.int32())).as_py()
            if lowest is not None and lowest < _YEAR_1901:
                return False
    return True
