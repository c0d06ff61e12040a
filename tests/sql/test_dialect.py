"""What the dialect of a text decides, and names in double quotes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import QueryFailed, UnsupportedFeature
from penstock.sql.dialect import (
    DUCKDB,
    SPARK,
    backticked,
    hinted,
    names_in,
    normalized,
    parse,
    to_spark,
)
from penstock.sql.text import Unreadable


def test_names_and_types_in_sparks_words() -> None:
    text = 'SELECT "a"::VARCHAR'
    assert normalized(text, SPARK) == "SELECT `a`::STRING "
    assert normalized(text, DUCKDB) == text


def test_another_dialect_is_translated() -> None:
    assert to_spark("x // 2", SPARK) == "x // 2"
    assert to_spark("{'a': 1}", DUCKDB, expression=True) == "STRUCT(1 AS a)"
    with pytest.raises(UnsupportedFeature) as refused:
        to_spark("SELECT 1, hash(a) FROM t", DUCKDB)
    assert refused.value.data["start"] == 10


@pytest.mark.parametrize("dialect", [SPARK, DUCKDB])
def test_what_cannot_be_read_has_its_place(dialect: str) -> None:
    with pytest.raises(Unreadable, match=r"^ near `\)`: ") as unread:
        parse("SELECT a FROM (SELECT b))", dialect)
    assert unread.value.at == 24


def test_what_only_databricks_dialect_reads() -> None:
    assert parse("SELECT v:a.b FROM settings()")[0].key == "select"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('SELECT "id", "a b" AS k FROM "t"', "SELECT `id`, `a b` AS k FROM `t`"),
        ('SELECT \'a "b" c\', "d"', "SELECT 'a \"b\" c', `d`"),
        ("SELECT 'it''s \"x\"', 'a\\'\"b\"'", "SELECT 'it''s \"x\"', 'a\\'\"b\"'"),
        ('-- "a"\nSELECT /* "b" */ `c"d"`, "e"', '-- "a"\nSELECT /* "b" */ `c"d"`, `e`'),
        ('SELECT r"\\d", X"1F", r\'"\'', 'SELECT r"\\d", X"1F", r\'"\''),
        ('SELECT "a""b".c', 'SELECT `a"b` .c'),
        ('SELECT "a`b"', "SELECT `a``b`"),
        ('SELECT "a\nb", ""', 'SELECT `a\nb`, ""'),
        ("SELECT \"open, 'a'", "SELECT \"open, 'a'"),
    ],
)
def test_names_get_backticks(text: str, expected: str) -> None:
    assert backticked(text) == expected


@given(st.text(alphabet="ab'\"`-/* \n\\r"))
def test_again_changes_nothing(text: str) -> None:
    once = backticked(text)
    assert "`" in text or len(once) == len(text)
    assert backticked(once) == once or '"' in once


def test_names() -> None:
    assert names_in('SELECT "a", \'"b"\', "c""d" -- "e"') == {"a", 'c"d'}


def test_a_text_taken_for_a_name_has_a_hint() -> None:
    message = "A column, variable, or function parameter with name `eel` cannot be resolved."
    data = {"condition": "UNRESOLVED_COLUMN.WITH_SUGGESTION"}
    with pytest.raises(QueryFailed) as caught, hinted('kind = "eel"'):
        raise QueryFailed(message, data=data)
    assert caught.value.hint == "\"eel\" is a name: write 'eel' for the text"
