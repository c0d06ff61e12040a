"""Which rows of a merge's target its source matches, and which of these change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.lake import fingerprint, scan
from penstock.lake.candidate import live_rows
from penstock.lake.file_columns import EMBEDDED_ROW_ID
from penstock.lake.merge_source import Source, within_bounds
from penstock.lake.scan import FILE, POSITION, ROW_ID
from penstock.lake.schema import TableSchema
from penstock.lake.spark_types import quoted
from penstock.lake.write import Target

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

CHANGED = "_penstock_changed"
_OLD, _NEW = "_penstock_old", "_penstock_new"
_COMPARED_AT_ONCE = 2_000_000  # rows of the target
_SAMPLE = 1_000
# Broadcast sides are collected on the driver: beyond this Spark chooses the join itself.
BROADCAST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Matches:
    """Matched rows, persisted: keys, place, row id, whether they change, values to keep.

    ``hits`` and ``changes`` count them, and those that change, by FILE.
    """

    rows: DataFrame
    hits: dict[str, int]
    changes: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.hits.values())


@dataclass(frozen=True, slots=True)
class MergeJob:
    """What the steps of one merge share."""

    spark: SparkSession
    name: str
    schema: TableSchema
    target: Target
    source: Source
    scanned: scan.Scan
    condition: SparkColumn | None  # of the slice, where files hold other rows too


def find_matches(job: MergeJob) -> Matches:
    """Find the target's rows that the source matches, and which of them change.

    Reading all columns to compare costs more than all else in a large target. There the keys alone
    are read first, and a sample of the matched rows decides: if all of them change, all count as
    changed, and an equal row among the others is written anew with the values and id it has.
    """
    compare = bool(job.source.others)
    if not compare or live_rows(job.scanned.files.files) <= _COMPARED_AT_ONCE:
        return _matches(job, compare=compare)
    matches = _matches(job, compare=False, changed=True)
    if not matches.total or _all_change(job, matches):
        return matches
    matches.rows.unpersist()
    return _matches(job, compare=True)


def _matches(job: MergeJob, *, compare: bool, changed: bool = False) -> Matches:
    """The one pass over the target. Without ``compare`` all matched rows count as ``changed``."""
    from pyspark.sql import functions as fn

    old, new = _sides(job, job.source.frame, compare=compare)
    kept = [c.name for c in job.schema.columns if c.name not in job.source.schema.names]
    keys = list(job.source.keys)
    differs = _differs() if compare else fn.lit(changed)
    picked = old.join(new, keys).select(
        *(fn.col(quoted(name)) for name in (*keys, *kept)),
        *(FILE, POSITION, EMBEDDED_ROW_ID),
        differs.alias(CHANGED),
    )
    return _counted(scan.with_row_ids(job.spark, job.scanned, picked).drop(EMBEDDED_ROW_ID))


def _sides(job: MergeJob, source: DataFrame, *, compare: bool) -> tuple[DataFrame, DataFrame]:
    """Target and source, each with its keys; to compare, with hashes of the other columns."""
    from pyspark.sql import functions as fn

    old = scan.read(job.spark, job.scanned, positions=True)
    if job.condition is not None:
        old = old.where(job.condition)
    for within in within_bounds(job.source):
        old = old.where(within)
    keys = [fn.col(quoted(key)) for key in job.source.keys]
    hashes = [fingerprint.row_hash(job.source.others, seed) for seed in (1, 2)] if compare else []
    new = source.select(*keys, *(h.alias(f"{_NEW}{at}") for at, h in enumerate(hashes)))
    old = old.withColumns({f"{_OLD}{at}": h for at, h in enumerate(hashes)})
    if job.source.rows * (job.source.key_width + 16 * len(hashes)) <= BROADCAST_BYTES:
        new = fn.broadcast(new)
    return old, new


def _differs() -> SparkColumn:
    """Whether other columns than the keys do, by two hashes: NULL and NaN equal themselves."""
    from pyspark.sql import functions as fn

    return (fn.col(f"{_OLD}0") != fn.col(f"{_NEW}0")) | (fn.col(f"{_OLD}1") != fn.col(f"{_NEW}1"))


def _all_change(job: MergeJob, matches: Matches) -> bool:
    """Whether the first matched rows all change.

    They lie close together at the start of the target, and the scan ends when it has them.
    """
    keys = [quoted(key) for key in job.source.keys]
    sample = matches.rows.select(*keys).limit(_SAMPLE)
    source = job.source.frame.join(sample, list(job.source.keys), "left_semi")
    old, new = _sides(job, source, compare=True)
    found = old.join(new, list(job.source.keys)).select(_differs().alias(CHANGED))
    return all(row[0] for row in found.take(min(_SAMPLE, matches.total)))


def _counted(found: DataFrame) -> Matches:
    from pyspark.sql import functions as fn

    found = found.persist()
    changes = fn.count_if(fn.col(CHANGED)).alias("changes")
    counts = found.groupBy(FILE).agg(fn.count(fn.lit(1)).alias("hits"), changes).collect()
    hits = {row[FILE]: row["hits"] for row in counts}
    return Matches(found, hits, {row[FILE]: row["changes"] for row in counts if row["changes"]})


def collapse(job: MergeJob, matches: Matches) -> Matches:
    """Where several target rows have one key, all go, and the first of them is written anew.

    Of a key's rows, all but the first are marked with no row id, which `_update` leaves out.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as fn

    keys = [quoted(key) for key in job.source.keys]
    alike = Window.partitionBy(*keys)
    several = fn.count(fn.lit(1)).over(alike) > 1
    first = fn.row_number().over(alike.orderBy(ROW_ID, FILE, POSITION)) == 1
    rows = matches.rows.withColumns(
        {
            CHANGED: fn.col(CHANGED) | several,
            ROW_ID: fn.when(first, fn.col(ROW_ID)),
        }
    )
    found = _counted(rows)
    matches.rows.unpersist()
    return found
