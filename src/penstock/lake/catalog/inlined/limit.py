"""The inlining limit, ``data_inlining_row_limit``: how many rows of a write stay in the catalog."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import select

from penstock.lake.catalog.database import metadata as t
from penstock.lake.catalog.definitions import tables
from penstock.lake.catalog.options import Options
from penstock.lake.catalog.work import Target, Work
from penstock.lake.format.files import Table
from penstock.lake.format.option_values import INLINING_ROW_LIMIT

DEFAULT_LIMIT = 10  # rows; the extension's
# DataFrames are inlined only where a limit was set: they are small by chance more often than by
# intent, and writing them takes a Spark job either way.
OF_FRAMES = 0


class _Catalog(Protocol):
    inlining_row_limit: int | None

    def option(self, key: str, table: Table | None, schema: str | None = None, /) -> str | None: ...

    def option_of(self, options: Options, key: str, table: Table | None, /) -> str | None: ...


def makes_table(work: Work, target: Target, schema_name: str) -> bool:
    """Return whether inserts of a few rows into this table are inlined: DuckDB 1.5.5 makes no
    inlined table otherwise, so that a role without the right to create tables can write (measured).
    """
    c = t.metadata.c
    query = select(c.key, c.value, c.scope, c.scope_id).where(c.key == INLINING_ROW_LIMIT)
    options = Options(work.connection.execute(query).all())
    schema_id = None
    if options.by_schema(INLINING_ROW_LIMIT):
        schema_id = tables.find_schema(work.schemas, schema_name).id
    limit = options.value(INLINING_ROW_LIMIT, target.id, schema_id)
    return work.inlines if limit is None else limit != "0"


def row_limit(
    catalog: _Catalog,
    table: Table | None,
    default: int = DEFAULT_LIMIT,
    options: Options | None = None,
    schema: str | None = None,
) -> int:
    """Return how many rows of a write may be inlined: by the option of the table, else of its
    schema, else of the lake, else by the argument of attach, else DuckDB's default.

    ``schema`` is the schema of a table that does not exist yet.
    """
    key = INLINING_ROW_LIMIT
    if options:
        limit = catalog.option_of(options, key, table)
    else:
        limit = catalog.option(key, table, schema)
    if limit is not None:
        return int(limit)
    return default if catalog.inlining_row_limit is None else catalog.inlining_row_limit
