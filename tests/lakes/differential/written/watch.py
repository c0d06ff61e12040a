"""A DuckDB that stays attached while others write.

It holds a table's statistics for as long as the catalog says that they are the same, and leaves out
what these exclude. One that is attached for each question reads them each time and shows nothing of
that: so this one is asked after each step, and inserts a row into each table at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import duckdb
import pyarrow as pa

from tests.duckdb_process import DuckDBError, DuckDBProcess
from tests.lakes.differential.places import Home
from tests.lakes.differential.written.model import KEY, Model
from tests.lakes.differential.written.theirs import Theirs

_BEYOND = 1_000_000  # the keys of its own rows
_TESTED = (pa.types.is_integer, pa.types.is_floating, pa.types.is_string, pa.types.is_date)


class Watch:
    def __init__(self, process: DuckDBProcess, home: Home, inline: int | None) -> None:
        self._process = process
        self._theirs = Theirs(process, home, inline)
        self._inserted = 0

    def close(self) -> None:
        with suppress(DuckDBError):
            self._theirs.close()

    def problems(self, model: Model) -> Iterator[str]:
        """Where it answers otherwise than the model, and than it does when it is attached anew."""
        for table in model.tables():
            query = _question(model, table)
            if query is None:
                continue
            wanted = model.rows_of(query)
            answer = self._ask(query)
            if answer == wanted:
                continue
            self._theirs.close()
            anew = self._ask(query)
            if anew == wanted and not _is_known(answer):
                yield f"DuckDB, attached since before: {answer}\n  in the model {wanted}\n  {query}"

    def insert(self, model: Model, table: str) -> None:
        """Insert a row, as the model does, where the table takes it."""
        self._inserted += 1
        text = f"INSERT INTO {table} ({KEY}) VALUES ({_BEYOND + self._inserted})"
        before = tuple(model.done)
        try:
            model.run(text)
            self._theirs.run(text)
        except (duckdb.Error, DuckDBError):  # a column that is NOT NULL
            model.become(before)

    def _ask(self, query: str) -> Sequence[tuple[object, ...]] | str:
        try:
            self._theirs.open()
            return self._process.rows(query)
        except DuckDBError as error:
            return str(error)


def _is_known(answer: object) -> bool:
    """Whether it says that inlined rows it knew are gone: DuckDB 1.5.5 does, after any flush."""
    return isinstance(answer, str) and "ducklake_inlined_data" in answer


def _question(model: Model, table: str) -> str | None:
    """What statistics may answer wrongly: NULLs, and rows at and beyond the ends of columns."""
    fields = model.read(table).schema
    if KEY not in fields.names:
        return None
    columns = [field for field in fields if any(test(field.type) for test in _TESTED)]
    parts = [f"(SELECT count({KEY}) FROM {table})"]
    for field in columns:
        name = f'"{field.name}"'
        parts.append(f"(SELECT count(*) FROM {table} WHERE {name} IS NULL)")
        for end in _ends(model, table, name):
            parts.append(f"(SELECT count(*) FROM {table} WHERE {name} >= {end})")
    return f"SELECT {', '.join(parts)}"


def _ends(model: Model, table: str, name: str) -> list[str]:
    """The last value of a column, as SQL, if there is one."""
    query = f"SELECT max({name})::VARCHAR, typeof(max({name})) FROM {table}"
    ((value, kind),) = model.rows_of(query)
    if value is None:
        return []
    return ["'" + str(value).replace("'", "''") + f"'::{kind}"]
