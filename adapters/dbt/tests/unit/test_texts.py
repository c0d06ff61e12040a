from __future__ import annotations

import pytest

from dbt.adapters.penstock import texts
from dbt.adapters.penstock.texts import LakeName, TemporaryView


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("select 1", "select 1"),
        ('/* {"app": "dbt"} */\n\n  select 1 ;\n', "select 1"),
        ("-- nothing to do\n", ""),
        ("-- a\n/* b\n */ -- c\ncommit;", "commit"),
        ("select 1 -- one", "select 1 -- one"),
    ],
)
def test_a_text_without_the_comments_before_it(text: str, bare: str) -> None:
    assert texts.without_comments(text) == bare


@pytest.mark.parametrize(
    ("text", "view"),
    [
        ("create or replace temporary view a as select 1", TemporaryView("a", "select 1")),
        ('CREATE TEMP VIEW "a ""b""" AS\nselect 1', TemporaryView('a "b"', "select 1")),
        ("create temporary view `x` as with q as (select 1) select * from q",
         TemporaryView("x", "with q as (select 1) select * from q")),
        ("create or replace view a as select 1", None),
        ("create temporary view a.b as select 1", None),
        ("select 'create temporary view a as select 1'", None),
    ],
)  # fmt: skip
def test_a_temporary_view(text: str, view: TemporaryView | None) -> None:
    assert texts.temporary_view(text) == view


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("begin", "begin"),
        ("BEGIN TRANSACTION", "begin"),
        ("commit", "commit"),
        ("rollback work;", "rollback"),
        ("begin; insert into t values (1)", None),
        ("committed", None),
    ],
)
def test_where_a_transaction_begins_and_ends(text: str, word: str | None) -> None:
    assert texts.boundary(text) == word


@pytest.mark.parametrize(
    ("text", "is_write"),
    [
        ("insert into t select 1", True),
        ("MERGE INTO t USING s ON a = b", True),
        ("select 1", False),
        ("with q as (select 1) select * from q", False),
        ("with q as (select 1 as id) insert into t select * from q", True),
        ("describe t", False),
    ],
)
def test_what_changes_a_lake(text: str, is_write: bool) -> None:
    assert texts.writes(text) is is_write


def test_names_of_lakes_are_found_in_order_and_not_in_texts_and_comments() -> None:
    text = """insert into "Prod"."main"."t" -- "dev"."a"."b"
    select 'dev.main.x' as x from dev.main.u join other.v on `prod` . w = 1 /* dev.c */"""
    found = texts.lake_names(text, {"prod", "dev"})
    assert [(name.lake, name.rest) for name in found] == [
        ("prod", '"main"."t"'),
        ("dev", "main.u"),
        ("prod", "w"),
    ]


def test_names_are_replaced_where_they_stand() -> None:
    text = "select * from dev.a join dev.main.b"
    first, second = texts.lake_names(text, {"dev"})
    assert first == LakeName("dev", "a", 14, 19)
    assert texts.replaced(text, [(first, "x1"), (second, "x2")]) == "select * from x1 join x2"


def test_a_name_has_the_snapshot_that_follows_it() -> None:
    text = "select * from dev.main.a AT (VERSION => 3) b join dev.main.c at (2)"
    first, second = texts.lake_names(text, {"dev"})
    assert (first.rest, second.rest) == ("main.a AT (VERSION => 3)", "main.c")
    assert texts.replaced(text, [(first, "x")]).startswith("select * from x b join dev")


def test_what_reads_files_with_options() -> None:
    read = "csv.`/a.csv` WITH ('sep' = ')', 'quote' = '\\'')"
    text = f"select 'csv.`x` with (1)' from {read} x join parquet.`/b` y"
    (found,) = texts.file_reads(text)
    assert found.rest == read
    assert texts.replaced(text, [(found, "f")]).endswith("from f x join parquet.`/b` y")
