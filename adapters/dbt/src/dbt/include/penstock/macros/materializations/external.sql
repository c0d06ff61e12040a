{# Files, which `ref` reads. Hooks are one transaction of the lake; the files are replaced before it is committed. #}
{% materialization external, adapter='penstock', supported_languages=['sql', 'python'] %}
  {%- set language = model['language'] -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set temp_relation = make_temp_relation(this) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {% do penstock__begin() %}
  {% if config.get('contract').enforced %}
    {{ get_assert_columns_equivalent(compiled_code) }}
  {% endif %}
  {% call statement('stage', language=language) -%}
    {{ create_table_as(True, temp_relation, compiled_code, language) }}
  {%- endcall %}
  {{ penstock__run_staged_tests(temp_relation) }}
  {{ penstock__free_name(existing_relation, 'external') }}
  {% set rows = adapter.write_files(temp_relation, this.identifier, model.config) %}
  {% call noop_statement('main', 'WRITE ' ~ rows, 'WRITE', rows) -%}{{ compiled_code }}{%- endcall %}
  {% do adapter.drop_relation(temp_relation) %}

  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ adapter.commit() }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [this.incorporate(type='external')]}) }}
{% endmaterialization %}
