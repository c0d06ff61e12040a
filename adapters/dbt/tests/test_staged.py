"""What other adapters do not have: a model's tests before its rows are visible, in one snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

STAGED = """
{{ config(materialized="table", penstock_stage=true, persist_docs={"relation": true}) }}
select 1 as id union all select {{ var("n", 2) }}
"""
PROPERTIES = """
models:
  - name: staged
    description: with a test
    columns:
      - name: id
        data_tests: [unique]
"""


class TestStaged:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"staged.sql": STAGED, "staged.yml": PROPERTIES}

    def test_a_failing_test_leaves_what_was_there_and_a_model_is_one_snapshot(
        self, project: Any
    ) -> None:
        run_dbt(["run"])
        before = _snapshots(project)
        assert before[-1].message == "model.test.staged"
        failed = run_dbt(["run", "--vars", "n: 1"], expect_pass=False)
        assert "nothing of staged was published" in failed.results[0].message
        assert [s.id for s in _snapshots(project)] == [s.id for s in before]
        rows = project.run_sql("select id from {schema}.staged order by id", fetch="all")
        assert rows == [(1,), (2,)]


def _snapshots(project: Any) -> list[Any]:
    with project.adapter.connection_named("_test"):
        return list(project.adapter.handle.lakes.lake().snapshots())
