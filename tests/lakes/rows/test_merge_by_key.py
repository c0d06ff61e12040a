"""Merges: what is updated, inserted, refused and left alone. Row ids are compared with DuckDB's
in ``differential``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import MergeKeyError, QueryFailed, SchemaMismatch
from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from tests.lakes.conftest import Rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KVN = "k INT, v STRING, n DOUBLE"


WAYS = {
    "few": Limits(),
    "small": Limits(table_files=-1, scanned_files=-1),
    "compared": Limits(table_files=-1),
    "brought": Limits(table_files=-1, compared_rows=-1),
    "large": Limits(table_files=-1, compared_rows=-1, source_rows=-1, source_file_bytes=-1),
}


@pytest.fixture(params=list(WAYS))
def limits(request: pytest.FixtureRequest) -> Limits:
    """Every test as it is, as if its rows were more, and as if they were very many: one result."""
    return WAYS[request.param]


# Refused before one of the ways is taken: the shortest and the longest would show another order.
refused_first = pytest.mark.parametrize("limits", ["few", "large"], indirect=True)


@pytest.fixture
def filled(lake: Lake, rows: Rows) -> Lake:
    values = [(1, "a", 1.0), (2, "b", float("nan")), (3, None, None)]
    lake.table("t").append(rows(KVN, values))
    return lake


def counts(result: Any) -> tuple[int, int, int]:
    return result.staged.rows_updated, result.staged.rows_inserted, result.staged.rows_deleted


def test_updates_and_inserts(filled: Lake, rows: Rows) -> None:
    result = filled.table("t").merge(rows(KVN, [(1, "z", 1.0), (9, "i", None)]), ["K"])
    assert counts(result) == (1, 1, 0)
    assert result.staged.slice_rows == 4
    found = table_of(filled.table("t").to_df().select("k", "v"))
    assert found == [(1, "z"), (2, "b"), (3, None), (9, "i")]


def test_equal_rows_are_left_alone(filled: Lake, rows: Rows) -> None:
    same = rows(KVN, [(1, "a", 1.0), (2, "b", float("nan")), (3, None, None)])
    result = filled.table("t").merge(same, ["k"])
    assert (result.staged.unchanged, result.snapshot) == (True, None)
    one_differs = rows(KVN, [(2, "b", float("nan")), (3, None, 0.0)])
    assert counts(filled.table("t").merge(one_differs, ["k"])) == (1, 0, 0)


def test_only_keys(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows("k INT", [(1,)]))
    assert counts(table.merge(rows("k INT", [(1,), (2,)]), ["k"])) == (0, 1, 0)
    assert table.merge(rows("k INT", [(1,), (2,)]), ["k"]).staged.unchanged


def test_zeros_of_either_sign_and_nans_are_equal(lake: Lake, rows: Rows) -> None:
    """As with ``=`` in DuckDB and Spark, in keys and where rows are compared."""
    columns, nan = "k DOUBLE, n DOUBLE", float("nan")
    table = lake.table("t")
    table.append(rows(columns, [(-0.0, 1.0), (nan, -0.0)]))
    assert table.merge(rows(columns, [(0.0, 1.0), (nan, 0.0)]), ["k"]).staged.unchanged
    assert counts(table.merge(rows(columns, [(0.0, 2.0), (nan, 2.0)]), ["k"])) == (2, 0, 0)


def test_columns_that_the_source_lacks_are_kept(filled: Lake, rows: Rows) -> None:
    filled.table("t").merge(rows("k INT, v STRING", [(1, "z"), (9, "i")]), ["k"])
    found = table_of(filled.table("t").to_df().where("k IN (1, 9)"))
    assert found == [(1, "z", 1.0), (9, "i", None)]


BAD_KEYS = [
    ([(None, "a"), (None, "b"), (1, "c")], (2, 0), [{"k": None, "rows": 2}]),
    ([(1, "a"), (1, "b"), (2, "c")], (0, 1), [{"k": 1, "rows": 2}]),
]


@pytest.mark.parametrize(("values", "bad", "samples"), BAD_KEYS)
def test_bad_keys(
    filled: Lake, rows: Rows, values: Any, bad: tuple[int, int], samples: Any
) -> None:
    with pytest.raises(MergeKeyError) as caught:
        filled.table("t").merge(rows("k INT, v STRING", values), ["k"])
    assert caught.value.data == {
        "null_count": bad[0],
        "duplicate_count": bad[1],
        "samples": samples,
    }
    assert len(filled.snapshots()) == 2
    directories = Path(filled.table("t").info().path).iterdir()
    assert len(list(directories)) == 1  # nothing was written


@pytest.mark.parametrize("kind", ["INT", "DOUBLE"])  # the second is looked at by Spark
def test_bad_keys_of_a_first_merge_leave_nothing(lake: Lake, rows: Rows, kind: str) -> None:
    bad = rows("k INT", [(1,), (1,), (None,), (2,)]).selectExpr(f"CAST(k AS {kind}) AS k")
    with pytest.raises(MergeKeyError) as caught:
        lake.table("t").merge(bad, ["k"])
    assert (caught.value.data["null_count"], caught.value.data["duplicate_count"]) == (1, 1)
    assert not lake.table("t").exists()
    assert not list(Path(lake.catalog.data_path).rglob("*.parquet"))
    assert counts(lake.table("t").merge(bad.where("k = 2"), ["k"])) == (0, 1, 0)


def test_samples_are_few(filled: Lake, spark: SparkSession) -> None:
    source = spark.range(100).selectExpr("int(id / 2) AS k")
    with pytest.raises(MergeKeyError, match="50 values that come more than once") as caught:
        filled.table("t").merge(source, ["k"])
    assert len(caught.value.data["samples"]) == 20


@refused_first
@pytest.mark.parametrize("keys", [["nope"], ["v"]])
def test_keys_that_are_not_there(filled: Lake, rows: Rows, keys: list[str]) -> None:
    with pytest.raises(SchemaMismatch, match="no key column"):
        filled.table("t").merge(rows("k INT", [(1,)]), keys)


def test_texts_are_the_same_key_where_their_bytes_are(lake: Lake, rows: Rows) -> None:
    texts = ["", " ", "a", "A", "a ", "\u00e4", "a\u0308", "a\0", "\U0001f600"]
    table = lake.table("t")
    table.append(rows("k STRING, v INT", [(text, at) for at, text in enumerate(texts[:6])]))
    merged = [(text, 2 if at == 2 else at + 10) for at, text in enumerate(texts)]
    assert counts(table.merge(rows("k STRING, v INT", merged), ["k"])) == (5, 3, 0)
    assert table_of(table.to_df()) == sorted(merged, key=str)


def test_a_key_of_many_types(lake: Lake, rows: Rows) -> None:
    schema = "b TINYINT, n DECIMAL(12, 2), d DATE, at TIMESTAMP, local TIMESTAMP_NTZ, v INT"
    moment = datetime(2026, 3, 29, 1, 59, 59, 999999, tzinfo=UTC)
    cents, local = Decimal("-0.10"), moment.replace(tzinfo=None)
    same = (1, cents, moment.date(), moment, local)
    others = [
        (2, *same[1:]),
        (1, Decimal("0.10"), *same[2:]),
        (*same[:3], moment + timedelta(microseconds=1), local),
        (*same[:4], local - timedelta(microseconds=1)),
    ]
    table = lake.table("t")
    table.append(rows(schema, [(*same, 0)]))
    merged = rows(schema, [(*same, 1), *((*key, 2) for key in others)])
    assert counts(table.merge(merged, ["b", "n", "d", "at", "local"])) == (1, 4, 0)
    assert sorted(row.v for row in table.to_df().collect()) == [1, 2, 2, 2, 2]


@refused_first
def test_new_columns_are_refused(filled: Lake, rows: Rows) -> None:
    with pytest.raises(SchemaMismatch, match="no column 'other'"):
        filled.table("t").merge(rows("k INT, other INT", [(1, 2)]), ["k"])


def test_a_key_that_the_target_has_twice_becomes_one_row(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows(KVN, [(1, "a", 1.0), (1, "b", 2.0), (2, "c", 3.0), (2, "c", 3.0)]))
    result = table.merge(rows(KVN, [(1, "z", 0.0), (3, "i", 0.0)]), ["k"])
    assert counts(result) == (1, 1, 1)
    assert result.staged.slice_rows == 4
    assert counts(table.merge(rows(KVN, [(2, "c", 3.0)]), ["k"])) == (1, 0, 1)
    found = table_of(table.to_df())
    assert found == [(1, "z", 0.0), (2, "c", 3.0), (3, "i", 0.0)]


def test_maps_and_nested_values_compare(lake: Lake, spark: SparkSession) -> None:
    def query(value: int) -> str:
        return f"SELECT 1 AS k, map('a', array({value}, NULL)) AS m, named_struct('x', NULL) AS s"

    table = lake.table("t")
    table.append(spark.sql(query(1).replace("NULL)", "int(NULL))")))
    same = table.merge(spark.sql(query(1).replace("NULL)", "int(NULL))")), ["k"])
    assert same.staged.unchanged
    assert counts(table.merge(spark.sql(query(2).replace("NULL)", "int(NULL))")), ["k"])) == (
        1,
        0,
        0,
    )


def test_a_slice_sees_its_own_rows_only(lake: Lake, rows: Rows) -> None:
    for day in ("mon", "tue"):
        with lake.transaction() as tx:
            source = rows("k INT, v STRING", [(1, day), (2, day)])
            tx.table("t").merge(source, ["k"], slice=("day", day))
    with lake.transaction() as tx:
        source = rows("k INT, v STRING", [(1, "new"), (3, "new")])
        staged = tx.table("t").merge(source, ["k"], slice=("day", "tue"))
        assert (staged.rows_updated, staged.rows_inserted, staged.slice_rows) == (1, 1, 3)
        assert tx.table("t").slice_df("day", "tue").count() == 3
    found = table_of(lake.table("t").to_df())
    assert found == [
        *[(1, "mon", "mon"), (1, "new", "tue"), (2, "mon", "mon"), (2, "tue", "tue")],
        (3, "new", "tue"),
    ]


@refused_first
def test_rows_of_another_slice_fail(lake: Lake, rows: Rows) -> None:
    with lake.transaction() as tx, pytest.raises(QueryFailed, match="not the slice's value mon"):
        tx.table("t").merge(rows("k INT, day STRING", [(1, "tue")]), ["k"], slice=("day", "mon"))
    assert not lake.table("t").exists()


@pytest.fixture
def large(limits: Limits, tmp_path: Path, spark: SparkSession) -> Iterator[Lake]:
    """Its limits make of 20,000 rows a large target, which is read in several batches."""
    lowered = min(limits.compared_rows, 20_000)
    limits = replace(limits, compared_rows=lowered, table_rows=5_000, batch_rows=4_096)
    uri = f"ducklake:sqlite:{tmp_path / 'large.sqlite'}"
    with Lake.attach(uri, data_path=f"{tmp_path}/large", spark=spark, limits=limits) as attached:
        yield attached


def test_large_targets_are_read_by_key_first(large: Lake, spark: SparkSession) -> None:
    """Above ``compared_rows`` a sample decides whether all matched rows are compared."""
    table = large.table("t")
    table.append(spark.range(21_000).selectExpr("id AS k", "id AS v"))
    step = "id * 10 AS k"
    changed = spark.range(3_000).selectExpr(step, "-id AS v")
    assert counts(table.merge(changed.where("k > 0"), ["k"])) == (2099, 900, 0)
    again = table.merge(changed.where("k > 0"), ["k"])
    assert again.staged.unchanged
    half = spark.range(3_000).selectExpr(step, "if(id % 2 = 0, -id, id) AS v")
    assert counts(table.merge(half.where("k > 0"), ["k"])) == (1500, 0, 0)
    (total,) = table.to_df().agg({"v": "sum", "k": "count"}).collect()
    assert total["count(k)"] == 21_900
