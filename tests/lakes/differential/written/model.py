"""An in-memory DuckDB that runs the same statements: what each table must hold at each snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import duckdb
import pyarrow as pa

from penstock.lakes.format.naming import quote_identifier as quoted
from tests.lakes.differential import canonical

KEY = "i"


@dataclass(frozen=True)
class Effect:
    """What a statement did to the rows of one table. ``count`` is what DuckDB says it touched."""

    count: int | None
    inserted: pa.Table | None = None
    updated: pa.Table | None = None
    deleted: tuple[int, ...] = ()


@dataclass(frozen=True)
class Patch:
    """Rows of a table that others have changed, by their keys, and what they are now."""

    table: str
    keys: tuple[int, ...]
    rows: pa.Table


class Model:
    """Each statement is a transaction of its own: DuckDB refuses some that change rows and then
    alter their table, which lakes allow. What is undone is left out when all else runs anew.
    """

    def __init__(self, done: Sequence[str | Patch] = ()) -> None:
        self._connection = _connect()
        self.done: list[str | Patch] = []
        for each in done:
            self._run(each)
            self.done.append(each)

    def run(self, text: str) -> int | None:
        """The number of rows touched, if DuckDB reports it. Raises duckdb.Error."""
        count = self._run(text)
        if not text.upper().startswith("COPY"):  # the file is there
            self.done.append(text)
        return count

    def _run(self, what: str | Patch) -> int | None:
        if isinstance(what, Patch):
            self._patch(what)
            return None
        result = self._connection.execute(what)
        names = [column[0] for column in result.description or ()]
        rows = result.fetchall()
        return int(rows[0][0]) if names == ["Count"] and rows else None

    def _patch(self, what: Patch) -> None:
        keys = ", ".join(map(str, what.keys))
        self._connection.execute(f"DELETE FROM {what.table} WHERE {KEY} IN ({keys})")
        self._connection.register("patch", what.rows)
        self._connection.execute(f"INSERT INTO {what.table} SELECT * FROM patch")
        self._connection.unregister("patch")

    def become(self, done: Sequence[str | Patch]) -> None:
        """As if this had been done and nothing else. Raises duckdb.Error, and is as it was then."""
        anew = Model(done)
        self._connection.close()
        self._connection, self.done = anew._connection, anew.done

    def numbers(self, query: str) -> list[int]:
        """Of a query of one column."""
        return sorted(number for (number,) in self._connection.execute(query).fetchall())

    def rows_of(self, query: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self._connection.execute(query).fetchall()]

    def effect(self, text: str, table: str) -> Effect:
        """Run it, and return its effect on the rows of ``table``."""
        before = self.rows(table)
        count = self.run(text)
        after = self.read(table)
        now = dict(zip(after.column(KEY).to_pylist(), canonical_rows(after), strict=True))
        new = [at for at, key in enumerate(now) if key not in before]
        other = [at for at, key in enumerate(now) if key in before and before[key] != now[key]]
        gone = tuple(key for key in before if key not in now)
        return Effect(
            count,
            after.take(pa.array(new, pa.int64())),
            after.take(pa.array(other, pa.int64())),
            gone,
        )

    def rows(self, table: str) -> Mapping[int, str]:
        """The texts of a table's rows by their keys."""
        content = self.read(table)
        return dict(zip(content.column(KEY).to_pylist(), canonical_rows(content), strict=True))

    def read(self, table: str) -> pa.Table:
        return self._connection.execute(f"SELECT * FROM {table}").to_arrow_table()

    def tables(self) -> list[str]:
        """Their quoted names, with their schemas."""
        query = "SELECT schema_name, table_name FROM duckdb_tables() ORDER BY ALL"
        rows = self._connection.execute(query).fetchall()
        return [f"{quoted(schema)}.{quoted(name)}" for schema, name in rows]

    def state(self) -> dict[str, pa.Table]:
        return {name: self.read(name) for name in self.tables()}

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def canonical_rows(table: pa.Table) -> list[str]:
    """The text of each row, in the table's order."""
    return [canonical.of_arrow(table.slice(at, 1))[0] for at in range(table.num_rows)]
