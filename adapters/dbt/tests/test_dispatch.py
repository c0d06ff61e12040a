"""What packages written for other adapters expect: ``spark__`` macros, the information schema,
exports of saved queries, and results without a type.
"""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt
from dbt_common.exceptions import DbtRuntimeError

MACROS = """
{% macro both() %}{{ return(adapter.dispatch("both")()) }}{% endmacro %}
{% macro default__both() %}'default'{% endmacro %}
{% macro spark__both() %}'spark'{% endmacro %}
{% macro penstock__both() %}'penstock'{% endmacro %}
{% macro spark_only() %}{{ return(adapter.dispatch("spark_only")()) }}{% endmacro %}
{% macro default__spark_only() %}'default'{% endmacro %}
{% macro spark__spark_only() %}'spark'{% endmacro %}
{% macro neither() %}{{ return(adapter.dispatch("neither")()) }}{% endmacro %}
{% macro default__neither() %}'default'{% endmacro %}
{% macro commits() %}{% do run_query("select 1 as x") %}{% do adapter.commit() %}{% endmacro %}
"""
DISPATCHED = """
{{ config(materialized="table", file_format="delta") }}
select {{ both() }} as a, {{ spark_only() }} as b, {{ neither() }} as c, date '2026-01-01' as on_day
"""
LOOKED_UP = """
{{ config(materialized="table") }}
-- depends_on: {{ ref("dispatched") }}
select table_name, table_type, 'information_schema.tables' as text
from {{ target.database }}.information_schema.tables
where table_schema ilike '{{ target.schema }}'
union all
select column_name, data_type, '' from information_schema.columns
where table_schema = '{{ target.schema }}' and table_name = 'dispatched'
"""
SEMANTIC = """
sources:
  - name: own
    schema: "{{ target.schema }}"
    config: {freshness: {warn_after: {count: 1, period: day}}}
    tables: [{name: dispatched}]
models:
  - name: dispatched
    time_spine: {standard_granularity_column: on_day}
    columns: [{name: on_day, granularity: day}]
semantic_models:
  - name: sold
    model: ref('dispatched')
    defaults: {agg_time_dimension: on_day}
    entities: [{name: item, type: primary, expr: a}]
    dimensions: [{name: on_day, type: time, type_params: {time_granularity: day}}]
    measures: [{name: number, agg: count, expr: a}]
metrics:
  - {name: items, label: items, type: simple, type_params: {measure: number}}
saved_queries:
  - name: by_day
    query_params: {metrics: [items], group_by: ["TimeDimension('item__on_day', 'day')"]}
    exports: [{name: exported, config: {export_as: table}}]
"""


class TestDispatch:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"macros.sql": MACROS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"dispatched.sql": DISPATCHED, "looked_up.sql": LOOKED_UP, "s.yml": SEMANTIC}

    def test_macros_the_information_schema_and_exports(self, project: Any) -> None:
        run_dbt(["run"])
        rows = project.run_sql("select a, b, c from {schema}.dispatched", fetch="all")
        assert rows == [("penstock", "spark", "default")]
        rows = project.run_sql("select * from {schema}.looked_up order by 1", fetch="all")
        assert rows == [
            ("a", "string", ""),
            ("b", "string", ""),
            ("c", "string", ""),
            ("dispatched", "BASE TABLE", "information_schema.tables"),
            ("on_day", "date", ""),
        ]
        run_dbt(["run-operation", "commits"])  # no transaction is open: packages commit anyway
        (age,) = run_dbt(["source", "freshness"]).results  # by the snapshots: no loaded_at_field
        assert (age.status, age.age < 3600) == ("pass", True)
        shown = run_dbt(["show", "--inline", "select null as x, array() as l"]).results[0]
        assert shown.agate_table.column_names == ("x", "l")

    def test_errors_of_rows_that_are_fetched_are_explained(self, project: Any) -> None:
        text = "select date_format(date '2026-01-01', 'MON') as x"
        with pytest.raises(DbtRuntimeError, match="Spark: Unrecognized datetime pattern"):
            run_dbt(["show", "--inline", text], expect_pass=False)
