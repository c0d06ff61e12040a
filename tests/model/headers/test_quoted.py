"""Tests ``model/files/header_lines.py`` (quoted values and their places)."""

from __future__ import annotations

import pytest

from penstock.model.files.header_lines import is_unclosed, split_values, unquote


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a,b", ["a", "b"]),
        ("a , b", ["a", "b"]),
        ("'a, b',\"c d\"", ["a, b", "c d"]),
        ("'it''s', \"a\"\"b\"", ["it's", 'a"b']),
        ("it's,b's", ["it's", "b's"]),
        ("a,,b,", ["a", "", "b", ""]),
        ("''", [""]),
        ("", []),
    ],
)
def test_lists(text: str, values: list[str]) -> None:
    assert split_values(text) == values
    assert not is_unclosed(text)


@pytest.mark.parametrize("text", ["'a", 'a,"b', "'a'b", "'a, b"])
def test_unclosed(text: str) -> None:
    assert is_unclosed(text)


@pytest.mark.parametrize(
    ("text", "value"), [("'a b'", "a b"), ('"a', "a"), ("a'", "a'"), ("'", ""), ("", "")]
)
def test_one_value(text: str, value: str) -> None:
    assert unquote(text) == value
