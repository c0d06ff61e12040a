{# Snapshots are dbt's own. A NULL in a key is an error, and `--empty` closes no version. #}
{% macro penstock__snapshot_staging_table(strategy, source_sql, target_relation) -%}
  {% if penstock__is_empty() %}
    {% set strategy = dict(strategy, hard_deletes='ignore', invalidate_hard_deletes=false) %}
  {% endif %}
  {{ default__snapshot_staging_table(strategy, penstock__keyed(strategy, source_sql), target_relation) }}
{%- endmacro %}

{% macro penstock__build_snapshot_table(strategy, sql) -%}
  {{ default__build_snapshot_table(strategy, penstock__keyed(strategy, sql)) }}
{%- endmacro %}

{# The query as a temporary relation whose rows have keys. Every run of a snapshot passes here first. #}
{% macro penstock__keyed(strategy, sql) -%}
  {% do penstock__check_options() %}
  {% set relation = make_temp_relation(this, '__dbt_keyed') %}
  {% call statement('keyed') -%}
    {{ create_table_as(True, relation, sql) }}
  {%- endcall %}
  {% do adapter.require_keys(relation, adapter.key_expressions(strategy.unique_key), this) %}
  {{ return('select * from ' ~ relation) }}
{%- endmacro %}

{% macro penstock__post_snapshot(staging_relation) %}
  {% do adapter.drop_relation(staging_relation) %}
  {% do adapter.drop_relation(make_temp_relation(this, '__dbt_keyed')) %}
{% endmacro %}
