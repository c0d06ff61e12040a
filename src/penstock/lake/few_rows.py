"""Few rows of a table, read here: Arrow has them before Spark has planned to read them.

Only where the files, by themselves, have the columns just as the table has them; all else is left
to Spark, as is a file that cannot be read, which Spark then says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.lake import files_here
from penstock.lake.bounds import base_type
from penstock.lake.candidate import all_rows
from penstock.lake.files import DataFile
from penstock.lake.inlined import InlinedRows
from penstock.lake.inlined_values import arrow_schema, batches, kept
from penstock.lake.scan import Scan
from penstock.lake.schema import TableSchema

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 100_000
# Types whose values are in a file as they are in Spark; what is nested has names of its own.
_TYPES = frozenset(
    {
        *("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "decimal"),
        *("date", "timestamp", "timestamptz", "varchar", "json", "blob"),
    }
)
_FILES = 100  # each is opened, which takes a millisecond
_BYTES = 32 << 20  # of the files, however few of their columns are read


def few_rows(source: Scan, names: Sequence[str], limit: int = FEW) -> pa.Table | None:
    """The columns ``names`` of the rows of ``source``, in no particular order.

    Names are as the table writes them; types are those that Spark's rows have as Arrow. ``None``
    where there are more than ``limit`` rows, or where that is left to Spark.
    """
    import pyarrow as pa

    columns = {column.name: column for column in source.schema.columns}
    wanted = TableSchema(tuple(columns[name] for name in names))
    if not _is_simple(source, wanted, limit):
        return None
    deleted = files_here.Deleted.of(source)
    if deleted is None:
        return None
    schema = arrow_schema(wanted)
    parts = [schema.empty_table()]
    for file in source.files.files:
        rows = _rows(file, wanted, schema, deleted)
        if rows is None:
            return None
        parts.append(rows)
    if source.files.inlined is not None:
        inlined = _inlined(source.files.inlined, wanted, schema)
        if inlined is None:
            return None
        parts += inlined
    return pa.concat_tables(parts)


def _is_simple(source: Scan, wanted: TableSchema, limit: int) -> bool:
    """Whether the files alone, by themselves, say what the rows are, and are not too much."""
    files = source.files.files
    return (
        all_rows(source.files) <= limit
        and len(files) <= _FILES
        and sum(file.size_bytes for file in files) <= _BYTES
        and all(base_type(column.type) in _TYPES for column in wanted.columns)
        and files_here.are_plain(source)
    )


def _rows(
    file: DataFile, wanted: TableSchema, schema: pa.Schema, deleted: files_here.Deleted
) -> pa.Table | None:
    import pyarrow as pa

    found = files_here.read(file, [column.id for column in wanted.columns], schema)
    if found is None:
        return None
    left = deleted.left(file, pa.array(range(file.record_count), pa.int64()))
    return found.rows if left is None else found.rows.filter(left)


def _inlined(inlined: InlinedRows, wanted: TableSchema, schema: pa.Schema) -> list[pa.Table] | None:
    import pyarrow as pa

    if any(kept(part, wanted) != wanted for part in inlined.parts):
        return None
    found = [batch for part in inlined.parts for batch in batches(part, wanted)]
    return [pa.Table.from_batches(found, schema)]
