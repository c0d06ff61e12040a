"""Identifiers, quoted and folded."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ArgumentError
from penstock.sql.identifiers import TableRef, fold, names_of, quote_identifier


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", ("main", "orders")),
        ("s.orders", ("s", "orders")),
        ('"my s"."a.b""c"', ("my s", 'a.b"c')),
        ("s . `o``d`", ("s", "o`d")),
        ("größe", ("main", "größe")),
    ],
)
def test_table_refs(text: str, expected: tuple[str, str]) -> None:
    ref = TableRef.parse(text)
    assert (ref.schema, ref.name) == expected


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a.b.c", 'a"b', '""', "a b", '"a" b'])
def test_what_is_no_table(text: str) -> None:
    with pytest.raises(ArgumentError):
        TableRef.parse(text)


def test_a_text_is_one_name() -> None:
    assert names_of("order_id", "keys") == ("order_id",)
    assert names_of(["a", "b"], "keys") == ("a", "b")
    assert names_of((), "keys") == ()


@pytest.mark.parametrize("value", [None, 3, [1], [""], ""])
def test_what_are_no_names(value: Any) -> None:
    with pytest.raises(ArgumentError, match="keys takes names"):
        names_of(value, "keys")
