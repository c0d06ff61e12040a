"""The metadata of a destination, asked without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from penstock.lakes.catalog.snapshots.written import Written
    from penstock.lakes.format.files import Table
    from penstock.lakes.snapshot import At, Snapshot


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

    def written_in(self, snapshot_ids: Sequence[int], /) -> Mapping[tuple[int, str], Written]:
        """Count what snapshots wrote, each by its tables, ``schema.table``."""
        ...

    def count_rows(self, schema: str, name: str, snapshot_id: int, /) -> int | None:
        """Count the rows of a table at a snapshot; None where that is not known any more."""
        ...

    def reading(self) -> AbstractContextManager[Connection]: ...

    def writing(self) -> AbstractContextManager[Connection]: ...
