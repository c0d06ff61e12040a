"""Small tables, read on the driver: Arrow has the rows before Spark has planned to read them.

Only where the files, by themselves, have the columns just as the table has them, or are older than
a column; all else is left to Spark, as is a file that cannot be read, which Spark then says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.lake.candidate.state import all_rows
from penstock.lake.format.files import ROW_ID_COLUMN, DataFile, InlinedRows
from penstock.lake.format.inlined.values import arrow_schema, batches, default_value, kept
from penstock.lake.format.schema import TableSchema
from penstock.lake.format.values.bounds import base_type
from penstock.lake.limits import LIMITS, Limits
from penstock.lake.reading import arrow_files
from penstock.lake.reading.scan import FILE, POSITION, ROW_ID, Scan

if TYPE_CHECKING:
    import pyarrow as pa

# Types whose values are in a file as they are in Spark; what is nested has names of its own.
PLAIN = frozenset(
    {
        *("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "decimal"),
        *("date", "timestamp", "timestamptz", "varchar", "blob"),
    }
)
_TYPES = PLAIN | {"json"}  # which is checked where it is written


def few_rows(source: Scan, names: Sequence[str], limits: Limits = LIMITS) -> pa.Table | None:
    """The columns ``names`` of the rows of ``source``, in no particular order.

    Names are as the table writes them; types are those that Spark's rows have as Arrow. ``None``
    where there are more rows than ``limits`` says, or where that is left to Spark.
    """
    found = few_placed(source, names, limits)
    return None if found is None else found.select(list(names))


def few_placed(source: Scan, names: Sequence[str], limits: Limits = LIMITS) -> pa.Table | None:
    """As `few_rows`, with FILE, POSITION and ROW_ID beside, as in a scan with positions.

    ROW_ID is the id that a row has embedded, NULL for others.
    """
    import pyarrow as pa

    columns = {column.name: column for column in source.schema.columns}
    wanted = TableSchema(tuple(columns[name] for name in names))
    if not is_simple(source, wanted, limits):
        return None
    deleted = arrow_files.Deleted.of(source)
    if deleted is None:
        return None
    schema, keys = arrow_schema(wanted), source.keys()
    parts = [_placed(schema.empty_table(), None)]
    for file in source.files.files:
        rows = _rows(file, keys.key(file.path), wanted, schema)
        if rows is None:
            return None
        left = deleted.left(file, rows[POSITION].combine_chunks())
        parts.append(rows if left is None else rows.filter(left))
    if source.files.inlined is not None:
        inlined = _inlined(source.files.inlined, wanted, schema)
        if inlined is None:
            return None
        parts.append(inlined)
    return pa.concat_tables(parts)


def is_simple(source: Scan, wanted: TableSchema, limits: Limits) -> bool:
    """Whether the files alone, by themselves, say what the rows are, and are not too much."""
    files = source.files.files
    return (
        all_rows(source.files) <= limits.table_rows
        and len(files) <= limits.table_files
        and sum(file.size_bytes for file in files) <= limits.table_bytes
        and all(base_type(column.type) in _TYPES for column in wanted.columns)
        and arrow_files.are_plain(source)
    )


def _rows(file: DataFile, key: str, wanted: TableSchema, schema: pa.Schema) -> pa.Table | None:
    ids = [column.id for column in wanted.columns]
    found = arrow_files.read(
        file, ids, schema, row_ids=True, default=lambda place: default_value(wanted.columns[place])
    )
    return None if found is None else _placed(found.rows, key, found.ids)


def _inlined(inlined: InlinedRows, wanted: TableSchema, schema: pa.Schema) -> pa.Table | None:
    import pyarrow as pa

    if any(kept(part, wanted) != wanted for part in inlined.parts):
        return None
    found = [batch for part in inlined.parts for batch in batches(part, wanted)]
    chunks = [chunk for part in inlined.parts for chunk in part.rows[ROW_ID_COLUMN].chunks]
    ids = pa.chunked_array(chunks, pa.int64())
    return _placed(pa.Table.from_batches(found, schema), None, ids)


def _placed(rows: pa.Table, key: str | None, ids: pa.ChunkedArray | None = None) -> pa.Table:
    """``rows`` with their file and their places in it, and the ids that it embeds."""
    import pyarrow as pa

    count = rows.num_rows
    places = range(count) if key is not None else [None] * count
    own = ids if ids is not None else pa.nulls(count, pa.int64())
    rows = rows.append_column(FILE, pa.repeat(pa.scalar(key, pa.string()), count))
    rows = rows.append_column(POSITION, pa.array(places, pa.int64()))
    return rows.append_column(ROW_ID, own)
