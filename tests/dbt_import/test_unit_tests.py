from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.dbt_import.tests import unit_test_of
from tests.dbt_import.manifests import manifest, node

SOURCE = {**node("source", "raw"), "source_name": "web", "identifier": "raw", "alias": None}
TEST: dict[str, Any] = {
    "name": "t",
    "model": "b",
    "given": [
        {"input": "ref('a')", "rows": [{"id": 1}]},
        {"input": "source('web', 'raw')", "format": "csv", "rows": "id,x\n1,\n"},
    ],
    "expect": {"rows": [{"id": 1}]},
}


def found(root: Path, **changed: Any) -> dict[str, Any] | str:
    nodes = (node("model", "a"), node("model", "b"))
    sources = {"source.shop.web.raw": SOURCE}
    return unit_test_of({**TEST, **changed}, manifest(root, *nodes, sources=sources))


def test_rows_given_and_expected_are_taken(tmp_path: Path) -> None:
    assert found(tmp_path) == {
        "model": "shop.b",
        "inputs": {
            "shop.a": {"rows": [{"id": 1}]},
            "shop.raw": {"format": "csv", "rows": "id,x\n1,\n"},
        },
        "outputs": {"partial": True, "query": {"rows": [{"id": 1}]}},
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"model": "z"}, "its model z"),
        ({"overrides": {"macros": {"is_incremental": True}}}, "overrides"),
        ({"given": [{"input": "this", "rows": []}]}, "its input this"),
        ({"given": [{"input": "ref('a')", "format": "sql", "rows": "select 1"}]}, "in SQL"),
        ({"expect": {"format": "csv", "fixture": "f"}}, "expected rows"),
    ],
)
def test_what_is_not_taken_says_why(tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    result = found(tmp_path, **changed)
    assert isinstance(result, str)
    assert reason in result
