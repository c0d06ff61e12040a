"""An in-memory DuckDB that runs the same statements: what each table must hold at each snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import duckdb
import pyarrow as pa

from penstock.lake.naming import quote_identifier as quoted
from tests.lake.differential import canonical

KEY = "i"


@dataclass(frozen=True)
class Effect:
    """What a statement did to the rows of one table. ``count`` is what DuckDB says it touched."""

    count: int | None
    inserted: pa.Table | None = None
    updated: pa.Table | None = None
    deleted: tuple[int, ...] = ()


class Model:
    def __init__(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.execute("SET TimeZone = 'UTC'")

    def run(self, text: str) -> int | None:
        """Raises duckdb.Error. The rows touched, where DuckDB tells."""
        found = self._connection.execute(text)
        names = [column[0] for column in found.description or ()]
        rows = found.fetchall()
        return int(rows[0][0]) if names == ["Count"] and rows else None

    def effect(self, text: str, table: str) -> Effect:
        """Run it and tell what became of the rows of ``table``."""
        before = self._rows(table)
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

    def _rows(self, table: str) -> Mapping[int, str]:
        found = self.read(table)
        return dict(zip(found.column(KEY).to_pylist(), canonical_rows(found), strict=True))

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


def canonical_rows(table: pa.Table) -> list[str]:
    """The text of each row, in the table's order."""
    return [canonical.of_arrow(table.slice(at, 1))[0] for at in range(table.num_rows)]
