"""Keys as models write them."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock import keys


@pytest.mark.parametrize(
    ("unique_key", "expressions"),
    [
        (None, []),
        ("id", ["id"]),
        ("id, day", ["id", "day"]),
        ("coalesce(a, b)", ["coalesce(a, b)"]),
        (["id", "day"], ["id", "day"]),
    ],
)
def test_expressions(unique_key: Any, expressions: list[str]) -> None:
    assert keys.expressions(unique_key) == expressions


def test_what_is_no_key() -> None:
    with pytest.raises(DbtRuntimeError, match="unique_key is a column or a list"):
        keys.expressions({"id": 1})


def test_columns_that_a_query_lacks_are_left_to_the_strategy() -> None:
    assert keys.present(["ID", "gone", "a || b", '"q"'], ["id"]) == ["ID", "a || b", '"q"']


def test_the_query_shows_the_first_columns_of_the_row() -> None:
    columns = [f"c{place}" for place in range(12)]
    query = keys.guarded("t__dbt_tmp", columns, ["c0", "c1"], "main.t")
    assert "WHEN (c0) IS NULL OR (c1) IS NULL THEN raise_error(" in query
    assert "`c9`" in query
    assert "`c10`" not in query
