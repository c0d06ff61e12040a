"""What is found here of a merge is what Spark finds, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import acero
from pyspark.sql import functions as fn

from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from penstock.lakes.reading.scan import FILE, ROW_ID
from penstock.lakes.rows.change import collected
from penstock.lakes.rows.merge_by_arrow import find_on_driver
from penstock.lakes.rows.merge_matches import MergeJob, all_change, find_matches
from penstock.lakes.rows.merge_source import count, merge_source
from tests.lakes.conftest import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

KV = "k BIGINT, v STRING"


LIMITS = Limits(compared_rows=-1, batch_rows=9)  # files are read in several batches


@pytest.fixture(autouse=True, params=["stream", "table"])
def _arrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "table":  # as by Arrow before 26
        monkeypatch.delattr(acero, "RecordBatchReaderSourceNodeOptions", raising=False)


@contextmanager
def job(lake: Lake, df: DataFrame, keys: list[str]) -> Iterator[MergeJob]:
    """The job of a merge into ``t`` that is not done."""
    with lake.transaction() as tx:
        table = tx.table("t")
        source = merge_source(df, table.schema, keys, table="t", keep=False)
        source = count(replace(source, limits=LIMITS), table="t")
        yield MergeJob(
            spark=table.context.spark(),
            name="t",
            schema=table.schema,
            target=table.target(None),
            source=source,
            scanned=table.scan_with(table.files().files),
            condition=None,
        )


def by_spark(job: MergeJob) -> tuple[Any, ...]:
    found = find_matches(job)
    try:
        places = collected(found.rows.where(fn.col(FILE).isNotNull()))
        ids = found.rows.select(*job.source.keys, ROW_ID).collect()
        return {k: p.to_pylist() for k, p in places.items()}, sorted(ids), found.hits
    finally:
        found.release()


def by_arrow(job: MergeJob) -> tuple[Any, ...]:
    found = find_on_driver(job)
    assert found is not None
    assert found.places is not None
    ids = found.rows.select(*job.source.keys, ROW_ID).collect()
    return {k: p.to_pylist() for k, p in found.places.items()}, sorted(ids), found.hits


def test_as_spark_finds_them(lake: Lake, rows: Rows) -> None:
    """In files with ids of their own and without, with deletes in files and in the catalog."""
    table = lake.table("t")
    table.append(rows(KV, [(i, "a") for i in range(0, 40, 2)]).coalesce(1))
    table.append(rows(KV, [(i, "a") for i in range(1, 12, 2)]).coalesce(1))
    table.merge(rows(KV, [(i, "b") for i in range(25, 35)]), ["k"])
    table.delete("k IN (2, 27, 28, 29)")
    table.delete("k BETWEEN 6 AND 24 AND k % 4 = 0")
    keys = [0, 2, 3, 5, 8, 10, 27, 30, 31, 34, 36, 77]
    with job(lake, rows(KV, [(k, "c") for k in reversed(keys)]), ["k"]) as one:
        found = by_arrow(one)
        assert found == by_spark(one)
        assert [row["k"] for row in found[1]] == [0, 3, 5, 10, 30, 31, 34, 36]
    with job(lake, rows(KV, [(100, "c")]), ["k"]) as one:
        assert by_arrow(one) == ({}, [], {})


def test_files_of_one_size_are_told_apart(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    for keys in ((50, 51), (60, 61)):
        table.append(rows(KV, [(k, "a") for k in keys]).coalesce(1))
    table.delete("k = 50")
    with job(lake, rows(KV, [(50, "b"), (60, "b")]), ["k"]) as one:
        assert len({file.size_bytes for file in one.scanned.files.files}) == 1
        found = by_arrow(one)
        assert found == by_spark(one)
        assert [row["k"] for row in found[1]] == [60]


def test_several_keys_and_a_column_added_since(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows("d DATE, k INT, v STRING", []))
    days = rows("s STRING, k INT, v STRING", [(f"2013-01-0{1 + i % 9}", i, "a") for i in range(30)])
    days = days.selectExpr("cast(s AS date) AS d", "k", "v")
    table.append(days)
    table.alter.rename_column("k", "n")
    table.alter.add_column("w", "int")
    some = days.selectExpr("if(k % 3 = 0, date'2013-02-01', d) AS d", "k AS n", "v", "1 AS w")
    with job(lake, some, ["n", "d"]) as one:
        found = by_arrow(one)
        assert found == by_spark(one)
        assert len(found[1]) == 20


def test_the_sample_says_whether_rows_change(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows(KV, [(i, "a") for i in range(20)]))
    for value, changes in (("a", False), ("b", True)):
        with job(lake, rows(KV, [(i, value) for i in range(5, 30)]), ["k"]) as one:
            found = find_on_driver(one)
            assert found is not None
            assert found.assumed
            assert all_change(one, found) is changes


@pytest.mark.parametrize(
    ("keys", "source"),
    [
        (["k"], "SELECT 1L AS k"),  # old values are wanted
        (["k"], "SELECT explode(array(1L, 1L)) AS k, 'b' AS v"),
    ],
    ids=["a part of the columns", "duplicates"],
)
def test_what_is_left_to_spark(lake: Lake, rows: Rows, keys: list[str], source: str) -> None:
    lake.table("t").append(rows(KV, [(1, "a")]))
    with job(lake, rows(KV, []).sparkSession.sql(source), keys) as one:
        assert find_on_driver(one) is None


def test_a_file_that_is_not_read_here(lake: Lake, rows: Rows) -> None:
    """Spark says what is wrong with it."""
    for low in (0, 50):
        lake.table("t").append(rows(KV, [(i, "a") for i in range(low, low + 20)]))
    with job(lake, rows(KV, [(1, "b")]), ["k"]) as one:
        assert find_on_driver(one) is not None
        Path(one.scanned.files.files[-1].path).unlink()
        assert find_on_driver(one) is None
