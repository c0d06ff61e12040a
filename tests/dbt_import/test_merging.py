from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.dbt_import.kinds import kind_of
from penstock.dbt_import.merging import output_columns
from tests.dbt_import.manifests import node
from tests.dbt_import.test_kinds import flat, kind

LISTED = "with a as (select 1 as id, 2 as v, 3 as created) select * from a"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"merge_update_columns": "v"}, "(WHEN MATCHED THEN UPDATE SET target.v = source.v)"),
        (
            {"merge_exclude_columns": ["created"]},
            "(WHEN MATCHED THEN UPDATE SET target.v = source.v)",
        ),
        (
            {"matched_condition": "t.v < s.v", "source_alias": "s", "target_alias": "t"},
            "(WHEN MATCHED AND target.v < source.v THEN UPDATE SET target.v = source.v, "
            "target.created = source.created)",
        ),
    ],
)
def test_options_of_a_merge_are_kept(given: dict[str, Any], expected: str) -> None:
    config = {"materialized": "incremental", "unique_key": "id", **given}
    found = kind_of(node("model", "m", compiled_code=LISTED, config=config))
    assert flat(found) == (
        f"INCREMENTAL_BY_UNIQUE_KEY ( unique_key (id), when_matched {expected} )"
    )


def test_incremental_predicates_are_a_merge_filter() -> None:
    found = kind(unique_key="id", incremental_predicates=["DBT_INTERNAL_DEST.day > '2026-01-01'"])
    assert "merge_filter (target.day > '2026-01-01')" in flat(found)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"merge_exclude_columns": "created"}, "its query has a \\*"),
        ({"incremental_predicates": ["day > 1"]}, "day in its condition"),
        ({"merge_clauses": {"when_matched": []}, "not_matched_condition": "x"}, "merge_clauses"),
    ],
)
def test_a_merge_without_counterpart_is_left(given: dict[str, Any], reason: str) -> None:
    config = {"materialized": "incremental", "unique_key": "id", **given}
    found = kind_of(node("model", "m", compiled_code="select * from x", config=config))
    assert isinstance(found, str)
    assert re.search(reason, found)


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select a, b + 1 as c from x", ["a", "c"]),
        ("with y as (select a from x) select y.*, 1 as b from y", ["a", "b"]),
        ("select * from x", None),
        ("select from where", None),
    ],
)
def test_columns_of_a_query(query: str, columns: list[str] | None) -> None:
    assert output_columns(query, "spark") == columns
