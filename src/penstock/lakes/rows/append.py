"""Append rows: those of a DataFrame by Spark, those given as values without it. Both go to the
catalog up to its limit, else to files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import SchemaMismatch, TableNotFound, UnsupportedFeature
from penstock.lakes.candidate.state import Staged
from penstock.lakes.catalog.inlined.writes import row_limit
from penstock.lakes.format.inlined import literal_rows
from penstock.lakes.format.inlined.text import may_inline, stored
from penstock.lakes.format.values.bounds import base_type
from penstock.lakes.reading.conversions.align import typed
from penstock.lakes.reading.conversions.spark_types import is_writable, refuse_unwritable
from penstock.lakes.rows.stager import Files
from penstock.lakes.writing import arrow as arrow_files
from penstock.lazy import pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lakes.candidate.staged import SliceOf, StagedTable
    from penstock.lakes.candidate.table import CandidateTable
    from penstock.lakes.format.schema import TableSchema


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


def append_collected(table: CandidateTable, df: DataFrame) -> Staged:
    """Stage the rows of a query, collected, into columns of a type that Spark cannot write.

    Raises UnsupportedFeature for too many rows, and where Arrow cannot write the types either.
    """
    most = table.context.limits.table_rows
    odd = next(c for c in table.schema.columns if not is_writable(c))
    if needs_spark(table.schema):
        refuse_unwritable(odd)
    rows = df.limit(most + 1).toArrow()
    if rows.num_rows > most:
        raise UnsupportedFeature(
            f"column {odd.name!r} is {odd.type}, which the driver writes, and the query has more "
            f"than {most:,} rows",
            hint="INSERT them in parts, by a condition, or with DuckDB",
            data={"column": odd.name, "type": odd.type},
        )
    return append_rows(table, _in_nanoseconds(rows, table.schema))


def _in_nanoseconds(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """``rows`` with counts for the timestamps of columns in nanoseconds."""
    for at, field in enumerate(rows.schema):
        column = schema.find(field.name)
        if column is None or base_type(column.type) != "timestamp_ns":
            continue
        if pa.types.is_timestamp(field.type):
            try:
                counts = rows.column(at).cast(pa.timestamp("ns")).cast(pa.int64())
            except pa.ArrowInvalid as error:
                raise SchemaMismatch(
                    f"column {column.name!r} is {column.type}, which reaches from 1677 to 2262: "
                    f"{error}",
                    hint="give the column the type TIMESTAMP, or other values",
                    data={"column": column.name, "type": column.type},
                ) from error
            rows = rows.set_column(at, field.name, counts)
    return rows


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
