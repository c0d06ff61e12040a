"""Penstock writes, DuckDB reads: every table at every snapshot, and its feed of changes."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from tests import duck
from tests.lakes.catalog.conftest import Place
from tests.lakes.differential.conftest import Rows
from tests.lakes.differential.content import (
    assert_feed,
    assert_same,
    expected,
    of_spark,
    row_ids,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KV = "k INT, v STRING"


def test_append_and_replace(each_lake: Lake, each_place: Place, rows: Rows) -> None:
    table = each_lake.table("t")
    table.append(rows(KV, [(1, "a"), (2, None), (None, "")]))
    table.append(rows("V STRING, k INT", [("b", 3)]))
    table.append(rows("k INT", [(4,)]))
    table.replace(rows(KV, [(5, "x"), (5, "x")]))
    table.append(rows(KV, [(6, "y")]))
    history = assert_same(each_lake, each_place)
    assert history[3]["main.t"] == expected(
        ("k", "v"), [(1, "a"), (2, None), (None, ""), (3, "b"), (4, None)]
    )
    assert history[5]["main.t"] == expected(("k", "v"), [(5, "x"), (5, "x"), (6, "y")])
    assert_feed(each_place, "t", 1, 5)


def test_replace_with_other_columns(lake: Lake, place: Place, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows(KV, [(1, "a")]))
    table.replace(rows("v STRING, k BIGINT, z DOUBLE", [("a", 1, math.nan), ("b", 2, -0.0)]))
    table.append(rows("k BIGINT", [(3,)]))
    table.replace(rows("other DATE", []))
    history = assert_same(lake, place)
    assert history[1]["main.t"] == expected(("k", "v"), [(1, "a")])
    assert history[3]["main.t"].columns == ("v", "k", "z")
    assert history[4]["main.t"] == expected(("other",), [])


def test_empty_frames(lake: Lake, place: Place, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows(KV, []))
    table.append(rows(KV, []))
    table.merge(rows(KV, []), ["k"])
    table.merge(rows(KV, [(1, "a")]), ["k"])
    table.replace(rows(KV, []))
    table.replace_slice(rows(KV, []), "k", 1)
    last = lake.snapshots()[-1].id
    history = assert_same(lake, place)
    assert history[last]["main.t"] == expected(("k", "v"), [])
    assert_feed(place, "t", 1, last)


ODD = [
    *("plain", "two words", "it's", 'a "b"', "a/b", "..", "50%", "%2F", "a=b", "ü ☃ 日本"),
    *("", "-", "a\\b", "x' OR '1'='1", "{p}", "a+b", "#?&;:*", "tab\there", "new\nline", "~"),
    *("__HIVE_DEFAULT_PARTITION__", "NULL", "v", "n", "A", "a", "\u00e9", "e\u0301", "."),
]


def test_odd_partition_values(lake: Lake, place: Place, rows: Rows) -> None:
    table = lake.table("t")
    values = [(at, text) for at, text in enumerate(ODD)]
    table.append(rows("k INT, p STRING", [*values, (-1, None)]), partition_by=["p"])
    history = assert_same(lake, place)
    assert history[1]["main.t"] == expected(("k", "p"), [*values, (-1, None)])
    assert_feed(place, "t", 1, 1)


@pytest.mark.parametrize("value", ["a/b %2F 'ü'", "", None, "__HIVE_DEFAULT_PARTITION__"])
def test_slices_of_odd_values(lake: Lake, place: Place, rows: Rows, value: str | None) -> None:
    columns = "k INT, p STRING"
    with lake.transaction() as tx:
        first = rows(columns, [(1, value), (2, value)])
        tx.table("t").replace_slice(first, "p", value, partition_by=["p"])
    table = lake.table("t")
    table.replace_slice(rows(columns, [(3, "other")]), "p", "other")
    table.replace_slice(rows("k INT", [(4,)]), "p", value)
    with lake.transaction() as tx:
        merged = rows(columns, [(4, value), (5, value)])
        tx.table("t").merge(merged, ["k"], slice=("p", value))
    table.replace_slice(rows("k INT", []), "p", value)
    history = assert_same(lake, place)
    assert history[4]["main.t"] == expected(("k", "p"), [(3, "other"), (4, value), (5, value)])
    assert history[5]["main.t"] == expected(("k", "p"), [(3, "other")])
    assert_feed(place, "t", 1, 5)
    where = "p IS NULL" if value is None else "p = '{}'".format(value.replace("'", "''"))
    found_by_duck = duck.rows(place.uri, f"SELECT k FROM t AT (VERSION => 4) WHERE {where}")
    assert found_by_duck == [(4,), (5,)]


def test_merge_keeps_row_ids(each_lake: Lake, each_place: Place, rows: Rows) -> None:
    columns = "k INT, v STRING, n DOUBLE"
    table = each_lake.table("t")
    table.append(rows(columns, [(i, "old", float(i)) for i in range(6)]))
    table.merge(rows(columns, [(1, "new", 1.0), (2, "old", 2.0), (9, "in", None)]), ["k"])
    table.merge(rows("k INT, v STRING", [(1, "newer"), (3, "new"), (9, "in")]), ["k"])
    history = assert_same(each_lake, each_place)
    assert history[3]["main.t"] == expected(
        ("k", "v", "n"),
        [
            *[(0, "old", 0.0), (1, "newer", 1.0), (2, "old", 2.0), (3, "new", 3.0)],
            *[(4, "old", 4.0), (5, "old", 5.0), (9, "in", None)],
        ],
    )
    before, after = (row_ids(each_place, "t", "k", version) for version in (1, 3))
    assert {key: after[key] for key in before} == before
    assert_feed(each_place, "t", 1, 3)


def test_merges_on_the_same_files_fold(each_lake: Lake, each_place: Place, rows: Rows) -> None:
    table = each_lake.table("t")
    table.append(rows(KV, [(i, "0") for i in range(8)]))
    for turn in range(1, 4):
        # The second and the last as for a large target, whose keys the driver reads.
        each_lake.limits = Limits() if turn % 2 else Limits(compared_rows=-1)
        table.merge(rows(KV, [(turn, str(turn)), (turn + 1, str(turn)), (turn + 10, "n")]), ["k"])
    each_lake.limits = Limits(compared_rows=-1)
    table.merge(rows(KV, [(i, "all") for i in range(20)]), ["k"])
    assert_same(each_lake, each_place)
    ids = [row_ids(each_place, "t", "k", version) for version in (1, 4, 5)]
    assert {key: ids[1][key] for key in ids[0]} == ids[0]
    assert {key: ids[2][key] for key in ids[1]} == ids[1]
    assert_feed(each_place, "t", 1, 5)


def test_the_candidate_state_is_what_the_commit_makes(lake: Lake, place: Place, rows: Rows) -> None:
    lake.table("t").append(rows(KV, [(i, "0") for i in range(6)]))
    for turn in range(1, 4):
        with lake.transaction() as tx:
            table = tx.table("t")
            table.append(rows(KV, [(10 + turn, "n")]))
            table.merge(rows(KV, [(turn, str(turn)), (turn + 1, str(turn))]), ["k"])
            candidate = of_spark(table.to_df())
        assert candidate == of_spark(lake.table("t").to_df())
    assert_same(lake, place)
    assert_feed(place, "t", 1, 4)


def test_merge_with_several_keys(lake: Lake, place: Place, rows: Rows) -> None:
    columns = "`a b` STRING, `c.d` TIMESTAMP_NTZ, `e``f` DECIMAL(9,2), v INT"
    day = dt.datetime(2013, 1, 1)  # noqa: DTZ001 - of a column without a time zone
    table = lake.table("t")
    table.append(rows(columns, [("x", day, Decimal(i), i) for i in range(3)]))
    table.append(rows(columns, [(None, day, Decimal(1), 7)]))
    table.merge(
        rows(columns, [("x", day, Decimal(1), 10), ("y", day, Decimal(1), 11)]),
        ["A B", "c.d", "e`f"],
    )
    history = assert_same(lake, place)
    assert len(history[3]["main.t"].rows) == 5
    assert_feed(place, "t", 1, 3)


@pytest.fixture
def _in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python's own time zone; the session's stays UTC."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_in_new_york")
@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("TIMESTAMP_NTZ", ["2013-01-02 03:04:05.000006", "1582-10-03 00:00:00"]),
        ("TIMESTAMP", ["2013-11-03 05:30:00Z", "2013-11-03 06:30:00Z", "0900-01-01 00:00:00Z"]),
        ("DATE", ["0900-01-01", "+12013-01-02"]),
    ],
)
def test_merge_by_times_away_from_utc(
    lake: Lake, spark: SparkSession, kind: str, texts: list[str]
) -> None:
    values = ", ".join(f"({kind}'{text}', 0)" for text in texts)
    table = lake.table("t")
    table.append(spark.sql(f"SELECT * FROM VALUES {values} AS t(k, v)"))
    for text in texts:
        staged = table.merge(spark.sql(f"SELECT {kind}'{text}' AS k, 1 AS v"), ["k"]).staged
        assert (staged.rows_updated, staged.rows_inserted) == (1, 0), text


@pytest.mark.usefixtures("_in_new_york")
def test_slices_and_arguments_away_from_utc(lake: Lake, place: Place, spark: SparkSession) -> None:
    noon = dt.datetime(2013, 1, 2, 12)  # noqa: DTZ001 - of a column without a time zone
    table = lake.table("t")
    table.append(spark.sql("SELECT 1 AS k, TIMESTAMP_NTZ'2013-01-02 12:00:00' AS ts"))
    for k in (2, 3):  # first from a file of no partition, then from one of this slice
        table.replace_slice(spark.sql(f"SELECT {k} AS k"), "ts", noon)
    selected = lake.sql("SELECT k, CAST(ts AS STRING) AS ts FROM t WHERE ts = :ts", {"ts": noon})
    assert of_spark(selected) == expected(("k", "ts"), [(3, "2013-01-02 12:00:00")])
    assert_same(lake, place)


def test_merge_on_a_slice(lake: Lake, place: Place, rows: Rows) -> None:
    columns = "k INT, day STRING, v STRING"
    table = lake.table("t")
    table.append(rows(columns, [(1, "mon", "a"), (1, "tue", "b")]))  # not partitioned
    with lake.transaction() as tx:
        tx.table("t").merge(
            rows("k INT, v STRING", [(1, "c"), (2, "d")]), ["k"], slice=("day", "mon")
        )
    table.replace_slice(rows(columns, [(5, "tue", "e")]), "day", "tue")
    history = assert_same(lake, place)
    assert history[3]["main.t"] == expected(
        ("k", "day", "v"), [(1, "mon", "c"), (2, "mon", "d"), (5, "tue", "e")]
    )
    assert_feed(place, "t", 1, 3)


def test_several_tables_and_schemas(each_lake: Lake, each_place: Place, rows: Rows) -> None:
    with each_lake.transaction() as tx:
        tx.create_schema('odd "name"; x')
        tx.create_schema("Ünï")
        tx.table('"odd ""name""; x"."My.Table"').append(
            rows("`Mixed Case` INT, `a,b` INT", [(1, 2)])
        )
        tx.table('"Ünï"."select"').append(rows("`from` INT, `É` INT", [(1, 2)]))
        tx.table("Main.T").append(rows(KV, [(1, "a")]))
    with each_lake.transaction() as tx:
        tx.table('"odd ""name""; x"."my.table"').merge(
            rows("`mixed case` INT, `A,B` INT", [(1, 3), (2, 4)]), ["MIXED CASE"]
        )
        tx.table("t").append(rows("K INT", [(2,)]))
    history = assert_same(each_lake, each_place)
    assert set(history[2]) == {'odd "name"; x.My.Table', "Ünï.select", "main.T"}
    assert history[2]['odd "name"; x.My.Table'] == expected(("Mixed Case", "a,b"), [(1, 3), (2, 4)])


def test_columns_named_like_ours(lake: Lake, place: Place, rows: Rows) -> None:
    columns = "_metadata INT, file_path STRING, pos INT, filename STRING, value INT, `*` INT"
    table = lake.table("t")
    table.append(rows(columns, [(1, "a", 1, "x", 1, 1), (2, "b", 2, "y", 2, 2)]))
    table.merge(rows(columns, [(1, "c", 3, "z", 3, 3)]), ["_metadata"])
    table.merge(rows(columns, [(1, "c", 4, "z", 3, 3)]), ["_metadata"])
    assert_same(lake, place)
    assert_feed(place, "t", 1, 3)
