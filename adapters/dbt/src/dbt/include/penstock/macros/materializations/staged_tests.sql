{# With `+penstock_stage: true` a model's generic tests run inside its transaction: where one fails,
   nothing of the model is published. #}
{% macro penstock__run_staged_tests(relation) %}
  {% if execute and config.get('penstock_stage', false) %}
    {% for node in graph.nodes.values() | selectattr('resource_type', 'equalto', 'test') %}
      {% if node.get('attached_node') == model.unique_id and node.test_metadata and node.config.enabled %}
        {% do penstock__run_staged_test(node, relation) %}
      {% endif %}
    {% endfor %}
  {% endif %}
{% endmacro %}

{% macro penstock__run_staged_test(node, relation) %}
  {% set about, settings = node.test_metadata, node.config %}
  {% set macros = context[about.namespace] if about.namespace else context %}
  {% set arguments = {} %}
  {% for name, value in about.kwargs.items() if name != 'model' %}
    {% do arguments.update({name: penstock__test_argument(value, node)}) %}
  {% endfor %}
  {% set subject = "(select * from " ~ relation ~ " where " ~ settings.where ~ ") dbt_subquery" if settings.where else relation %}
  {% set query = macros['test_' ~ about.name](model=subject, **arguments) %}
  {% set sql = get_test_sql(query, settings.fail_calc, settings.warn_if, settings.error_if, settings.limit) %}
  {% set found = run_query(sql).rows[0] %}
  {% if found['should_error'] and settings.severity | lower == 'error' %}
    {{ exceptions.raise_compiler_error("the test " ~ node.name ~ " found " ~ found['failures'] ~ ": nothing of " ~ model.name ~ " was published") }}
  {% elif found['should_error'] or found['should_warn'] %}
    {{ exceptions.warn("the test " ~ node.name ~ " found " ~ found['failures'] ~ " before " ~ model.name ~ " was published") }}
  {% endif %}
{% endmacro %}

{# `ref('x')` as the relation of x, which the model itself may not depend on. #}
{% macro penstock__test_argument(value, node) %}
  {% set named = modules.re.match("^\\s*(?:\\{\\{\\s*)?ref\\(\\s*['\"](\\w+)['\"]\\s*\\)(?:\\s*\\}\\})?\\s*$", value) if value is string else none %}
  {% if named %}
    {% for other in graph.nodes.values() if other.name == named.group(1) and other.relation_name %}
      {{ return(other.relation_name) }}
    {% endfor %}
    {{ exceptions.raise_compiler_error("the test " ~ node.name ~ " of a staged model names " ~ value ~ ", which is no table or view") }}
  {% elif value is string and ('ref(' in value or 'source(' in value) %}
    {{ exceptions.raise_compiler_error("the test " ~ node.name ~ " cannot run before the model is published: write ref('x') alone, or set penstock_stage to false") }}
  {% endif %}
  {{ return(value) }}
{% endmacro %}
