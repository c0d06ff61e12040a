"""Copying a catalog that is one file, by the database's own means, to another file.

SQLite (https://sqlite.org/backup.html) copies from one state: a read transaction makes commits wait
until all pages are copied, as they would otherwise restart the copy. DuckDB has COPY FROM DATABASE.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, exc

from penstock.lake.catalog import reads
from penstock.lake.catalog.database.duckdb_file import ATTACHED
from penstock.lake.catalog.database.engine import roll_back_hot_journal
from penstock.lake.catalog.database.faults import translating
from penstock.lake.catalog.database.location import CatalogLocation

_PAGES = 4096  # of one step; 16 MB with pages as they are by default


def copy_sqlite(
    where: CatalogLocation, target: Path, lock_timeout: float, progress: Progress | None
) -> int:
    """Copy the catalog to a new file; the newest snapshot in it.

    ``lock_timeout`` is in seconds. Raises CatalogLocked.
    """

    def tell(_: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    roll_back_hot_journal(where, lock_timeout)
    uri = f"file:{quote(where.target)}?mode=ro"
    with translating(where):
        try:
            source = sqlite3.connect(uri, uri=True, timeout=lock_timeout, isolation_level=None)
            copy = sqlite3.connect(target)
            try:
                source.execute("BEGIN")
                newest = "SELECT max(snapshot_id) FROM ducklake_snapshot"
                snapshot = int(source.execute(newest).fetchone()[0])
                source.backup(copy, pages=_PAGES, progress=tell)
                return snapshot
            finally:
                copy.close()
                source.close()
        except sqlite3.Error as error:
            raise exc.OperationalError("backup", {}, error) from error


Progress = Callable[[int, int], None]  # what is done, of what in all


Reading = Callable[[], AbstractContextManager[Connection]]


def copy_duckdb(reading: Reading, target: Path) -> int:
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
