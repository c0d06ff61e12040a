"""Values shared within one commit: the connection, new ids, and the tokens of its changes.

It begins with the newest snapshot and with the rows that the change set touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Connection, Executable, Insert, Table

from penstock.lakes.catalog import reads
from penstock.lakes.catalog.database.location import resolve_directory
from penstock.lakes.catalog.database.round_trips import send, send_together
from penstock.lakes.format.naming import fold
from penstock.lakes.format.schema import TableSchema
from penstock.lakes.format.statistics import TableColumnStats
from penstock.lakes.snapshot import Snapshot

# The kinds of ``changes_made`` in the order of the real extension (measured, 1.5.5).
_ORDER = (
    *("dropped_schema", "dropped_table", "dropped_view"),
    *("created_schema", "created_table", "created_view"),
    *("created_scalar_macro", "created_table_macro"),
    *("dropped_scalar_macro", "dropped_table_macro"),
    *("inserted_into_table", "deleted_from_table", "altered_table", "altered_view"),
    *("inlined_insert", "inlined_delete", "inline_flush", "merge_adjacent", "rewrite_delete"),
)


_Rows = tuple[Executable, list[dict[str, Any]]]


@cache
def _insert_into(table: Table) -> Insert:
    """Building a statement costs more than running it once."""
    return table.insert()


@dataclass(slots=True)
class Tokens:
    """``changes_made`` as it grows; each token is noted once. Those of one kind are in the order of
    their ids, names in the order in which they were noted.
    """

    texts: dict[str, dict[str, int]] = field(default_factory=dict)

    def of(self, kind: str, number: int) -> None:
        """``altered_table:3``."""
        self.texts.setdefault(kind, {})[f"{kind}:{number}"] = number

    def named(self, kind: str, *names: str) -> None:
        """``created_table:"main"."t"``."""
        quoted = ".".join('"' + name.replace('"', '""') + '"' for name in names)
        self.texts.setdefault(kind, {})[f"{kind}:{quoted}"] = 0

    def text(self) -> str:
        ordered = (sorted(texts, key=texts.__getitem__) for texts in map(self._of_kind, _ORDER))
        return ",".join(token for tokens in ordered for token in tokens)

    def _of_kind(self, kind: str) -> dict[str, int]:
        return self.texts.get(kind, {})


@dataclass(slots=True)
class Totals:
    """A table's statistics as a whole: as they were read, and as the commit leaves them."""

    exists: bool = False
    record_count: int = 0
    next_row_id: int = 0
    file_size_bytes: int = 0
    columns: dict[int, TableColumnStats] = field(default_factory=dict)
    touched: bool = False
    changed: dict[int, bool] = field(default_factory=dict)  # column id -> it has a row already


@dataclass(slots=True)
class CommitContext:
    """One commit being written as ``snapshot_id``, on top of ``base``, the newest snapshot.

    Statements that end rows run at once, to check that the rows exist. New rows wait for `flush`:
    nothing that a commit reads depends on them, and together they take fewer round trips.
    """

    connection: Connection
    data_path: str
    base: Snapshot
    snapshot_id: int
    schema_version: int
    ids: Ids
    tokens: Tokens = field(default_factory=Tokens)
    defined: dict[int, None] = field(default_factory=dict)  # tables whose schema version is new
    totals: dict[int, Totals] = field(default_factory=dict)  # by table id
    inline_tables: dict[int, str | None] = field(default_factory=dict)  # for new rows, by table id
    inlines: bool = True  # where no option says so
    _schemas: dict[str, SchemaEntry] | None = None
    _waiting: list[_Rows] = field(default_factory=list)
    _first: _Rows | None = None

    @property
    def schemas(self) -> dict[str, SchemaEntry]:
        """The schemas by folded name, with this commit's changes so far."""
        if self._schemas is None:
            self._schemas = schemas_at(self.connection, self.data_path, self.base)
        return self._schemas

    def insert(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Queue new rows, all with the same keys; other columns are NULL."""
        self.later(_insert_into(table), rows)

    def later(self, statement: Executable, rows: Sequence[dict[str, Any]]) -> None:
        """Queue ``statement`` to run once for each of ``rows`` in `flush`."""
        if rows:
            self._waiting.append((statement, list(rows)))

    def first(self, table: Table, row: dict[str, Any]) -> None:
        """Queue a new row before all others, which may then be written in any order."""
        self._first = (_insert_into(table), [row])

    def flush(self) -> None:
        """Run the queue, in order."""
        waiting, self._waiting = self._waiting, []
        first, self._first = self._first, None
        if first is not None:
            send_together(self.connection, [first, *waiting])
            return
        for statement, rows in waiting:
            send(self.connection, statement, rows)

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


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    id: int
    name: str
    path: str  # absolute, ends in "/"


@dataclass(slots=True)
class Ids:
    """Hands out ids. Schemas, tables and partitions share one counter; files and mappings another.

    (By the format's text mappings share the former counter; the real extension uses the latter.)
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
