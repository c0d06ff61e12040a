"""Strategies and options of dbt-databricks and dbt-duckdb, and what is refused of them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

SOURCE = "select * from values (1, 'a'), (2, 'b'), (3, 'c') as v(id, text)"
CHANGED = "select * from values (1, 'A'), (2, 'B'), (4, 'D') as v(id, text)"
MODEL = """
{{ config(materialized="incremental", OPTIONS) }}
{% if is_incremental() %}CHANGED{% else %}SOURCE{% endif %}
""".replace("CHANGED", CHANGED).replace("SOURCE", SOURCE)
OPTIONS = {
    "conditional": "unique_key='id', matched_condition='DBT_INTERNAL_SOURCE.id > 1', "
    "not_matched_condition='DBT_INTERNAL_SOURCE.id > 9', "
    "not_matched_by_source_action='delete'",
    "aliased": "unique_key='id', source_alias='s', target_alias='t', skip_not_matched_step=true, "
    "matched_condition=\"t.text <> 'b'\"",
    "clauses": "unique_key='id', merge_clauses={'when_matched': [{'action': 'delete', "
    "'condition': 'DBT_INTERNAL_SOURCE.id = 1'}, {'action': 'update', 'mode': 'explicit', "
    "'update': {'set_expressions': {'text': \"'x'\"}}}], 'when_not_matched': [{'action': 'insert',"
    " 'mode': 'explicit', 'insert': {'columns': ['id', 'text'], "
    "'values': ['DBT_INTERNAL_SOURCE.id', \"'new'\"]}}]}",
    "replaced": "incremental_strategy='replace_where', incremental_predicates=['id in (1, 2, 4)']",
    "buckets": "incremental_strategy='insert_overwrite', partition_by=['bucket(4, id)']",
    "by_text": "incremental_strategy='insert_overwrite', partition_by=['bucket(2, text)']",
}
# Packages configure dbt-bigquery's form for each adapter but dbt-spark's and dbt-databricks'.
MONTHLY = """
{{ config(materialized="incremental", incremental_strategy="insert_overwrite", FORMAT
   partition_by={"field": "day", "data_type": "date", "granularity": "month"}) }}
select id, day from values
{% if is_incremental() %}(3, date '2026-01-30'){% else %}
(1, date '2026-01-01'), (2, date '2026-02-01'), (2, date '2025-01-01'){% endif %} as v(id, day)
"""
EXPECTED = {
    "conditional": [(1, "a"), (2, "B")],
    "aliased": [(1, "A"), (2, "b"), (3, "c")],
    "clauses": [(2, "x"), (3, "c"), (4, "new")],
    "replaced": [(1, "A"), (2, "B"), (3, "c"), (4, "D")],
}
LACKING = """
{{ config(materialized="incremental", unique_key="id") }}
select 1 as id {% if not is_incremental() %}, 2 as c{% endif %}
"""
UNTYPED = """
{{ config(materialized="incremental", unique_key="id", on_schema_change="sync_all_columns") }}
select {{ "2" if is_incremental() else "1" }} as id, null as x, array() as l,
  {{ "null" if is_incremental() else "'1'" }} as text
{% if is_incremental() %}, null as y{% endif %}
"""
GRANTED = "{{ config(materialized='table', grants={'select': ['ada']}) }} select 1 as id"
DELTA = "{{ config(materialized='table', file_format='delta', OPTION) }} select 1 as id"
KEPT = """
{% snapshot kept %}
{{ config(target_schema=target.schema, unique_key="id", strategy="check", check_cols="all",
   file_format="delta", location_root="custom") }}
select 1 as id
{% endsnapshot %}
"""
SEED = """
seeds:
  - name: planted
    config: {file_format: delta, table_properties: {delta.appendOnly: "true"}}
"""


class TestStrategies:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: Any, lake_directory: Any) -> dict[str, Any]:
        archive = {
            "catalog": f"ducklake:{lake_directory / 'second.ducklake'}",
            "data_path": str(lake_directory / "second"),
        }
        delta = {"outside": str(lake_directory / "options")}
        return dbt_profile_target | {"delta": delta, "lakes": {"archive": archive}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        made = {f"{name}.sql": MODEL.replace("OPTIONS", text) for name, text in OPTIONS.items()}
        others = {
            "lacking": LACKING,
            "granted": GRANTED,
            "monthly": MONTHLY.replace("FORMAT", ""),
            "monthly_delta": MONTHLY.replace("FORMAT", "file_format='delta',"),
            "untyped": UNTYPED,
            "located": DELTA.replace("OPTION", "location='custom/place'"),
            "tuned": DELTA.replace("OPTION", "table_properties={'delta.appendOnly': 'true'}"),
            "arch": "{{ config(materialized='table', database='archive') }} select 1 as id",
            "across": "{{ config(materialized='view') }} select * from {{ ref('arch') }}",
        }
        return made | {f"{name}.sql": text for name, text in others.items()}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": KEPT}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"planted.csv": "id\n1\n", "seeds.yml": SEED}

    def test_strategies(self, project: Any) -> None:
        selected = ["--exclude", "located", "tuned", "across"]
        _, output = run_dbt_and_capture(["run", *selected])
        assert output.count("grants are ignored: a lake has no users") == 1
        second = run_dbt(["run", *selected], expect_pass=False)
        messages = {result.node.name: result.message for result in second.results}
        failed = [r.node.name for r in second.results if r.status != "success"]
        assert failed == ["lacking"]
        assert "no longer returns c" in messages["lacking"]
        for name, rows in EXPECTED.items():
            text = f"select id, text from {{schema}}.{name} order by 1"
            assert project.run_sql(text, fetch="all") == rows, name
        for name in ("buckets", "by_text"):
            rows = project.run_sql(f"select id, text from {{schema}}.{name}", fetch="all")
            assert {(1, "A"), (2, "B"), (4, "D")} <= set(rows)
            assert len(rows) == len(set(rows)), name
        assert (1, "a") not in rows
        for table in ("{schema}.monthly", "outside.{schema}.monthly_delta"):
            rows = project.run_sql(f"select id, day from {table} order by 1, 2", fetch="all")
            assert rows == [(2, date(2025, 1, 1)), (2, date(2026, 2, 1)), (3, date(2026, 1, 30))]
        rows = project.run_sql("select * from {schema}.untyped order by id", fetch="all")
        assert rows == [(1, None, [], "1", None), (2, None, [], None, None)]

    @pytest.mark.parametrize(
        ("model", "said"),
        {
            "located": "a Delta table is",
            "tuned": "table_properties of tuned are not written",
            "kept": "location_root of kept: a Delta table is",
            "planted": "table_properties of planted are not written",
            "across": "which is in another lake",
        }.items(),
    )
    def test_refused(self, project: Any, model: str, said: str) -> None:
        failed = run_dbt(["build", "--select", model], expect_pass=False)
        assert said in failed.results[0].message
