"""Texts of which parts are blanked."""

from __future__ import annotations

import pytest

from penstock.sql.dialect import DUCKDB, SPARK, parse
from penstock.sql.statement import Reader
from penstock.sql.text import Unreadable, mask, parse_query
from penstock.sql.tokens import tokenize


def test_a_mask_keeps_length_and_lines() -> None:
    text = "a (b\nc) d"
    assert mask(text, [(2, 7, "x")]) == "a x \n   d"
    assert len(mask(text, [(2, 7, "")])) == len(text)
    assert mask(text, [(2, 7, "")]).count("\n") == 1


# Deep for sqlglot as it is and compiled (`penstock-spark[fast]`).
_CASES = "CASE WHEN a = 1 THEN 1 ELSE " * 2000 + "0" + " END" * 2000


@pytest.mark.parametrize("dialect", [SPARK, DUCKDB])
@pytest.mark.parametrize("value", [_CASES, "(" * 3000 + "1" + ")" * 3000], ids=["CASE", "()"])
def test_what_is_nested_too_deeply(dialect: str, value: str) -> None:
    deepest = value.rindex("CASE" if "CASE" in value else "(")
    for read in (parse, parse_query):
        with pytest.raises(Unreadable, match="nested too deeply") as caught:
            read(f"SELECT {value}", dialect)
        assert caught.value.at == deepest + len("SELECT ")
    assert Reader(value, end=len(value), tokens=tokenize(value, dialect)).skip() == len(value)
