"""Few rows that Spark wrote, taken back out of their files: they go into the catalog instead.

How many rows a DataFrame has shows when it is written: to ask before would cost every large one a
job more. So the write decides: files of no more rows than ``data_inlining_row_limit`` are read
again here, without Spark, and removed. They have passed all of the write's checks then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lake.catalog.inlined.writes import DEFAULT_LIMIT
from penstock.lake.format.inlined.text import may_inline, stored
from penstock.lake.format.inlined.values import arrow_schema
from penstock.lake.format.option_values import INLINING_ROW_LIMIT
from penstock.lake.format.schema import TableSchema
from penstock.lake.reading.parquet.columns import EMBEDDED_ROW_ID, MAPPED_ROW_ID
from penstock.lake.storage import open_system

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from penstock.lake.catalog.catalog import Catalog
    from penstock.lake.catalog.options import Options
    from penstock.lake.format.files import Table
    from penstock.lake.writing.spark import Written

# DataFrames are inlined only where a limit was set: their rows are few by chance more often than by
# intent, and it takes a job of Spark's either way.
OF_FRAMES = 0


def row_limit(
    catalog: Catalog,
    table: Table | None,
    default: int = DEFAULT_LIMIT,
    options: Options | None = None,
    schema: str | None = None,
) -> int:
    """Up to how many rows of a write stay in the catalog: the option of the table, else of its
    schema, else of the lake, else what the lake was attached with, else DuckDB's default.

    ``schema`` is the one of a table that is not there yet.
    """
    key = INLINING_ROW_LIMIT
    told = catalog.option_of(options, key, table) if options else catalog.option(key, table, schema)
    if told is not None:
        return int(told)
    return default if catalog.inlining_row_limit is None else catalog.inlining_row_limit


def taken_back(
    written: Written, schema: TableSchema, limit: int
) -> tuple[pa.Table, Sequence[int | None] | None] | None:
    """The rows of staged files as the catalog keeps them, and the row ids that they embed.

    ``None`` where they are to stay in the files: too many, or of types that are not inlined.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not 0 < written.rows <= limit or not may_inline(schema):
        return None
    names = list(schema.names)
    parts: list[pa.Table] = []
    ids: list[int | None] = []
    for file in written.files:
        system, name = open_system(file.path)
        rows = pq.read_table(name, filesystem=system, partitioning=None)
        own = next((n for n in (EMBEDDED_ROW_ID, MAPPED_ROW_ID) if n in rows.column_names), None)
        ids += [None] * rows.num_rows if own is None else rows[own].to_pylist()
        parts.append(rows.select(names).cast(arrow_schema(schema)))
    values = stored(pa.concat_tables(parts), schema)
    if values is None:
        return None
    return values, (ids if any(one is not None for one in ids) else None)
