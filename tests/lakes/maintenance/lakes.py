"""Lakes that DuckDB makes, maintenance by Penstock, and all that DuckDB then sees of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import duckdb

from penstock.lakes.catalog.snapshots import expiry
from penstock.lakes.lake import Lake
from penstock.lakes.maintenance.calls import CALLS
from tests import duck
from tests.lakes.catalog.conftest import Place


def play(place: Place, statements: Sequence[str], *, inline: int = 0) -> None:
    """DuckDB does this to the lake."""
    with _attached(place, inline) as connection:
        for statement in statements:
            connection.execute(statement)


def maintain(place: Place, name: str, **arguments: Any) -> Sequence[Any]:
    with Lake.attach(place.uri, data_path=place.data_path) as lake:
        return CALLS[name].function(lake, **arguments)


def seen(place: Place, upto: int | None = None) -> Mapping[object, object]:
    """The rows of ``t`` with their ids at each snapshot, and the feed of changes between all."""
    with _attached(place) as connection:
        listed = connection.execute("SELECT snapshot_id FROM lk.snapshots() ORDER BY 1").fetchall()
        ids = [version for (version,) in listed if upto is None or version <= upto]
        content: dict[object, object] = {version: _rows(connection, version) for version in ids}
        feed = f"SELECT * FROM lk.table_changes('t', {ids[0]}, {ids[-1]})"
        content["feed"] = sorted(map(str, connection.execute(feed).fetchall()))
    return content


def _rows(connection: duckdb.DuckDBPyConnection, version: int) -> object:
    try:
        rows = connection.execute(f"SELECT rowid, * FROM t AT (VERSION => {version})").fetchall()
    except duckdb.CatalogException:
        return "no table yet"
    return sorted(map(str, rows))


@contextmanager
def _attached(place: Place, inline: int = 0) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the lake as ``lk``. One for all tests: to load it takes longer than most do."""
    connection = _loaded().cursor()
    path = place.data_path
    connection.execute(
        f"ATTACH '{place.uri}' AS lk (DATA_PATH '{path}', DATA_INLINING_ROW_LIMIT {inline})"
    )
    connection.execute("USE lk")
    try:
        yield connection
    finally:
        connection.execute("USE memory")
        connection.execute("DETACH lk")
        connection.close()


@cache
def _loaded() -> duckdb.DuckDBPyConnection:
    return duck.connect()


def on_disk(place: Place) -> set[str]:
    return {str(path) for path in Path(place.data_path).rglob("*.parquet")}


def files_needed(place: Place) -> set[str]:
    """The files that the catalog names at whatever snapshot."""
    attached = Lake.attach(place.uri, data_path=place.data_path)
    with attached as lake, lake.catalog.reading() as connection:
        return expiry.known_files(connection, place.data_path)


def history(random: Random) -> list[str]:
    """Statements on a table ``t``, of which each may make a snapshot."""
    numbers = [0]
    kinds: list[Callable[[int], str]] = [
        *[lambda at: _insert(random, numbers, at)] * 5,
        *[lambda _: f"DELETE FROM t WHERE i % {random.randint(2, 5)} = {random.randint(0, 2)}"] * 2,
        *[lambda at: f"UPDATE t SET s = 'u{at}' WHERE i % {random.randint(2, 5)} = 0"] * 2,
        lambda at: f"ALTER TABLE t ADD COLUMN c{at} INT DEFAULT 7",
        lambda _: random.choice(_ALTERATIONS),
        lambda _: "CALL ducklake_merge_adjacent_files('lk')",
        lambda _: "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0.1)",
    ]
    made = [random.choice(kinds)(at) for at in range(random.randint(6, 14))]
    return ["CREATE TABLE t(i INT, s VARCHAR)", *made]


_ALTERATIONS = (
    "ALTER TABLE t ALTER i SET DATA TYPE BIGINT",
    "ALTER TABLE t SET PARTITIONED BY (s)",
    "ALTER TABLE t RESET PARTITIONED BY",
)


def _insert(random: Random, numbers: list[int], _: int) -> str:
    first = numbers[0]
    numbers[0] += random.randint(1, 6)
    return (
        "INSERT INTO t(i, s) SELECT r, (ARRAY['a', 'b', NULL])[r % 3 + 1] "
        f"FROM range({first}, {numbers[0]}) x(r)"
    )
