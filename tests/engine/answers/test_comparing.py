"""Two sets of rows are compared as they are by hand, and as DuckDB compares them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from penstock.engine.answers.comparing import Compared, RowChange, Rule, compare, key_of, way
from penstock.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frame = Callable[..., "DataFrame"]


@pytest.fixture
def frame(spark: SparkSession) -> Frame:
    def made(schema: str, *rows: tuple[Any, ...]) -> DataFrame:
        return spark.createDataFrame(list(rows), schema)

    return made


def test_a_key_is_named_as_the_table_has_it() -> None:
    assert key_of("ID, name", ["id", "Name"]) == ("id", "Name")
    assert key_of(None, ["id"]) == ()
    with pytest.raises(ArgumentError, match="no column 'nam'") as error:
        key_of(["nam"], ["id", "name"])
    assert error.value.hint == "did you mean 'name'?"


def test_types_decide_how_values_are_compared() -> None:
    assert way("int", "decimal(10,2)") == way("string", "string") == "{}"
    assert way("map<string,int>", "map<string,int>") == way("variant", "variant") == "to_json({})"
    assert way("string", "date") == "CAST({} AS STRING)"


@pytest.mark.spark
def test_rows_are_matched_by_key(frame: Frame) -> None:
    old = frame("id int, a string, b double", (1, "x", 1.0), (2, "y", None), (None, "n", 0.0))
    new = frame("b double, A string, id int", (1.0, "x", 1), (2.0, "z", 2), (9.0, "w", 3))
    found = compare(old, new, Rule(("id", "a", "b"), ("id",)))
    assert (found.inserted, found.deleted, found.updated, found.same) == (1, 1, 1, 1)
    assert found.columns == {"a": 1, "b": 1}
    assert found.samples == (
        RowChange("inserted", {"id": 3, "a": "w", "b": 9.0}),
        RowChange("deleted", {"id": None, "a": "n", "b": 0.0}),
        RowChange("updated", {"id": 2, "a": "z", "b": 2.0}, {"a": "y", "b": None}),
    )


@pytest.mark.spark
def test_rows_with_ids_are_matched_by_them_and_the_others_where_they_are_equal(
    frame: Frame,
) -> None:
    columns = "rid long, a string, m map<string,int>"
    old = frame(columns, (1, "x", {"k": 1}), (2, "y", None), (3, "y", None), (4, "q", None))
    new = frame(columns, (1, "x", {"k": 2}), (7, "y", None), (8, "y", None), (9, "y", None))
    found = compare(old, new, Rule(("a", "m"), row_id="rid"))
    assert found == Compared(1, 1, 1, 2, {"m": 1}, found.samples)
    assert [each.change for each in found.samples] == ["inserted", "deleted", "updated"]
    bare = compare(old, new, Rule(("a", "m"), samples=0))
    assert bare == Compared(2, 2, 0, 2)


@pytest.mark.spark
def test_nothing_differs_from_itself_and_nothing_from_nothing(frame: Frame) -> None:
    old = frame("id int, v double", (1, float("nan")), (2, None), (2, None))
    assert compare(old, old, Rule(("id", "v"))) == Compared(same=3)
    assert not compare(old.limit(0), old.limit(0), Rule(("id", "v"), ("id",))).differs


@pytest.mark.spark
def test_a_key_of_several_rows_is_refused(frame: Frame) -> None:
    old = frame("id int, v int", (1, 1), (1, 2))
    with pytest.raises(ArgumentError, match="2 rows have id = 1, so that is not a key"):
        compare(old, old.limit(0), Rule(("id", "v"), ("id",)))


@pytest.mark.spark
def test_duckdb_counts_the_same(frame: Frame) -> None:
    chance = random.Random(29)
    old = [(i, chance.choice([None, 1, 2]), chance.choice("ab")) for i in range(300)]
    new = [(i, chance.choice([None, 1, 2]), chance.choice("ab")) for i in range(100, 420)]
    spark = compare(
        frame("id int, n int, s string", *old),
        frame("id int, n int, s string", *new),
        Rule(("id", "n", "s"), ("id",), samples=0),
    )
    with duckdb.connect() as connection:
        for name, rows in (("old", old), ("new", new)):
            connection.execute(f"CREATE TABLE {name} (id INT, n INT, s VARCHAR)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        counted = connection.execute("""
            SELECT count(*) FILTER (o.id IS NULL), count(*) FILTER (e.id IS NULL),
                count(*) FILTER (both_ AND (dn OR ds)), count(*) FILTER (both_ AND NOT (dn OR ds)),
                count(*) FILTER (both_ AND dn), count(*) FILTER (both_ AND ds)
            FROM old o FULL JOIN new e ON o.id = e.id,
            LATERAL (SELECT o.n IS DISTINCT FROM e.n dn, o.s IS DISTINCT FROM e.s ds,
                o.id IS NOT NULL AND e.id IS NOT NULL both_)
        """).fetchone()
    assert counted is not None
    inserted, deleted, updated, same, n, s = counted
    assert spark == Compared(inserted, deleted, updated, same, {"n": n, "s": s})
