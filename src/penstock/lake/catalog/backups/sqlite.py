"""A SQLite catalog copied to a file that is one, too.

By SQLite's own means (https://sqlite.org/backup.html), from one state: a read transaction keeps
commits waiting until all pages are copied, as they would otherwise begin the copy anew.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import exc

from penstock.lake.catalog.backups.progress import Progress
from penstock.lake.catalog.engine import roll_back_hot_journal
from penstock.lake.catalog.faults import translating
from penstock.lake.catalog.location import CatalogLocation

_PAGES = 4096  # of one step; 16 MB with pages as they are by default


def copy_to(
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
