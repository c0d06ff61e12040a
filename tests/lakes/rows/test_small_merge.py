"""Merges that are done here: what matches, what changes, and what Spark makes of the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lakes.lake import Lake
from penstock.lakes.limits import Limits
from penstock.lakes.rows.merge_by_arrow import changed, matched, merge_small
from penstock.lakes.rows.merge_matches import MergeJob
from penstock.lakes.rows.merge_source import merge_source
from tests.lakes.conftest import Rows

NAN = float("nan")
SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("v", pa.float64())])
KEYS = st.integers(0, 4)
TEXTS = st.sampled_from(["a", "A", "", "é"])
VALUES = st.none() | st.sampled_from([0.0, -0.0, 1.5, NAN])
ROW = st.tuples(KEYS, TEXTS, VALUES)
UNIQUE = st.lists(ROW, unique_by=lambda row: row[:2], max_size=8)
Row = tuple[int, str, float | None]


def table(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip("ksv", row, strict=True)) for row in rows], SCHEMA)


def alike(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return a == b or (a != a and b != b)  # noqa: PLR0124 - NaN is not itself


@given(UNIQUE, UNIQUE)
def test_what_matches_and_what_changes(new: list[Row], old: list[Row]) -> None:
    places = matched(table(new), table(old), ["k", "s"])
    assert places is not None
    news, olds = table(new).take(places[0]), table(old).take(places[1])
    before = {row[:2]: row[2] for row in old}
    keys = news.select("ks").to_pylist()
    assert keys == olds.select("ks").to_pylist()
    assert {(row["k"], row["s"]) for row in keys} == {row[:2] for row in new} & set(before)
    differs = zip(news.to_pylist(), changed(news, olds, ["v"]).to_pylist(), strict=True)
    for row, differ in differs:
        assert differ == (not alike(row["v"], before[row["k"], row["s"]]))


def test_a_key_that_several_rows_of_the_target_have() -> None:
    twice = table([(1, "a", 1.0), (1, "a", 2.0), (2, "b", 3.0)])
    assert matched(table([(1, "a", 5.0)]), twice, ["k", "s"]) is None
    assert matched(table([(2, "b", 5.0)]), twice, ["k", "s"]) is not None


OLD = [
    (1, "a", Decimal("1.00"), True, NAN),
    (2, "b", None, None, -0.0),
    (3, "c", Decimal("3.50"), False, None),
    (4, "d", Decimal("4.00"), True, 4.0),
]
NEW = [
    (1, "a", Decimal("1.00"), True, NAN),  # as it is
    (2, "b", Decimal("0.00"), None, 0.0),
    (3, "c", Decimal("3.50"), False, 0.0),
    (5, "e", None, True, 5.0),
    (6, None, None, None, None),
]
COLUMNS = "k BIGINT, s STRING, d DECIMAL(9, 2), b BOOLEAN, v DOUBLE"


def merged(lake: Lake, rows: Rows, name: str, limit: str, keys: list[str]) -> list[Any]:
    """What a merge makes of a table whose rows are in files, in the catalog, deleted, updated."""
    lake.sql(f"CREATE TABLE {name} ({COLUMNS})")
    lake.sql(f"CALL set_option('data_inlining_row_limit', '{limit}', table_name => '{name}')")
    lake.table(name).append(rows(COLUMNS, OLD).coalesce(1))
    lake.table(name).append(rows(COLUMNS, [(7, "g", None, None, 7.0), (8, "h", None, True, 8.0)]))
    lake.sql(f"DELETE FROM {name} WHERE k = 4")
    lake.sql(f"UPDATE {name} SET b = true WHERE k = 8")
    more = [*NEW, (4, "d", None, None, 0.0), (8, "h", None, True, 8.5)]
    result = lake.table(name).merge(rows(COLUMNS, more), keys)
    staged = result.staged
    assert result.snapshot is not None
    found = lake.table(name).to_df(row_ids=True).toArrow().to_pylist()
    feed = lake.table(name).changes(result.snapshot.id, result.snapshot.id).toArrow().to_pylist()
    for row in feed:
        del row["snapshot_id"]
    # Which of the new rows comes first is not told.
    ids = {row["k"]: row.pop("rowid") for row in found if row["k"] not in {4, 5, 6}}
    counts = staged.rows_updated, staged.rows_inserted, staged.rows_deleted, staged.slice_rows
    kinds = sorted((row["change_type"], row["k"], str(row["v"])) for row in feed)
    return [counts, ids, sorted(str({**row, "rowid": 0}) for row in found), kinds]


@pytest.mark.spark
@pytest.mark.parametrize("limit", ["0", "10"])
def test_what_spark_makes_of_the_same(lake: Lake, rows: Rows, limit: str) -> None:
    here = merged(lake, rows, "t", limit, ["k"])
    assert here[0] == (3, 3, 0, 8)
    lake.limits = Limits(table_files=-1)
    assert merged(lake, rows, "u", limit, ["k"]) == here


@pytest.mark.spark
def test_keys_of_texts_and_columns_in_another_order(lake: Lake, rows: Rows) -> None:
    table = lake.table("t")
    table.append(rows("a STRING, b STRING, n INT", [("x", "y", 1), ("x", "z", 2)]))
    result = table.merge(
        rows("n INT, B STRING, A STRING", [(5, "y", "x"), (6, "y", "y")]), ["a", "b"]
    )
    assert (result.staged.rows_updated, result.staged.rows_inserted) == (1, 1)
    found = sorted(tuple(row.values()) for row in table.to_df().toArrow().to_pylist())
    assert found == [("x", "y", 5), ("x", "z", 2), ("y", "y", 6)]


@pytest.mark.spark
def test_no_more_rows_than_fit(lake: Lake, rows: Rows) -> None:
    """By the width of those that are there: they may be pictures."""
    table = lake.table("t")
    table.append(rows("k BIGINT, s STRING", [(1, "a" * 1000)]).coalesce(1))
    df = rows("k BIGINT, s STRING", [(2, "b"), (3, "c")])
    for room, here in ((3, True), (1, False)):
        with lake.transaction() as tx:
            target = tx.table("t")
            scanned = target.scan_all()
            limits = Limits(collected_bytes=room * scanned.files.files[0].size_bytes)
            source = merge_source(df, target.schema, ["k"], table="t", keep=False)
            job = MergeJob(
                spark=target.context.spark(),
                name="t",
                schema=target.schema,
                target=target.target(None),
                source=replace(source, limits=limits),
                scanned=scanned,
                condition=None,
            )
            assert (merge_small(target, job) is not None) == here
            tx.rollback()
