{# A table is one statement in the model's transaction: hooks, rows and comments are one snapshot. #}
{% materialization table, adapter='penstock', supported_languages=['sql', 'python'] %}
  {%- set language = model['language'] -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% do penstock__begin() %}
  {% do penstock__check_options() %}
  {{ penstock__free_name(existing_relation, 'table') }}
  {% call statement('main', language=language) -%}
    {{ create_table_as(False, target_relation, compiled_code, language) }}
  {%- endcall %}

  {{ return(penstock__end(target_relation, post_hooks)) }}
{% endmaterialization %}

{% materialization view, adapter='penstock' -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='view') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {{ penstock__free_name(existing_relation, 'view') }}
  {% call statement('main') -%}
    {{ get_create_view_as_sql(target_relation, sql) }}
  {%- endcall %}

  {{ return(penstock__end(target_relation, post_hooks)) }}
{%- endmaterialization %}

{# Drop a view where a table is to be, or the other way round; in the same transaction. #}
{% macro penstock__free_name(existing_relation, kind) %}
  {% if existing_relation is not none and existing_relation.type != kind %}
    {% call statement('free_name') -%}{{ get_drop_sql(existing_relation) }}{%- endcall %}
    {% do adapter.cache_dropped(existing_relation) %}
  {% endif %}
{% endmacro %}

{# Comments, hooks and staged tests, then the one commit. #}
{% macro penstock__end(relation, post_hooks) %}
  {% do apply_grants(relation, config.get('grants')) %}
  {% do persist_docs(relation, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ penstock__run_staged_tests(relation) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [relation]}) }}
{% endmacro %}
