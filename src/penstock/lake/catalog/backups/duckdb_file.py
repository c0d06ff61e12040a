"""A DuckDB catalog copied to a file that is one, too, by DuckDB's COPY FROM DATABASE."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from sqlalchemy import Connection

from penstock.lake.catalog import reads
from penstock.lake.catalog.duckdb_file import ATTACHED

Reading = Callable[[], AbstractContextManager[Connection]]


def copy_to(reading: Reading, target: Path) -> int:
    """Copy the catalog to a new file; the newest snapshot in it.

    ``reading`` begins a transaction on the catalog.
    """
    name = f"penstock_backup_{uuid.uuid4().hex}"
    quoted = str(target).replace("'", "''")
    try:
        with reading() as connection:
            connection.exec_driver_sql(f"ATTACH '{quoted}' AS {name} (TYPE duckdb)")
            connection.exec_driver_sql(f"COPY FROM DATABASE {ATTACHED} TO {name}")
            newest = reads.latest(connection)
            return -1 if newest is None else newest.id
    finally:
        with reading() as connection:
            connection.exec_driver_sql(f"DETACH DATABASE IF EXISTS {name}")
