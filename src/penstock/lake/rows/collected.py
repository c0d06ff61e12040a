"""Small updates: one query of Spark collects the new rows, which the driver writes by itself.

The least that a job of Spark costs is more than writing some thousand rows takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.lake.candidate.few_rows import PLAIN
from penstock.lake.candidate.state import live_rows
from penstock.lake.format.inlined.values import arrow_schema
from penstock.lake.format.values.bounds import base_type
from penstock.lake.limits import Limits
from penstock.lake.reading import scan
from penstock.lake.reading.conversions.align import align, typed
from penstock.lake.reading.conversions.spark_types import quoted
from penstock.lake.reading.deleted.places import Places
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID
from penstock.lake.rows.assign import not_null
from penstock.lake.rows.places import NUMBER, RowPlaces, by_name, by_number
from penstock.lake.rows.remove import take_away
from penstock.lake.writing import arrow as arrow_files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.state import Removed
    from penstock.lake.candidate.table import CandidateTable
    from penstock.lake.format.schema import TableSchema
    from penstock.lake.writing.spark import Written


@dataclass(frozen=True, slots=True)
class NewRows:
    """New rows on the driver: ``values`` has the table's columns, ``found`` their places.

    Beside each row its file, by its place in ``keys``, and its position; NULL of an inlined one.
    ``embedded`` is the row's id where its file, or the catalog, says it.
    """

    values: pa.Table
    keys: Sequence[str]
    files: pa.ChunkedArray
    positions: pa.ChunkedArray
    embedded: pa.ChunkedArray
    found: RowPlaces


def collect(
    table: CandidateTable, source: scan.Scan, rows: DataFrame, *, once: bool = False
) -> NewRows | None:
    """The new rows, aligned to the table; ``once`` says that none is of a row that another is of.

    ``None`` where they are too many, or of types that only Spark writes.
    """
    schema = table.schema
    most = min(_most(table), fitting(source, table.context.limits))
    if most == 0:
        return None
    name = table.candidate.qualified_name
    new = typed(rows, schema)
    new = not_null(new, schema, name)
    names = [column for column in new.columns if schema.find(column) is not None]
    fitted = align(new.select(*map(quoted, names)), schema, table=name)
    numbers = Places.by_key(source.files.files, source.keys(), table.context.limits.numbered_files)
    place = (
        [FILE, POSITION]
        if numbers is None
        else [numbers.named_column(FILE, POSITION).alias(NUMBER)]
    )
    picked = new.select(*fitted, *place, ROW_ID)
    # A small table alone bounds nothing: each of its rows may match all rows of a large one.
    is_bounded = once and source.files.inlined is None and live_rows(source.files.files) <= most
    if not is_bounded:
        picked = picked.limit(most + 1)
    found = picked.toArrow()
    if found.num_rows > most:
        return None
    values = found.select(list(schema.names))
    if numbers is None:
        return new_rows_by_name(values, found)
    places = found[NUMBER]
    files, positions = numbers.files(places), numbers.positions(places)
    which = by_number(numbers, found, NUMBER)
    return NewRows(values, numbers.keys, files, positions, found[ROW_ID], which)


def new_rows_by_name(values: pa.Table, found: pa.Table) -> NewRows:
    """New rows whose places are FILE, POSITION and ROW_ID of ``found``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    codes = pc.dictionary_encode(found[FILE]).combine_chunks()
    files = pa.chunked_array([codes.indices])
    keys = codes.dictionary.to_pylist()
    return NewRows(values, keys, files, found[POSITION], found[ROW_ID], by_name(found))


def _most(table: CandidateTable) -> int:
    schema: TableSchema = table.schema
    if not is_flat(schema):
        return 0
    limits = table.context.limits
    most = limits.collected_values // len(schema.columns)
    return min(most, limits.partitioned_rows) if table.candidate.partition_by else most


def is_flat(schema: TableSchema) -> bool:
    """Whether its values are the same in Spark, in Arrow and in files."""
    return all(not c.children and base_type(c.type) in PLAIN for c in schema.columns)


def fitting(source: scan.Scan, limits: Limits) -> int:
    """How many rows, as wide as those of the files, the driver may collect."""
    files = source.files.files
    width = sum(file.size_bytes for file in files) / max(1, sum(f.record_count for f in files))
    return int(limits.collected_bytes / max(1.0, width))


def stage(table: CandidateTable, source: scan.Scan, rows: NewRows) -> tuple[Removed, list[Written]]:
    """Remove the rows as they were and write them as they are, under the ids that they have."""
    import pyarrow.compute as pc

    removed = take_away(table, source, rows.found)
    values = rows.values.cast(arrow_schema(table.schema))
    ids = _row_ids(source, rows)
    old = pc.fill_null(pc.greater_equal(ids, 0), False)
    all_old = pc.all(old).as_py()  # as they are, but for those that this transaction wrote
    target = table.target(None)
    written: list[Written] = []
    kept, kept_ids = (values, ids) if all_old else (values.filter(old), ids.filter(old))
    if kept.num_rows:
        embed = {arrow_files.ROW_ID: kept_ids}
        written.append(arrow_files.write_history(kept, target, embed)[0])
    fresh = values.slice(0, 0) if all_old else values.filter(pc.invert(old))
    if fresh.num_rows:
        written.append(arrow_files.write(fresh, target))
    return removed, written


def _row_ids(source: scan.Scan, rows: NewRows) -> pa.ChunkedArray:
    """The id that a row has embedded, else its file's first plus its place; NULL for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = source.keys()
    first = {keys.key(file.path): file.row_id_start for file in source.files.files}
    starts = pa.array([first.get(key) for key in rows.keys], pa.int64())
    counted = pc.add(pc.take(starts, rows.files), rows.positions.cast(pa.int64()))
    return pc.coalesce(rows.embedded.cast(pa.int64()), counted)
