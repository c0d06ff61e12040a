"""The same by the real extension: `work` for DuckDB. Ids of its own, rows inlined and in files."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import duckdb

from tests import duck
from tests.lakes.concurrent.work import Outcome, Task, _say, task

_RETRIES = 100


def work(job: Task) -> None:
    with duck.attach(job.uri, inline=5) as connection, Path(job.log).open("a") as log:
        connection.execute(f"SET ducklake_max_retry_count = {_RETRIES}")
        for at in range(job.commits):
            table = job.tables[(at + job.number) % len(job.tables)]
            first = job.number * 1_000_000 + at * 10
            count = (1, 8, 2)[at % 3]
            ids = tuple(range(first, first + count))
            values = ", ".join(f"({row_id})" for row_id in ids)
            _say(log, _try(connection, job.number, table, ids, values))


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
