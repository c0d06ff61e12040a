"""Identifiers, quoted and folded."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ArgumentError
from penstock.sql.identifiers import fold, quote_identifier


@given(st.text(min_size=1).filter(lambda s: "\x00" not in s and s.isprintable()))
def test_quoted_names_are_one_identifier_to_duckdb(name: str) -> None:
    (description,) = duckdb.sql(f"SELECT 1 AS {quote_identifier(name)}").description
    assert description[0] == name


def test_marks() -> None:
    assert quote_identifier('a"b`') == '"a""b`"'
    assert quote_identifier('a"b`', mark="`") == '`a"b```'


@pytest.mark.parametrize("name", ["", "a\x00b"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(ArgumentError):
        quote_identifier(name)


def test_folding_is_ascii_only() -> None:
    assert fold("OrDÉr") == "ordÉr"
