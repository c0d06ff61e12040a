"""Texts and names in quotes of DuckDB's dialect."""

from __future__ import annotations

import pytest

from penstock.sql.duckdb.text import name_in_spark, projections, text_in_spark
from penstock.sql.tokens import split, tokenize


@pytest.mark.parametrize(
    ("written", "spark"),
    [
        (r"'a\b'", r"'a\\b'"),
        ("'it''s'", r"'it\'s'"),
        (r"E'a\tb\x41\'c'", "'a\tbA\\'c'"),
        ("$$it's$$", r"'it\'s'"),
        ("$tag$a $$ b$tag$", "'a $$ b'"),
    ],
)
def test_texts(written: str, spark: str) -> None:
    [token] = tokenize(written, "duckdb")
    assert token.text == written
    assert text_in_spark(token) == spark


def test_names() -> None:
    assert name_in_spark('"a ""b`"') == '`a "b```'


def test_a_backslash_ends_no_text() -> None:
    text = r"INSERT INTO t VALUES ('\'); SELECT 1"
    assert [text[start:end] for start, end in split(text, "duckdb")][1:] == ["SELECT 1"]


def test_names_of_texts_that_look_like_code() -> None:
    sql = "SELECT '{', ';', j ->> 'a' FROM \"select\""
    assert projections(sql) == ["'{'", "';'", "j ->> 'a'"]
