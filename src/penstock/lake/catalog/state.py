"""What a commit starts from: the newest snapshot and what the change set touches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

from penstock.lake.catalog import reads
from penstock.lake.catalog.paths import resolve_directory
from penstock.lake.naming import fold
from penstock.lake.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    id: int
    name: str
    path: str  # absolute, ends in "/"


@dataclass(slots=True)
class Ids:
    """Hands out ids. Schemas, tables and partitions share one counter; files and mappings another.

    (The format's text puts mappings with the former; the real extension does as here.)
    """

    next_catalog_id: int
    next_file_id: int

    def catalog(self) -> int:
        self.next_catalog_id += 1
        return self.next_catalog_id - 1

    def file(self) -> int:
        self.next_file_id += 1
        return self.next_file_id - 1

    def files(self, count: int) -> Iterator[int]:
        start = self.next_file_id
        self.next_file_id += count
        return iter(range(start, start + count))


def schemas_at(
    connection: Connection, data_path: str, snapshot: Snapshot
) -> dict[str, SchemaEntry]:
    """Schemas in force, by folded name."""
    return {
        fold(row.schema_name): SchemaEntry(
            row.schema_id,
            row.schema_name,
            resolve_directory(data_path, row.path, row.path_is_relative),
        )
        for row in reads.schema_rows(connection, snapshot.id)
    }
