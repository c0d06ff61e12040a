"""An UPDATE of few rows: one query of Spark's brings them here, and they are written without it.

What a job of Spark's costs at least is more than writing some thousand rows takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lake import arrow_files, scan
from penstock.lake.align import align, typed
from penstock.lake.assign import not_null
from penstock.lake.bounds import base_type
from penstock.lake.candidate import live_rows
from penstock.lake.dml_found import Found, here
from penstock.lake.dml_remove import take_away
from penstock.lake.inlined_values import arrow_schema
from penstock.lake.scan import FILE, POSITION, ROW_ID
from penstock.lake.spark_types import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from penstock.lake.candidate_table import CandidateTable
    from penstock.lake.deletes import Removed
    from penstock.lake.schema import TableSchema
    from penstock.lake.write import Written

_VALUES = 2_000_000  # fields of rows that are brought here; each takes some 10 to 100 bytes
_BYTES = 64_000_000  # of these rows as the files have them, compressed
_PARTITIONED = 10_000  # rows: their partitions are found one by one
_PLAIN = frozenset(
    {
        *("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "decimal"),
        *("varchar", "date", "timestamp", "timestamptz", "blob"),
    }
)


def few(table: CandidateTable, source: scan.Scan, rows: DataFrame) -> pa.Table | None:
    """The new rows, aligned to the table, with FILE, POSITION and ROW_ID.

    ``None`` where they are too many, or of types that are left to Spark.
    """
    schema = table.schema
    most = min(_most(table), _fitting(source))
    if most == 0:
        return None
    name = table.candidate.qualified_name
    new = typed(rows, schema)
    new = not_null(new, schema, name)
    names = [column for column in new.columns if schema.find(column) is not None]
    fitted = align(new.select(*map(quoted, names)), schema, table=name)
    picked = new.select(*fitted, FILE, POSITION, ROW_ID)
    if source.files.inlined is not None or live_rows(source.files.files) > most:
        picked = picked.limit(most + 1)
    found = picked.toArrow()
    return found if found.num_rows <= most else None


def _most(table: CandidateTable) -> int:
    schema: TableSchema = table.schema
    if any(column.children or base_type(column.type) not in _PLAIN for column in schema.columns):
        return 0
    most = _VALUES // len(schema.columns)
    return min(most, _PARTITIONED) if table.candidate.partition_by else most


def _fitting(source: scan.Scan) -> int:
    """How many rows, as wide as those of the files, are not too much to bring here."""
    files = source.files.files
    width = sum(file.size_bytes for file in files) / max(1, sum(f.record_count for f in files))
    return int(_BYTES / max(1.0, width))


def places(rows: pa.Table) -> Found:
    return here(rows.select([FILE, POSITION, ROW_ID]))


def stage(
    table: CandidateTable, source: scan.Scan, rows: pa.Table, which: Found
) -> tuple[Removed, list[Written]]:
    """Remove the rows as they were and write them as they are, under the ids that they have."""
    import pyarrow.compute as pc

    removed = take_away(table, source, which)
    values = rows.select(list(table.schema.names)).cast(arrow_schema(table.schema))
    ids = _row_ids(source, rows)
    old = pc.fill_null(pc.greater_equal(ids, 0), False)
    target = table.target(None)
    written: list[Written] = []
    kept = values.filter(old)
    if kept.num_rows:
        embed = {arrow_files.ROW_ID: ids.filter(old)}
        written.append(arrow_files.write_history(kept, target, embed)[0])
    fresh = values.filter(pc.invert(old))
    if fresh.num_rows:
        written.append(arrow_files.write(fresh, target))
    return removed, written


def _row_ids(source: scan.Scan, rows: pa.Table) -> pa.Array:
    """The id that a row has embedded, else its file's first plus its place; NULL for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = source.keys()
    first = {keys.key(file.path): file.row_id_start for file in source.files.files}
    codes = pc.dictionary_encode(rows[FILE]).combine_chunks()
    starts = pa.array([first.get(key) for key in codes.dictionary.to_pylist()], pa.int64())
    embedded = rows[ROW_ID].combine_chunks().cast(pa.int64())
    places_ = rows[POSITION].combine_chunks().cast(pa.int64())
    return pc.coalesce(embedded, pc.add(starts.take(codes.indices), places_))
