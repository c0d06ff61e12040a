"""sqlglot's words: read once for all who look at a text, and in one spelling for hashes."""

from __future__ import annotations

import pytest

from penstock.sql.dialect import parse
from penstock.sql.lexer import Lexer, canonical


def test_the_spelling_that_definitions_are_told_apart_by() -> None:
    spelled = canonical("select Id, 'a', $Day from T group  by 1 -- x", "spark")
    assert spelled == [
        *("SELECT", "VAR Id", ",", "STRING a", ",", "ARGUMENT Day", "FROM", "VAR T"),
        *("GROUP BY", "1"),
    ]


def test_a_text_is_read_once() -> None:
    lexer = Lexer()
    assert lexer.words("SELECT 1", "spark") is lexer.words("SELECT 1", "spark")
    assert lexer.words("SELECT 1", "duckdb") is not lexer.words("SELECT 1", "spark")


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
@pytest.mark.parametrize(
    "text", ["SELECT a FROM Settings", "WITH x AS (SELECT $Settings) SELECT * FROM x"]
)
def test_a_text_that_was_parsed_has_the_same_spelling(text: str, dialect: str) -> None:
    lexer = Lexer()
    parse(text, dialect, lexer)
    assert canonical(text, dialect, lexer) == canonical(text, dialect)


def test_settings_is_a_keyword_to_hashes_and_a_name_to_queries() -> None:
    assert canonical("select * from Settings", "spark")[-1] == "SETTINGS"
    assert parse("SELECT * FROM Settings")[0].sql("spark") == "SELECT * FROM Settings"


@pytest.mark.parametrize("name", ["spark", "databricks", "duckdb"])
def test_a_doubled_quote_is_a_quote_within_a_text(name: str) -> None:
    words = Lexer().words("SELECT 'it''s', '', '''', 'a' 'b'", name)
    assert [word.text for word in words if word.token_type.name == "STRING"] == [
        *("it's", "", "'", "a", "b")
    ]


def test_hashes_have_doubled_quotes_as_the_first_had() -> None:
    assert canonical("SELECT 'it''s'", "spark") == ["SELECT", "STRING it", "STRING s"]
