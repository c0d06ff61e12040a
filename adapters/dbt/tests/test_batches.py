"""Batches of a model that run at once: all rows are there, and each batch is a snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

GIVEN = """
{{ config(materialized="table", event_time="at") }}
select id, timestamp_ntz '2026-01-01' + make_dt_interval(cast(id % 8 as int)) as at,
  id + {{ var("added", 0) }} as amount
from range(800)
"""
BATCHED = """
{{ config(materialized="incremental", incremental_strategy="microbatch", event_time="at",
   batch_size="day", begin="2026-01-01") }}
select id, at, amount from {{ ref("given") }}
"""
READS_ITSELF = (
    BATCHED.replace("batch_size", "concurrent_batches=true, batch_size")
    + """
{% if is_incremental() %} where id not in (select id from {{ this }} where amount < 0) {% endif %}
"""
)
FAILING = BATCHED.replace(
    "amount from",
    "cast(assert_true(at <> timestamp_ntz '2026-01-04') as string) as fine, amount from",
)
DAYS = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-09", "--threads", "4"]


class TestBatches:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        batched = {"batched.sql": BATCHED, "reads_itself.sql": READS_ITSELF, "failing.sql": FAILING}
        return {"given.sql": GIVEN, **batched}

    def test_batches_at_once_hold_the_rows_of_the_query(self, project: Any) -> None:
        for added in (0, 1000):
            variables = ["--vars", f"added: {added}"]
            run_dbt(["run", "--select", "given", *variables])
            before = self.snapshots(project)
            _, output = run_dbt_and_capture(
                ["--debug", "run", "--select", "batched", "reads_itself", *DAYS]
            )
            assert output.count("is being run concurrently") >= 6
            assert self.snapshots(project) - before >= 16
            for name in ("batched", "reads_itself"):
                assert self.differences(project, name) == 0, name

    def test_a_failing_batch_leaves_the_others(self, project: Any) -> None:
        run_dbt(["run", "--select", "given"])
        failed = run_dbt(["run", "--select", "failing", *DAYS], expect_pass=False)
        assert failed.results[0].message == "PARTIAL SUCCESS (7/8)"
        query = "select count(*), count(distinct to_date(at)) from {schema}.failing"
        assert project.run_sql(query, fetch="one") == (700, 7)

    @staticmethod
    def snapshots(project: Any) -> int:
        with project.adapter.connection_named("_test"):
            return len(project.adapter.handle.lakes.lake().snapshots())

    @staticmethod
    def differences(project: Any, name: str) -> int:
        given = "select id, at, amount from {schema}.given"
        rows = f"select id, at, amount from {{schema}}.{name}"
        query = f"({given} except all {rows}) union all ({rows} except all {given})"
        number: int = project.run_sql(f"select count(*) from ({query})", fetch="one")[0]
        return number
