"""The rows of a table at a snapshot as one DataFrame: files, deletes, and inlined rows.

Files without deletes are read separately from those with, and cost as much as a plain
``spark.read.parquet``; `parquet.columns` groups files further. Rows of merged files that are newer
than the snapshot are filtered by the snapshot-id column in the file, or by their position in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from penstock.lakes.format.files import (
    BEGIN_COLUMN,
    END_COLUMN,
    ROW_ID_COLUMN,
    DataFile,
    FileSet,
    InlinedPart,
    InlinedRows,
)
from penstock.lakes.format.inlined.values import arrow_schema, batch_schema, batches, counted
from penstock.lakes.format.schema import EMBEDDED_ROW_ID, SNAPSHOT_FIELD, Column, TableSchema
from penstock.lakes.format.types import FIELD_ID
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions.spark_types import spark_schema, spark_type
from penstock.lakes.reading.conversions.widening import from_old
from penstock.lakes.reading.deleted.frames import (
    SNAPSHOT_ID,
    Deletes,
    deleted_positions,
    less_deleted,
)
from penstock.lakes.reading.deleted.positions import RowAddresses
from penstock.lakes.reading.parquet.columns import (
    FileGroup,
    embedded_row_id,
    grouped,
    names_in_files,
    stored,
    values,
)
from penstock.lakes.reading.parquet.reading import (
    FileKeys,
    read_files,
    with_begin,
    with_facts,
    with_row_id,
    within_counts,
)
from penstock.lazy import pa
from penstock.spark.failures import explained
from penstock.spark.functions import fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

# Columns of a scan beside the table's; no user column can have these names on DuckDB's side either.
FILE = "_penstock_file"
POSITION = "_penstock_position"
ROW_ID = "_penstock_row_id"
BEGIN = "_penstock_begin"
PATH = "_penstock_path"
_OPEN_COST = 4 << 20  # bytes: spark.sql.files.openCostInBytes, below which no file is split
_PLACE = "_penstock_place"
_KINDS = {FILE: "string", POSITION: "long", EMBEDDED_ROW_ID: "long", ROW_ID: "long"}
_KINDS |= {BEGIN: "long", PATH: "string"}
_POSITIONS, _ROW_IDS = (FILE, POSITION, EMBEDDED_ROW_ID), (ROW_ID, BEGIN)


@dataclass(frozen=True, slots=True)
class Scan:
    """A selection to read: the files of ``table`` with the columns of ``schema``.

    ``snapshot_id`` bounds the rows and deletes of files with several snapshots; ``None`` takes all.
    """

    table: str
    schema: TableSchema
    files: FileSet
    snapshot_id: int | None = None

    def keys(self) -> FileKeys:
        return FileKeys.of(file.path for file in self.files.files)


@dataclass(frozen=True, slots=True)
class _Needs:
    """Steps that the rows of some files need after reading."""

    deletes: bool  # some are deleted
    by_column: bool  # a column of the file has the snapshot of each row
    counted: bool  # the catalog has the number of rows of each snapshot


def read(
    spark: SparkSession,
    scan: Scan,
    *,
    positions: bool = False,
    row_ids: bool = False,
    paths: bool = False,
) -> DataFrame:
    """The rows of a scan, as the files and the catalog have them at its snapshot.

    With ``positions`` also FILE, POSITION and EMBEDDED_ROW_ID: FILE is a key of ``scan.keys()``,
    POSITION the row's position in its file from 0; both are NULL for an inlined row, which is
    identified by its EMBEDDED_ROW_ID. With ``row_ids`` also ROW_ID, which is DuckDB's ``rowid``,
    and BEGIN, the snapshot that made this version of the row; with ``paths`` too PATH, where the
    row is: the file's path, or the name of the catalog's table.
    """
    extra = (*(_POSITIONS if positions else ()), *(_ROW_IDS if row_ids else ()))
    extra = (*extra, PATH) if paths else extra
    with explained(table=scan.table, snapshot_id=scan.snapshot_id):
        parts = [
            _read_group(_Job(spark, scan, group, needs, files, extra))
            for group, needs, files in _groups(scan)
        ]
        if scan.files.inlined is not None:
            parts.append(_inlined(spark, scan.schema, scan.files.inlined, extra))
        if not parts:
            return _empty(spark, scan.schema, extra)
        whole = reduce(lambda a, b: a.union(b), parts)
        return whole if extra or not is_one_task(scan.files) else whole.coalesce(1)


@dataclass(frozen=True, slots=True)
class Rows:
    """``one_task``: the files are small, and Spark reads them in one task."""

    df: DataFrame
    one_task: bool = False


def rows_of(spark: SparkSession, scan: Scan) -> Rows:
    return Rows(read(spark, scan), is_one_task(scan.files))


def is_one_task(files: FileSet) -> bool:
    """Return whether Spark reads all rows in one task anyway.

    Spark does not know that this is a single partition: it would shuffle before aggregates and
    joins, and plan again after the shuffle, which takes most of the time for a small table.
    """
    return (
        files.inlined is None and len(files.files) == 1 and files.files[0].size_bytes <= _OPEN_COST
    )


def _inlined(
    spark: SparkSession, schema: TableSchema, rows: InlinedRows, extra: Sequence[str]
) -> DataFrame:
    """Inlined rows with the columns of a scan."""
    df = read_inlined(spark, schema, rows, extra=bool(extra), paths=PATH in extra)
    if FILE not in extra:
        return df
    known = {EMBEDDED_ROW_ID: fn.col(ROW_ID), ROW_ID: fn.col(ROW_ID), BEGIN: fn.col(BEGIN)}
    known[PATH] = fn.col(PATH)
    system = (known.get(name, fn.lit(None)).cast(_KINDS[name]).alias(name) for name in extra)
    return df.select(*(quoted(name) for name in schema.names), *system)


def with_row_ids(spark: SparkSession, scan: Scan, df: DataFrame) -> DataFrame:
    """``df``, a scan with positions (or a selection of one), with ROW_ID added.

    A row's id is the one embedded in its file, else the file's first id plus its position.
    """
    facts = with_facts(spark, scan.files.files, scan.keys(), df, FILE)
    return with_row_id(facts, ROW_ID, EMBEDDED_ROW_ID, POSITION)


def _groups(scan: Scan) -> Iterator[tuple[FileGroup, _Needs, list[DataFile]]]:
    """Files that are read in the same way."""
    deleted = scan.files.inlined_deletes
    hit = set() if deleted is None else set(deleted.rows["file_id"].unique().to_pylist())
    for group, files in grouped(scan.table, scan.schema, scan.files).items():
        by_needs: dict[_Needs, list[DataFile]] = {}
        for file in files:
            by_needs.setdefault(_needs(file, scan.snapshot_id, hit), []).append(file)
        for needs, some in by_needs.items():
            yield group, needs, some


def _needs(file: DataFile, snapshot_id: int | None, hit: set[int]) -> _Needs:
    partial = file.partial
    inside = partial is not None and snapshot_id is not None and snapshot_id < partial.last
    counted = inside and partial is not None and bool(partial.counts)
    deletes = bool(file.deletes) or file.id in hit
    return _Needs(deletes, by_column=inside and not counted, counted=counted)


@dataclass(frozen=True, slots=True)
class _Job:
    spark: SparkSession
    scan: Scan
    group: FileGroup
    needs: _Needs
    files: Sequence[DataFile]
    extra: tuple[str, ...]

    @property
    def by_file(self) -> bool:
        """Return whether the rows need the catalog's facts about their file."""
        return self.needs.counted or ROW_ID in self.extra

    @property
    def by_snapshot(self) -> bool:
        """Return whether the rows need the snapshot-id column, which is NULL in
        files without it.
        """
        return self.needs.by_column or BEGIN in self.extra

    def places(self) -> RowAddresses | None:
        return RowAddresses.by_size(self.files) if self.needs.deletes else None

    def beside(self, df: DataFrame) -> list[SparkColumn]:
        """Columns that the steps need."""
        places, table = self.places(), self.scan.table
        by_key = self.by_file or FILE in self.extra or (self.needs.deletes and places is None)
        columns: list[SparkColumn] = []
        if by_key:
            columns.append(self.scan.keys().column(df).alias(FILE))
            columns.append(df.metadataColumn("_metadata")["row_index"].alias(POSITION))
        if places is not None:
            columns.append(places.read_column(df, table).alias(_PLACE))
        if self.extra:
            columns.append(embedded_row_id(self.group))
        if self.by_snapshot:
            columns.append(df[SNAPSHOT_ID])
        return columns


def _read_group(job: _Job) -> DataFrame:
    scan, group, extra = job.scan, job.group, job.extra
    named = names_in_files(scan.schema, scan.files, group)
    columns = stored(named, group, row_ids=bool(extra))
    if job.by_snapshot:
        metadata = {FIELD_ID: SNAPSHOT_FIELD} if group.mapping is None else {}
        columns = columns.add(SNAPSHOT_ID, "long", True, metadata)
    sizes = {file.path: file.size_bytes for file in job.files}
    df = read_files(job.spark, columns, sizes, table=scan.table, snapshot_id=scan.snapshot_id)
    as_they_stand, selected = values(named, scan.schema, group)
    if job.needs == _Needs(False, False, False) and not extra:
        return df if as_they_stand else df.select(*selected)
    df = df.select(*selected, *job.beside(df))
    if job.needs == _Needs(False, False, False) and extra == _POSITIONS:
        return df
    for step in (_until_snapshot, _less_deleted, _with_facts):
        df = step(job, df)
    return df.selectExpr(*(quoted(name) for name in (*scan.schema.names, *extra)))


def _until_snapshot(job: _Job, df: DataFrame) -> DataFrame:
    """Filter the rows that are newer than the snapshot, by the snapshot-id column."""
    if not job.needs.by_column:
        return df
    snapshot = fn.col(SNAPSHOT_ID)
    return df.where(snapshot.isNull() | (snapshot <= fn.lit(job.scan.snapshot_id)))


def _less_deleted(job: _Job, df: DataFrame) -> DataFrame:
    if not job.needs.deletes:
        return df
    scan, places = job.scan, job.places()
    deletes = Deletes(scan.table, job.files, scan.snapshot_id, scan.files.inlined_deletes)
    if places is not None:
        return less_deleted(job.spark, df, deletes, places, _PLACE)
    deleted = deleted_positions(job.spark, deletes, scan.keys(), (FILE, POSITION))
    return df.join(deleted, [FILE, POSITION], "left_anti")


def _with_facts(job: _Job, df: DataFrame) -> DataFrame:
    """Add the columns that depend on the file and the position in it."""
    if not job.by_file:
        return df
    path = PATH if PATH in job.extra else None
    df = with_facts(job.spark, job.files, job.scan.keys(), df, FILE, path=path)
    if job.needs.counted:
        df = within_counts(df, POSITION, job.scan.snapshot_id)
    if ROW_ID not in job.extra:
        return df
    df = with_begin(df, BEGIN, SNAPSHOT_ID, POSITION)
    return with_row_id(df, ROW_ID, EMBEDDED_ROW_ID, POSITION)


def _empty(spark: SparkSession, schema: TableSchema, extra: Iterable[str]) -> DataFrame:
    columns = [fn.lit(None).cast(spark_type(c)).alias(c.name) for c in schema.columns]
    columns += [fn.lit(None).cast(_KINDS[name]).alias(name) for name in extra]
    return spark.range(0).select(*columns)


END = "_penstock_end"


def read_inlined(
    spark: SparkSession,
    schema: TableSchema,
    rows: InlinedRows,
    *,
    extra: bool = False,
    ends: bool = False,
    paths: bool = False,
) -> DataFrame:
    """The rows with exactly the columns of ``schema``, which may differ from their own schema.

    With ``extra`` also ROW_ID and BEGIN, the snapshot in which the row began; with ``ends`` also
    END, the one in which it ended (longs); with ``paths`` PATH, the name of the catalog's table.
    """
    system = {ROW_ID_COLUMN: ROW_ID, BEGIN_COLUMN: BEGIN} if extra else {}
    system |= {END_COLUMN: END} if ends else {}
    alike: dict[tuple[TableSchema, str | None], list[InlinedPart]] = {}
    for part in rows.parts:
        key = batch_schema(part, schema), part.table if paths else None
        alike.setdefault(key, []).append(part)
    frames: list[DataFrame] = []
    for (old, table), parts in alike.items():
        df = _inlined_frame(spark, schema, old, parts, system)
        frames.append(df.withColumn(PATH, fn.lit(table).cast("string")) if paths else df)
    return reduce(lambda a, b: a.union(b), frames)


def _inlined_frame(
    spark: SparkSession,
    schema: TableSchema,
    old: TableSchema,
    parts: Sequence[InlinedPart],
    system: Mapping[str, str],
) -> DataFrame:
    """Parts whose values have the same types, ``old``."""
    rows = [batch for part in parts for batch in batches(part, old, system)]
    table = pa.Table.from_batches(rows, arrow_schema(old, system))
    stored = spark_schema(TableSchema(tuple(counted(column) for column in old.columns)))
    for name in system.values():
        stored = stored.add(name, "long")
    df = spark.createDataFrame(table, schema=stored)
    pairs = zip(old.columns, schema.columns, strict=True)
    return df.select(*(_inlined_value(was, column) for was, column in pairs), *system.values())


def _inlined_value(old: Column, column: Column) -> SparkColumn | str:
    """A column as users see it.

    Spark cannot represent all nanoseconds, which must fail only when the column is used.
    """
    if old == column and counted(column) == column:
        return quoted(column.name)
    was, now = _only_stored(old, column)
    return from_old(quoted(column.name), was, now, frozenset()).alias(column.name)


def _only_stored(old: Column, new: Column) -> tuple[Column, Column]:
    """Both schemas with only nanoseconds in another form than users see."""
    pairs = [_only_stored(*pair) for pair in zip(old.children, new.children, strict=True)]
    if not pairs and old.type == new.type and base_type(old.type) != "timestamp_ns":
        return replace(old, type="int64"), replace(new, type="int64")
    olds, news = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    return replace(old, children=olds), replace(new, children=news)
