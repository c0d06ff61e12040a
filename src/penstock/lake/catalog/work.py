"""What the parts of one commit share: the connection, the ids to give, and the tokens to note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table

from penstock.lake.catalog.state import Ids, SchemaEntry
from penstock.lake.schema import TableSchema
from penstock.lake.snapshot import Snapshot

# The kinds of ``changes_made`` in the order of the real extension (measured, 1.5.5).
_ORDER = (
    *("dropped_schema", "dropped_table", "dropped_view"),
    *("created_schema", "created_table", "created_view"),
    *("created_scalar_macro", "created_table_macro"),
    *("dropped_scalar_macro", "dropped_table_macro"),
    *("inserted_into_table", "deleted_from_table", "altered_table", "altered_view"),
    *("inlined_insert", "inlined_delete", "inline_flush", "merge_adjacent", "rewrite_delete"),
)


@dataclass(slots=True)
class Tokens:
    """``changes_made`` as it grows. A token that is noted twice is there once."""

    texts: dict[str, dict[str, None]] = field(default_factory=dict)

    def of(self, kind: str, number: int) -> None:
        """``altered_table:3``."""
        self.texts.setdefault(kind, {})[f"{kind}:{number}"] = None

    def named(self, kind: str, *names: str) -> None:
        """``created_table:"main"."t"``."""
        quoted = ".".join('"' + name.replace('"', '""') + '"' for name in names)
        self.texts.setdefault(kind, {})[f"{kind}:{quoted}"] = None

    def text(self) -> str:
        return ",".join(token for kind in _ORDER for token in self.texts.get(kind, ()))


@dataclass(slots=True)
class Work:
    """One commit being written as ``snapshot_id``, on top of ``base``, the newest snapshot."""

    connection: Connection
    data_path: str
    base: Snapshot
    snapshot_id: int
    schema_version: int
    ids: Ids
    schemas: dict[str, SchemaEntry]
    tokens: Tokens = field(default_factory=Tokens)
    defined: dict[int, None] = field(default_factory=dict)  # tables whose schema version is new

    def insert(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """``rows`` have the same keys, at least one that is not NULL anywhere."""
        if rows:
            self.connection.execute(table.insert(), rows)

    def end(self, table: Table, *conditions: Any) -> int:
        """End the rows that satisfy ``conditions`` and have not ended; how many they were."""
        open_rows = table.update().where(table.c.end_snapshot.is_(None), *conditions)
        result = self.connection.execute(open_rows.values(end_snapshot=self.snapshot_id))
        return int(result.rowcount)


@dataclass(frozen=True, slots=True)
class Target:
    """The table that files and rows go to, as it is after this commit's definitions."""

    id: int
    name: str  # with the schema's, for messages
    path: str
    schema: TableSchema
    partition_id: int | None
