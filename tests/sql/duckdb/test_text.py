"""Texts and names in quotes of DuckDB's dialect."""

from __future__ import annotations

import pytest

from penstock.errors import UnsupportedFeature
from penstock.sql.duckdb.text import cast_aliases, name_in_spark, projections, text_in_spark
from penstock.sql.duckdb.translate import translate
from penstock.sql.query.edits import edited
from penstock.sql.text import parse_query
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


@pytest.mark.parametrize(
    ("written", "spark"),
    [
        ("SELECT :x AS x, $y AS y, upper(:z) AS z", ":x AS x, :y AS y, "),
        ("SELECT DISTINCT :x", ":x AS `$x`"),
        ("SELECT t.values, values + 1 AS n FROM t", "t.`values`, `values` + 1 AS n FROM t"),
        ("FROM (VALUES (:x, 1)) AS v(values, b)", "VALUES (:x, 1) AS v(`values`, b)"),
    ],
)
def test_words_that_a_parser_takes_for_others(written: str, spark: str) -> None:
    assert spark in translate(written)


def test_values_by_chance_are_computed_once() -> None:
    text = translate("SELECT floor(random() * 10) AS n, round(random(), 2) AS r, uuid() AS u")
    assert text.count("RAND()") == 2
    with pytest.raises(UnsupportedFeature, match="several values by chance"):
        translate("SELECT atan2(random(), random()) / (uuid() = uuid())::INTEGER")


def test_words_of_clauses_in_a_list() -> None:
    sql = "SELECT t.order, percentile_cont(0.5) WITHIN GROUP (ORDER BY a), * EXCLUDE (b) FROM t"
    items = ["t.order", "percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", "* EXCLUDE (b)"]
    assert projections(sql) == items


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("SELECT id::INT FROM t", 'SELECT id::INT AS "id" FROM t'),
        ("SELECT c.name::STRING, 1 FROM c", 'SELECT c.name::STRING AS "name", 1 FROM c'),
        ("SELECT CAST(a AS INT), TRY_CAST(b AS INT)", None),
        ("SELECT a::INT::TEXT", 'SELECT a::INT::TEXT AS "a"'),
        ("SELECT (a::INT)::TEXT", ""),
        ("SELECT * FROM (SELECT a::INT FROM t)", 'SELECT * FROM (SELECT a::INT AS "a" FROM t)'),
        ('SELECT "a b"::INT', 'SELECT "a b"::INT AS "a b"'),
        ("SELECT a::INT AS b, a::INT + 1, lower(a)::TEXT, '1'::INT, a, *", ""),
        ("SELECT a::INT b", ""),
    ],
)
def test_a_cast_is_named_as_its_column(written: str, named: str | None) -> None:
    """sqlglot's ``output_name``, by which SQLMesh names columns, is the reference."""
    text = edited(written, list(cast_aliases(written, 0))).text
    if named is None:
        named = 'SELECT CAST(a AS INT) AS "a", TRY_CAST(b AS INT) AS "b"'
    assert text == (named or written)
    before, after = (parse_query(each, "duckdb").expressions for each in (written, text))
    assert [each.output_name for each in before] == [each.output_name for each in after]
