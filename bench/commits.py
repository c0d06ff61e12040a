"""One-row commits by one writer against DuckDB, each into a lake of its own, on three catalogs.

Both keep the rows in the catalog (``data_inlining_row_limit`` is 10 on both sides). No Spark is
started: `Table.append` of literal rows needs none. PostgreSQL runs without fsync, for both.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from tests import duck, postgres

from bench import harness
from penstock import Lake

COMMITS = 300
PLACES = ("SQLite", "PostgreSQL")
_TABLE = "CREATE TABLE t (id BIGINT, made TIMESTAMP, name VARCHAR, price DOUBLE)"
_AT = "2026-11-21 12:00:00"


def sides(work: Path, place: str, uri: Callable[[str], str], count: int) -> list[harness.Side]:
    """Both commit ``count`` rows to a lake that they made before; each run has its own rows."""
    ours, theirs = uri("ours"), uri("theirs")
    for name, at in (("ours", ours), ("theirs", theirs)):
        with duck.attach(at, work / place / name, inline=10) as connection:
            connection.execute(_TABLE)
    lake = Lake.attach(ours)
    duckdb = duck.attach(theirs, inline=10)
    duckdb.execute("SET threads = 2")  # those of the machine
    numbers, their_numbers = itertools.count(), itertools.count()

    def penstock() -> None:
        table = lake.table("t")
        for _ in range(count):
            at = next(numbers)
            table.append([{"id": at, "made": _AT, "name": f"name {at}", "price": at / 4}])

    def insert() -> None:
        for _ in range(count):
            at = next(their_numbers)
            duckdb.execute("INSERT INTO t VALUES (?, ?, ?, ?)", [at, _AT, f"name {at}", at / 4])

    return [harness.Side(f"Penstock, {place}", penstock), harness.Side(f"DuckDB, {place}", insert)]


def main() -> None:
    options = harness.options("commits", __doc__, rows=COMMITS, rounds=3)
    before = harness.load()
    seconds: dict[str, list[float]] = {}
    with harness.scratch(options.work) as work, postgres.server() as conninfo:
        places: dict[str, Callable[[str], str]] = {
            "SQLite": lambda name: f"ducklake:sqlite:{work / name}.sqlite",
            "PostgreSQL": lambda name: f"ducklake:postgres:{_database(conninfo, name)}",
        }
        for place in PLACES:
            contenders = sides(work, place, places[place], options.rows)
            seconds |= harness.race(contenders, options.rounds)
    figures = tuple(
        harness.Figure(
            f"{options.rows} one-row commits against DuckDB, {place}",
            harness.ratio(seconds, f"Penstock, {place}", f"DuckDB, {place}"),
            1 / 1.5,
        )
        for place in PLACES
    )
    report = harness.Report(
        "commits", figures, seconds, options.rows, options.rounds, before, harness.load()
    )
    harness.publish(report, options.out)


def _database(conninfo: str, name: str) -> str:
    import psycopg

    with psycopg.connect(f"{conninfo} dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"dbname={name} {conninfo}"


if __name__ == "__main__":
    main()
