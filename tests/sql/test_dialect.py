"""What the dialect of a text decides."""

from __future__ import annotations

import pytest

from penstock.errors import UnsupportedFeature
from penstock.sql.dialect import DUCKDB, SPARK, Unreadable, normalized, parse, to_spark


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
