"""time_range: ranges are replaced by what the SELECT returned for them, in one staging.

Tests ``engine/strategies/target.py`` (what a strategy is told to write).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.strategies.target import WriteTarget
from penstock.engine.strategies.time_range import Options, stage
from penstock.errors import StepError
from penstock.lakes.candidate.state import Staged
from penstock.lakes.lake import Lake
from penstock.model.script.declaration import Layout
from penstock.model.time.interval import Interval
from penstock.model.time.time_range import TimeColumn, TimeRange
from penstock.model.values.schedule import Cadence
from tests import duck

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: a value of each type and format, of the day {0} of 2026 (and its number from January the first)
FAMILIES = {
    "date": ("DATE '2026-01-{0:02d}'", None),
    "ntz": ("TIMESTAMP_NTZ '2026-01-{0:02d} 23:59:59.999999'", None),
    "zoned": ("TIMESTAMP '2026-01-{0:02d} 00:30:00+00:00'", None),
    "text": ("'2026-01-{0:02d}'", None),
    "spark": ("'{0:02d}.01.2026'", "dd.MM.yyyy"),
    "minutes": ("'2026-01-{0:02d}T23:59'", "%Y-%m-%dT%H:%M"),
    "digits": ("202601{0:02d}", "%Y%m%d"),
    "epoch": ("unix_seconds(TIMESTAMP '2026-01-{0:02d} 23:59:59+00:00')", "epoch"),
    "millis": ("unix_millis(TIMESTAMP '2026-01-{0:02d} 00:00:00+00:00')", "millis"),
}


class Target:
    """A table, and what was said when it was written."""

    def __init__(self, lake: Lake, time_range: TimeRange, layout: Layout) -> None:
        self._lake, self._by, self._layout = lake, time_range, layout
        self.said: list[str] = []

    def write(self, spark: SparkSession, query: str, first: int, last: int) -> Staged:
        """Rows of a query into the days from ``first`` to ``last``."""
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        interval = Interval(begin + timedelta(first - 1), begin + timedelta(last))
        options = Options(self._by, "spark", self._layout, self.said.append)
        into = WriteTarget(options, intervals=(interval,))
        with self._lake.transaction() as tx:
            staged = stage(tx.table("t"), spark.sql(query), into)
            tx.commit()
        return staged

    def rows(self) -> list[tuple[Any, ...]]:
        return duck.rows(self._lake.catalog.uri, "SELECT n FROM t ORDER BY n")


@pytest.fixture
def lake(tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    uri = f"ducklake:sqlite:{tmp_path / 'meta.sqlite'}"
    with Lake.attach(uri, data_path=f"{tmp_path}/data", spark=spark) as attached:
        yield attached


def target(lake: Lake, form: str | None, *, name: str = "at", partition: bool = True) -> Target:
    column = TimeColumn(name, form, "(" in name)
    by = TimeRange(column, partition, cadence=Cadence(start="2026-01-01"))
    return Target(lake, by, Layout())


def query(value: str, *days: int) -> str:
    rows = (f"SELECT {value.format(day)} AS at, {day} AS n" for day in days)
    return " UNION ALL ".join(rows)


@pytest.mark.parametrize(
    ("family", "partition"), [*((family, True) for family in FAMILIES), ("zoned", False)]
)
def test_a_range_becomes_its_new_rows(
    lake: Lake, spark: SparkSession, family: str, partition: bool
) -> None:
    value, form = FAMILIES[family]
    table = target(lake, form, partition=partition)
    assert table.write(spark, query(value, 1, 2, 3, 4), 1, 3).slice_rows == 3
    assert table.said == [
        f"1 row is outside 2026-01-01 to 2026-01-03 and not stored: at {_at(family)}"
    ]
    table.said.clear()
    before = lake.catalog.latest().id
    assert table.write(spark, query(value, 1, 2, 3), 1, 3).unchanged
    assert lake.catalog.latest().id == before
    table.write(spark, query(value, 2, 2), 2, 3)  # the third day has lost its rows
    assert (table.rows(), table.said) == ([(1,), (2,), (2,)], [])
    assert table.write(spark, query(value, 9) + " LIMIT 0", 1, 2).rows_deleted == 3
    assert table.rows() == []


def _at(family: str) -> str:
    clock = {
        **dict.fromkeys(("date", "text", "spark", "digits", "millis"), ""),
        "ntz": " 23:59:59.999999",
        "zoned": " 00:30:00",
        "minutes": " 23:59:00",
        "epoch": " 23:59:59",
    }
    return f"2026-01-04{clock[family]}"


def test_whole_files_of_a_range_end_unread(lake: Lake, spark: SparkSession) -> None:
    table = target(lake, None)
    table.write(spark, query(FAMILIES["date"][0], *range(1, 8)), 1, 7)
    staged = table.write(spark, query(FAMILIES["date"][0], 3), 3, 4)
    assert (staged.rows_deleted, staged.rows_inserted) == (2, 1)
    counted = "SELECT count(*) FROM __ducklake_metadata_lk.ducklake_delete_file"
    assert duck.rows(lake.catalog.uri, counted) == [(0,)]
    assert table.rows() == [(1,), (2,), (3,), (5,), (6,), (7,)]


def test_an_expression_is_a_time_column(lake: Lake, spark: SparkSession) -> None:
    table = target(lake, None, name="to_date(at, 'd/M/y')")
    table.write(spark, "SELECT '3/1/2026' AS at, 3 AS n UNION ALL SELECT '5/1/2026', 5", 1, 4)
    table.write(spark, "SELECT '4/1/2026' AS at, 4 AS n", 3, 4)
    assert table.rows() == [(4,)]
    assert len(table.said) == 1


@pytest.mark.parametrize(
    ("column", "select", "said"),
    [
        (("at", None), "CAST(NULL AS DATE) AS at, 7 AS n", "time column at is NULL in 1 row"),
        (("at", None), "'2026-1-5' AS at", "format %Y-%m-%d: '2026-1-5', for one"),
        (("at", "%Y%m%d"), "20260231 AS at", "format %Y%m%d: '20260231', for one"),
        (("ta", None), "DATE '2026-01-01' AS at", "no column 'ta', which is its time column"),
        (("at", None), "true AS at", "time column at is BOOLEAN, which is not a time"),
        (("at", None), "5 AS at", "has no format that integers have"),
        (("at", "%Y-%m"), "'2026-01' AS at", "cannot tell the intervals of a model by day apart"),
        (("at", "epoch"), "'5' AS at", "epoch counts by integers"),
    ],
)
def test_what_is_no_time_is_refused(
    lake: Lake, spark: SparkSession, column: tuple[str, str | None], select: str, said: str
) -> None:
    name, form = column
    with pytest.raises(StepError, match="time column") as caught:
        target(lake, form, name=name).write(spark, f"SELECT {select}", 1, 2)
    assert said in caught.value.message
    assert not lake.catalog.known_table("main", "t", lake.catalog.latest())
