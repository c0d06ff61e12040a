"""A dbt project of about forty models, made by dbt and, imported, by Penstock; rows compared::

    .venv-dbt/bin/python adapters/dbt/bench/larger.py DIRECTORY

DIRECTORY, which must not exist, gets dbt's project (``shop``), the imported one (``taken``) and a
lake for each. It prints what the import could not take, and each table whose rows differ. Times of
histories are left out of the comparison: they are those of the run.
"""

# ruff: noqa: E501 - a model's query stands on one line

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb

BIN = Path(sys.executable).parent
CONFIG = "{{ config(%s) }}\n"
REGIONS = ("north", "south", "east", "west")
_HISTORY_TIMES = {"dbt_updated_at", "dbt_valid_from", "dbt_valid_to", "dbt_scd_id"}
PROJECT = """name: shop
version: "1.0"
config-version: 2
profile: shop
vars: {currency: EUR, large: 300}
models:
  shop:
    +persist_docs: {relation: true, columns: true}
    staging: {+materialized: view, +tags: [staging]}
    intermediate: {+materialized: ephemeral}
    marts: {+materialized: table}
seeds: {shop: {raw_rates: {+column_types: {rate: "decimal(10,4)", day: date}}}}
"""
PROFILES = """shop:
  target: dev
  outputs:
    dev: &dev {type: penstock, catalog: 'ducklake:sqlite:lake.sqlite', data_path: data/,
      schema: main, threads: 2, spark: {master: 'local[2]', conf: {spark.driver.memory: 1g}}}
    fresh: {<<: *dev, schema: fresh}
"""
MACROS = """
{% macro cents(column) %}cast({{ column }} / 100.0 as decimal(12, 2)){% endmacro %}

{% macro pivot(column, values, amount) %}
{% for value in values %}
  sum(case when {{ column }} = '{{ value }}' then {{ amount }} else 0 end) as {{ value }}_amount
  {{- "," if not loop.last }}
{% endfor %}
{% endmacro %}

{% test at_least(model, column_name, least=0) %}
select * from {{ model }} where {{ column_name }} < {{ least }}
{% endtest %}

{% test unique_together(model, columns) %}
select {{ columns | join(", ") }} from {{ model }} group by {{ columns | join(", ") }} having count(*) > 1
{% endtest %}
"""
STAGED = {
    "customers": "id as customer_id, trim(name) as name, lower(region) as region, joined",
    "orders": "id as order_id, customer_id, ordered_at, cast(ordered_at as date) as day, status",
    "items": "id as item_id, order_id, product_id, quantity",
    "products": "id as product_id, name, kind, {{ cents('price') }} as price",
    "payments": "id as payment_id, order_id, method, {{ cents('amount') }} as amount",
    "rates": "day, currency, rate",
    "stores": "id as store_id, region, opened",
    "visits": "id as visit_id, customer_id, at, pages",  # with an event_time, for a microbatch
}
SOURCES = {"stores", "visits"}
INTERMEDIATE = {
    "order_items": "select i.*, p.kind, p.price, i.quantity * p.price as value "
    "from {{ ref('stg_items') }} i join {{ ref('stg_products') }} p using (product_id)",
    "order_values": "select order_id, sum(value) as value, count(*) as items "
    "from {{ ref('int_order_items') }} group by order_id",
    "order_payments": "select order_id, {{ pivot('method', ['card', 'cash', 'voucher'], 'amount') }}"
    ", sum(amount) as paid from {{ ref('stg_payments') }} group by order_id",
    "orders": "select o.*, coalesce(v.value, 0) as value, coalesce(p.paid, 0) as paid "
    "from {{ ref('stg_orders') }} o left join {{ ref('int_order_values') }} v using (order_id) "
    "left join {{ ref('int_order_payments') }} p using (order_id)",
    "first_orders": "select customer_id, min(day) as first_day, max(day) as last_day, "
    "count(*) as orders from {{ ref('int_orders') }} group by customer_id",
    "visits_by_day": "select customer_id, cast(at as date) as day, count(*) as visits, "
    "sum(pages) as pages from {{ ref('stg_visits') }} group by 1, 2",
}


def _newer(column: str) -> str:
    return (
        "{% if is_incremental() %} where " + column + " > (select max(" + column + ") "
        "from {{ this }}) {% endif %}"
    )


MARTS = {
    "customers": ("", "select c.*, f.first_day, f.orders from {{ ref('stg_customers') }} c left join "
                  "{{ ref('int_first_orders') }} f using (customer_id)"),
    "orders": ("materialized='incremental', unique_key='order_id', on_schema_change="
               "'append_new_columns'", "select * from {{ ref('int_orders') }} " + _newer("day")),
    "order_lines": ("materialized='incremental', unique_key=['order_id', 'item_id'], "
                    "incremental_strategy='delete+insert'",
                    "select order_id, item_id, value from {{ ref('int_order_items') }}"),
    "payments_log": ("materialized='incremental', incremental_strategy='append'",
                     "select * from {{ ref('stg_payments') }} " + _newer("payment_id")),
    "new_visits": ("materialized='incremental', incremental_strategy='insert', unique_key="
                   "'visit_id'", "select * from {{ ref('stg_visits') }}"),
    "sales_by_day": ("materialized='incremental', incremental_strategy='insert_overwrite', "
                     "partition_by=['day']", "select day, sum(value) as value, count(*) as orders "
                     "from {{ ref('int_orders') }} group by day"),
    "visits_daily": ("materialized='incremental', incremental_strategy='microbatch', event_time="
                     "'at', batch_size='month', begin='2026-01-01', lookback=1",
                     "select visit_id, at, pages from {{ ref('stg_visits') }}"),
    "products": ("contract={'enforced': true}", "select product_id, name, price from "
                 "{{ ref('stg_products') }}"),
    "large_orders": ("alias='orders_large'", "select order_id, value from {{ ref('marts_orders') }} "
                     "where value > {{ var('large') }}"),
    "latest_orders": ("materialized='view'", "select * from (select *, row_number() over (partition "
                      "by customer_id order by ordered_at desc, order_id) as n from "
                      "{{ ref('marts_orders') }}) where n = 1"),
    "in_currency": ("", "select o.order_id, o.value * r.rate as value from {{ ref('marts_orders') }} "
                    "o join {{ ref('stg_rates') }} r on r.day = date '2026-01-01' and r.currency = "
                    "'{{ var('currency') }}'"),
    "retention": ("", "select date_trunc('month', first_day) as month, count(*) as customers, "
                  "sum(case when datediff(last_day, first_day) > 30 then 1 else 0 end) as stayed "
                  "from {{ ref('int_first_orders') }} group by 1"),
    "visits_orders": ("", "select v.customer_id, v.day, v.visits, count(o.order_id) as orders from "
                      "{{ ref('int_visits_by_day') }} v left join {{ ref('marts_orders') }} o on "
                      "o.customer_id = v.customer_id and o.day = v.day group by all"),
    "weekdays": ("", "{% for n in range(7) %}select {{ n }} as weekday, count(*) as orders from "
                 "{{ ref('marts_orders') }} where weekday(day) = {{ n }} {{ 'union all ' if not "
                 "loop.last }}{% endfor %}"),
    "top_products": ("sorted_by=['value']", "select product_id, sum(value) as value, dense_rank() "
                     "over (order by sum(value) desc) as place from {{ ref('int_order_items') }} "
                     "group by product_id"),
    "hooked": ("post_hook='comment on table {{ this }} is \\'with a hook\\''", "select 1 as id"),
    "audit": ("schema='audit'", "select 'orders' as what, count(*) as rows from "
              "{{ ref('marts_orders') }} union all select 'lines', count(*) from "
              "{{ ref('marts_order_lines') }}"),
    "overview": ("", "select p.product_id, p.name, t.place from {{ ref('marts_products') }} p left "
                 "join {{ ref('marts_top_products') }} t using (product_id)"),
    "exported": ("materialized='external', location='orders.csv'", "select order_id, value from "
                 "{{ ref('marts_orders') }}"),
}  # fmt: skip
PYTHON = """
def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("marts_orders").groupBy("status").count()
"""
SNAPSHOTS = """
{% snapshot customers_history %}
{{ config(target_schema=target.schema, unique_key="customer_id", strategy="check", check_cols=["region"]) }}
select customer_id, name, region from {{ ref("stg_customers") }}
{% endsnapshot %}
{% snapshot orders_history %}
{{ config(target_schema=target.schema, unique_key="order_id", strategy="timestamp",
   updated_at="ordered_at", invalidate_hard_deletes=true) }}
select order_id, status, ordered_at from {{ ref("stg_orders") }}
{% endsnapshot %}
"""
PROPERTIES = """
sources:
  - name: web
    schema: web
    tables:
      - {name: stores, description: shops, columns: [{name: id, data_tests: [not_null]}]}
      - {name: visits, loaded_at_field: at, freshness: {warn_after: {count: 9000, period: day}}}
models:
  - name: stg_customers
    description: Customers, one row each
    columns:
      - {name: customer_id, description: the key, data_tests: [unique, not_null]}
      - {name: region, data_tests: [{accepted_values: {arguments: {values: [north, south, east, west]}}}]}
  - name: stg_orders
    columns:
      - {name: order_id, data_tests: [unique, not_null]}
      - name: customer_id
        data_tests: [{relationships: {arguments: {to: ref('stg_customers'), field: customer_id}}}]
      - {name: status, data_tests: [{accepted_values: {arguments: {values: [placed, sent]}, config: {severity: warn}}}]}
  - name: marts_orders
    data_tests: [{unique_together: {arguments: {columns: [order_id, day]}}}]
    columns:
      - {name: value, data_tests: [{at_least: {arguments: {least: 0}}}]}
      - {name: order_id, data_tests: [{not_null: {config: {where: "value > 0"}}}]}
  - name: marts_products
    columns:
      - {name: product_id, data_type: bigint, constraints: [{type: not_null}]}
      - {name: name, data_type: string}
      - {name: price, data_type: "decimal(12,2)"}
  - name: marts_versioned
    latest_version: 2
    versions: [{v: 1}, {v: 2}]
exposures:
  - {name: board, type: dashboard, owner: {name: shop}, depends_on: [ref('marts_overview')]}
unit_tests:
  - name: latest
    model: marts_latest_orders
    given:
      - input: ref('marts_orders')
        rows:
          - {order_id: 1, customer_id: 1, ordered_at: 2026-01-01 00:00:00}
          - {order_id: 2, customer_id: 1, ordered_at: 2026-01-02 00:00:00}
    expect: {rows: [{order_id: 2, customer_id: 1}]}
  - name: large
    model: marts_large_orders
    overrides: {vars: {large: 10}}
    given:
      - {input: ref('marts_orders'), format: csv, fixture: some_orders}
    expect: {format: csv, rows: "order_id\\n2\\n"}
"""


def files() -> dict[str, str]:
    """Return the files of dbt's project, by path."""
    made = {"dbt_project.yml": PROJECT, "profiles.yml": PROFILES, "macros/shop.sql": MACROS}
    for name, columns in STAGED.items():
        of = f"source('web', '{name}')" if name in SOURCES else f"ref('raw_{name}')"
        config = CONFIG % "event_time='at'" if name == "visits" else ""
        made[f"models/staging/stg_{name}.sql"] = f"{config}select {columns} from {{{{ {of} }}}}\n"
    for name, query in INTERMEDIATE.items():
        made[f"models/intermediate/int_{name}.sql"] = query + "\n"
    for name, (config, query) in MARTS.items():
        made[f"models/marts/marts_{name}.sql"] = (CONFIG % config if config else "") + query + "\n"
    for region in REGIONS:
        made[f"models/marts/region_{region}.sql"] = (
            "select o.* from {{ ref('marts_orders') }} o join {{ ref('stg_customers') }} c "
            f"using (customer_id) where c.region = '{region}'\n"
        )
    return made | {
        "models/marts/marts_versioned_v1.sql": "select 1 as id",
        "models/marts/marts_versioned_v2.sql": "select id, 'two' as name from "
        "{{ ref('marts_versioned', v=1) }}",
        "models/marts/marts_statuses.py": PYTHON,
        "models/marts/disabled.sql": CONFIG % "enabled=false" + "select * from nowhere",
        "models/shop.yml": PROPERTIES,
        "snapshots/history.sql": SNAPSHOTS,
        "analyses/largest.sql": "select max(value) from {{ ref('marts_orders') }}",
        "tests/paid_or_open.sql": "select * from {{ ref('marts_orders') }} where paid < 0",
        "tests/fixtures/some_orders.csv": "order_id,value\n1,5\n2,50\n",
        **seeds(),
    }


def seeds() -> dict[str, str]:
    """Return the CSV files of the seeds."""
    chance = random.Random(7)
    moments = [f"2026-0{1 + n % 6}-{1 + n % 28:02} {n % 24:02}:{n % 60:02}:00" for n in range(300)]
    rows = {
        "customers": [(n, f"  name {n} ", chance.choice(REGIONS).title(), "2025-06-01")
                      for n in range(1, 61)],
        "orders": [(n, chance.randint(1, 60), moments[n - 1], chance.choice(["placed", "sent"]))
                   for n in range(1, 301)],
        "items": [(n, chance.randint(1, 300), chance.randint(1, 20), chance.randint(1, 5))
                  for n in range(1, 901)],
        "products": [(n, f"product, \"{n}\"", chance.choice("abc"), chance.randint(100, 9999))
                     for n in range(1, 21)],
        "payments": [(n, chance.randint(1, 300), chance.choice(["card", "cash", "voucher"]),
                      chance.randint(1, 99999)) for n in range(1, 401)],
        "rates": [("2026-01-01", currency, rate) for currency, rate in
                  [("EUR", 1), ("USD", "1.1234"), ("JPY", "")]],
    }  # fmt: skip
    heads = {
        "customers": "id,name,region,joined",
        "orders": "id,customer_id,ordered_at,status",
        "items": "id,order_id,product_id,quantity",
        "products": "id,name,kind,price",
        "payments": "id,order_id,method,amount",
        "rates": "day,currency,rate",
    }
    return {
        f"seeds/raw_{name}.csv": "\n".join(
            [heads[name], *(",".join(map(_field, row)) for row in some), ""]
        )
        for name, some in rows.items()
    }


def _field(value: object) -> str:
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & {",", '"'} else text


def make_sources(catalog: Path, data: Path) -> None:
    """Write the tables of the source ``web`` into a lake."""
    from penstock.lakes.lake import Lake

    catalog.parent.mkdir(parents=True, exist_ok=True)
    with Lake.attach(f"ducklake:sqlite:{catalog}", data_path=str(data)) as lake:
        lake.sql("create schema web")
        lake.sql("create table web.stores (id bigint, region varchar, opened date)")
        lake.sql("insert into web.stores values (1, 'north', date '2020-01-01')")
        lake.sql(
            "create table web.visits (id bigint, customer_id bigint, at timestamp, pages bigint)"
        )
        values = ", ".join(
            f"({n}, {1 + n % 60}, timestamp_ntz '2026-0{1 + n % 6}-{1 + n % 28:02} 10:00:00', {n % 9})"
            for n in range(1, 201)
        )
        lake.sql(f"insert into web.visits values {values}")


def tables(catalog: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return the rows of each table of a lake, read by DuckDB, in order."""
    package = importlib.import_module("duckdb_extension_ducklake")
    extensions = Path(package.__path__[0]) / "extensions" / f"v{duckdb.__version__}"
    sqlite = importlib.import_module("duckdb_extension_sqlite_scanner")
    scanner = Path(sqlite.__path__[0]) / "extensions" / f"v{duckdb.__version__}"
    with duckdb.connect() as connection:
        connection.execute(f"load '{extensions / 'ducklake.duckdb_extension'}'")
        connection.execute(f"load '{scanner / 'sqlite_scanner.duckdb_extension'}'")
        connection.execute(f"attach 'ducklake:sqlite:{catalog}' as lake (read_only)")
        named = connection.execute(
            "select table_schema, table_name, table_type from information_schema.tables "
            "where table_catalog = 'lake' and table_schema <> 'web'"
        ).fetchall()
        found = {}
        for schema, name, _ in named:
            full = f'lake."{schema}"."{name}"'
            try:
                columns = [row[0] for row in connection.execute(f"describe {full}").fetchall()]
                kept = sorted(set(columns) - _HISTORY_TIMES)
                listed = ", ".join(f'"{column}"' for column in kept)
                rows = connection.execute(f"select {listed} from {full}").fetchall()
            except duckdb.Error as error:
                rows = [("not read", str(error))]
                kept = []
            found[f"{schema.replace('fresh', 'main')}.{name}"] = [
                tuple(kept),
                *sorted(map(repr, rows)),
            ]
        return found


def run(directory: Path, *command: str) -> None:
    print("$", *command, flush=True)
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    print("\n".join((done.stdout + done.stderr).splitlines()[-60:]), flush=True)


def main() -> None:
    directory = Path(sys.argv[1]).resolve()
    shop, taken = directory / "shop", directory / "taken"
    for path, text in files().items():
        (shop / path).parent.mkdir(parents=True, exist_ok=True)
        (shop / path).write_text(text)
    make_sources(shop / "lake.sqlite", shop / "data")
    dbt = (str(BIN / "dbt"), "--quiet")
    run(shop, *dbt, "compile", "--target", "fresh", "--profiles-dir", ".")
    (shop / "target").rename(shop / "compiled")
    run(shop, *dbt, "build", "--profiles-dir", ".")
    (shop / "target").rename(shop / "built")
    (shop / "compiled").rename(shop / "target")
    penstock = (sys.executable, "-c", "from penstock.cli.main import main; main()")
    run(directory, *penstock, "import", "dbt", str(shop), "--into", str(taken))
    make_sources(taken / "lake/meta.sqlite", taken / "lake/data")
    for command in (["check"], ["run"], ["test"]):
        run(taken, *penstock, *command)
    compare(tables(shop / "lake.sqlite"), tables(taken / "lake/meta.sqlite"))


def compare(
    dbt: dict[str, list[tuple[object, ...]]], ours: dict[str, list[tuple[object, ...]]]
) -> None:
    """Print the tables whose rows differ, and those that only one has."""
    print("only dbt:", sorted(set(dbt) - set(ours)), "only penstock:", sorted(set(ours) - set(dbt)))
    same = 0
    for name in sorted(set(dbt) & set(ours)):
        if dbt[name] == ours[name]:
            same += 1
            continue
        theirs, mine = Counter(map(repr, dbt[name])), Counter(map(repr, ours[name]))
        print(f"{name}: {len(dbt[name]) - 1} rows in dbt, {len(ours[name]) - 1} here")
        print("  dbt only:", list(theirs - mine)[:2], "\n  here only:", list(mine - theirs)[:2])
    print(f"{same} tables have the same rows")


if __name__ == "__main__":
    main()
