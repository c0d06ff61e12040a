"""`ref` and `source` at a snapshot: what a configuration or a variable names."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

NUMBERS = "{{ config(materialized='table') }} select {{ var('n', 1) }} as n"
BEFORE = """
{{ config(materialized="table", numbers_at=var("at", none)) }}
select now.n, was.n as was
from {{ ref("numbers") }} now
cross join {{ ref("numbers").at_version(config.get("numbers_at")) }} was
"""
UNIT = """
unit_tests:
  - name: travels
    model: before
    given: [{input: ref('numbers'), rows: [{n: 7}]}]
    expect: {rows: [{n: 7, was: 7}]}
"""


class TestTimeTravel:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"numbers.sql": NUMBERS, "before.sql": BEFORE, "unit.yml": UNIT}

    def test_a_ref_at_a_version_and_at_a_moment(self, project: Any) -> None:
        first = run_dbt(["run", "--select", "numbers"]).results[0].adapter_response["snapshot"]
        run_dbt(["build", "--vars", "n: 2"])
        assert _rows(project) == [(2, 2)]
        run_dbt(["run", "--select", "before", "--vars", f"at: {first}"])
        assert _rows(project) == [(2, 1)]
        run_dbt(["run", "--empty", "--select", "before", "--vars", f"at: {first}"])
        assert _rows(project) == []
        show = f"select n from {{{{ ref('numbers').at_version({first}) }}}}"
        (shown,) = run_dbt(["show", "--inline", show]).results
        assert [tuple(row) for row in shown.agate_table.rows] == [(1,)]


def _rows(project: Any) -> list[tuple[Any, ...]]:
    return list(project.run_sql("select n, was from {schema}.before", fetch="all"))
