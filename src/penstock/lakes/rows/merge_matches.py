"""Find the rows that a merge's source matches and those that change; Spark writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lakes.format.files import live_rows
from penstock.lakes.format.inlined.values import arrow_schema
from penstock.lakes.format.schema import EMBEDDED_ROW_ID, TableSchema
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.limits import Limits
from penstock.lakes.reading import scan
from penstock.lakes.reading.arrow_files import is_simple
from penstock.lakes.reading.scan import FILE, POSITION, ROW_ID
from penstock.lakes.rows.change import FileRows, Keys, Positions, RowChange
from penstock.lakes.rows.merge_source import Source, bounds, collect, distinct, within_bounds
from penstock.lakes.rows.route import (
    Facts,
    Way,
    facts_of,
    has_fresh,
    is_comparable,
    is_sampled,
    route,
)
from penstock.lakes.writing import fingerprint
from penstock.lakes.writing.arrow import can_write
from penstock.lakes.writing.spark import Target
from penstock.lazy import pa
from penstock.spark.functions import arrow_frame, fn
from penstock.spark.session import cache_of
from penstock.sql.identifiers import quoted

if TYPE_CHECKING:
    from pyarrow import acero
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

CHANGED = "_penstock_changed"
# Keys that are equal where their bytes are, in Arrow as in Spark.
_FIXED = frozenset(
    {"int8", "int16", "int32", "int64", "decimal", "date", "timestamp", "timestamptz"}
)
_BYTES = _FIXED | {"varchar"}
NO_ID = -(1 << 62)  # of a row that the transaction itself wrote: it gets one at the commit
_OLD, _NEW = "_penstock_old", "_penstock_new"
_PAIRS = "\n pairs"  # in place of a file's key


@dataclass(frozen=True, slots=True)
class Sample:
    """Keys of some matched rows, and the merge narrowed to where these are."""

    job: MergeJob
    keys: DataFrame


@dataclass(frozen=True, slots=True)
class Matches:
    """Matched rows, persisted: keys, place, row id, whether they change, and the values that
    the source lacks.

    ``hits`` and ``changes`` count them, and those that change, by FILE. ``assumed``: nothing was
    compared, all count as changed until `all_change` has looked at some. ``pairs`` is how many
    rows the source has when it is joined with itself by the keys, where that was asked; ``keys``
    how many of its keys are matched, where that is known. ``places`` are the positions by FILE
    where the driver found them (`with_places`): ``rows`` has none of them then.
    """

    rows: DataFrame
    hits: dict[str | None, int]  # inlined rows have no file
    changes: dict[str | None, int]
    assumed: bool = False
    pairs: int | None = None
    keys: int | None = None
    persisted: DataFrame | None = None  # what ``rows`` is a selection of
    places: Positions | None = None
    sample: Sample | None = None

    @property
    def total(self) -> int:
        return sum(self.hits.values())

    @property
    def touched(self) -> int:
        return sum(self.changes.values())

    def release(self) -> None:
        (self.persisted or self.rows).unpersist()


@dataclass(frozen=True, slots=True)
class MergeJob:
    """Values that the steps of one merge share."""

    spark: SparkSession
    name: str
    schema: TableSchema
    target: Target
    source: Source
    scanned: scan.Scan
    condition: SparkColumn | None  # of the slice, where files hold other rows too
    one_row: bool = True  # several rows of the target with one key become one row

    @property
    def change(self) -> RowChange:
        return RowChange(Keys(self.source.keys, self.one_row))

    @property
    def limits(self) -> Limits:
        return self.source.limits

    @property
    def is_sampled(self) -> bool:
        return is_sampled(live_rows(self.scanned.files.files), self.limits)


def way_of(job: MergeJob) -> Way:
    """The way of the merge, as far as is known by now: its source may not be counted yet."""
    return route(job.change, facts_of_merge(job), job.limits)


def facts_of_merge(job: MergeJob) -> Facts:
    source = job.source
    kinds = {column.name: base_type(column.type) for column in source.schema.columns}
    return replace(
        facts_of(job.scanned, job.schema, partitioned=job.target.spreads),
        fresh=has_fresh(job.scanned),
        readable=is_simple(job.scanned, job.schema, job.limits),
        comparable=can_write(job.schema)
        and all(map(is_comparable, arrow_schema(job.schema).types)),
        byte_keys=all(kinds[key] in _BYTES for key in source.keys),
        fixed_keys=all(kinds[key] in _FIXED for key in source.keys),
        mixed=job.condition is not None,
        complete=source.schema == job.schema,
        source_rows=source.rows,
        source_bytes=source.bytes,
        streams=streams() is not None,
    )


def streams() -> type[acero.ExecNodeOptions] | None:
    """Return what Arrow takes rows by as they are computed; ``None`` before its version 26."""
    from pyarrow import acero

    return getattr(acero, "RecordBatchReaderSourceNodeOptions", None)


def find_matches(job: MergeJob) -> Matches:
    """Find the target's rows that the source matches, and which of them change.

    In a large target only the keys are read, and all matches are assumed to change. A sample of
    them then decides (`all_change`): if all of it changes, an equal row among the others is
    rewritten with the values and id it has; else `compared` says which change.
    """
    if job.is_sampled:
        matches = _with_pairs(job)
        return replace(matches, assumed=bool(job.source.others) and matches.total > 0)
    if job.source.others:
        return compared(job)
    return _counted(_matches(job, changed=False), job.source)


def can_compare(job: MergeJob) -> bool:
    """Return whether rows can be compared: where they have a VARIANT, all that match change."""
    return fingerprint.can_tell(TableSchema(job.source.others))


def compared(job: MergeJob) -> Matches:
    """The matches, each compared in all columns where they compare."""
    changed = None if can_compare(job) else True
    return _counted(_matches(job, changed=changed), job.source)


def _matches(job: MergeJob, *, changed: bool | None) -> DataFrame:
    """The one pass over the target; ``changed`` is said of all matched rows, None compares them."""
    old, new = _sides(job, job.source.frame, compare=changed is None)
    others = [c.name for c in job.schema.columns if c.name not in job.source.schema.names]
    keys = list(job.source.keys)
    differs = _DIFFERS if changed is None else str(changed).lower()
    names = [quoted(name) for name in (*keys, *others)]
    # As texts, in this module: a call to the JVM for each part of a column takes its time.
    picked = old.join(new, keys).selectExpr(
        *names, FILE, POSITION, EMBEDDED_ROW_ID, f"{differs} AS {CHANGED}"
    )
    found = scan.with_row_ids(job.spark, job.scanned, picked)
    return found.selectExpr(
        *names,
        FILE,
        f"coalesce({POSITION}, {ROW_ID}) AS {POSITION}",  # an inlined row's place is its id
        CHANGED,
        f"coalesce({ROW_ID}, {NO_ID}L) AS {ROW_ID}",
    )


def _with_pairs(job: MergeJob) -> Matches:
    """The matches by keys alone and, in the same query, the pairs of source rows of one key.

    There are as many pairs as rows when no key comes twice. Spark sends the source's keys around
    once for both joins, where counting rows by key would take a shuffle of its own.
    """
    found = _matches(job, changed=bool(job.source.others))
    if not _is_small(job.source):
        return _counted(found, job.source)
    keys = job.source.frame.select(*(quoted(key) for key in job.source.keys))
    own = keys
    for within in within_bounds(job.source):  # true of all, and what Spark adds to the other join
        own = own.where(within)
    pairs = own.join(fn.broadcast(keys), list(job.source.keys))
    pairs = pairs.agg(fn.count(fn.lit(1)).alias(POSITION))
    pairs = pairs.select(POSITION, fn.lit(_PAIRS).alias(FILE))
    both = found.unionByName(pairs, allowMissingColumns=True).persist()
    counted = _counts(both)
    number = counted.pop(_PAIRS)[2]
    rows = both.where(~fn.col(FILE).eqNullSafe(_PAIRS))
    return _of(rows, counted, pairs=number, persisted=both)


def _sides(job: MergeJob, source: DataFrame, *, compare: bool) -> tuple[DataFrame, DataFrame]:
    """Target and source, each with its keys; to compare, with hashes of the other columns."""
    old = scan.read(job.spark, job.scanned, positions=True)
    if job.condition is not None:
        old = old.where(job.condition)
    for within in within_bounds(job.source):
        old = old.where(within)
    keys = [fn.col(quoted(key)) for key in job.source.keys]
    hashes: list[SparkColumn] = []
    if compare:
        others = job.source.others
        hashes = cache_of(job.spark).get(
            ("hashes", others), lambda: [fingerprint.row_hash(others, seed) for seed in (1, 2)]
        )
    new = source.select(*keys, *(h.alias(f"{_NEW}{at}") for at, h in enumerate(hashes)))
    if hashes:
        old = old.withColumns({f"{_OLD}{at}": h for at, h in enumerate(hashes)})
    if _is_small(job.source, 16 * len(hashes)):
        new = fn.broadcast(new)
    return old, new


def _is_small(source: Source, more: int = 0) -> bool:
    return source.limits.broadcasts(source.rows, source.key_width + more)


# Whether other columns than the keys do, by two hashes: NULL and NaN equal themselves.
_DIFFERS = f"({_OLD}0 <> {_NEW}0 OR {_OLD}1 <> {_NEW}1)"


def all_change(job: MergeJob, matches: Matches) -> bool:
    """Return whether the first matched rows all change.

    They lie close together at the start of the target, and the scan ends when it has them.
    """
    keys = [quoted(key) for key in job.source.keys]
    source = job.source.frame
    if matches.sample is None:
        sample = matches.rows.select(*keys).limit(job.limits.sample_rows)
    else:
        job, sample = matches.sample.job, fn.broadcast(matches.sample.keys)
        for within in within_bounds(job.source):
            source = source.where(within)
    source = source.join(sample, list(job.source.keys), "left_semi")
    old, new = _sides(job, source, compare=True)
    found = old.join(new, list(job.source.keys)).selectExpr(f"{_DIFFERS} AS {CHANGED}")
    return all(row[0] for row in found.take(min(job.limits.sample_rows, matches.total)))


def _counted(found: DataFrame, source: Source) -> Matches:
    found = found.persist()
    collected = None
    most = source.limits.small_source_rows
    if source.rows <= most:
        collected = collect(found, [*map(quoted, source.keys), FILE, POSITION, CHANGED], 2 * most)
    if collected is None:
        return _of(found, _counts(found))
    groups = collected.group_by(FILE).aggregate(
        [(POSITION, "count"), (CHANGED, "sum"), (POSITION, "max")]
    )
    hits, changes, last = f"{POSITION}_count", f"{CHANGED}_sum", f"{POSITION}_max"
    counts = {row[FILE]: (row[hits], row[changes], row[last]) for row in groups.to_pylist()}
    return replace(_of(found, counts), keys=distinct(collected, source.keys))


def _counts(found: DataFrame) -> dict[str | None, tuple[int, int, int]]:
    """By FILE: how many rows, how many of them change, and the highest position."""
    rows = found.groupBy(FILE).agg(
        fn.count(fn.lit(1)), fn.count_if(fn.col(CHANGED)), fn.max(POSITION)
    )
    return {file: (hits, changes, last) for file, hits, changes, last in rows.collect()}


def _of(
    rows: DataFrame,
    counts: Mapping[str | None, tuple[int, int, int]],
    *,
    pairs: int | None = None,
    persisted: DataFrame | None = None,
) -> Matches:
    return Matches(
        rows,
        hits={file: hits for file, (hits, _, _) in counts.items()},
        changes={file: changes for file, (_, changes, _) in counts.items() if changes},
        pairs=pairs,
        persisted=persisted,
    )


def collapse(job: MergeJob, matches: Matches) -> Matches:
    """Keep one of several target rows with the same key: all go, and the first is rewritten.

    Of a key's rows, all but the first are marked with no row id, which `merge_by_key` leaves out.
    """
    from pyspark.sql import Window

    keys = [quoted(key) for key in job.source.keys]
    alike = Window.partitionBy(*keys)
    several = fn.count(fn.lit(1)).over(alike) > 1
    first = fn.row_number().over(alike.orderBy(fn.col(ROW_ID) < 0, ROW_ID, FILE, POSITION)) == 1
    rows = matches.rows.withColumns(
        {
            CHANGED: fn.col(CHANGED) | several,
            ROW_ID: fn.when(first, fn.col(ROW_ID)),
        }
    )
    found = _counted(rows, job.source)
    matches.release()
    return found


def with_places(job: MergeJob, files: Sequence[FileRows], wanted: pa.Table) -> Matches | None:
    """The matches that Arrow found by the keys ``wanted``; ``None`` where a row has no id yet."""
    rows = wanted.take(pa.chunked_array([part.matched for part in files], pa.int64()))
    rows = rows.append_column(ROW_ID, pa.chunked_array([part.ids for part in files], pa.int64()))
    if rows[ROW_ID].null_count:
        return None
    keys = job.scanned.keys()
    places = {keys.key(part.file.path): part.positions for part in files}
    hits: dict[str | None, int] = {key: len(own) for key, own in places.items()}
    changes = bool(job.source.others)
    frame = arrow_frame(job.spark, rows).withColumn(CHANGED, fn.lit(changes))
    return Matches(
        frame,
        hits=hits,
        changes=hits if changes else {},
        assumed=changes and bool(hits),
        pairs=job.source.rows,
        places=places,
        sample=_sample(job, files[0], wanted) if files else None,
    )


def _sample(job: MergeJob, found: FileRows, wanted: pa.Table) -> Sample:
    """Some matched rows of one file: only that is scanned for them, between their keys."""
    assert found.matched is not None, "rows of a merge match some of the source"
    rows = wanted.take(found.matched.slice(0, job.limits.sample_rows))
    ends = ((name, bounds(rows, name)) for name in rows.column_names)
    limits = tuple((name, *both) for name, both in ends if both is not None)
    files = replace(job.scanned.files, files=(found.file,))
    near = replace(
        job,
        scanned=replace(job.scanned, files=files),
        source=replace(job.source, bounds=limits),
    )
    return Sample(near, arrow_frame(job.spark, rows))
