{# What `spark__` macros of packages call of dbt-spark by its name alone, or dispatch. #}
{% macro assert_not_null(function, arg) -%}
  {{ return(adapter.dispatch('assert_not_null', 'dbt')(function, arg)) }}
{%- endmacro %}

{# The value of a function of one argument. In ANSI mode the function itself fails at a value that it cannot read. #}
{% macro penstock__assert_not_null(function, arg) -%}
  {{ function }}({{ arg }})
{%- endmacro %}
