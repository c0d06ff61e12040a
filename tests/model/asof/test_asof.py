"""The forms of ASOF JOIN."""

from __future__ import annotations

import pytest

from penstock.model.asof.asof import asof_joins, plain
from penstock.sql.query.edits import edited
from penstock.sql.tokens import tokenize


@pytest.mark.parametrize(
    "join",
    [
        "o ASOF JOIN d ON (o.at >= d.at) AND o.k = d.k WHERE true",
        "o ASOF LEFT JOIN d ON (o.at >= d.at) AND o.k = d.k",
        "o ASOF LEFT JOIN d ON (o.at > d.at) LIMIT 1",
        "o ASOF JOIN d USING (k, at)",
        "o LEFT JOIN d ON o.k = d.k",
    ],
)
def test_there_and_back(join: str) -> None:
    """Spark's form is what sqlglot reads once more, for file filters."""
    text = f"SELECT 1 FROM {join}"
    assert plain(edited(text, asof_joins(text, tokenize(text))).text) == text
