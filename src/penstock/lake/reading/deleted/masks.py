"""Deleted rows as masks of 64 places each, and a frame without the rows that they delete.

Rows that follow each other ask for the same mask, which is in the processor's cache by then. A join
on the places themselves misses the cache at every row: `bench/scan_deletes.py` took half as long
again with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lake.reading.deleted.frames import Deletes, broadcast, deleted_places, places_here
from penstock.lake.reading.deleted.places import Places

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

_BITS = 6  # 2 ** 6 places in a mask
_WORD, _MASK = "_penstock_word", "_penstock_mask"


def less_deleted(
    spark: SparkSession, df: DataFrame, deletes: Deletes, places: Places, place: str
) -> DataFrame:
    """``df`` without the deleted rows. Its column ``place`` has each row's number (`Places`)."""
    from pyspark.sql import functions as fn

    masks = broadcast(_masks(spark, deletes, places), deletes)
    masked = df.withColumn(_WORD, fn.shiftright(place, _BITS)).join(masks, _WORD, "left_outer")
    mask, hit = fn.col(_MASK), fn.call_function("shiftright", fn.col(_MASK), _bit(fn.col(place)))
    return masked.where(mask.isNull() | (hit.bitwiseAND(fn.lit(1)) == 0)).drop(_WORD, _MASK)


def _masks(spark: SparkSession, deletes: Deletes, places: Places) -> DataFrame:
    """A row for each 64 places of which some are deleted."""
    from pyspark.sql import functions as fn

    here = places_here(deletes, places)
    if here is not None:
        return spark.createDataFrame(masks(here))
    place = fn.col(_WORD)
    found = deleted_places(spark, deletes, places, _WORD)
    one = fn.call_function("shiftleft", fn.lit(1).cast("long"), _bit(place))
    return found.groupBy(fn.shiftright(place, _BITS).alias(_WORD)).agg(fn.bit_or(one).alias(_MASK))


def masks(places: pa.Int64Array) -> pa.Table:
    """Number and mask of each 64 places of which some are listed, in any order, also twice."""
    import pyarrow as pa
    import pyarrow.compute as pc

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
    from pyspark.sql import functions as fn

    return place.bitwiseAND(fn.lit((1 << _BITS) - 1)).cast("int")
