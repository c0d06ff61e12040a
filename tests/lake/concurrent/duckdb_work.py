"""The same by the real extension: `work` for DuckDB. Ids of its own, rows inlined and in files."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import duckdb

from tests import duck
from tests.lake.concurrent.work import Outcome, Task, _say, task

_RETRIES = 100


def work(given: Task) -> None:
    with duck.attach(given.uri, inline=5) as connection, Path(given.log).open("a") as log:
        connection.execute(f"SET ducklake_max_retry_count = {_RETRIES}")
        for at in range(given.commits):
            table = given.tables[(at + given.number) % len(given.tables)]
            first = given.number * 1_000_000 + at * 10
            count = (1, 8, 2)[at % 3]
            ids = tuple(range(first, first + count))
            values = ", ".join(f"({one})" for one in ids)
            _say(log, _try(connection, given.number, table, ids, values))


def _try(
    connection: duckdb.DuckDBPyConnection,
    number: int,
    table: str,
    ids: tuple[int, ...],
    values: str,
) -> Outcome:
    try:
        connection.execute(f"INSERT INTO {table} VALUES {values}")
    except duckdb.Error as error:
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        return Outcome(number, table, "failed", ids, error=str(error))
    return Outcome(number, table, "committed", ids)


if __name__ == "__main__":
    work(task(sys.argv[1]))
