"""DuckDB reads every table of the example at every snapshot with the rows that Penstock reads."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions

from penstock import Lake
from tests import duck
from tests.examples.conftest import Loaded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

Rows = list[tuple[str, ...]]


def versions(lake: Lake) -> dict[str, list[int]]:
    """The snapshots that have each table."""
    found: dict[str, list[int]] = defaultdict(list)
    for snapshot in lake.snapshots():
        for table in lake.catalog.tables(snapshot.id):
            found[table.qualified_name].append(snapshot.id)
    return found


def comparable(rows: list[dict[str, Any]]) -> Rows:
    """In an order of their own; instants in UTC, whatever zone each side shows them in."""
    return sorted(tuple(f"{name}={_text(row[name])}" for name in sorted(row)) for row in rows)


def _text(value: Any) -> str:
    return repr(value.astimezone(UTC) if getattr(value, "tzinfo", None) else value)


def read_with_penstock(lake: Lake, table: str, snapshots: list[int]) -> dict[int, Rows]:
    """All snapshots in one query."""

    def at(snapshot: int) -> DataFrame:
        frame = lake.table(table).to_df(version=snapshot)
        return frame.withColumn("_snapshot", functions.lit(snapshot))

    found: dict[int, list[dict[str, Any]]] = {snapshot: [] for snapshot in snapshots}
    union = reduce(lambda a, b: a.unionByName(b), map(at, snapshots))
    for row in union.toArrow().to_pylist():
        found[row.pop("_snapshot")].append(row)
    return {snapshot: comparable(rows) for snapshot, rows in found.items()}


@pytest.mark.parametrize(
    "table",
    [
        *("flights_raw", "airports", "airlines", "flights"),
        *("delays_daily", "airline_ranking", "loads", "leaders"),
    ],
)
def test_duckdb_reads_the_same_rows_at_every_snapshot(loaded: Loaded, table: str) -> None:
    name, lake = f"main.{table}", loaded.lake
    snapshots = versions(lake)[name]
    ours = read_with_penstock(lake, name, snapshots)
    with duck.attach(lake.catalog.uri, read_only=True) as connection:
        for snapshot in snapshots:
            query = f"FROM lk.{name} AT (VERSION => {snapshot})"
            theirs = connection.execute(query).to_arrow_table().to_pylist()
            assert comparable(theirs) == ours[snapshot], f"{name} at {snapshot}"


def test_every_table_is_compared(loaded: Loaded) -> None:
    assert len(versions(loaded.lake)) == 8
