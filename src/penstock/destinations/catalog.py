"""The metadata of a destination, asked without Spark."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lake.format.files import Table
    from penstock.lake.snapshot import At, Snapshot


class Catalog(Protocol):
    """Answers about tables that need no rows, and the database that holds the records."""

    def latest(self) -> Snapshot: ...

    def snapshot(self, at: At, /) -> Snapshot: ...

    def known_table(self, schema: str, name: str, snapshot: Snapshot, /) -> Table | None: ...

    def find_table(self, schema: str, name: str, snapshot_id: int, /) -> Table | None: ...

    def changed_since(
        self, table: Table, snapshot_id: int, partition: tuple[str, str] | None = None, /
    ) -> bool:
        """Tell whether rows or columns of a table, or rows of a slice, may have changed."""
        ...

    def reading(self) -> AbstractContextManager[Connection]: ...

    def writing(self) -> AbstractContextManager[Connection]: ...
