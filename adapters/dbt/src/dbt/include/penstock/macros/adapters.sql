{# What dbt asks of a database, where its own answer does not fit. #}

{% macro penstock__make_temp_relation(base_relation, suffix='__dbt_tmp') %}
    {# A temporary relation is a DataFrame of the connection: it has a name, and no schema. #}
    {% set identifier = base_relation.identifier ~ suffix %}
    {% set relation = base_relation.incorporate(path={"identifier": identifier, "schema": none, "database": none}) %}
    {{ return(relation) }}
{% endmacro %}

{% macro penstock__make_intermediate_relation(base_relation, suffix) %}
    {% set identifier = base_relation.identifier ~ suffix %}
    {{ return(base_relation.incorporate(path={"identifier": identifier})) }}
{% endmacro %}

{% macro penstock__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if language == 'python' -%}
    {{ penstock__py_write(compiled_code, relation) }}
  {%- elif temporary -%}
    create or replace temporary view {{ relation.include(database=false, schema=false) }} as
    {{ compiled_code }}
  {%- else -%}
    {% set sql_header = config.get('sql_header', none) %}
    {{ sql_header if sql_header is not none }}
    {% set contract = config.get('contract') %}
    {% if contract.enforced %}
      {{ get_assert_columns_equivalent(compiled_code) }}
      create or replace table {{ relation.render() }}
        {{ get_table_columns_and_constraints() }}
        {{ penstock__layout() }};
      insert into {{ relation.render() }} {{ get_select_subquery(compiled_code) }}
    {% else %}
      create or replace table {{ relation.render() }} {{ penstock__layout() }} as
      {{ compiled_code }}
    {% endif %}
  {%- endif -%}
{%- endmacro %}

{# PARTITIONED BY and SORTED BY, under the names of dbt-spark and of dbt-duckdb. #}
{% macro penstock__layout() -%}
  {%- set is_delta = config.get('file_format') == 'delta' and target.delta -%}
  {%- set partitions = adapter.partitions_of(config.get('partition_by') or config.get('partitioned_by'), is_delta) -%}
  {%- set keys = adapter.names_of(config.get('sorted_by'), 'sorted_by') -%}
  {%- if partitions %} partitioned by ({{ partitions | join(', ') }}){% endif -%}
  {%- if keys %} sorted by ({{ keys | join(', ') }}){% endif -%}
{%- endmacro %}

{% macro penstock__create_view_as(relation, sql) -%}
  {% set sql_header = config.get('sql_header', none) %}
  {{ sql_header if sql_header is not none }}
  {% set contract = config.get('contract') %}
  {% if contract and contract.enforced %}
    {{ get_assert_columns_equivalent(sql) }}
  {% endif %}
  create or replace view {{ relation.render() }} as
  {{ sql }}
{%- endmacro %}

{% macro penstock__drop_table(relation) -%}
  drop table if exists {{ relation.render() }}
{%- endmacro %}

{% macro penstock__drop_view(relation) -%}
  drop view if exists {{ relation.render() }}
{%- endmacro %}

{% macro penstock__rename_relation(from_relation, to_relation) -%}
  {% call statement('rename_relation') -%}
    alter {{ 'view' if from_relation.is_view else 'table' }} {{ from_relation.render() }}
      rename to {{ adapter.quote_as_configured(to_relation.identifier, 'identifier') }}
  {%- endcall %}
{%- endmacro %}

{% macro penstock__get_rename_table_sql(relation, new_name) -%}
  alter table {{ relation.render() }} rename to {{ adapter.quote_as_configured(new_name, 'identifier') }}
{%- endmacro %}

{% macro penstock__get_rename_view_sql(relation, new_name) -%}
  alter view {{ relation.render() }} rename to {{ adapter.quote_as_configured(new_name, 'identifier') }}
{%- endmacro %}

{% macro penstock__get_replace_table_sql(relation, sql) -%}
  {{ get_create_table_as_sql(false, relation, sql) }}
{%- endmacro %}

{% macro penstock__get_replace_view_sql(relation, sql) -%}
  {{ get_create_view_as_sql(relation, sql) }}
{%- endmacro %}

{% macro penstock__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {% for column in add_columns or [] %}
    {% do run_query("alter table " ~ relation.render() ~ " add column " ~ column.quoted ~ " " ~ column.expanded_data_type) %}
  {% endfor %}
  {% for column in remove_columns or [] %}
    {% do run_query("alter table " ~ relation.render() ~ " drop column " ~ column.quoted) %}
  {% endfor %}
{% endmacro %}

{% macro penstock__alter_column_type(relation, column_name, new_column_type) %}
  {# What the format does not widen is written anew, in the same transaction. #}
  {% if not adapter.widen(relation, column_name, new_column_type) %}
    {% call statement('alter_column_type') %}
      create or replace table {{ relation.render() }} {{ penstock__layout() }} as select
      {% for column in adapter.get_columns_in_relation(relation) -%}
        {%- if column.name | lower == column_name | lower -%}
          cast({{ column.quoted }} as {{ new_column_type }}) as {{ column.quoted }}
        {%- else -%}
          {{ column.quoted }}
        {%- endif -%}
        {{ ", " if not loop.last }}
      {%- endfor %}
      from {{ relation.render() }}
    {% endcall %}
  {% endif %}
{% endmacro %}

{% macro penstock__current_timestamp() -%}
  cast(current_timestamp() as timestamp_ntz)
{%- endmacro %}

{% macro penstock__snapshot_string_as_time(timestamp) -%}
  {{ return("to_timestamp_ntz('" ~ timestamp ~ "')") }}
{%- endmacro %}

{% macro penstock__alter_relation_comment(relation, relation_comment) -%}
  comment on {{ 'view' if relation.is_view else 'table' }} {{ relation.render() }} is {{ penstock__text(relation_comment) }}
{%- endmacro %}

{% macro penstock__alter_column_comment(relation, column_dict) -%}
  {%- if not relation.is_view -%}
    {%- for name in column_dict if column_dict[name]['description'] -%}
      comment on column {{ relation.render() }}.{{ adapter.quote(name) }} is {{ penstock__text(column_dict[name]['description']) }};
    {% endfor -%}
  {%- endif -%}
{%- endmacro %}

{# A text as a literal: a backslash escapes in Spark's SQL. #}
{% macro penstock__text(value) -%}
  '{{ (value | string).replace("\\", "\\\\").replace("'", "\\'") }}'
{%- endmacro %}

{% macro penstock__apply_grants(relation, grant_config, should_revoke=true) %}
  {% if grant_config %}
    {% do adapter.warn_once("grants are ignored: a lake has no users; give rights in the catalog's database and on the files") %}
  {% endif %}
{% endmacro %}

{% macro penstock__get_test_sql(main_sql, fail_calc, warn_if, error_if, limit) -%}
  {# One count, not three: Spark would compute each. #}
  select failures, failures {{ warn_if }} as should_warn, failures {{ error_if }} as should_error
  from (
    select {{ fail_calc }} as failures from (
      {{ main_sql }}
      {{ "limit " ~ limit if limit != none }}
    ) dbt_internal_test
  )
{%- endmacro %}

{% macro penstock__create_csv_table(model, agate_table) %}
  {% do penstock__check_options() %}
  {%- set types = model['config'].get('column_types', {}) -%}
  {%- set quote_columns = model['config'].get('quote_columns', none) -%}
  {% set sql %}
    create or replace table {{ this.render() }} (
        {%- for name in agate_table.column_names -%}
            {{ adapter.quote_seed_column(name | string, quote_columns) }} {{ types.get(name, adapter.convert_type(agate_table, loop.index0)) }}
            {%- if not loop.last -%}, {%- endif -%}
        {%- endfor -%}
    ) {{ penstock__layout() }}
  {% endset %}
  {% call statement('_') -%}{{ sql }}{%- endcall %}
  {{ return(sql) }}
{% endmacro %}

{% macro penstock__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {# In one transaction with the rows. With other columns than before the table is made anew. #}
  {% if full_refresh %}
    {{ return(create_csv_table(model, agate_table)) }}
  {% endif %}
  {% do penstock__check_options() %}
  {% call statement('_') -%}truncate table {{ old_relation.render() }}{%- endcall %}
  {{ return("truncate table " ~ old_relation.render()) }}
{% endmacro %}

{% macro penstock__load_csv_rows(model, agate_table) %}
  {% set number = adapter.load_seed(this, agate_table) %}
  {{ return("-- " ~ number ~ " rows, with their values bound") }}
{% endmacro %}

{% macro penstock__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}

{% macro penstock__current_timestamp_backcompat() -%}
  {{ current_timestamp() }}
{%- endmacro %}

{% macro penstock__current_timestamp_in_utc_backcompat() -%}
  cast(to_utc_timestamp(current_timestamp(), current_timezone()) as timestamp_ntz)
{%- endmacro %}
