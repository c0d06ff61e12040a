{# MERGE by unique_key, with the options of dbt-databricks and the clauses of dbt-duckdb. #}
{% macro penstock__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates=none) -%}
  {%- set predicates = [incremental_predicates] if incremental_predicates is string else [] + (incremental_predicates or []) -%}
  {%- set source_alias = config.get('source_alias') or 'DBT_INTERNAL_SOURCE' -%}
  {%- set target_alias = config.get('target_alias') or 'DBT_INTERNAL_DEST' -%}
  {%- set keys = [unique_key] if unique_key is string else (unique_key or []) -%}
  {%- for key in keys -%}
    {%- do predicates.append(source_alias ~ '.' ~ key ~ ' = ' ~ target_alias ~ '.' ~ key) -%}
  {%- else -%}
    {%- do predicates.append('false') -%}
  {%- endfor -%}
  {%- set clauses = config.get('merge_clauses') -%}
  merge into {{ target }} as {{ target_alias }}
  using {{ source }} as {{ source_alias }}
  on ({{ predicates | join(') and (') }})
  {%- if clauses %}
    {%- for clause in clauses.get('when_matched', []) %}
  when matched {{ penstock__merge_condition(clause.get('condition')) }} then {{ penstock__merge_action(clause, dest_columns, source_alias) }}
    {%- endfor %}
    {%- for clause in clauses.get('when_not_matched', []) %}
  when not matched {{ "by source" if clause.get('by') == 'source' }} {{ penstock__merge_condition(clause.get('condition')) }} then {{ penstock__merge_action(clause, dest_columns, source_alias) }}
    {%- endfor %}
  {%- else %}
    {%- set updated = get_merge_update_columns(config.get('merge_update_columns'), config.get('merge_exclude_columns'), dest_columns) -%}
    {%- if keys and not config.get('skip_matched_step') %}
  when matched {{ penstock__merge_condition(config.get('matched_condition') or config.get('merge_update_condition')) }} then update set
      {% for name in updated %}{{ name }} = {{ source_alias }}.{{ name }}{{ ", " if not loop.last }}{% endfor %}
    {%- endif %}
    {%- if not config.get('skip_not_matched_step') %}
  when not matched {{ penstock__merge_condition(config.get('not_matched_condition') or config.get('merge_insert_condition')) }} then {{ penstock__merge_action({'action': 'insert'}, dest_columns, source_alias) }}
    {%- endif %}
    {%- if config.get('not_matched_by_source_action') %}
  when not matched by source {{ penstock__merge_condition(config.get('not_matched_by_source_condition')) }} then {{ config.get('not_matched_by_source_action') }}
    {%- endif %}
  {%- endif %}
{%- endmacro %}

{% macro penstock__merge_condition(condition) -%}
  {%- if condition -%} and ({{ condition }}) {%- endif -%}
{%- endmacro %}

{# One action of `merge_clauses`. Columns go by name, whatever the mode is called. #}
{% macro penstock__merge_action(clause, dest_columns, source_alias) -%}
  {%- set action = clause.get('action') -%}
  {%- if action == 'delete' -%}
    delete
  {%- elif action == 'update' -%}
    {%- set details = clause.get('update') or {} -%}
    {%- set expressions = clause.get('set_expressions') or details.get('set_expressions') or {} -%}
    {%- set excluded = (details.get('exclude') or []) + (expressions | list) -%}
    {%- set included = details.get('include') or (dest_columns | map(attribute='name') | list) -%}
    {%- set assignments = [] -%}
    {%- for name in included if name | lower not in excluded | map('lower') -%}
      {%- do assignments.append(adapter.quote(name) ~ ' = ' ~ source_alias ~ '.' ~ adapter.quote(name)) -%}
    {%- endfor -%}
    {%- for name, expression in expressions.items() -%}
      {%- do assignments.append(adapter.quote(name) ~ ' = ' ~ expression) -%}
    {%- endfor -%}
    update set {{ assignments | join(', ') }}
  {%- elif action == 'insert' -%}
    {%- set details = clause.get('insert') or {} -%}
    {%- set names = details.get('columns') or (dest_columns | map(attribute='name') | list) -%}
    {%- set values = [] -%}
    {%- for name in names -%}
      {%- do values.append(source_alias ~ '.' ~ adapter.quote(name)) -%}
    {%- endfor -%}
    insert ({{ get_quoted_csv(names) }}) values ({{ (details.get('values') or values) | join(', ') }})
  {%- else -%}
    {{ exceptions.raise_compiler_error("merge_clauses: the action " ~ action ~ " is not supported: use update, delete or insert, each with a condition") }}
  {%- endif -%}
{%- endmacro %}

{# The rows that `incremental_predicates` select are replaced, as in dbt-databricks. #}
{% macro get_incremental_replace_where_sql(arg_dict) %}
  {% set predicates = arg_dict["incremental_predicates"] %}
  {% set target, source = arg_dict["target_relation"], arg_dict["temp_relation"] %}
  {% set columns = get_quoted_csv(arg_dict["dest_columns"] | map(attribute="name")) %}
  {% if not predicates %}
    {{ exceptions.raise_compiler_error("incremental_strategy='replace_where' needs incremental_predicates: it replaces the rows that they select") }}
  {% elif penstock__is_empty() %}
    insert into {{ target }} ({{ columns }}) select {{ columns }} from {{ source }}
  {% else %}
    insert into {{ target }} replace where {{ predicates if predicates is string else predicates | join(' and ') }}
    select {{ columns }} from {{ source }}
  {% endif %}
{% endmacro %}
