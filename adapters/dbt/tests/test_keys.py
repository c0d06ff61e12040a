"""A NULL in a key is an error that shows the row, and ``--empty`` removes and closes no rows."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

GIVEN = """
{{ config(materialized="table") }}
select * from values ({{ var("key", 1) }}, 'a', timestamp_ntz '2026-01-01') as v(id, text, at)
"""
KEYED = """
{{ config(materialized="incremental", unique_key=KEY, incremental_strategy="STRATEGY") }}
select * from {{ ref("given") }}
"""
REPLACED = """
{{ config(materialized="incremental", incremental_strategy="insert_overwrite") }}
select * from {{ ref("given") }}
"""
BATCHED = """
{{ config(materialized="incremental", incremental_strategy="microbatch", event_time="at",
   batch_size="day", begin="2026-01-01") }}
select * from {{ ref("given") }}
"""
KEPT = """
{% snapshot NAME %}
{{ config(target_schema=target.schema, unique_key=KEY, strategy="check", check_cols=["text"],
   hard_deletes="invalidate") }}
select * from {{ ref("given") }}
{% endsnapshot %}
"""
STRATEGIES = (("merge", "'id'"), ("delete+insert", "['text', 'id']"), ("insert", "'id'"))
PROPERTIES = "models: [{name: given, config: {event_time: at}}]"


class TestKeys:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        keyed = {
            f"keyed_{place}.sql": KEYED.replace("STRATEGY", name).replace("KEY", key)
            for place, (name, key) in enumerate(STRATEGIES)
        }
        others = {"given.sql": GIVEN, "replaced.sql": REPLACED, "batched.sql": BATCHED}
        return {**keyed, **others, "given.yml": PROPERTIES}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        keys = {"kept": '"id"', "kept_by_two": '["text", "id"]'}
        return {
            f"{name}.sql": KEPT.replace("NAME", name).replace("KEY", key)
            for name, key in keys.items()
        }

    def test_keys(self, project: Any) -> None:
        batch = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-02"]
        run_dbt(["build", *batch])
        self.null_is_refused(["--select", "given", "keyed_*", "kept*"])
        run_dbt(["build", "--empty", "--exclude", "given", *batch])
        for name in ("keyed_0", "keyed_1", "keyed_2", "replaced", "batched"):
            assert project.run_sql(f"select id from {{schema}}.{name}", fetch="all") == [(1,)]
        for name in ("kept", "kept_by_two"):
            rows = project.run_sql(f"select id, dbt_valid_to from {{schema}}.{name}", fetch="all")
            assert rows == [(1, None)], name
        for name in ("keyed_0", "keyed_1", "keyed_2", "kept", "kept_by_two"):
            project.run_sql(f"drop table {{schema}}.{name}")
        self.null_is_refused(["--select", "given", "keyed_0", "keyed_1", "kept*"])

    @staticmethod
    def null_is_refused(selected: list[str]) -> None:
        null = "key: cast(null as int)"
        build = run_dbt(["build", "--vars", null, *selected], expect_pass=False)
        for result in build.results:
            if result.node.name.startswith(("keyed", "kept")):
                assert "is NULL in the row" in result.message, result.node.name
                assert '{"id":null,"text":"a"' in result.message
        run_dbt(["run", "--select", "given"])
