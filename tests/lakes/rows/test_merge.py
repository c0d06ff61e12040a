"""MERGE with any clauses, against the same MERGE of an in-memory DuckDB, and what it refuses."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from penstock.errors import ColumnNotFound, MergeKeyError, QueryFailed, UnsupportedFeature
from penstock.lakes.lake import Lake
from penstock.lakes.rows.change import Clause, MergeBuilder, On, RowChange
from penstock.spark.functions import arrow_frame
from tests import duck
from tests.lakes.conftest import Rows, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lakes.table import WriteResult

pytestmark = pytest.mark.spark

KV = "k INT, v STRING"
NUMBERS = itertools.count()


@pytest.fixture
def filled(lake: Lake, rows: Rows) -> Lake:
    lake.table("t").append(rows(KV, [(1, "a"), (2, "b"), (3, "c"), (None, "n")]).coalesce(1))
    return lake


def counts(result: WriteResult) -> tuple[int, int, int]:
    staged = result.staged
    return staged.rows_updated, staged.rows_deleted, staged.rows_inserted


def feed(lake: Lake) -> list[tuple[Any, ...]]:
    """Changes of the last snapshot, by DuckDB."""
    at = lake.catalog.latest().id
    query = f"FROM lk.table_changes('t', {at}, {at}) SELECT rowid, change_type, k, v"
    return duck.rows(lake.catalog.uri, query)


def test_every_kind_of_clause(filled: Lake, rows: Rows) -> None:
    source = rows(KV, [(1, "x"), (2, "delete"), (9, "i"), (10, "no"), (None, "null")])
    merge = filled.table("t").merge_into(source, "t.k = s.k")
    merge = merge.when_matched_delete("s.v = 'delete'").when_matched_update_all()
    merge = merge.when_not_matched_insert("s.v <> 'no'", {"k": "s.k", "v": "upper(s.v)"})
    merge = merge.when_not_matched_by_source_update("t.k = 3", {"v": "t.v || '!'"})
    merge = merge.when_not_matched_by_source_delete("t.v = 'n'")
    assert counts(merge.execute()) == (2, 2, 2)
    changes = feed(filled)
    assert [row for row in changes if row[1] != "insert"] == [
        (0, "update_postimage", 1, "x"),
        (0, "update_preimage", 1, "a"),
        (1, "delete", 2, "b"),
        (2, "update_postimage", 3, "c!"),
        (2, "update_preimage", 3, "c"),
        (3, "delete", None, "n"),
    ]
    assert [row[2:] for row in changes if row[1] == "insert"] == [(9, "I"), (None, "NULL")]


def test_nothing_to_do_stages_nothing(filled: Lake, rows: Rows) -> None:
    merge = filled.table("t").merge_into(rows(KV, [(1, "x")]), "t.k = s.k")
    result = merge.when_matched_update("s.v = 'y'", {"v": "s.v"}).execute()
    assert (result.snapshot, result.staged.unchanged) == (None, True)


def test_several_source_rows_for_one_target_row(filled: Lake, rows: Rows) -> None:
    merge = filled.table("t").merge_into(rows(KV, [(1, "x"), (1, "y"), (2, "z")]), "t.k = s.k")
    with pytest.raises(MergeKeyError, match="1 rows of main.t are matched by several") as caught:  # noqa: RUF043
        merge.when_matched_update_all().execute()
    assert caught.value.data["samples"] == [{"k": 1, "v": "a", "rows": 2}]
    assert counts(merge.when_matched_update_all("s.v <> 'y'").execute()) == (2, 0, 0)
    assert counts(merge.when_matched_delete().execute()) == (0, 2, 0)


def test_schema_evolution(filled: Lake, rows: Rows) -> None:
    source = rows(f"{KV}, more DOUBLE", [(1, "x", 1.5), (9, "i", 2.5)])
    merge = filled.table("t").merge_into(source, "t.k = s.k")
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    merge.with_schema_evolution().execute()
    found = table_of(filled.table("t").to_df().where("k IN (1, 2, 9)"))
    assert found == [(1, "x", 1.5), (2, "b", None), (9, "i", 2.5)]
    assert filled.table("t").schema.names == ("k", "v", "more")


def test_defaults_and_not_null(lake: Lake, rows: Rows) -> None:
    duck.rows(lake.catalog.uri, "CREATE TABLE t(k INT NOT NULL, v VARCHAR DEFAULT 'd')")
    merge = lake.table("t").merge_into(rows(KV, [(1, None), (None, "x")]), "t.k = s.k")
    with pytest.raises(QueryFailed, match=r'column k of main.t is NOT NULL.*"k":null'):
        merge.when_not_matched_insert(None, {"k": "s.k"}).execute()
    merge.when_not_matched_insert("s.k IS NOT NULL", {"k": "s.k"}).execute()
    assert table_of(lake.table("t").to_df()) == [(1, "d")]


def test_refused(filled: Lake, rows: Rows) -> None:
    merge = filled.table("t").merge_into(rows(KV, [(1, "x")]), "t.k = s.k")
    with pytest.raises(UnsupportedFeature, match="without a WHEN"):
        merge.execute()
    with pytest.raises(UnsupportedFeature, match="after one without a condition"):
        merge.when_matched_delete().when_matched_update_all().execute()
    with pytest.raises(ColumnNotFound, match="no column 'w'"):
        merge.when_matched_update(None, {"w": "1"}).execute()


def test_inside_a_transaction_over_what_it_staged(filled: Lake, rows: Rows) -> None:
    with filled.transaction() as tx:
        table = tx.table("t")
        table.append(rows(KV, [(7, "new")]))
        merge = table.merge_into(rows(KV, [(7, "x"), (2, "x")]), "t.k = s.k")
        assert merge.when_matched_update_all().execute().rows_updated == 2
    assert [row[1:] for row in feed(filled)] == [
        ("update_postimage", 2, "x"),
        ("update_preimage", 2, "b"),
        ("insert", 7, "x"),
    ]


VALUES = st.one_of(st.none(), st.integers(0, 3))
TARGET = st.lists(st.tuples(VALUES, VALUES), max_size=6)
SOURCE = st.lists(st.tuples(VALUES, VALUES), max_size=6, unique_by=lambda row: row[0])
ON = st.sampled_from(["t.k = s.k", "s.k = t.k AND t.v > 0", "t.k = s.k + 1", "t.k + 0 = s.k"])
CONDITION = st.sampled_from([None, "s.v > 1", "s.k < 2", "s.v IS NULL"])
OF_TARGET = st.sampled_from([None, "t.v > 1", "t.k IS NULL"])


def clause(kind: Any, action: Any, condition: Any, *values: dict[str, str]) -> Any:
    given = st.sampled_from(values) if values else st.none()
    return st.builds(Clause, st.just(kind), st.just(action), condition, given)


MATCHED = st.one_of(
    clause("matched", "update", CONDITION, {"v": "s.v"}, {"v": "t.v + s.k", "k": "t.k + 1"}),
    clause("matched", "delete", CONDITION),
)
NOT_MATCHED = clause("not matched", "insert", CONDITION, {"k": "s.k", "v": "s.v"}, {"v": "s.k"})
BY_SOURCE = st.one_of(
    clause("not matched by source", "update", OF_TARGET, {"v": "9"}),
    clause("not matched by source", "delete", OF_TARGET),
)


def some(of: Any, most: int) -> Any:
    """Up to so many clauses, none after one without a condition."""
    listed = st.lists(of, max_size=most)
    return listed.filter(lambda found: all(one.condition is not None for one in found[:-1]))


CLAUSES = st.tuples(some(MATCHED, 3), some(NOT_MATCHED, 2), some(BY_SOURCE, 2)).map(
    lambda parts: tuple(one for part in parts for one in part)
)


def sql(on: str, clauses: tuple[Clause, ...]) -> str:
    """The MERGE as DuckDB says it."""
    whens = []
    for one in clauses:
        condition = f" AND {one.condition}" if one.condition else ""
        pairs = dict(one.values or {})
        actions = {
            "update": "UPDATE SET " + ", ".join(f"{c} = {v}" for c, v in pairs.items()),
            "insert": f"INSERT ({', '.join(pairs)}) VALUES ({', '.join(map(str, pairs.values()))})",
            "delete": "DELETE",
        }
        whens.append(f"WHEN {one.kind.upper()}{condition} THEN {actions[one.action]}")
    return f"MERGE INTO t USING s ON {on} {' '.join(whens)}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Any:
    root = tmp_path_factory.mktemp("merges")
    with Lake.attach(
        f"ducklake:sqlite:{root}/m.sqlite", data_path=f"{root}/d", spark=spark
    ) as lake:
        yield lake


@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(both=st.tuples(TARGET, SOURCE), on=ON, clauses=CLAUSES.filter(bool))
def test_as_duckdb_does_it(
    shared: Lake, spark: SparkSession, both: Any, on: str, clauses: Any
) -> None:
    name = f"t{next(NUMBERS)}"
    kinds = pa.schema([("k", pa.int32()), ("v", pa.int32())])
    frames = [
        pa.table({"k": [k for k, _ in rows], "v": [v for _, v in rows]}, kinds) for rows in both
    ]
    with duckdb.connect() as truth:
        truth.register("first", frames[0])
        truth.register("s", frames[1])
        truth.execute("CREATE TABLE t AS FROM first")
        truth.execute(sql(on, clauses))
        expected = sorted(truth.execute("FROM t").fetchall(), key=repr)
    table = shared.table(name)
    table.append(arrow_frame(spark, frames[0]))
    change = RowChange(On.of(on), clauses, arrow_frame(spark, frames[1]))
    MergeBuilder(change, table.merge_into(change.rows, on).finish).execute()
    assert sorted((tuple(row) for row in table.to_df().collect()), key=repr) == expected


def test_keys_that_are_zero_or_no_number(lake: Lake, spark: SparkSession) -> None:
    """``-0.0`` and NaN match what they match in DuckDB, and the key there stays."""
    lake.sql("CREATE TABLE t(k DOUBLE, v INT)")
    lake.sql("INSERT INTO t VALUES (0.0, 1), (CAST('nan' AS DOUBLE), 2)")
    source = spark.createDataFrame([(-0.0, 3), (float("nan"), 4)], "k double, v int")
    merge = lake.table("t").merge_into(source, "t.k = s.k")
    merge.when_matched_update(set={"v": "s.v"}).when_not_matched_insert_all().execute()
    query = "SELECT CAST(k AS VARCHAR), v FROM lk.t ORDER BY v"
    assert duck.rows(lake.catalog.uri, query) == [("0.0", 3), ("nan", 4)]
    text = (
        "WITH t(k, v) AS (VALUES (0.0::DOUBLE, 1), ('nan'::DOUBLE, 2)), "
        "s(k, v) AS (VALUES (-0.0::DOUBLE, 3), ('nan'::DOUBLE, 4)) "
        "SELECT t.k::VARCHAR, s.v FROM t JOIN s ON t.k = s.k ORDER BY s.v"
    )
    assert duckdb.sql(text).fetchall() == [("0.0", 3), ("nan", 4)]
