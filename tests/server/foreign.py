"""DuckDB as another writer of a lake: statements, and which partitions each of them changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb

from tests import duck
from tests.lakes.catalog.conftest import Place

PARTITIONED = (
    "CREATE TABLE t (i INT, _wm_partition VARCHAR)",
    "ALTER TABLE t SET PARTITIONED BY (_wm_partition)",
)
PLAIN = ("CREATE TABLE u (i INT)",)
NEWEST = "SELECT max(snapshot_id) FROM ducklake_snapshots('lk')"
Partitions = frozenset[str | None]
Deed = dict[str, Partitions]


@contextmanager
def writer(place: Place, *statements: str, inline: int = 0) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB with the lake attached, after some statements."""
    duck.required()
    with duck.attach(place.uri, place.data_path.rstrip("/"), inline=inline) as connection:
        for statement in statements:
            connection.execute(statement)
        yield connection


def newest(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the newest snapshot."""
    row = connection.execute(NEWEST).fetchone()
    assert row is not None
    return int(row[0])


@dataclass
class Actor:
    """Runs statements by chance, and notes what each snapshot changed."""

    connection: duckdb.DuckDBPyConnection
    chance: random.Random
    number: int = 0
    changes: dict[int, Deed] = field(default_factory=dict)
    rows: dict[str, list[tuple[int, str | None]]] = field(
        default_factory=lambda: {"t": [], "u": []}
    )

    def act(self) -> str:
        """Run one statement, or a transaction; return its name."""
        before = newest(self.connection)
        deed = self.chance.choice(_DEEDS)
        changed = deed(self)
        after = newest(self.connection)
        assert after - before <= 1
        if after > before:
            self.changes[after] = changed
        else:
            assert not changed
        return deed.__name__

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def values(self, table: str, count: int) -> Sequence[tuple[int, str | None]]:
        """Return new rows of a table."""
        self.number += count
        numbers = range(self.number - count, self.number)
        name = self.chance.choice("abc")
        return [(each, name if table == "t" else None) for each in numbers]


def insert(actor: Actor, table: str | None = None) -> Deed:
    table = table or actor.chance.choice("tu")
    rows = [*actor.values(table, actor.chance.choice((1, 2, 30)))]
    if actor.chance.random() < 0.3:
        rows += actor.values(table, 2)
    texts = ", ".join(f"({i}, '{p}')" if table == "t" else f"({i})" for i, p in rows)
    actor.run(f"INSERT INTO {table} VALUES {texts}")
    actor.rows[table] += rows
    return {table: frozenset(p for _, p in rows)}


def delete(actor: Actor, table: str | None = None) -> Deed:
    table = table or actor.chance.choice("tu")
    divisor = actor.chance.choice((1, 2, 5, 9))
    rest = actor.chance.randrange(divisor)
    actor.run(f"DELETE FROM {table} WHERE i % {divisor} = {rest}")
    gone = [row for row in actor.rows[table] if row[0] % divisor == rest]
    actor.rows[table] = [row for row in actor.rows[table] if row not in gone]
    return {table: frozenset(p for _, p in gone)} if gone else {}


def change(actor: Actor) -> Deed:
    actor.run("UPDATE t SET i = i + 100000 WHERE _wm_partition = 'a'")
    rows = actor.rows["t"]
    actor.rows["t"] = [(i + 100000 if p == "a" else i, p) for i, p in rows]
    return {"t": frozenset("a")} if any(p == "a" for _, p in rows) else {}


def change_both(actor: Actor) -> Deed:
    actor.run("BEGIN")
    deed = insert(actor, "t") | insert(actor, "u")
    actor.run("COMMIT")
    return deed


def _no_change(text: str) -> Callable[[Actor], Deed]:
    def deed(actor: Actor) -> Deed:
        actor.number += 1
        actor.run(text.format(actor.number))
        return {}

    deed.__name__ = text
    return deed


_DEEDS: Sequence[Callable[[Actor], Deed]] = (
    *(insert, insert, insert, delete, delete, change, change_both),
    *map(
        _no_change,
        (
            "CALL ducklake_merge_adjacent_files('lk')",
            "CALL ducklake_flush_inlined_data('lk')",
            "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)",
            "COMMENT ON TABLE t IS 'comment {}'",
            "CREATE TABLE other_{} AS SELECT 1 AS one",
        ),
    ),
)
