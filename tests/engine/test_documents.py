"""The models that the documents print, as printed: what each stores, row by row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from penstock.project.project import Project
from tests import duck
from tests.engine.conftest import Make
from tests.engine.toy import rows

if TYPE_CHECKING:
    from penstock.engine.results import RunResult

pytestmark = pytest.mark.spark

# model-kinds.md, INCREMENTAL_BY_TIME_RANGE
EVENTS = """
    MODEL (
      name db.events,
      kind INCREMENTAL_BY_TIME_RANGE (
        time_column ds
      )
    );

    SELECT
      event_date::TEXT as ds,
      event_payload::TEXT as payload
    FROM raw_events
    WHERE
      event_date BETWEEN @start_ds AND @end_ds;
"""
# model-kinds.md, Time column
RECEIVED = """
    MODEL (
      name db.received,
      kind INCREMENTAL_BY_TIME_RANGE (
        time_column event_date -- `event_date` is model's time column
      )
    );

    SELECT
      event_date::TEXT as event_date,
      event_payload::TEXT as payload
    FROM raw_events
    WHERE
      receipt_date BETWEEN @start_ds AND @end_ds; -- User-supplied `receipt_date` filter
"""
# model-kinds.md, INCREMENTAL_BY_UNIQUE_KEY; then FULL, VIEW and EMBEDDED over it
EMPLOYEES = """
    MODEL (
      name db.employees,
      kind INCREMENTAL_BY_UNIQUE_KEY (
        unique_key name
      )
    );

    SELECT
      name::TEXT as name,
      title::TEXT as title,
      salary::INT as salary
    FROM raw_employee_events
    WHERE
      event_date BETWEEN @start_date AND @end_date;
"""
SALARIES = """
    MODEL (
      name db.salary_by_title_agg,
      kind FULL
    );

    SELECT
      title,
      AVG(salary)
    FROM db.employees
    GROUP BY title;
"""
HIGHEST = """
    MODEL (
      name db.highest_salary,
      kind VIEW
    );

    SELECT
      MAX(salary)
    FROM db.employees;
"""
UNIQUE = """
    MODEL (
      name db.unique_employees,
      kind EMBEDDED
    );

    SELECT DISTINCT
      name
    FROM db.employees;
"""
NAMES = "MODEL (name db.names, kind FULL); SELECT name FROM db.unique_employees"
# materialization.md: the first example with the last one's tests, and the as-of join
ORDERS = """
    -- pipeline
    -- materialize ducklake://main/orders_daily key=order_id
    -- partitioned daily
    -- data_test not_null order_id
    -- data_test unique order_id
    -- data_test accepted_values status = paid,pending,refunded

    ATTACH 'ducklake://main' AS dl;
    SELECT order_id, status, amount FROM dl.orders WHERE created_at::date = '{partition}'
"""
CUSTOMERS = """
    -- pipeline
    -- on ducklake://main/stg_customers
    -- materialize ducklake://main/dim_customer key=id history track=name,tier
    -- data_test not_null id

    ATTACH 'ducklake://main' AS dl;

    SELECT id, name, tier -- the current snapshot, one row per key
    FROM dl.stg_customers;
"""
FACTS = """
    -- pipeline
    -- on ducklake://main/dim_customer
    -- on ducklake://main/stg_orders
    -- materialize ducklake://main/fct_orders
    ATTACH 'ducklake://main' AS dl;
    SELECT o.order_id, o.amount, o.ordered_at,
    d.tier AS tier_at_order_time
    FROM dl.stg_orders o
    ASOF JOIN dl.dim_customer d
    ON o.customer_id = d.id AND o.ordered_at >= d.valid_from;
"""


def sources(project: Project, **queries: str) -> None:
    for name, query in queries.items():
        project.lake("main").sql(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM VALUES {query}")


def done(result: RunResult) -> RunResult:
    assert result.state == "done", [step.error for step in result.steps]
    return result


def test_events_by_their_date_and_by_their_receipt(make: Make) -> None:
    project = make({"models/events": EVENTS, "models/received": RECEIVED})
    late = "(DATE '2020-01-01', DATE '2020-01-02', 'late')"
    every = f"""(DATE '2020-01-01', DATE '2020-01-01', 'a'), {late},
        (DATE '2020-01-02', DATE '2020-01-02', 'b'), (DATE '2020-01-03', DATE '2020-01-03', 'c')
        AS v(event_date, receipt_date, event_payload)"""
    sources(project, raw_events=every)
    done(project.run(from_="2020-01-01", to="2020-01-01"))
    found = done(project.run(from_="2020-01-02", to="2020-01-02"))
    query = "SELECT * FROM db.{} ORDER BY 1, 2"
    first = [("2020-01-01", "a"), ("2020-01-02", "b")]
    assert rows(project, query.format("events")) == [*first[:1], ("2020-01-01", "late"), first[1]]
    assert rows(project, query.format("received")) == first, "the late row is of another range"
    (notice,) = found.notices
    assert notice.message.startswith("1 row is outside 2020-01-02")

    sources(project, raw_events=every.replace(f"{late},", ""))
    done(project.restate("db.events", from_="2020-01-01", to="2020-01-01"))
    done(project.run(from_="2020-01-01", to="2020-01-03"))
    every_day = [*first, ("2020-01-03", "c")]
    assert rows(project, query.format("events")) == every_day
    uri = project.lake("main").catalog.uri
    assert duck.rows(uri, "SELECT * FROM db.received ORDER BY 1, 2") == every_day


def test_employees_and_what_reads_them(make: Make) -> None:
    scripts = (EMPLOYEES, SALARIES, HIGHEST, UNIQUE, NAMES)
    project = make({f"models/m{number}": script for number, script in enumerate(scripts)})
    events = """('ann', 'dev', 10, DATE '2020-01-01'), ('bob', 'dev', 20, DATE '2020-01-01'),
        ('ann', 'lead', 30, DATE '2020-01-02') AS v(name, title, salary, event_date)"""
    sources(project, raw_employee_events=events)
    for day in ("2020-01-01", "2020-01-02"):
        done(project.run(from_=day, to=day))
    assert rows(project, "SELECT * FROM db.employees ORDER BY name") == [
        ("ann", "lead", 30),
        ("bob", "dev", 20),
    ]
    assert rows(project, "SELECT * FROM db.salary_by_title_agg ORDER BY 1") == [
        ("dev", 20.0),
        ("lead", 30.0),
    ]
    assert rows(project, "SELECT * FROM db.highest_salary") == [(30,)]
    assert rows(project, "SELECT * FROM db.names ORDER BY 1") == [("ann",), ("bob",)]


def test_orders_by_day(make: Make) -> None:
    project = make({"models/orders_daily": ORDERS})
    orders = """(1, 'paid', 10, TIMESTAMP '2020-01-01 08:00:00'),
        (2, '{}', 20, TIMESTAMP '2020-01-02 23:59:59') AS v(order_id, status, amount, created_at)"""
    sources(project, orders=orders.format("unknown"))
    assert project.run(from_="2020-01-01", to="2020-01-02").state == "failed"
    query = "SELECT order_id, status, amount FROM orders_daily ORDER BY 1"
    assert rows(project, query) == [(1, "paid", 10)]
    sources(project, orders=orders.format("refunded"))
    (made,) = done(project.run(from_="2020-01-01", to="2020-01-02")).steps
    assert made.slice == "2020-01-02", "the other day is there"
    assert rows(project, query) == [(1, "paid", 10), (2, "refunded", 20)]


def test_orders_with_the_tier_of_their_time(make: Make) -> None:
    project = make({"models/dim_customer": CUSTOMERS, "models/fct_orders": FACTS})
    customers = "(1, 'Ada', '{}'), (2, 'Bob', 'new') AS v(id, name, tier)"
    orders = """(10, 1, 5, TIMESTAMP '2020-01-01 12:00:00'),
        (11, 1, 6, TIMESTAMP '2020-01-02 00:00:00'), (12, 2, 7, TIMESTAMP '2019-12-31 00:00:00')
        AS v(order_id, customer_id, amount, ordered_at)"""
    sources(project, stg_customers=customers.format("silver"), stg_orders=orders)
    done(project.run(fire_time=datetime(2020, 1, 1, tzinfo=UTC)))
    sources(project, stg_customers=customers.format("gold"))
    done(project.run(fire_time=datetime(2020, 1, 2, tzinfo=UTC)))
    found = rows(project, "SELECT order_id, tier_at_order_time FROM fct_orders ORDER BY 1")
    assert found == [(10, "silver"), (11, "gold")], "no version was valid before the first run"
    assert rows(project, "SELECT id, tier FROM dim_customer_current ORDER BY 1") == [
        (1, "gold"),
        (2, "new"),
    ]
