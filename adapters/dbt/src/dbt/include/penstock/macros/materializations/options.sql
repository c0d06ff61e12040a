{# Options of other adapters that would place or set up a table in another way. #}
{% macro penstock__check_options() %}
  {% set is_delta = config.get('file_format') == 'delta' and target.delta %}
  {% if config.get('file_format') == 'delta' and not target.delta %}
    {% do adapter.warn_once("file_format='delta' is ignored: the target has no Delta root; add delta: {NAME: directory} to it in profiles.yml") %}
  {% endif %}
  {% for option in ('location', 'location_root') if config.get(option) %}
    {% if is_delta %}
      {{ exceptions.raise_compiler_error(
          option ~ " of " ~ model.name ~ ": a Delta table is " ~ this.schema ~ "/" ~ this.identifier ~ " below its root: remove the option, "
          ~ "or add another root below delta: in profiles.yml and name it with database") }}
    {% else %}
      {% do adapter.warn_once(option ~ " is ignored: a lake places the files of its tables below its data_path") %}
    {% endif %}
  {% endfor %}
  {% for option in ('table_properties', 'tblproperties') if config.get(option) %}
    {% if is_delta %}
      {{ exceptions.raise_compiler_error(
          option ~ " of " ~ model.name ~ " are not written: remove them. For deletion vectors write deletion_vectors: true for the root, "
          ~ "below delta: in profiles.yml") }}
    {% else %}
      {% do adapter.warn_once(option ~ " is ignored: a lake has options of its own, CALL set_option(...)") %}
    {% endif %}
  {% endfor %}
  {% for option in ('clustered_by', 'liquid_clustered_by', 'zorder', 'databricks_tags') if config.get(option) %}
    {% do adapter.warn_once(option ~ " is ignored: partition_by and sorted_by lay out a table") %}
  {% endfor %}
{% endmacro %}
