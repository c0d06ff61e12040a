{# The compiled text of a model in Python ends with what writes it; python_models.py calls main. #}
{% macro penstock__py_write(compiled_code, relation) %}
{{ compiled_code }}

def main(session, load, write):
    dbt = dbtObj(load)
    frame = model(dbt, session)
    write(frame, [
  {%- if relation.schema is none %}
        'create or replace temporary view {{ relation }} as select * from __dbt_python_result',
  {%- else %}
        'create or replace table {{ relation }} {{ penstock__layout() }} as select * from __dbt_python_result',
  {%- endif %}
    ])
{% endmacro %}
