"""A merge of a small source into a small table: the driver reads both, and Spark runs only the
query itself.

Several queries of Spark's over some rows take longer than all else of a step. Where Arrow certainly
compares the values as Spark does, it finds what changes and what is new, and writes that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.lake.candidate.few_rows import few_placed
from penstock.lake.candidate.state import Staged
from penstock.lake.format.inlined.values import arrow_schema
from penstock.lake.format.values.sequence import sequence
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID
from penstock.lake.rows import collected
from penstock.lake.rows.matches import way_of
from penstock.lake.rows.merge_source import checked_on_driver
from penstock.lake.rows.route import Way
from penstock.lake.rows.small import collect, is_float
from penstock.lake.rows.stager import Files
from penstock.lake.writing import arrow as arrow_files

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.lake.candidate.staged import StagedTable
    from penstock.lake.rows.matches import MergeJob

_NEW, _OLD = "\n new", "\n old"  # places of rows in either side


@dataclass(frozen=True, slots=True)
class Sides:
    """Rows of the source that match, beside the target's rows that they match; ``rest`` do not."""

    new: pa.Table
    old: pa.Table
    rest: pa.Table


def merge_small(table: StagedTable, job: MergeJob) -> Staged | None:
    """Stage the merge; ``None`` where it is left to Spark, as are keys that are not unique."""
    import pyarrow as pa

    schema, names = arrow_schema(job.schema), job.schema.names
    if way_of(job) is not Way.DRIVER:
        return None
    target = few_placed(job.scanned, names, job.limits)
    if target is None:
        return None
    # Its rows are as wide as those that are there.
    most = min(job.limits.small_source_rows, collected.fitting(job.scanned, job.limits))
    rows = collect(job.source.frame, [quoted(name) for name in names], most)
    if rows is None or checked_on_driver(job.source, rows) is None:
        return None
    others = [column.name for column in job.source.others]
    try:
        sides = matched(rows.cast(schema), target, job.source.keys)
        differs = None if sides is None else changed(sides, others)
    except pa.ArrowException:
        return None
    if sides is None or differs is None:
        return None
    return _staged(table, job, sides, differs)


def matched(rows: pa.Table, target: pa.Table, keys: Sequence[str]) -> Sides | None:
    """Both sides by their keys; ``None`` where several rows of the target have one key."""
    import pyarrow.compute as pc

    def numbered(side: pa.Table, name: str) -> pa.Table:
        numbers = sequence(side.num_rows)
        return side.select(list(keys)).append_column(name, numbers)

    pairs = numbered(rows, _NEW).join(numbered(target, _OLD), list(keys), join_type="inner")
    new, old = pairs[_NEW], pairs[_OLD]
    if len(pc.unique(new)) != len(new):
        return None
    rest = pc.invert(pc.is_in(sequence(rows.num_rows), value_set=new))
    return Sides(rows.take(new), target.take(old), rows.filter(rest))


def changed(sides: Sides, names: Sequence[str]) -> pa.ChunkedArray:
    """Whether each pair differs in these columns: NULL and NaN equal themselves, and 0.0 is -0.0,
    as Spark's hashes have it (`merge_match`).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    differs = pa.chunked_array([pa.repeat(pa.scalar(False), sides.new.num_rows)])
    for name in names:
        new, old = sides.new[name], sides.old[name]
        same = pc.fill_null(pc.equal(new, old), False)
        nothing = [pc.is_null(one, nan_is_null=is_float(new.type)) for one in (new, old)]
        alike = pc.equal(pc.is_null(new), pc.is_null(old))  # no NaN is NULL
        same = pc.or_(same, pc.and_(pc.and_(*nothing), alike))
        differs = pc.or_(differs, pc.invert(same))
    return differs


def _staged(table: StagedTable, job: MergeJob, sides: Sides, differs: pa.ChunkedArray) -> Staged:
    found = sides.old.filter(differs).select([FILE, POSITION, ROW_ID])
    values = sides.new.filter(differs)
    if not (values.num_rows or sides.rest.num_rows):
        return Staged(unchanged=True)
    new = collected.new_rows_by_name(values, found)
    removed, updated = collected.stage(table, job.scanned, new)
    files = Files(removed, updated)
    if sides.rest.num_rows:
        try:
            files = replace(files, inserted=arrow_files.write(sides.rest, job.target))
        except BaseException:
            files.discard()
            raise
    files.stage(table)
    return Staged(
        rows_written=values.num_rows + sides.rest.num_rows,
        rows_inserted=sides.rest.num_rows,
        rows_updated=values.num_rows,
        slice_rows=sides.rest.num_rows,
    )
