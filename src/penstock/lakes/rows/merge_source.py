"""The source of a merge: fitted to the table, persisted over several passes, its keys checked.

The source of a merge, read by Arrow from the Parquet files that it is.

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
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from penstock.errors import MergeKeyError, SchemaMismatch
from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import Column, TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.limits import LIMITS, Limits
from penstock.lakes.reading.arrow_files import PLAIN, has_old_days
from penstock.lakes.reading.conversions.align import align
from penstock.lakes.reading.conversions.spark_types import cast_type, spark_type
from penstock.lakes.rows.route import compares
from penstock.lazy import pa, pc, pq
from penstock.spark.functions import expr, fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Row, SparkSession


_TOO_MUCH = "spark.driver.maxResultSize"  # Spark's setting, which its error names
_COMMON_YEAR = re.compile(r"\d{4}-")
_SAMPLES = 20
_N = "_penstock_n"
_WIDTHS: Mapping[str, int] = {"varchar": 40, "json": 200, "blob": 100, "uuid": 40}
ORDERED = {
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("date", "timestamp", "timestamp_s", "timestamp_ms", "timestamptz", "varchar", "decimal"),
}


@dataclass(frozen=True, slots=True)
class Source:
    """``frame`` has the columns of ``schema``, a part of the table's.

    ``bounds`` are name, lowest and highest value of keys that order, as `bound_text` has them;
    ``rows`` and ``bounds`` are set by `check_keys`, ``bytes`` (about, of all values) by `count`.
    """

    frame: DataFrame
    schema: TableSchema
    keys: tuple[str, ...]
    rows: int = -1
    bytes: int = -1
    bounds: tuple[tuple[str, str, str], ...] = ()
    limits: Limits = LIMITS

    @property
    def others(self) -> tuple[Column, ...]:
        """The columns that are not keys."""
        return tuple(c for c in self.schema.columns if c.name not in self.keys)

    @property
    def size(self) -> int:
        """Bytes, roughly, that all rows take in memory."""
        return self.rows * sum(_width(column) for column in self.schema.walk())

    @property
    def key_width(self) -> int:
        return sum(_width(c) for c in self.schema.columns if c.name in self.keys)


def _width(column: Column) -> int:
    return 16 + _WIDTHS.get(base_type(column.type), 8)


def merge_source(
    df: DataFrame, schema: TableSchema, keys: Sequence[str], *, table: str, keep: bool
) -> Source:
    """``df`` with the columns that it shares with the table, in the table's types.

    ``keep``: its rows are persisted over the passes, so that its query runs once.
    """
    part, names = key_columns(df, schema, keys, table=table)
    aligned = align(df, part, table=table)  # refuses columns that the table does not have
    frame = df.select(*aligned)
    return Source(frame.persist() if keep else frame, part, names)


def key_columns(
    df: DataFrame, schema: TableSchema, keys: Sequence[str], *, table: str
) -> tuple[TableSchema, tuple[str, ...]]:
    """The columns of the table that ``df`` has, and the table's names of the keys among them."""
    given = {fold(name) for name in df.columns}
    part = TableSchema(tuple(c for c in schema.columns if fold(c.name) in given))
    names: list[str] = []
    for key in keys:
        column = part.find(key)
        if column is None:
            where = "the rows to merge have" if schema.find(key) else f"{table} has"
            raise SchemaMismatch(
                f"{where} no key column {key!r}",
                hint=f"the columns are {', '.join(df.columns)}",
                data={"table": table, "column": key},
            )
        if any(part.type == "map" for part in column.walk()):
            raise SchemaMismatch(
                f"key column {key!r} holds maps, which do not compare",
                hint="merge by other columns",
                data={"table": table, "column": key},
            )
        names.append(column.name)
    return part, tuple(names)


def check_keys(source: Source, *, table: str) -> Source:
    """``source`` with its counts, if no key is NULL and none comes twice.

    Raises MergeKeyError; ``data`` has the counts and up to 20 of the rows' keys.
    """
    rows = collect(
        source.frame, [quoted(key) for key in source.keys], source.limits.small_source_rows
    )
    checked = None if rows is None else checked_on_driver(source, rows)
    if checked is not None:
        return checked
    groups, n = _groups(source), fn.col(_N)
    (found,) = groups.agg(
        fn.coalesce(fn.sum(n), fn.lit(0)).alias("rows"),
        fn.coalesce(fn.sum(fn.when(_any_null(source), n)), fn.lit(0)).alias("nulls"),
        fn.count_if((n > 1) & ~_any_null(source)).alias("duplicates"),
        *_bounds(source),
    ).collect()
    if found["nulls"] or found["duplicates"]:
        raise _refused(source, table, found["nulls"], found["duplicates"])
    return _with_counts(source, found)


def checked_on_driver(source: Source, rows: pa.Table) -> Source | None:
    """``source`` with its counts if ``rows``, which has its keys, surely has unique ones."""
    if has_nulls(rows, source.keys):
        return None
    if distinct(rows, source.keys) != rows.num_rows:
        return None
    found = ((key, bounds(rows, key)) for key in _ordered(source))
    limits = tuple((key, *ends) for key, ends in found if ends is not None)
    return replace(source, rows=rows.num_rows, bounds=limits)


def count(source: Source, *, table: str, measure: bool = False) -> Source:
    """``source`` with its counts, if no key is NULL; that none comes twice is still to be checked.

    For a large target: this needs no shuffle. With ``measure`` all columns are looked at, for their
    bytes. Raises MergeKeyError.
    """
    size = expr(f"coalesce(sum({_bytes(source)}), 0L)") if measure else fn.lit(-1)

    (found,) = source.frame.agg(
        fn.count(fn.lit(1)).alias("rows"),
        fn.count_if(_any_null(source)).alias("nulls"),
        size.alias("bytes"),
        *_bounds(source),
    ).collect()
    if found["nulls"]:
        check_keys(source, table=table)
    return replace(_with_counts(source, found), bytes=found["bytes"])


def _bytes(source: Source) -> str:
    """Return what the values of a row take, about. What is nested is not looked at: no one asks
    then.
    """
    texts = [c for c in source.schema.columns if base_type(c.type) in {"varchar", "json", "blob"}]
    lengths = (f"coalesce(octet_length({quoted(column.name)}), 0)" for column in texts)
    return " + ".join([f"{8 * len(source.schema.columns)}L", *lengths])


def _groups(source: Source) -> DataFrame:
    names = [quoted(key) for key in source.keys]
    return source.frame.groupBy(*names).agg(fn.count(fn.lit(1)).alias(_N))


def _bounds(source: Source) -> list[SparkColumn]:
    found: list[SparkColumn] = []
    for at, key in enumerate(_ordered(source)):
        column, kind = fn.col(quoted(key)), _type_of(source, key)
        found.append(bound_text(fn.min(column), kind).alias(f"low{at}"))
        found.append(bound_text(fn.max(column), kind).alias(f"high{at}"))
    return found


def _ordered(source: Source) -> list[str]:
    return [key for key in source.keys if _type_of(source, key) in ORDERED]


def _with_counts(source: Source, found: Row) -> Source:
    ordered = enumerate(_ordered(source))
    limits = ((key, found[f"low{at}"], found[f"high{at}"]) for at, key in ordered)
    return replace(source, rows=found["rows"], bounds=tuple(limits))


def within_bounds(source: Source) -> list[SparkColumn]:
    """Conditions that every row of the target which the source matches fulfils."""
    conditions: list[SparkColumn] = []
    for key, low, high in source.bounds:
        column = source.schema.find(key)
        assert column is not None, "keys are of the schema"
        ends = (bound_value(text, column) for text in (low, high))
        conditions.append(fn.col(quoted(key)).between(*ends))
    return conditions


def bound_text(value: SparkColumn, kind: str) -> SparkColumn:
    """As text: Python's dates and times are of fewer years, and of the machine's time zone."""
    return (fn.unix_micros(value) if kind == "timestamptz" else value).cast("string")


def bound_value(text: str, column: Column) -> SparkColumn:
    if base_type(column.type) == "timestamptz":
        return fn.timestamp_micros(fn.lit(text).cast("long"))
    return fn.lit(text).cast(cast_type(column))


def _type_of(source: Source, key: str) -> str:
    column = source.schema.find(key)
    return "" if column is None else base_type(column.type)


def _any_null(source: Source) -> SparkColumn:

    return expr(" OR ".join(f"{quoted(key)} IS NULL" for key in source.keys))


def _refused(source: Source, table: str, nulls: int, duplicates: int) -> MergeKeyError:
    names = [quoted(key) for key in source.keys]
    bad = _groups(source).where(_any_null(source) | (fn.col(_N) > 1))
    rows = bad.orderBy(*names).limit(_SAMPLES).withColumnRenamed(_N, "rows").collect()
    samples = [row.asDict(recursive=True) for row in rows]
    key = ", ".join(source.keys)
    parts = [f"{nulls} rows with a NULL in it"] if nulls else []
    parts += [f"{duplicates} values that come more than once"] if duplicates else []
    return MergeKeyError(
        f"the rows to merge into {table} do not have a unique key ({key}): {' and '.join(parts)}",
        hint=f"for example {_shown(samples)}; select one row per key",
        data={"null_count": nulls, "duplicate_count": duplicates, "samples": samples},
    )


def _shown(samples: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(
        ", ".join(
            f"{name} = {'NULL' if value is None else value}" for name, value in sample.items()
        )
        for sample in samples[:3]
    )


def collect(df: DataFrame, columns: Sequence[str], limit: int) -> pa.Table | None:
    """These columns of ``df``, quoted, or None when it has more than ``limit`` rows.

    A small merge waits for jobs, not for data: Arrow stands in for an aggregation in Spark where it
    certainly compares as Spark does.
    """
    rows = to_arrow(df.selectExpr(*columns).limit(limit + 1))
    return rows if rows is not None and rows.num_rows <= limit else None


def to_arrow(df: DataFrame) -> pa.Table | None:
    """The rows of ``df``; None where they are more bytes than Spark lets the driver collect."""
    try:
        return df.toArrow()
    except Exception as error:  # of Py4J or of Spark Connect, which have no class in common
        if _TOO_MUCH in str(error):
            return None
        raise


def distinct(rows: pa.Table, keys: Sequence[str]) -> int | None:
    """Return how many different keys the rows have; None where Arrow may see that otherwise than
    Spark.
    """
    if not all(compares(rows.schema.field(key).type) for key in keys):
        return None
    return int(rows.select(keys).group_by(list(keys)).aggregate([]).num_rows)


def has_nulls(rows: pa.Table, keys: Sequence[str]) -> bool:
    return any(rows[key].null_count for key in keys)


def bounds(rows: pa.Table, key: str) -> tuple[str, str] | None:
    """Lowest and highest value as text that Spark reads back, instants as microseconds; or None."""
    column = rows[key]
    if not len(column):
        return None
    ends = pc.min_max(column)
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        low, high = (str(ends[name].cast(pa.int64()).as_py()) for name in ("min", "max"))
        return low, high
    low, high = (str(ends[name].cast(pa.string()).as_py()) for name in ("min", "max"))
    dated = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if dated and not (_COMMON_YEAR.match(low) and _COMMON_YEAR.match(high)):
        return None
    return low, high


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
