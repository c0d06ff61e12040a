from __future__ import annotations

import pytest

from penstock.model.time.time_macros import TOKEN, is_bare, misplaced
from penstock.sql.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "partitioned", "problem"),
    [
        ("day = '{partition}'", True, None),
        ("day = '{partition}'", False, "the script is not partitioned"),
        ("day = 'x{partition}'", True, "stands inside a longer text"),
        ('day = "{partition}"', True, "in quotes that make it a name"),
        ("day = '{partition}' 'x'", True, "next to another text"),
    ],
)
def test_where_it_stands(text: str, partitioned: bool, problem: str | None) -> None:
    tokens = tokenize(text)
    (at, *_) = (number for number, token in enumerate(tokens) if TOKEN in token.value)
    found = misplaced(tokens, at, partitioned=partitioned)
    assert (found is None) == (problem is None)
    assert problem is None or (found is not None and problem in found[0])


def test_without_quotes_it_is_bare() -> None:
    tokens = tokenize("day = {partition}")
    assert [is_bare(tokens, at) for at in range(len(tokens))].count(True) == 1
