"""Lineage over models: schemas from upstream, lakes and views; declared columns; the cache.

Tests ``model/lineage/values.py`` (why a column's inputs are not known).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.model.lineage.models import Schemas, View
from penstock.model.lineage.values import ModelLineage, Unknown, from_dict, to_dict
from penstock.model.query.query import read_query
from penstock.model.values.asset import TableName
from tests.model.lineage.given import NAMES, TABLES, columns, project, short


def found(scripts: Mapping[str, str], schemas: Schemas | None = None) -> ModelLineage:
    """Of the last of these scripts."""
    lineage = project(scripts, schemas).of(f"main.{list(scripts)[-1]}")
    assert lineage is not None
    return lineage


def view(name: str, sql: str, dialect: str = "duckdb", aliases: tuple[str, ...] = ()) -> View:
    query, findings = read_query(
        sql, Path(f"{name}.sql"), names=NAMES, dialect=dialect, translates=False
    )
    assert query is not None, findings
    return View(TableName("main", "main", name), query, aliases=aliases)


def test_stars_of_upstream_models() -> None:
    lineage = found(
        {
            "first": "SELECT a, b AS x FROM t",
            "middle": "SELECT *, a + x AS y FROM first",
            "last": "SELECT m.*, u.d FROM MIDDLE AS m JOIN u ON m.a = u.id",
        }
    )
    assert columns(lineage.columns) == {
        "a": "middle.a",
        "x": "middle.x",
        "y": "middle.y",
        "d": "u.d",
    }
    assert short(lineage.rows) == "middle.a:join u.id:join"
    assert lineage.complete


def test_what_a_model_makes_counts_and_not_what_its_table_has() -> None:
    schemas = Schemas({**TABLES, "main.first": ("a", "old")})
    scripts = {"first": "SELECT a FROM t", "last": "SELECT * FROM first"}
    assert found(scripts, schemas).names == ("a",)
    scripts["first"] = "-- materialize ducklake://main/first append\nSELECT a FROM t"
    assert found(scripts, schemas).names == ("a", "old")


def test_a_table_that_has_run_helps_where_the_query_does_not_say() -> None:
    scripts = {"first": "SELECT * FROM read_csv('x.csv')", "last": "SELECT * FROM first"}
    lineage = found(scripts)
    assert [str(why) for why in lineage.unknown] == [
        "a star cannot be expanded: the columns of main.first are not known: see its own lineage"
    ]
    schemas = Schemas({"main.first": ("p", "q")})
    assert columns(found(scripts, schemas).columns) == {"p": "first.p", "q": "first.q"}


def test_the_column_of_slices() -> None:
    script = (
        "-- materialize ducklake://main/first\n-- partitioned daily\n"
        "SELECT a FROM t WHERE b = '{partition}'"
    )
    lineage = found({"first": script}, Schemas(TABLES, partition_columns={"main": "part"}))
    assert [(column.name, column.origin) for column in lineage.columns] == [
        ("a", "inferred"),
        ("part", "slice"),
    ]
    assert short(lineage.rows) == "t.b:filter"


def test_a_model_that_reads_itself() -> None:
    script = "SELECT * FROM first UNION ALL SELECT a FROM t"
    why = "main.first is read by its own model, and there is no such table yet"
    assert why in str(found({"first": script}).unknown[0])
    schemas = Schemas({**TABLES, "main.first": ("a",)})
    assert columns(found({"first": script}, schemas).columns) == {"a": "first.a t.a"}


def test_a_table_that_nobody_makes() -> None:
    lineage = found({"first": "SELECT * FROM nowhere"})
    assert lineage.unknown == (
        Unknown(
            "a star cannot be expanded: no model makes main.nowhere, and its lake does not have it"
        ),
    )
    assert not lineage.complete


def test_views_are_steps_of_their_own() -> None:
    schemas = Schemas(
        TABLES,
        {
            "main.low": view("low", "SELECT * EXCLUDE (id) REPLACE (d + e AS d) FROM u"),
            "main.high": view("high", "SELECT * FROM low WHERE e > 0", aliases=("z",)),
        },
    )
    lineages = project({"first": "SELECT z, e FROM high"}, schemas)
    assert {key: columns(each.columns) for key, each in lineages.models.items()} == {
        "main.low": {"d": "u.d u.e", "e": "u.e"},
        "main.high": {"z": "low.d", "e": "low.e"},
        "main.first": {"z": "high.z", "e": "high.e"},
    }


def test_a_view_that_cannot_be_read() -> None:
    schemas = Schemas({}, {"main.x": View(TableName("main", "main", "x"), None, "it is Klingon")})
    (why,) = found({"first": "SELECT * FROM x"}, schemas).unknown
    assert str(why).endswith("the columns of main.x are not known: it is Klingon")


def test_views_in_a_circle_end() -> None:
    schemas = Schemas(
        {}, {"main.x": view("x", "SELECT * FROM y"), "main.y": view("y", "SELECT * FROM x")}
    )
    assert not found({"first": "SELECT * FROM x"}, schemas).complete


def test_declared_columns_win() -> None:
    script = (
        "-- materialize ducklake://main/first\n"
        "-- column A <- ducklake://main/u.d, s3://raw/x.csv.q\n"
        "-- column a <- res://r/s.z\n"
        "-- column b <- ducklake://main/T.B\n"
        "-- column gone <- ducklake://main/u.e\n"
        "SELECT a, b, c FROM t WHERE 'u' IN (SELECT d FROM u)"
    )
    lineage = found({"first": script})
    assert columns(lineage.columns) == {
        "a": "u.d s3://raw/x.csv.q res://r/s.z",
        "b": "t.B",
        "c": "t.c",
        "gone": "u.e ? the query does not make this column",
    }
    assert [(c.origin, short(c.contradicts)) for c in lineage.columns] == [
        ("declared", "t.a"),
        ("declared", ""),
        ("inferred", ""),
        ("declared", ""),
    ]


def test_declared_columns_of_what_cannot_be_read() -> None:
    script = (
        "-- materialize ducklake://main/first\n"
        "-- column x <- ducklake://main/u.d\n"
        "SELECT * FROM read_csv('x.csv')"
    )
    lineage = found({"first": script})
    assert columns(lineage.columns) == {"x": "u.d"}
    assert not lineage.complete


SCRIPTS = {"first": "SELECT a FROM t", "last": "SELECT *, a + 1 AS x FROM first WHERE y IS NULL"}


def test_the_cache_answers_what_it_knows() -> None:
    cache: dict[str, Any] = {}
    lineage = project(SCRIPTS, cache=cache)
    assert len(cache) == 2
    for entry in cache.values():  # to see that it is used
        entry["columns"][0]["name"] = "cached"
    again = project(SCRIPTS, cache=cache)
    assert [each.names[0] for each in again.models.values()] == ["cached", "cached"]
    assert len(cache) == 3  # the star of `last` has another column now
    assert lineage != again


@pytest.mark.parametrize(
    "changed",
    [
        {"last": "SELECT a FROM first"},
        {"last": "-- column a <- ducklake://main/u.d\nSELECT *, a + 1 AS x FROM first"},
        {"first": "SELECT a, b FROM t"},
    ],
)
def test_the_cache_is_by_content(changed: dict[str, str]) -> None:
    cache: dict[str, Any] = {}
    project(SCRIPTS, cache=cache)
    scripts = SCRIPTS | changed
    assert project(scripts, cache=cache) == project(scripts)


def test_the_cache_is_by_the_columns_of_what_is_read() -> None:
    cache: dict[str, Any] = {}
    scripts = {"first": "SELECT * FROM w"}
    project(scripts, Schemas({"main.w": ("p",)}), cache)
    other = Schemas({"main.w": ("p", "q")})
    assert project(scripts, other, cache) == project(scripts, other)


@pytest.mark.parametrize("entry", [None, 3, {}, {"model": "x"}, [], "text"])
def test_what_the_cache_has_may_be_anything(entry: object) -> None:
    cache: dict[str, Any] = {}
    lineage = project(SCRIPTS, cache=cache)
    cache |= dict.fromkeys(cache, entry)
    assert project(SCRIPTS, cache=cache) == lineage


def test_json_holds_all() -> None:
    script = (
        "-- materialize ducklake://main/first\n-- column a <- ducklake://main/u.d\n"
        "SELECT a, id FROM t JOIN w ON z = t.id"
    )
    lineage = found({"first": script})
    assert lineage.columns[0].contradicts
    assert from_dict(to_dict(lineage)) == lineage
