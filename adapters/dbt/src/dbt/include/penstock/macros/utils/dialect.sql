{# The functions that dbt writes across databases, in Spark's SQL. #}

{% macro penstock__array_append(array, new_element) -%}
  array_append({{ array }}, {{ new_element }})
{%- endmacro %}

{% macro penstock__array_concat(array_1, array_2) -%}
  concat({{ array_1 }}, {{ array_2 }})
{%- endmacro %}

{% macro penstock__array_construct(inputs, data_type) -%}
  {%- if inputs -%} array({{ inputs | join(', ') }}) {%- else -%} cast(array() as array<{{ data_type }}>) {%- endif -%}
{%- endmacro %}

{% macro penstock__concat(fields) -%}
  concat({{ fields | join(', ') }})
{%- endmacro %}

{% macro penstock__date(year, month, day) -%}
  make_date({{ year }}, {{ month }}, {{ day }})
{%- endmacro %}

{% macro penstock__dateadd(datepart, interval, from_date_or_timestamp) -%}
  timestampadd({{ datepart }}, {{ interval }}, cast({{ from_date_or_timestamp }} as timestamp_ntz))
{%- endmacro %}

{# The boundaries between two moments, as other databases count them: two seconds that are in two years are a year apart. #}
{% macro penstock__datediff(first_date, second_date, datepart) -%}
  {%- set unit = datepart | lower -%}
  {%- set truncated = 'week' if unit == 'week' else unit -%}
  {%- if unit == 'week' -%}
    cast(floor(datediff(date_trunc('week', date_add(cast({{ second_date }} as date), 1)), date_trunc('week', date_add(cast({{ first_date }} as date), 1))) / 7) as bigint)
  {%- else -%}
    timestampdiff({{ unit }}, date_trunc('{{ truncated }}', cast({{ first_date }} as timestamp_ntz)), date_trunc('{{ truncated }}', cast({{ second_date }} as timestamp_ntz)))
  {%- endif -%}
{%- endmacro %}

{% macro penstock__last_day(date, datepart) -%}
  {%- if datepart == 'month' -%} last_day({{ date }}) {%- else -%} {{ dbt.default_last_day(date, datepart) }} {%- endif -%}
{%- endmacro %}

{% macro penstock__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- set order = " within group (" ~ order_by_clause ~ ")" if order_by_clause else "" -%}
  {%- if limit_num -%}
    array_join(slice(split(listagg(cast({{ measure }} as string), chr(1)){{ order }}, chr(1)), 1, {{ limit_num }}), {{ delimiter_text }})
  {%- else -%}
    listagg({{ measure }}, {{ delimiter_text }}){{ order }}
  {%- endif -%}
{%- endmacro %}

{% macro penstock__safe_cast(field, type) -%}
  {%- set text = field | string | trim -%}
  try_cast({{ text }} as {{ type }})
{%- endmacro %}

{% macro penstock__split_part(string_text, delimiter_text, part_number) -%}
  split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro %}

{% macro penstock__escape_single_quotes(expression) -%}
{{ expression | replace("\\", "\\\\") | replace("'", "\\'") }}
{%- endmacro %}

{% macro penstock__type_string() -%} string {%- endmacro %}

{% macro penstock__type_timestamp() -%} timestamp_ntz {%- endmacro %}

{% macro penstock__type_float() -%} double {%- endmacro %}

{% macro penstock__type_numeric() -%} decimal(28, 6) {%- endmacro %}

{% macro penstock__generate_series(upper_bound) -%}
  select explode(sequence(1, {{ upper_bound }})) as generated_number
{%- endmacro %}

{% macro penstock__get_empty_subquery_sql(select_sql, select_sql_header=none) -%}
  {# Spark analyses a query without running it: the columns of the query itself are read. #}
  {{ select_sql_header if select_sql_header is not none }}
  select * from (
    {{ select_sql }}
  ) as __dbt_sbq where false limit 0
{%- endmacro %}
