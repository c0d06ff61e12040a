"""Which files a predicate keeps. What it must not drop is proven in test_pruning_never_drops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import Connection

from penstock.lakes.catalog.database import metadata as t
from penstock.lakes.format.partitioning import bucket
from penstock.lakes.format.schema import TableSchema
from tests.lakes.catalog import pruned
from tests.lakes.catalog.pruned import at, chosen, clear, day, fill, partition, table_of


@pytest.fixture(scope="module")
def shared() -> Iterator[Connection]:
    with pruned.memory() as connection:
        yield connection


@pytest.fixture
def catalog(shared: Connection) -> Connection:
    clear(shared)
    return shared


NUMBERS: list[list[list[object]]] = [[[2], [9]], [[10], [100]], [[None]], [[5], [None]]]


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("a > 9", [1]),
        ("a >= 9", [0, 1]),
        ("9 < a", [1]),
        ("a = 10", [1]),
        ("a = '10'", [1]),
        ("a = 2.5", [0]),  # a bound is not a histogram
        ("a < 2.5", [0]),
        ("a < 1.5", []),
        ("a = -3", []),
        ("a IN (3, 200)", [0]),
        ("a IN (3, 200, NULL)", [0]),
        ("a NOT IN (5, 6)", [0, 1]),
        ("a <> 5", [0, 1]),
        ("a BETWEEN 6 AND 12", [0, 1]),
        ("NOT a BETWEEN 0 AND 12", [1]),
        ("a IS NULL", [2, 3]),
        ("a IS NOT NULL", [0, 1, 3]),
        ("a <=> 10", [1]),
        ("a <=> NULL", [2, 3]),
        ("a > 9 AND a < 50", [1]),
        ("a < 3 OR a > 50", [0, 1]),
        ("NOT (a < 3 OR a > 50)", [0, 1, 3]),
        ("a > 9 AND length(b) > 3", [1]),
        ("a > 9 OR length(b) > 3", [0, 1, 2, 3]),
        ("a + 1 > 10", [0, 1, 2, 3]),
        ("nobody > 3", [0, 1, 2, 3]),
        ("a = 'x'", [0, 1, 3]),  # no number: only that the column is not NULL
    ],
)
def test_whole_numbers(catalog: Connection, where: str, files: list[int]) -> None:
    table = table_of({"a": "int32"})
    fill(catalog, table, NUMBERS)
    assert chosen(catalog, table, where) == files


def test_bounds_compare_as_their_type_does(catalog: Connection) -> None:
    table = table_of({"n": "int64", "d": "decimal(10,2)", "f": "float64"})
    fill(catalog, table, [[[9, 9, 9.0]], [[10, 10, 10.0]], [[100, 100, 1e300]]])
    for column in "ndf":
        assert chosen(catalog, table, f"{column} < 9.5") == [0]
        assert chosen(catalog, table, f"{column} > 9.5 AND {column} < 11") == [1]


def test_bounds_of_files_that_are_older_than_a_change_of_type(catalog: Connection) -> None:
    """They are finer than the column, whose values are rounded since: 0.001 is read as 0.00."""
    finer = table_of({"d": "decimal(18,3)"})
    fill(catalog, finer, [[[Decimal("0.001")]], [[Decimal("0.006")]], [[Decimal("-0.005")]]])
    table = table_of({"d": "decimal(38,2)"})
    assert chosen(catalog, table, "d = 0.00") == [0, 2]
    assert chosen(catalog, table, "d = 0.01") == [1]
    assert chosen(catalog, table, "d >= 0.01") == [1]
    assert chosen(catalog, table, "d <= -0.01") == [2]


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("s LIKE 'b%'", [1]),
        ("s LIKE 'b_x%'", [1]),
        ("s LIKE 'banana'", [1]),
        ("startswith(s, 'ap')", [0]),
        ("s LIKE '%a'", [0, 1, 2]),
        ("s NOT LIKE 'b%'", [0, 1, 2]),
        ("s < 'b'", [0]),
        ("s >= 'é'", [2]),
        ("s = 'zz'", [2]),
        ("s = 'a\\nb'", [0, 1, 2]),  # escapes are not Spark's here and there
    ],
)
def test_text(catalog: Connection, where: str, files: list[int]) -> None:
    table = table_of({"s": "varchar"})
    fill(catalog, table, [[["apple"], ["azure"]], [["banana"], ["cherry"]], [["z"], ["ü"]]])
    assert chosen(catalog, table, where) == files


def test_text_that_was_cut_may_be_longer(catalog: Connection) -> None:
    table = table_of({"s": "varchar"})
    fill(catalog, table, [[["z" * 256]]])
    assert chosen(catalog, table, f"s = '{'z' * 300}'") == [0]
    assert chosen(catalog, table, f"s > '{'z' * 256}'") == [0]
    assert chosen(catalog, table, f"s <> '{'z' * 256}'") == [0]
    assert chosen(catalog, table, f"s = 'z{'zz' * 200}{{'") == [0]
    assert chosen(catalog, table, "s = '{'") == []


@pytest.mark.parametrize(
    ("kind", "rounds_to", "last"),
    [("timestamp_s", "01", "02.1"), ("timestamp_ms", "00.501", "00.6")],
)
def test_times_of_added_files_are_rounded_after_their_bounds(
    catalog: Connection, kind: str, rounds_to: str, last: str
) -> None:
    table = table_of({"t": kind})
    fill(catalog, table, [[[at("2020-01-01 00:00:00.5005")]], [[at(f"2020-01-01 00:00:{last}")]]])
    for operator in ("=", ">=", "<="):
        assert 0 in chosen(
            catalog, table, f"t {operator} TIMESTAMP_NTZ '2020-01-01 00:00:{rounds_to}'"
        )
    assert chosen(catalog, table, "t > TIMESTAMP_NTZ '2020-01-01 00:00:04'") == []


TIMES = [[[at("2020-01-01 00:00:00")]], [[at("2020-01-01 00:00:00.5")]], [[at("2021-06-01")]]]


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("ts < '2020-01-01 00:00:00.25'", [0]),
        ("ts > '2020-12-31'", [2]),
        ("ts = TIMESTAMP_NTZ '2020-01-01 00:00:00.5'", [1]),
        ("ts > TIMESTAMP '2021-01-01 00:00:00'", [2]),
        ("ts > DATE '2021-01-01'", [2]),
    ],
)
def test_times(catalog: Connection, where: str, files: list[int]) -> None:
    table = table_of({"ts": "timestamp"})
    fill(catalog, table, TIMES)
    assert chosen(catalog, table, where) == files


def test_a_time_without_a_zone_is_in_the_sessions(catalog: Connection) -> None:
    table = table_of({"at": "timestamptz"})
    fill(catalog, table, [[[at("2020-01-01 00:00:00+00")]], [[at("2020-01-01 05:00:00+00")]]])
    assert chosen(catalog, table, "at < '2019-12-31 20:00:00'", zone="America/New_York") == [0]
    assert chosen(catalog, table, "at < '2019-12-31 20:00:00'", zone="UTC") == []


@pytest.mark.parametrize("text", ["infinity", "0044-03-15 (BC)", "10000-01-01"])
def test_dates_that_do_not_sort_as_text_are_kept(catalog: Connection, text: str) -> None:
    table = table_of({"d": "date"})
    fill(catalog, table, [[[day("2020-01-01")]]])
    catalog.execute(t.file_column_stats.update().values(min_value=text, max_value=text))
    assert chosen(catalog, table, "d > '2020-01-01' OR d < '2020-01-01'") == [0]


def test_a_nan_is_above_everything(catalog: Connection) -> None:
    table = table_of({"f": "float64"})
    fill(catalog, table, [[[1.0]], [[1.0]], [[1.0]]])
    stats = t.file_column_stats
    catalog.execute(stats.update().where(stats.c.data_file_id == 1).values(contains_nan=True))
    catalog.execute(stats.update().where(stats.c.data_file_id == 2).values(contains_nan=None))
    assert chosen(catalog, table, "f > 5") == [1, 2]
    assert chosen(catalog, table, "f < 0") == []


def test_a_file_without_statistics_is_kept(catalog: Connection) -> None:
    table = table_of({"a": "int32", "b": "int32"})
    fill(catalog, table, [[[1, 1]], [[2, 2]]])
    catalog.execute(t.file_column_stats.delete().where(t.file_column_stats.c.column_id == 2))
    assert chosen(catalog, table, "b = 100") == [0, 1]
    assert chosen(catalog, table, "b = 100 AND a = 2") == [1]
    assert chosen(catalog, table, "b = 100 OR a = 2") == [0, 1]


@pytest.mark.parametrize("text", ["", "-", "abc", "inf", "1e", "--1"])
def test_a_bound_that_is_no_number_is_none(catalog: Connection, text: str) -> None:
    table = table_of({"a": "int64", "f": "float64"})
    fill(catalog, table, [[[1, 1.0]]])
    catalog.execute(t.file_column_stats.update().values(min_value=text, max_value=text))
    assert chosen(catalog, table, "a > 5 AND f > 5.5") == [0]
    assert chosen(catalog, table, "a < -5 AND f < -5.5") == [0]


def test_identity_partitions(catalog: Connection) -> None:
    table = table_of({"s": "varchar"})
    fill(catalog, table, [[["a"]], [["b"]], [[None]]])
    catalog.execute(t.file_column_stats.delete())
    partition(catalog, table.schema.columns[0], "identity", ["a", "b", None])
    assert chosen(catalog, table, "s = 'b'") == [1]
    assert chosen(catalog, table, "s <> 'b'") == [0]
    assert chosen(catalog, table, "s IS NULL") == [2]
    assert chosen(catalog, table, "s IS NOT NULL") == [0, 1]


@pytest.mark.parametrize(
    ("transform", "values", "where", "files"),
    [
        ("year", ["2019", "2020", "2021", None], "d >= '2020-05-01'", [1, 2, 3]),
        ("month", ["4", "5", "12"], "d BETWEEN '2020-05-01' AND '2020-06-30'", [1]),
        ("month", ["4", "5", "12"], "d BETWEEN '2019-05-01' AND '2020-06-30'", [0, 1, 2]),
        ("day", ["1", "2", "31"], "d = '2020-05-02'", [1]),
        ("day", ["1", "2", "31"], "d = '2020-05-02' OR d = '2020-06-02'", [0, 1, 2]),
    ],
)
def test_parts_of_dates(
    catalog: Connection, transform: str, values: list[str | None], where: str, files: list[int]
) -> None:
    table = table_of({"d": "date"})
    fill(catalog, table, [[[None]] for _ in values])
    catalog.execute(t.file_column_stats.delete())
    partition(catalog, table.schema.columns[0], transform, values)
    assert chosen(catalog, table, where) == files


def test_the_writers_zone_is_not_known(catalog: Connection) -> None:
    table = table_of({"d": "timestamptz"})
    fill(catalog, table, [[[None]] for _ in range(3)])
    catalog.execute(t.file_column_stats.delete())
    partition(catalog, table.schema.columns[0], "year", ["2019", "2020", "2021"])
    assert chosen(catalog, table, "d > '2021-01-01 05:00:00'") == [1, 2]


def test_buckets(catalog: Connection) -> None:
    table = table_of({"id": "int32", "s": "varchar"})
    fill(catalog, table, [[[None, None]] for _ in range(8)])
    catalog.execute(t.file_column_stats.delete())
    partition(catalog, table.schema.columns[0], "bucket(8)", [str(i) for i in range(8)])
    assert chosen(catalog, table, "id = 34") == [bucket(34, 8)]
    assert chosen(catalog, table, "id IN (1, 34) AND id > 0") == sorted(
        {bucket(1, 8) or 0, bucket(34, 8) or 0}
    )
    assert chosen(catalog, table, "id > 34") == list(range(8))
    # DuckDB hashes a UTINYINT otherwise than the SMALLINT that it became.
    column = table.schema.columns[0]
    was = replace(column, versions=((1, "uint16"), (5, "int32")))
    became = replace(table, schema=TableSchema((was, *table.schema.columns[1:])))
    assert chosen(catalog, became, "id = 34") == list(range(8))
