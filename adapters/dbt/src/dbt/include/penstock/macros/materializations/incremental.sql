{% materialization incremental, adapter='penstock', supported_languages=['sql', 'python'] -%}
  {%- set language = model['language'] -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set temp_relation = make_temp_relation(target_relation) -%}
  {%- set unique_key = config.get('unique_key') -%}
  {%- set anew = existing_relation is none or existing_relation.is_view or should_full_refresh() -%}
  {%- set on_schema_change = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set strategy = config.get('incremental_strategy') or 'default' -%}
  {%- set strategy_macro = adapter.get_incremental_strategy_macro(context, strategy) -%}

  {%- set keys = adapter.key_expressions(unique_key) if strategy in ('default', 'merge', 'delete+insert', 'insert') else [] -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {# Batches that run at once compute their rows together and write in turn, but for those that read the table itself. #}
  {% set is_computed = strategy == 'microbatch' and not anew and adapter.begin_batch(
       target_relation, temp_relation, none if language != 'sql' or this.render() in compiled_code else compiled_code) %}
  {# What is read and what is written are of one snapshot. A model in Python begins no transaction itself. #}
  {% do penstock__begin() %}
  {% do penstock__check_options() %}
  {% set is_staged = not anew or (keys and not config.get('sql_header')) %}
  {% if is_staged and not is_computed %}
    {% call statement('stage', language=language) -%}
      {{ create_table_as(True, temp_relation, compiled_code, language) }}
    {%- endcall %}
    {% do adapter.require_keys(temp_relation, keys, target_relation) %}
  {% endif %}
  {% if anew %}
    {{ penstock__free_name(existing_relation, 'table') }}
    {% call statement('main', language='sql' if is_staged else language) -%}
      {% if is_staged -%}
        {{ create_table_as(False, target_relation, 'select * from ' ~ temp_relation) }}
      {%- else -%}
        {{ create_table_as(False, target_relation, compiled_code, language) }}
      {%- endif %}
    {%- endcall %}
  {% else %}
    {% do adapter.type_nulls(temp_relation, target_relation) %}
    {% set dest_columns = process_schema_changes(on_schema_change, temp_relation, existing_relation) %}
    {% if not dest_columns %}
      {% set dest_columns = adapter.get_columns_in_relation(existing_relation) %}
    {% endif %}
    {% do penstock__require_columns(dest_columns, temp_relation) %}
    {% if strategy not in ('append', 'default') or unique_key or this.render() in compiled_code %}
      {% do adapter.fence(target_relation) %}
    {% endif %}
    {% set predicates = config.get('predicates', none) or config.get('incremental_predicates', none) %}
    {% call statement('main') -%}
      {{ strategy_macro({'target_relation': target_relation, 'temp_relation': temp_relation,
         'unique_key': unique_key, 'dest_columns': dest_columns, 'incremental_predicates': predicates}) }}
    {%- endcall %}
  {% endif %}
  {% if is_staged %}
    {% do adapter.drop_relation(temp_relation) %}
  {% endif %}

  {{ return(penstock__end(target_relation, post_hooks)) }}
{%- endmaterialization %}

{# With `on_schema_change: ignore` the rows have to have every column of the table. #}
{% macro penstock__require_columns(dest_columns, temp_relation) %}
  {% set names = adapter.get_columns_in_relation(temp_relation) | map(attribute='name') | map('lower') | list %}
  {% set missing = [] %}
  {% for column in dest_columns if column.name | lower not in names %}
    {% do missing.append(column.name) %}
  {% endfor %}
  {% if missing %}
    {{ exceptions.raise_compiler_error(
        "the query of " ~ model.name ~ " no longer returns " ~ missing | join(', ') ~ ", which the table " ~ this
        ~ " has: return it, set on_schema_change to sync_all_columns, which drops it, or rebuild the table with --full-refresh") }}
  {% endif %}
{% endmacro %}

{% macro penstock__begin() %}
  {% call statement('begin') -%}begin{%- endcall %}
{% endmacro %}

{# With a unique key the default merges, as users of other adapters expect; without one it appends. #}
{% macro penstock__get_incremental_default_sql(arg_dict) %}
  {% if arg_dict["unique_key"] %}
    {% do return(get_incremental_merge_sql(arg_dict)) %}
  {% else %}
    {% do return(get_incremental_append_sql(arg_dict)) %}
  {% endif %}
{% endmacro %}

{# New keys only. Where none is new nothing is written, and there is no snapshot. #}
{% macro get_incremental_insert_sql(arg_dict) %}
  {% set keys = adapter.names_of(arg_dict["unique_key"], 'unique_key') %}
  {% if not keys %}
    {{ exceptions.raise_compiler_error("incremental_strategy='insert' needs a unique_key: it adds the rows whose key is new") }}
  {% endif %}
  {% set columns = get_quoted_csv(arg_dict["dest_columns"] | map(attribute="name")) %}
  merge into {{ arg_dict["target_relation"] }} as DBT_INTERNAL_DEST
  using {{ arg_dict["temp_relation"] }} as DBT_INTERNAL_SOURCE
  on {% for key in keys -%}
    DBT_INTERNAL_SOURCE.{{ key }} = DBT_INTERNAL_DEST.{{ key }}{{ " and " if not loop.last }}
  {%- endfor %}
  when not matched then insert ({{ columns }}) values ({{ columns }})
{% endmacro %}

{% macro penstock__get_incremental_microbatch_sql(arg_dict) %}
  {% set target, source = arg_dict["target_relation"], arg_dict["temp_relation"] %}
  {% set columns = get_quoted_csv(arg_dict["dest_columns"] | map(attribute="name")) %}
  {% set time = config.get('event_time') %}
  {% set conditions = [] %}
  {% if model.batch and model.batch.event_time_start -%}
    {% do conditions.append(time ~ " >= to_timestamp_ntz('" ~ model.batch.event_time_start.strftime('%Y-%m-%d %H:%M:%S') ~ "')") %}
  {% endif %}
  {% if model.batch and model.batch.event_time_end -%}
    {% do conditions.append(time ~ " < to_timestamp_ntz('" ~ model.batch.event_time_end.strftime('%Y-%m-%d %H:%M:%S') ~ "')") %}
  {% endif %}
  {% do conditions.extend(arg_dict["incremental_predicates"] or []) %}
  {% if not penstock__is_empty() -%}
  delete from {{ target }} where {{ conditions | join(' and ') }};
  {%- endif %}
  insert into {{ target }} ({{ columns }}) select {{ columns }} from {{ source }}
{% endmacro %}

{# The partitions that the new rows are in; all rows where the table has no partitions. #}
{% macro penstock__get_incremental_insert_overwrite_sql(arg_dict) %}
  {% set target, source = arg_dict["target_relation"], arg_dict["temp_relation"] %}
  {% set columns = get_quoted_csv(arg_dict["dest_columns"] | map(attribute="name")) %}
  {% set partitions = adapter.partitions_of(config.get('partition_by') or config.get('partitioned_by'), false) %}
  {% if not partitions and penstock__is_empty() %}
    insert into {{ target }} ({{ columns }}) select {{ columns }} from {{ source }}
  {% elif not partitions %}
    insert overwrite {{ target }} select {{ columns }} from {{ source }}
  {% elif adapter.has_buckets(partitions) %}
    {% do adapter.delete_partitions(target, source, partitions) %}
    insert into {{ target }} ({{ columns }}) select {{ columns }} from {{ source }}
  {% else %}
    merge into {{ target }} as DBT_INTERNAL_DEST
    using (select distinct
      {% for partition in partitions %}{{ penstock__partition_value(partition) }} as p{{ loop.index }}{{ ", " if not loop.last }}{% endfor %}
      from {{ source }}) as DBT_INTERNAL_PARTS
    on {% for partition in partitions -%}
      DBT_INTERNAL_PARTS.p{{ loop.index }} <=> {{ penstock__partition_value(partition) }}{{ " and " if not loop.last }}
    {%- endfor %}
    when matched then delete;
    insert into {{ target }} ({{ columns }}) select {{ columns }} from {{ source }}
  {% endif %}
{% endmacro %}

{# ``day(at)`` as a value: all days, not days of the month. #}
{% macro penstock__partition_value(partition) -%}
  {%- set parts = modules.re.match('^(year|month|day|hour)s?\\((.*)\\)$', partition | trim | lower) -%}
  {%- if parts -%}
    date_trunc('{{ parts.group(1) }}', {{ parts.group(2) }})
  {%- else -%}
    {{ partition }}
  {%- endif -%}
{%- endmacro %}

{# `--empty` compiles a query without rows: what is in the table stays. #}
{% macro penstock__is_empty() %}
  {{ return(invocation_args_dict.get('empty') or false) }}
{% endmacro %}
