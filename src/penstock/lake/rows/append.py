"""Append rows: those of a DataFrame by Spark, those given as values without it. Both go to the
catalog up to its limit, else to files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import TableNotFound, UnsupportedFeature
from penstock.lake.candidate.state import Staged
from penstock.lake.catalog.inlined.writes import row_limit
from penstock.lake.format.inlined import literal_rows
from penstock.lake.format.inlined.text import may_inline, stored
from penstock.lake.reading.conversions.align import typed
from penstock.lake.rows.stager import Files
from penstock.lake.writing import arrow as arrow_files
from penstock.lazy import pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.candidate.staged import SliceOf, StagedTable
    from penstock.lake.candidate.table import CandidateTable
    from penstock.lake.format.schema import TableSchema


def needs_spark(schema: TableSchema) -> bool:
    """Return whether only Spark can write rows of these columns."""
    return not (may_inline(schema) or arrow_files.can_write(schema))


def append_frame(
    table: StagedTable,
    df: DataFrame,
    partition_by: str | Sequence[str] = (),
    slice_of: SliceOf | None = None,
) -> Staged:
    """Stage the rows of a DataFrame; the table is created where it is missing.

    ``slice_of`` says that all rows have this value in this column: it saves a sort.
    """
    with table.all_or_nothing():
        df = typed(df, table.candidate.schema)
        if slice_of is not None:
            df = table.in_slice(df, *slice_of)
        table.ensure(df, partition_by)
        staged = Files(inserted=table.write_frame(df, slice=slice_of)).stage(table)
    try:
        rows = table.count_rows(slice_of)
    except UnsupportedFeature:  # files that cannot be read: rows are added all the same
        rows = staged.rows_inserted
    return replace(staged, slice_rows=rows)


def append_rows(table: CandidateTable, rows: pa.Table | Sequence[Mapping[str, object]]) -> Staged:
    """Stage rows of a table that there is. No session of Spark is asked for anything.

    Up to ``data_inlining_row_limit`` rows stay in the catalog, as they do in DuckDB, whose default
    is 10. Raises SchemaMismatch naming row and column for what does not fit, TableNotFound.
    """
    name = table.candidate.qualified_name
    if not table.exists:
        raise TableNotFound(
            f"table {name} does not exist",
            hint="create it first: rows alone do not tell the types of its columns",
            data={"table": name},
        )
    values = literal_rows.typed(rows, table.written_schema, table=name)
    count = values.num_rows
    if not count:
        return Staged(unchanged=True)
    if not _inlined(table, values):
        written = arrow_files.write(values, table.target(None))
        return Files(inserted=written, in_files=True).stage(table)
    return Staged(rows_written=count, rows_inserted=count)


def _inlined(table: CandidateTable, values: pa.Table) -> bool:
    context = table.context
    limit = row_limit(context.catalog, table.candidate.base, options=context.options)
    if values.num_rows > limit or not may_inline(table.schema):
        return False
    inlined = stored(values, table.schema)
    if inlined is None:
        return False
    candidate = table.candidate
    inline = candidate.inline.with_rows(table.schema, inlined, table.context.base.id + 1)
    table.stage(replace(candidate, inline=inline))
    return True
