{# A model with file_format='delta' is in the profile's Delta root: that is its database. Without a root it is a
   table of the lake, as packages set the option for every Spark. #}
{% macro penstock__generate_database_name(custom_database_name=none, node=none) -%}
  {%- set roots = target.delta.split(', ') if target.delta else [] -%}
  {#- The configuration of an export of a saved query has no `get`, and no format. -#}
  {%- set format = node.config.get('file_format') if node is not none and node.config and node.config.get is defined else none -%}
  {%- if format == 'delta' and not roots -%}
    {{ return(default__generate_database_name(custom_database_name, node)) }}
  {%- elif format == 'delta' and custom_database_name is none and roots | length > 1 -%}
    {{ exceptions.raise_compiler_error("the profile has several Delta roots: say with database which of " ~ target.delta ~ " it is") }}
  {%- elif format == 'delta' and custom_database_name is not none and custom_database_name | trim not in roots -%}
    {{ exceptions.raise_compiler_error("file_format='delta' and database='" ~ custom_database_name ~ "', which is no Delta root: they are " ~ target.delta) }}
  {%- elif format == 'delta' -%}
    {{ return(custom_database_name | trim if custom_database_name is not none else roots[0]) }}
  {%- else -%}
    {{ return(default__generate_database_name(custom_database_name, node)) }}
  {%- endif -%}
{%- endmacro %}
