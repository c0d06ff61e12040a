"""Two lakes in one profile: `database` says in which a model is, and each reads the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

NUMBERS = "{{ config(materialized='table') }} select {{ var('n', 1) }} as n"
ARCHIVED = """
{{ config(materialized="incremental", database="archive", unique_key="n") }}
select n, cast(n as string) as text from {{ ref("numbers") }}
{% if is_incremental() %} where n not in (select n from {{ this }}) {% endif %}
"""
BOTH = """
{{ config(materialized="table") }}
select a.n, a.text, s.text as source, (select count(*) from {{ ref("numbers") }}) as here
from {{ ref("archived") }} a join {{ source("old", "archived") }} s on a.n = s.n
"""
BEFORE = """
{{ config(materialized="table") }}
select n from {{ ref("archived").at_version(var("at", none)) }}
"""
KEPT = """
{% snapshot kept %}
{{ config(target_database="archive", target_schema=target.schema, unique_key="n", strategy="check",
   check_cols=["text"]) }}
select * from {{ ref("both") }}
{% endsnapshot %}
"""
PROPERTIES = """
sources:
  - name: old
    database: archive
    schema: "{{ target.schema }}"
    tables: [{name: archived}]
models:
  - name: archived
    columns:
      - name: n
        data_tests: [unique, {relationships: {arguments: {to: ref('numbers'), field: n}}}]
"""


class TestLakes:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: Any, lake_directory: Path) -> dict[str, Any]:
        archive = {
            "catalog": f"ducklake:{lake_directory / 'archive.ducklake'}",
            "data_path": str(lake_directory / "archive"),
        }
        return dbt_profile_target | {"lakes": {"archive": archive}}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = {"numbers": NUMBERS, "archived": ARCHIVED, "both": BOTH, "before": BEFORE}
        return {f"{name}.sql": text for name, text in sql.items()} | {"lakes.yml": PROPERTIES}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": KEPT}

    def test_models_are_in_their_lakes_and_read_each_other(self, project: Any) -> None:
        first = run_dbt(["build"])
        made = {r.node.name: r.adapter_response.get("snapshot") for r in first.results}
        run_dbt(["run", "--vars", f"{{n: 2, at: {made['archived']}}}"])
        rows = "select {} from {{schema}}.{} order by 1".format
        assert project.run_sql(rows("n, text, source, here", "both"), fetch="all") == [
            (1, "1", "1", 1),
            (2, "2", "2", 1),
        ]
        assert project.run_sql(rows("n", "before"), fetch="all") == [(1,)]
        with project.adapter.connection_named("_lakes"):
            lakes = project.adapter.handle.lakes
            names = {lake: {t.name for t in lakes.lake(lake).tables()} for lake in lakes.names}
        assert names["archive"] >= {"archived", "kept"}
        assert not names["lake"] & {"archived", "kept"}
        docs = run_dbt(["docs", "generate"])
        assert len([key for key in docs.nodes if key.endswith((".archived", ".kept"))]) == 2
        shown = "select * from {{ ref('kept') }} join {{ ref('numbers') }} using (n)"
        assert len(run_dbt(["show", "--inline", shown]).results) == 1
