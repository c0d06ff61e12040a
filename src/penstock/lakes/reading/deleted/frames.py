"""Deleted rows as a DataFrame: positions from delete files and from the catalog.

A join with masks of 64 positions each removes the deleted rows. Consecutive rows need the same
mask, which is in the processor's cache by then. A join on the positions themselves misses the
cache at every row: `bench/scan_deletes.py` took half as long again with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from penstock.errors import UnsupportedFeature
from penstock.lakes.format.files import DataFile, DeleteFile
from penstock.lakes.format.schema import SNAPSHOT_ID
from penstock.lakes.reading.deleted.positions import (
    Gone,
    RowAddresses,
    Whose,
    bound_of,
    combined,
    load,
)
from penstock.lakes.reading.parquet.reading import FileKeys, read_files
from penstock.lazy import pa, pc
from penstock.spark.failures import explained
from penstock.spark.functions import arrow_frame, fn

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lakes.format.files import InlinedDeletes

__all__ = [
    "SNAPSHOT_ID",
    "Deletes",
    "broadcast",
    "deleted_places",
    "deleted_positions",
    "places_on_driver",
    "read_on_driver",
]
_DELETE, _OWNER, _BEGIN = "_penstock_delete", "_penstock_owner", "_penstock_begin"
_ROWS, _BOUND = "_penstock_rows", "_penstock_bound"
# Above this many positions Spark decides itself how to join; each takes 16 to 100 bytes broadcast.
_BROADCAST_ROWS = 5_000_000
# Positions on the driver take 16 bytes each; above this number Spark reads the Parquet files.
_ON_DRIVER = 2_000_000
# Deletion vectors are expanded on the driver, 16 bytes a position: this is 320 MB.
_VECTORS_ON_DRIVER = 20_000_000


@dataclass(frozen=True, slots=True)
class Deletes:
    """The deletes of ``files``, all with a delete file or inlined deletes, at a snapshot.

    ``snapshot_id`` leaves out what a delete file of several snapshots deletes later.
    """

    table: str
    files: Sequence[DataFile]
    snapshot_id: int | None = None
    inlined: InlinedDeletes | None = None

    @property
    def rows(self) -> int:
        """The most rows that are deleted; a delete file may also count later deletes."""
        listed = sum(d.delete_count for f in self.files for d in f.deletes)
        return listed + (self.inlined.rows.num_rows if self.inlined is not None else 0)


def deleted_positions(
    spark: SparkSession,
    deletes: Deletes,
    keys: FileKeys,
    columns: tuple[str, str],
    *,
    since: str | None = None,
) -> DataFrame:
    """Key and position, named ``columns``, of the deleted rows; as ``since`` the snapshot, too.

    The catalog decides which data file a delete file belongs to, never the path inside it, which
    may be relative, moved or missing.
    """

    def on_driver(gone: Sequence[Gone]) -> pa.Table:
        owners = [
            pa.repeat(pa.scalar(keys.key(deleted.file.path)), len(deleted.positions))
            for deleted in gone
        ]
        return pa.table(
            {
                columns[0]: pa.chunked_array(owners, pa.string()),
                columns[1]: pa.chunked_array([deleted.positions for deleted in gone], pa.int64()),
                _BEGIN: pa.chunked_array([deleted.since for deleted in gone], pa.int64()),
            }
        )

    def by_spark(files: Sequence[DataFile]) -> DataFrame:
        owners = pa.array([keys.key(file.path) for file in files], pa.string())
        rows = _by_spark(spark, replace(deletes, files=files), owners)
        names = (_OWNER, columns[0]), ("pos", columns[1]), (_BEGIN, _BEGIN)
        return rows.select(*(fn.col(old).alias(new) for old, new in names))

    rows = _united(spark, deletes, on_driver, by_spark)
    picked = rows.withColumnRenamed(_BEGIN, since) if since else rows.drop(_BEGIN)
    return broadcast(picked, deletes)


def places_on_driver(deletes: Deletes, places: RowAddresses) -> pa.Int64Array | None:
    """The numbers (`RowAddresses`) of the deleted rows; ``None`` unless `read_on_driver`."""
    by_format = _by_format(deletes)
    if not read_on_driver(deletes):
        return None
    gone = load([*by_format["puffin"], *by_format["parquet"]], _whose(deletes))
    gone += _inlined(deletes)
    numbers = [pc.add(deleted.positions, places.base(deleted.file)) for deleted in gone]
    return pa.concat_arrays([pa.array([], pa.int64()), *numbers])


def deleted_places(
    spark: SparkSession, deletes: Deletes, places: RowAddresses, name: str
) -> DataFrame:
    """Number the deleted rows (`RowAddresses`) as column ``name``; some may be duplicates."""

    def on_driver(gone: Sequence[Gone]) -> pa.Table:
        numbers = [pc.add(deleted.positions, places.base(deleted.file)) for deleted in gone]
        return pa.table({name: pa.chunked_array(numbers, pa.int64())})

    def by_spark(files: Sequence[DataFile]) -> DataFrame:
        owners = pa.array([places.base(file) for file in files], pa.int64())
        rows = _by_spark(spark, replace(deletes, files=files), owners)
        return rows.select((fn.col(_OWNER) + fn.col("pos")).alias(name))

    return _united(spark, deletes, on_driver, by_spark)


def read_on_driver(deletes: Deletes) -> bool:
    """Return whether the driver reads the Parquet delete files, if any, rather than a job of
    Spark's.
    """
    parquet = [d for file in deletes.files for d in file.deletes if d.format == "parquet"]
    return not parquet or (deletes.rows <= _ON_DRIVER and not any(map(_is_remote, parquet)))


def _whose(deletes: Deletes) -> Whose:
    return Whose(deletes.table, deletes.snapshot_id)


def _united(
    spark: SparkSession,
    deletes: Deletes,
    on_driver: Callable[[Sequence[Gone]], pa.Table],
    by_spark: Callable[[Sequence[DataFile]], DataFrame],
) -> DataFrame:
    """Vectors, inlined deletes and small delete files by ``on_driver``, others by ``by_spark``."""
    by_format = _by_format(deletes)
    vectors, parquet = by_format["puffin"], by_format["parquet"]
    small = read_on_driver(deletes)
    gone = load([*vectors, *(parquet if small else ())], _whose(deletes))
    gone += _inlined(deletes)
    frames = [arrow_frame(spark, on_driver(gone))] if gone or small else []
    frames += [] if small else [by_spark(parquet)]
    return reduce(lambda a, b: a.unionByName(b), frames)


def _inlined(deletes: Deletes) -> list[Gone]:
    """The inlined deletes of these files."""
    if deletes.inlined is None:
        return []
    rows = deletes.inlined.rows.sort_by("file_id").combine_chunks()
    files = {file.id: file for file in deletes.files if file.id is not None}
    gone, start = [], 0
    for counted in pc.value_counts(rows["file_id"]).to_pylist():  # in the order of the rows
        mine = rows.slice(start, counted["counts"])
        start += counted["counts"]
        file = files.get(counted["values"])
        if file is not None:
            gone.append(Gone(file, combined(mine["position"]), combined(mine["snapshot"])))
    return gone


def _by_format(deletes: Deletes) -> Mapping[str, list[DataFile]]:
    """A data file once for each of its delete files."""
    by_format: dict[str, list[DataFile]] = {"parquet": [], "puffin": []}
    for file in deletes.files:
        for delete in file.deletes:
            kind = "parquet" if delete.format == "parquet" else "puffin"
            by_format[kind].append(replace(file, delete=delete, more_deletes=()))
    vectors = [file.delete for file in by_format["puffin"] if file.delete is not None]
    if sum(delete.delete_count for delete in vectors) > _VECTORS_ON_DRIVER:
        raise _refused(
            deletes.table, f"puffin delete files of more than {_VECTORS_ON_DRIVER:,} rows"
        )
    if any(_is_remote(delete) and delete.format == "puffin" for delete in vectors):
        raise _refused(deletes.table, "puffin delete files that are not on a local disk")
    return by_format


def _refused(table: str, feature: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"table {table} has {feature}, which this version does not read",
        hint="rewrite the table's files with DuckDB: CALL ducklake_rewrite_data_files('lake')",
        data={"feature": feature, "table": table},
    )


def _is_remote(delete: DeleteFile | None) -> bool:
    return delete is not None and "://" in delete.path


def _by_spark(spark: SparkSession, deletes: Deletes, owners: pa.Array) -> DataFrame:
    """The file, position and snapshot of each deleted row, from Parquet delete files."""
    from pyspark.sql.types import StructType

    listed = [file.delete for file in deletes.files if file.delete is not None]
    keys = FileKeys.of(delete.path for delete in listed)
    schema = StructType().add("pos", "long").add(SNAPSHOT_ID, "long")
    at = deletes.snapshot_id
    with explained(table=deletes.table, snapshot_id=at):
        sizes = {delete.path: delete.size_bytes for delete in listed}
        rows = read_files(spark, schema, sizes, table=deletes.table, snapshot_id=at)
        rows = rows.withColumn(_DELETE, keys.column(rows))
        table = pa.table(
            {
                _DELETE: pa.array([keys.key(delete.path) for delete in listed], pa.string()),
                _OWNER: owners,
                _BEGIN: pa.array([delete.begin_snapshot for delete in listed], pa.int64()),
                _ROWS: pa.array([file.record_count for file in deletes.files], pa.int64()),
                _BOUND: pa.array([bound_of(delete, at) for delete in listed], pa.int64()),
            }
        )
        owned = rows.join(fn.broadcast(arrow_frame(spark, table)), _DELETE)
        snapshot, bound = fn.col(SNAPSHOT_ID), fn.col(_BOUND)
        owned = owned.where(snapshot.isNull() | bound.isNull() | (snapshot <= bound))
        since = fn.greatest(fn.col(SNAPSHOT_ID), fn.col(_BEGIN)).alias(_BEGIN)  # not NULL
        return owned.select(_OWNER, _there(deletes.table).alias("pos"), since)


def _there(table: str) -> SparkColumn:
    """The position, checked to be one of the data file's rows."""
    pos = fn.col("pos")
    refusal = fn.raise_error(
        fn.concat(fn.lit(f"a delete file of {table} deletes rows that do not exist: "), _DELETE)
    )
    inside = pos.isNotNull() & (pos >= 0) & (pos < fn.col(_ROWS))
    return fn.when(inside, pos).otherwise(refusal.cast("long"))


def broadcast(rows: DataFrame, deletes: Deletes) -> DataFrame:
    """``rows``, at most one for each delete, broadcast if there are few enough."""
    return fn.broadcast(rows) if deletes.rows <= _BROADCAST_ROWS else rows


_BITS = 6  # 2 ** 6 places in a mask
_WORD, _MASK = "_penstock_word", "_penstock_mask"


def less_deleted(
    spark: SparkSession, df: DataFrame, deletes: Deletes, places: RowAddresses, place: str
) -> DataFrame:
    """Drop the deleted rows from ``df``, whose column ``place`` has their `RowAddresses`."""
    return less_masked(df, broadcast(_masks(spark, deletes, places), deletes), place)


def less_masked(df: DataFrame, masks: DataFrame, place: str) -> DataFrame:
    """Drop the rows of ``df`` that ``masks`` (see `masks`) has, by their numbers in ``place``."""
    masked = df.withColumn(_WORD, fn.shiftright(place, _BITS)).join(masks, _WORD, "left_outer")
    mask, hit = fn.col(_MASK), fn.call_function("shiftright", fn.col(_MASK), _bit(fn.col(place)))
    return masked.where(mask.isNull() | (hit.bitwiseAND(fn.lit(1)) == 0)).drop(_WORD, _MASK)


def _masks(spark: SparkSession, deletes: Deletes, places: RowAddresses) -> DataFrame:
    """A row for each group of 64 positions of which some are deleted."""
    numbers = places_on_driver(deletes, places)
    if numbers is not None:
        return arrow_frame(spark, masks(numbers))
    place = fn.col(_WORD)
    places_df = deleted_places(spark, deletes, places, _WORD)
    bit = fn.call_function("shiftleft", fn.lit(1).cast("long"), _bit(place))
    return places_df.groupBy(fn.shiftright(place, _BITS).alias(_WORD)).agg(
        fn.bit_or(bit).alias(_MASK)
    )


def masks(places: pa.Int64Array) -> pa.Table:
    """Number and mask of each group of 64 positions in ``places``, which may have duplicates."""
    places = pc.unique(places)
    bits = pc.cast(pc.bit_wise_and(places, (1 << _BITS) - 1), pa.uint64())
    table = pa.table(
        {
            _WORD: pc.shift_right(places, _BITS),
            _MASK: pc.shift_left(pa.scalar(1, pa.uint64()), bits),  # each once: their sum is OR
        }
    )
    summed = table.group_by(_WORD).aggregate([(_MASK, "sum")])
    signed = [chunk.view(pa.int64()) for chunk in summed[f"{_MASK}_sum"].chunks]
    return pa.table({_WORD: summed[_WORD], _MASK: pa.chunked_array(signed, pa.int64())})


def _bit(place: SparkColumn) -> SparkColumn:
    return place.bitwiseAND(fn.lit((1 << _BITS) - 1)).cast("int")
