from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.lexer import LexError, Source, mask, match_paren, tokenize


@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_tokens_know_their_place(dialect: str) -> None:
    text = "SELECT 'é😀', -- note ; here\n $day /* $x */ FROM \tdl.t"
    for token in tokenize(text, dialect):
        written = text[token.start : token.end]
        assert written.strip("'$") == token.text
    kinds = [token.kind for token in tokenize(text, dialect)]
    assert kinds == ["SELECT", "STRING", "COMMA", "ARGUMENT", "FROM", "VAR", "DOT", "VAR"]


def test_offsets_are_of_the_file() -> None:
    text = "-- head\nSELECT 1; SELECT 2"
    tokens = tokenize(text, "spark", text.index("SELECT 2"))
    assert [text[token.start : token.end] for token in tokens] == ["SELECT", "2"]


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
    with pytest.raises(LexError) as error:
        tokenize(text, "spark")
    assert (error.value.opener, error.value.offset) == (opener, offset)


def test_words_are_not_strings() -> None:
    words = [token.word for token in tokenize("select 'select' `select`", "spark")]
    assert words == ["SELECT", "", ""]


@pytest.mark.parametrize(
    ("text", "closing"), [("(a)", 2), ("(a (b) [c])", 8), ("(a", None), ("('(')", 2)]
)
def test_brackets(text: str, closing: int | None) -> None:
    assert match_paren(tokenize(text, "spark"), 0) == closing


def test_a_mask_keeps_length_and_lines() -> None:
    text = "a (b\nc) d"
    assert mask(text, [(2, 7, "x")]) == "a x \n   d".replace("x  ", "x  ")
    assert len(mask(text, [(2, 7, "")])) == len(text)
    assert mask(text, [(2, 7, "")]).count("\n") == 1


@given(st.text(alphabet="ab\n", max_size=40), st.integers(min_value=0, max_value=40))
def test_locations_lead_back(text: str, offset: int) -> None:
    source = Source(Path("m.sql"), text)
    offset = min(offset, len(text))
    where = source.location(offset)
    assert where.line is not None
    assert where.column is not None
    assert source.offset(where.line, where.column) == offset
