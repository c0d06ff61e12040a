"""The change feed of a table: its row versions that began and ended in a range of snapshots.

As in DuckDB's ``table_changes``, both bounds are inclusive, the columns are those of the end
snapshot, and a row id that ends and begins in the same snapshot is an update. A deleted row is read
from the file that had it, at the deleted position.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.catalog.files import feed as catalog_feed
from penstock.lakes.catalog.files.feed import Bound, Changed, Range
from penstock.lakes.format.files import DataFile, FileSet, InlinedPart, InlinedRows, Table
from penstock.lakes.format.naming import TableRef
from penstock.lakes.reading.deleted.frames import Deletes, deleted_positions
from penstock.lakes.reading.scan import BEGIN, END, FILE, POSITION, ROW_ID, Scan, read, read_inlined
from penstock.lazy import pa
from penstock.spark.failures import explained
from penstock.spark.functions import arrow_frame, fn
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

# The columns of a feed before those of the table, with DuckDB's names.
SNAPSHOT_ID, ROWID, CHANGE_TYPE = "snapshot_id", "rowid", "change_type"
# Their names beside the table's columns, which may have the same names.
_SNAPSHOT, _KIND = "_penstock_snapshot", "_penstock_kind"
_SINCE, _END = "_penstock_since", "_penstock_end"
_INSERT, _DELETE = "insert", "delete"
_UPDATES: Mapping[str, str] = {_INSERT: "update_postimage", _DELETE: "update_preimage"}


def changes(
    spark: SparkSession, catalog: Catalog, ref: TableRef, from_: Bound, to: Bound
) -> DataFrame:
    """SNAPSHOT_ID, ROWID, CHANGE_TYPE and the table's columns as they are at ``to``.

    It has a row for each inserted (``insert``) or deleted (``delete``) row, and for an update its
    ``update_preimage`` and its ``update_postimage``. ``from_`` and ``to`` are ids of snapshots or
    times; the feed is empty when ``from_`` is the later. Raises SnapshotNotFound, TableNotFound.
    """
    source = _Source.of(spark, catalog, ref, from_, to)
    with explained(table=str(ref), snapshot_id=source.changed.range.last):
        alone, paired = source.apart()
        both = _of_kind(source.come(paired), _INSERT).union(_of_kind(source.gone(), _DELETE))
        rows = _paired(both) if source.may_pair(paired) else both
        appended = source.begun(alone)
        if appended is not None:
            rows = rows.union(_of_kind(appended, _INSERT))
        return source.named(rows, {_SNAPSHOT: SNAPSHOT_ID, ROW_ID: ROWID, _KIND: CHANGE_TYPE})


def insertions(
    spark: SparkSession, catalog: Catalog, ref: TableRef, from_: Bound, to: Bound
) -> DataFrame:
    """SNAPSHOT_ID, ROWID and the columns of new rows, by inserts and updates alike."""
    source = _Source.of(spark, catalog, ref, from_, to)
    with explained(table=str(ref), snapshot_id=source.changed.range.last):
        rows = source.come(source.changed.begun.files)
        return source.named(rows, {_SNAPSHOT: SNAPSHOT_ID, ROW_ID: ROWID})


def deletions(
    spark: SparkSession, catalog: Catalog, ref: TableRef, from_: Bound, to: Bound
) -> DataFrame:
    """SNAPSHOT_ID, ROWID and the columns of removed rows, by deletes and updates alike."""
    source = _Source.of(spark, catalog, ref, from_, to)
    with explained(table=str(ref), snapshot_id=source.changed.range.last):
        return source.named(source.gone(), {_SNAPSHOT: SNAPSHOT_ID, ROW_ID: ROWID})


@dataclass(frozen=True, slots=True)
class Images:
    """The rows that changed: as they were before, and as they are after, both with ROW_ID."""

    before: DataFrame
    after: DataFrame


def images(
    spark: SparkSession,
    catalog: Catalog,
    ref: TableRef,
    within: Range,
    only: Collection[int] | None = None,
) -> Images:
    """Each row that changed in ``within`` once, before its first change and after its last.

    A row that came and went within the range is in neither. ``only`` are the snapshots whose
    changes count. The columns are those at the end of the range. Raises TableNotFound.
    """
    source = _Source.within(spark, catalog, ref, within)
    with explained(table=str(ref), snapshot_id=within.last):
        alone, paired = source.apart()
        rows = _of_kind(source.come([*alone, *paired]), _INSERT)
        if source.has_lost():
            rows = rows.union(_of_kind(source.gone(), _DELETE))
        if only is not None:
            rows = rows.where(fn.col(_SNAPSHOT).isin(*only))
        first, last = fn.min_by(_END, _SINCE), fn.max_by(_END, _SINCE)
        ends = _events(rows).groupBy(ROW_ID)
        first_of = ends.agg(first.alias(_END), fn.min(_SINCE).alias(_SINCE))
        last_of = ends.agg(last.alias(_END), fn.max(_SINCE).alias(_SINCE))
        is_new = fn.col(_SINCE)[_KIND]
        before = first_of.where(~is_new).select(f"{_END}.*")
        after = last_of.where(is_new).select(f"{_END}.*")
        return Images(*(source.named(df, {ROW_ID: ROW_ID}) for df in (before, after)))


@dataclass(frozen=True, slots=True)
class FinalRows:
    """``df`` has the table's columns; ``lost``: rows may have been updated or removed, too."""

    df: DataFrame
    lost: bool


def final_rows(
    spark: SparkSession,
    catalog: Catalog,
    ref: TableRef,
    from_: int,
    to: int,
    *,
    only_new: bool = False,
) -> FinalRows:
    """The rows that are at ``to`` what they were not before ``from_``: each once, as it is then.

    So a row that was inserted and deleted within the range is left out. ``only_new`` leaves out
    updates of rows that were there before. Raises SnapshotNotFound, TableNotFound.
    """
    source = _Source.of(spark, catalog, ref, from_, to)
    with explained(table=str(ref), snapshot_id=source.changed.range.last):
        alone, paired = source.apart()
        if not source.has_lost():
            return FinalRows(source.named(source.come([*alone, *paired]), {}), lost=False)
        come = source.come([*alone, *paired])
        both = _of_kind(come, _INSERT).union(_of_kind(source.gone(), _DELETE))
        return FinalRows(source.named(_last_images(both, only_new=only_new), {}), lost=True)


def _last_images(rows: DataFrame, *, only_new: bool) -> DataFrame:
    """The last image of each row that is there in the end. An update removes before it inserts."""
    last = (
        _events(rows)
        .groupBy(ROW_ID)
        .agg(
            fn.max_by(_END, _SINCE).alias(_END),
            fn.max(_SINCE).alias(_SINCE),
            fn.min(_SINCE).alias(_SNAPSHOT),
        )
    )
    stays = fn.col(_SINCE)[_KIND]
    if only_new:
        stays = stays & fn.col(_SNAPSHOT)[_KIND]
    return last.where(stays).select(f"{_END}.*")


def _events(rows: DataFrame) -> DataFrame:
    """ROW_ID, _SINCE as snapshot and whether the row came, which sorts by time, and _END as the
    whole row.
    """
    known = fn.coalesce(ROW_ID, fn.raise_error(fn.lit("a row of a changed file has no row id")))
    event = fn.struct(fn.col(_SNAPSHOT), (fn.col(_KIND) == _INSERT).alias(_KIND))
    whole = fn.struct(*(quoted(name) for name in rows.columns))
    return rows.select(known.alias(ROW_ID), event.alias(_SINCE), whole.alias(_END))


@dataclass(frozen=True, slots=True)
class _Source:
    """The changed rows of ``table``, as it is at the end of the range."""

    spark: SparkSession
    table: Table
    changed: Changed

    @classmethod
    def of(
        cls, spark: SparkSession, catalog: Catalog, ref: TableRef, from_: Bound, to: Bound
    ) -> _Source:
        with catalog.reading() as connection:
            within = catalog_feed.load_range(connection, from_, to)
        return cls.within(spark, catalog, ref, within)

    @classmethod
    def within(cls, spark: SparkSession, catalog: Catalog, ref: TableRef, within: Range) -> _Source:
        table = catalog.table(ref.schema, ref.name, within.last)
        with catalog.reading() as connection:
            return cls(spark, table, catalog_feed.load_changed(connection, table, within))

    def apart(self) -> tuple[list[DataFile], list[DataFile]]:
        """Files whose rows cannot be updates, as their snapshots deleted nothing, and the others.

        So rows that were only appended avoid the shuffle that pairs updates.
        """
        may_end = self.changed.may_end()
        alone: list[DataFile] = []
        others: list[DataFile] = []
        for file in self.changed.begun.files:
            at = file.begin_snapshot
            sure = file.partial is None and at is not None and not may_end(at)
            (alone if sure else others).append(file)
        return alone, others

    def may_pair(self, begun: Sequence[DataFile]) -> bool:
        return bool(begun or self.changed.inlined.begun) and self.has_lost()

    def has_lost(self) -> bool:
        """Return whether rows may have ended in the range."""
        return bool(self.changed.lost.files or self.changed.inlined.ended)

    def come(self, files: Sequence[DataFile]) -> DataFrame:
        """The rows that began, in these data files or inlined: _SNAPSHOT, ROW_ID, the columns."""
        return self._union([self.begun(files), self._inlined(self.changed.inlined.begun, BEGIN)])

    def begun(self, files: Sequence[DataFile]) -> DataFrame | None:
        """The rows of these data files that began in the range."""
        if not files:
            return None
        rows = read(self.spark, self._scan(self.changed.begun, files), row_ids=True)
        partial = any(file.partial is not None for file in files)
        return self._at(rows, rows[BEGIN]) if partial else self._as(rows, rows[BEGIN])

    def gone(self) -> DataFrame:
        """The rows that ended: _SNAPSHOT, ROW_ID and the columns."""
        ends = self.changed.ends
        whole = [file for file in self.changed.lost.files if file.id in ends]
        rest = [file for file in self.changed.lost.files if file.id not in ends]
        inlined = self._inlined(self.changed.inlined.ended, END)
        return self._union([self._deleted(rest), self._ended(whole), inlined])

    def named(self, rows: DataFrame, first: Mapping[str, str]) -> DataFrame:
        """The columns ``first`` under their final names, then the table's."""
        names = self.table.schema.names
        picked = rows.select(*first, *(quoted(name) for name in names))
        return picked.toDF(*first.values(), *names)

    def _scan(self, of: FileSet, files: Sequence[DataFile]) -> Scan:
        """A scan of files with all their rows, deleted or not."""
        some = FileSet(tuple(files), of.mappings)
        return Scan(self.table.qualified_name, self.table.schema, some, None)

    def _deleted(self, files: Sequence[DataFile]) -> DataFrame | None:
        """Rows that ended by a delete of their own."""
        if not files:
            return None
        scan = self._scan(self.changed.lost, files)
        rows = read(self.spark, scan, positions=True, row_ids=True)
        deleted = rows.join(self._positions(scan), [FILE, POSITION])
        return self._at(deleted, deleted[_SINCE])

    def _ended(self, files: Sequence[DataFile]) -> DataFrame | None:
        """Rows of files that ended as a whole: the remaining ones, and those deleted before."""
        if not files:
            return None
        scan = self._scan(self.changed.lost, files)
        rows = read(self.spark, scan, positions=True, row_ids=True)
        rows = rows.join(fn.broadcast(self._ends(scan)), FILE)
        if not self._deletes(scan).files:
            return self._as(rows, rows[_END])
        joined = rows.join(self._positions(scan), [FILE, POSITION], "left")
        return self._at(joined, fn.coalesce(joined[_SINCE], joined[_END]))

    def _ends(self, scan: Scan) -> DataFrame:
        """FILE and the snapshot that ended the file."""
        keys, ends = scan.keys(), self.changed.ends
        pairs = [(keys.key(f.path), ends[f.id]) for f in scan.files.files if f.id is not None]
        columns = {FILE: pa.array([key for key, _ in pairs], pa.string())}
        columns[_END] = pa.array([end for _, end in pairs], pa.int64())
        return arrow_frame(self.spark, pa.table(columns))

    def _deletes(self, scan: Scan) -> Deletes:
        """The deletes from the scan's files up to the end of the range.

        A file is listed once for each of its delete files, and once for inlined deletes.
        """
        inlined = self.changed.inlined_deletes
        mine = {file.id for file in scan.files.files}
        hit = set(inlined.rows["file_id"].unique().to_pylist())
        files = [file for file in self.changed.deletes if file.id in mine]
        files += [file for file in scan.files.files if file.id in hit]
        return Deletes(scan.table, files, self.changed.range.last, inlined)

    def _positions(self, scan: Scan) -> DataFrame:
        """FILE, POSITION and _SINCE of deleted rows, each position once.

        A delete file also has the positions of the one that it replaced: the first delete counts.
        """
        deletes = self._deletes(scan)
        positions = deleted_positions(
            self.spark, deletes, scan.keys(), (FILE, POSITION), since=_SINCE
        )
        ids = [file.id for file in deletes.files]
        if len(set(ids)) == len(ids):
            return positions
        return positions.groupBy(FILE, POSITION).agg(fn.min(_SINCE).alias(_SINCE))

    def _inlined(self, parts: Sequence[InlinedPart], at: str) -> DataFrame | None:
        """Inlined rows, with the snapshot in which they began or ended."""
        if not parts:
            return None
        rows = InlinedRows(tuple(parts))
        df = read_inlined(self.spark, self.table.schema, rows, extra=True, ends=True)
        return self._as(df, df[at])

    def _at(self, rows: DataFrame, snapshot: SparkColumn) -> DataFrame:
        """Return those of the rows whose snapshot is in the range."""
        within = self.changed.range
        return self._as(rows.where(snapshot.between(within.first, within.last)), snapshot)

    def _as(self, rows: DataFrame, snapshot: SparkColumn) -> DataFrame:
        names = (quoted(name) for name in self.table.schema.names)
        return rows.select(snapshot.alias(_SNAPSHOT), ROW_ID, *names)

    def _union(self, parts: Sequence[DataFrame | None]) -> DataFrame:
        present = [part for part in parts if part is not None]
        if present:
            return reduce(lambda a, b: a.union(b), present)
        nothing = read(self.spark, self._scan(FileSet(()), ()), row_ids=True)
        return self._as(nothing, nothing[BEGIN])


def _of_kind(rows: DataFrame, kind: str) -> DataFrame:
    return rows.withColumn(_KIND, fn.lit(kind))


def _paired(rows: DataFrame) -> DataFrame:
    """Mark a removed and a new row with the same row id and snapshot as an update's two images."""
    from pyspark.sql import Window

    kind = fn.col(_KIND)
    same = Window.partitionBy(_SNAPSHOT, ROW_ID)
    both = (fn.min(_KIND).over(same) != fn.max(_KIND).over(same)) & fn.col(ROW_ID).isNotNull()
    image = fn.when(kind == _INSERT, _UPDATES[_INSERT]).otherwise(_UPDATES[_DELETE])
    return rows.withColumn(_KIND, fn.when(both, image).otherwise(kind))
