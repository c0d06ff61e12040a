"""Words with their places: quotes of both dialects, comments, markers, numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import QueryFailed
from penstock.sql.tokens import Unclosed, closing, loose_words, scan, split, tokenize, words

SPARK = {  # with the kind of each word and what it says
    "SELECT 'é😀', -- note ; '\n $day /* $x */ FROM \tdl.t": (
        "word SELECT, string é😀, symbol ,, argument day, word FROM, word dl, symbol ., word t"
    ),
    "/* a /* ' */ b */ x -- y \\\n z": "word x",
    r"""r'\d' R"\d" 'it''s' 'a\'b\u0041'""": r"string \d, string \d, string it's, string a'bA",
    """`a``b` "c""d" X"1F" X'1F'""": ('name a`b, name c"d, word X, string 1F, word X, string 1F'),
    "1L 1e5 1.5D 92_000 2024_flights .5 1e-5": (
        "number 1, word L, number 1e5, number 1.5, word D, number 92_000, word 2024_flights, "
        "number .5, number 1e-5"
    ),
    ":a x:b {'a':b} (:c) a::b": (
        "marker a, word x, symbol :, word b, symbol {, string a, symbol :, word b, symbol }, "
        "symbol (, marker c, symbol ), word a, symbol ::, word b"
    ),
    "OF :v LIMIT :n": "word OF, marker v, word LIMIT, marker n",
    "a<=>b |> c => d": "word a, symbol <=>, word b, symbol |>, word c, symbol =>, word d",
}
DUCKDB = {
    r"'a\b' E'a\tb' $$it's$$ $x$ $$ $x$": "string a\\b, string a\tb, string it's, string  $$ ",
    r'"a\b" $1 $name': r"name a\b, argument 1, argument name",
    "-- x \\\n y": "word y",
}
TEXTS = [*(("spark", *pair) for pair in SPARK.items()), *(("duckdb", *p) for p in DUCKDB.items())]


@pytest.mark.parametrize(("dialect", "text", "expected"), TEXTS)
def test_words(dialect: str, text: str, expected: str) -> None:
    tokens = tokenize(text, dialect)
    assert ", ".join(f"{token.kind} {token.value}" for token in tokens) == expected
    assert all(text[token.start : token.end] == token.text for token in tokens)


def test_a_quote_that_is_never_closed_is_a_word_of_its_own() -> None:
    assert [token.text for token in loose_words("a -- '\n'b /* c")] == ["a", "'", "b", "/*", "c"]


@given(st.text(alphabet="ab1e.:$'\"`-/*\\ \nEr"), st.sampled_from(["spark", "duckdb"]))
def test_nothing_of_a_text_is_left_out(text: str, dialect: str) -> None:
    assert "".join(token.text for token in scan(text, dialect)) == text


def test_offsets_are_of_the_whole_text() -> None:
    text = "-- head\nSELECT 1; SELECT 2"
    tokens = tokenize(text, start=text.index("SELECT 2"), end=len(text) - 2)
    assert [text[token.start : token.end] for token in tokens] == ["SELECT"]


@pytest.mark.parametrize(
    ("text", "opener", "offset"),
    [
        ("SELECT 'abc", "'", 7),
        ('SELECT "abc', '"', 7),
        ("SELECT `abc", "`", 7),
        ("SELECT /* abc", "/*", 7),
        ("SELECT 'a', 'b", "'", 12),
        ("-- it's\nSELECT 'b", "'", 15),
    ],
)
def test_what_is_never_closed(text: str, opener: str, offset: int) -> None:
    with pytest.raises(Unclosed) as error:
        words(text)
    assert (error.value.opener, error.value.offset) == (opener, offset)
    with pytest.raises(QueryFailed, match="is not closed, at line"):
        tokenize(text)


def test_words_are_not_strings() -> None:
    tokens = tokenize("select 'select' `select`, :a")
    assert [token.upper for token in tokens] == ["SELECT", "", "", ",", ""]


@pytest.mark.parametrize(
    ("text", "close"), [("(a)", 2), ("(a (b) [c])", 8), ("(a", None), ("('(')", 2)]
)
def test_brackets(text: str, close: int | None) -> None:
    assert closing(tokenize(text), 0) == close


def test_statements() -> None:
    text = ";SELECT ';' ; /* ; */ SELECT 2;"
    assert [text[start:end] for start, end in split(text)] == ["SELECT ';'", "SELECT 2"]
