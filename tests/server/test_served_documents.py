"""The documents' examples as they are printed, served: schedules, readers, joins and payloads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.project.project import Project
from penstock.scheduler.values import EventKind, Firing, FiringState, TriggerEvent
from penstock.server.opening import open_agenda
from penstock.server.serving import ServeOptions, Server
from penstock.uuid7 import new_uuid7
from tests import duck
from tests.engine.toy import rows, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CONFIG = """
[project]
name = "shop"
[project.defaults]
cron = "59 23 * * *"
[lakes.main]
catalog = "sqlite:lake/meta.sqlite"
data_path = "lake/data"
[serve]
file_poll = "1s"
"""
# partitioned-pipelines.md, the step of the example
RAW_ORDERS = """
    -- pipeline
    -- on schedule
    -- partitioned daily
    -- materialize ducklake://main/raw_orders
    -- Pull one day of orders from the shop API. `'{partition}'` is replaced
    -- with the run's partition value, e.g. '2026-05-16'.
    SELECT *
    FROM shop_api_orders()
    WHERE created_at::DATE = '{partition}';
"""
# materialization.md, the first example, which reads the step above
ORDERS_DAILY = """
    -- pipeline
    -- on ducklake://main/raw_orders
    -- materialize ducklake://main/orders_daily key=order_id
    -- partitioned daily

    ATTACH 'ducklake://main' AS dl;

    SELECT order_id, amount, created_at
    FROM dl.raw_orders
    WHERE created_at::date = '{partition}'
"""
TOTALS = """
    -- pipeline
    -- on ducklake://main/orders_daily
    -- partitioned daily
    -- materialize ducklake://main/totals
    SELECT sum(amount) AS total FROM orders_daily WHERE created_at::date = '{partition}'
"""


@dataclass
class Clock:
    """A clock that a test moves."""

    moment: datetime
    step: timedelta = timedelta()

    def __call__(self) -> datetime:
        self.moment += self.step
        return self.moment


@dataclass
class Shop:
    """A project that is served until nothing is open, at the time of its clock."""

    project: Project
    clock: Clock

    def serve(self, moment: datetime | None = None) -> list[Firing]:
        """Serve, and return the firings that were recorded meanwhile, the oldest first."""
        if moment is not None:
            self.clock.moment = moment
        options = ServeOptions(has_http=False, is_once=True, clock=self.clock)
        server = Server(self.project.context, options)
        before = {record.firing.id for record in server.store.list_firings(1000)}
        server.run()
        assert server.store.list_undecided(10) == []
        recent = (record.firing for record in reversed(server.store.list_firings(1000)))
        return [firing for firing in recent if firing.id not in before]

    def send(self, name: str, *payloads: dict[str, Any]) -> None:
        store = open_agenda(self.project.context)
        for payload in payloads:
            event = TriggerEvent(
                f"message:{name}/{new_uuid7()}",
                EventKind.MESSAGE,
                name,
                self.clock.moment,
                payload=payload,
            )
            assert store.accept(event)

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.project.lake("main").sql(statement)

    def by_duckdb(self, *statements: str) -> None:
        with duck.attach(self.project.lake("main").catalog.uri) as connection:
            for statement in statements:
                connection.execute(statement)


def brief(firings: list[Firing]) -> list[tuple[str, str]]:
    """Return models and partitions, all of which are done."""
    assert {firing.state for firing in firings} <= {FiringState.DONE}, firings
    return [(firing.model, firing.key) for firing in firings]


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Any]:
    opened: list[Project] = []

    def build(scripts: dict[str, str], *statements: str, config: str = CONFIG) -> Shop:
        root = write_project(tmp_path / "p", scripts, config)
        project = Project.load(root, spark=spark)
        opened.append(project)
        shop = Shop(project, Clock(datetime(2026, 5, 16, 12, tzinfo=UTC)))
        shop.sql(*statements)
        shop.serve()  # it begins to look from here
        return shop

    yield build
    for project in opened:
        project.close()


ORDERS_SCRIPTS = {
    "models/raw_orders": RAW_ORDERS,
    "models/orders_daily": ORDERS_DAILY,
    "models/totals": TOTALS,
}
API = "CREATE MACRO shop_api_orders() AS TABLE SELECT * FROM api"
ORDERS = """CREATE TABLE api AS SELECT * FROM VALUES
    (1, 5, TIMESTAMP '2026-05-16 08:00:00'), (2, 7, TIMESTAMP '2026-05-16 23:59:59'),
    (3, 9, TIMESTAMP '2026-05-17 00:00:01') AS v(order_id, amount, created_at)"""
CHAIN = ["raw_orders", "orders_daily", "totals"]


def test_orders_on_a_schedule_pass_their_day_on_across_midnight(make: Any) -> None:
    shop = make(ORDERS_SCRIPTS, ORDERS)
    shop.by_duckdb(API)
    # Each look at the clock is 20 s later: the second firing begins on the next day.
    shop.clock.step = timedelta(seconds=20)
    fired = shop.serve(datetime(2026, 5, 16, 23, 59, 10, tzinfo=UTC))
    assert brief(fired) == [(model, "2026-05-16") for model in CHAIN]
    assert shop.clock.moment.day == 17
    assert {one.fire_time for one in fired} == {datetime(2026, 5, 16, 23, 59, tzinfo=UTC)}
    assert rows(shop.project, "SELECT total FROM totals") == [(12,)]
    triggers = [run.trigger for run in shop.project.runs()]
    assert triggers == ["cascade", "cascade", "schedule"]


def test_a_chain_that_failed_keeps_its_day_in_a_retry_the_day_after(make: Any) -> None:
    failing = ORDERS_DAILY.replace(
        "-- partitioned", "-- data_test not_null amount\n    -- partitioned"
    )
    shop = make(
        {**ORDERS_SCRIPTS, "models/orders_daily": failing},
        ORDERS,
        "UPDATE api SET amount = NULL WHERE order_id = 1",
    )
    shop.by_duckdb(API)
    fired = shop.serve(datetime(2026, 5, 16, 23, 59, tzinfo=UTC))
    states = [(one.model, one.key, one.state.value) for one in fired]
    assert states == [
        ("raw_orders", "2026-05-16", "done"),
        ("orders_daily", "2026-05-16", "failed"),
    ]
    shop.sql("UPDATE raw_orders SET amount = 5 WHERE order_id = 1")
    retried = shop.project.retry(fired[1].id)
    assert [(step.name, step.slice) for step in retried.steps] == [("orders_daily", "2026-05-16")]
    fired = shop.serve(datetime(2026, 5, 17, 10, tzinfo=UTC))
    assert set(brief(fired)) == {("orders_daily", "2026-05-16"), ("totals", "2026-05-16")}
    assert rows(shop.project, "SELECT total FROM totals") == [(12,)]


JOINED = {
    "models/orders": """
        -- pipeline
        -- on schedule cron="0 1 * * *"
        -- partitioned daily
        -- materialize ducklake://main/orders
        SELECT '{partition}' AS day, 1 AS n
        """,
    "models/payments": """
        -- pipeline
        -- on data_upload name=payments
        -- partitioned daily
        -- materialize ducklake://main/payments
        SELECT '{partition}' AS day, 2 AS n
        """,
    "models/paid": """
        -- pipeline
        -- on ducklake://main/orders
        -- on ducklake://main/payments
        -- trigger all
        -- partitioned daily
        -- materialize ducklake://main/paid
        SELECT o.day, o.n + p.n AS n FROM orders AS o JOIN payments AS p ON o.day = p.day
        WHERE o.day = '{partition}'
        """,
}


def test_trigger_all_joins_two_inputs_by_partition(make: Any) -> None:
    shop = make(JOINED)
    day = timedelta(days=1)
    first = datetime(2026, 5, 17, 1, 0, 30, tzinfo=UTC)
    assert brief_open(shop, shop.serve(first)) == [
        ("orders", "2026-05-17", "done"),
        ("paid", "2026-05-17", "waiting"),
    ]
    shop.clock.moment = first + day - timedelta(hours=1)
    shop.send("payments", {"file": "a"})
    assert brief_open(shop, shop.serve()) == [
        ("payments", "2026-05-18", "done"),
        ("paid", "2026-05-18", "waiting"),
    ]
    assert brief_open(shop, shop.serve(first + day)) == [("orders", "2026-05-18", "done")]
    assert rows(shop.project, "SELECT day, n FROM paid") == [("2026-05-18", 3)]
    (waiting,) = open_agenda(shop.project.context).load().firings.values()
    assert (waiting.key, waiting.missing) == ("2026-05-17", ("main.main.payments",))
    run = shop.project.run("payments", partition="2026-05-17")
    assert run.state == "done"
    shop.serve()
    found = rows(shop.project, "SELECT day, n FROM paid ORDER BY 1")
    assert found == [("2026-05-17", 3), ("2026-05-18", 3)]


def brief_open(shop: Shop, firings: list[Firing]) -> list[tuple[str, str, str]]:
    return [(one.model, one.key, one.state.value) for one in firings]


# partitioned-pipelines.md, dynamic (per tenant)
SUMMARY = """
    # pipeline
    # on webhook name=tenants
    # partitioned dynamic key="$.tenant_id"
    import penstock

    SUMMARY_URI = "lake/{partition}/summary.json"


    # Triggered with a payload like { "tenant_id": "acme", ... }
    # `partition` resolves to "acme"
    def main(partition: str, tenant_id: str) -> None:
        penstock.lake("main").write_file(SUMMARY_URI, {"tenant": tenant_id})
"""
TENANTS = {
    "models/summary.py": SUMMARY,
    "models/tenants": """
        -- pipeline
        -- on file://lake/{partition}/summary.json
        -- partitioned dynamic key="$.tenant_id"
        -- materialize ducklake://main/tenants
        SELECT tenant FROM read_json('lake/' || '{partition}' || '/summary.json')
        """,
    "models/everyone": """
        -- pipeline
        -- on ducklake://main/tenants
        -- materialize ducklake://main/everyone
        SELECT count(*) AS n FROM tenants
        """,
}


def test_tenants_by_payload_write_files_that_trigger_their_readers(make: Any) -> None:
    shop = make(TENANTS)
    shop.send("tenants", {"tenant_id": "acme"}, {"tenant_id": "umbrella"})
    fired = shop.serve()
    made = {one for one in brief(fired) if one[0] != "everyone"}
    assert made == {(m, t) for m in ("summary", "tenants") for t in ("acme", "umbrella")}
    found = rows(shop.project, "SELECT tenant FROM tenants ORDER BY 1")
    assert found == [("acme",), ("umbrella",)]
    assert rows(shop.project, "SELECT n FROM everyone") == [(2,)]
    assert shop.serve() == []


def test_a_file_that_appears_fires_its_partition(make: Any) -> None:
    shop = make({key: text for key, text in TENANTS.items() if key != "models/summary.py"})
    place = shop.project.settings.root / "lake" / "globex" / "summary.json"
    place.parent.mkdir()
    place.write_text('{"tenant": "globex"}')
    assert brief(shop.serve()) == [("tenants", "globex"), ("everyone", "")]
    place.write_text('{"tenant": "Globex"}')
    assert brief(shop.serve()) == [("tenants", "globex"), ("everyone", "")]
    assert rows(shop.project, "SELECT tenant FROM tenants") == [("Globex",)]
    assert shop.serve() == []


def test_a_payload_without_its_key_fires_nothing(make: Any) -> None:
    shop = make({"models/summary.py": SUMMARY})
    shop.send("tenants", {"tenant": "acme"}, {"tenant_id": ["a"]}, {"tenant_id": {}})
    assert shop.serve() == []
    shop.send("tenants", {"tenant_id": "../../outside"})
    (fired,) = shop.serve()
    assert fired.state is FiringState.FAILED
    assert not (shop.project.settings.root.parent / "outside").exists()


# materialization.md: slowly changing dimensions, the view of the newest, and the as-of join
DIMENSIONS = {
    "models/stg_customers": """
        -- pipeline
        -- on webhook name=customers
        -- materialize ducklake://main/stg_customers key=id
        -- $id (int)
        -- $name (text)
        -- $tier (text)
        SELECT $id AS id, $name AS name, $tier AS tier
        """,
    "models/dim_customer": """
        -- pipeline
        -- on ducklake://main/stg_customers
        -- materialize ducklake://main/dim_customer key=id history track=name,tier
        -- data_test not_null id

        ATTACH 'ducklake://main' AS dl;

        SELECT id, name, tier -- the current snapshot, one row per key
        FROM dl.stg_customers;
        """,
    "models/newest": """
        -- pipeline
        -- on ducklake://main/dim_customer_current
        -- materialize ducklake://main/newest
        ATTACH 'ducklake://main' AS dl;
        SELECT * FROM dl.dim_customer_current;
        """,
    "models/fct_orders": """
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
        """,
}
STG_ORDERS = """CREATE TABLE stg_orders AS SELECT * FROM VALUES
    (10, 1, 5, TIMESTAMP '2026-05-16 12:30:00'), (11, 1, 6, TIMESTAMP '2026-05-17 12:30:00')
    AS v(order_id, customer_id, amount, ordered_at)"""


def test_history_and_the_join_over_it_follow_each_payload(make: Any) -> None:
    shop = make(DIMENSIONS, STG_ORDERS)
    shop.send("customers", {"id": 1, "name": "Ada", "tier": "silver"})
    fired = shop.serve()
    models = ["stg_customers", "dim_customer", "fct_orders", "newest"]
    assert sorted(brief(fired)) == sorted((model, "") for model in models)
    shop.clock.moment += timedelta(days=1)
    shop.send("customers", {"id": 1, "name": "Ada", "tier": "gold"})
    assert len(shop.serve()) == 4
    found = rows(shop.project, "SELECT order_id, tier_at_order_time FROM fct_orders ORDER BY 1")
    assert found == [(10, "silver"), (11, "gold")]
    assert rows(shop.project, "SELECT tier FROM newest") == [("gold",)]
    shop.by_duckdb("INSERT INTO stg_orders VALUES (12, 1, 7, '2026-05-17 13:00:00')")
    assert brief(shop.serve()) == [("fct_orders", "")]
    shop.send("customers", {"id": 1, "name": "Ada", "tier": "gold"})
    assert brief(shop.serve()) == [("stg_customers", "")], "equal rows trigger nothing"


def test_an_append_has_each_payload_once(make: Any) -> None:
    script = """
        -- pipeline
        -- on webhook name=clicks
        -- materialize ducklake://main/clicks append
        -- $page (text)
        SELECT $page AS page
        """
    shop = make({"models/clicks": script})
    shop.send("clicks", {"page": "a"}, {"page": "b"}, {"page": "a"})
    assert brief(shop.serve()) == [("clicks", "")] * 3
    assert rows(shop.project, "SELECT page FROM clicks ORDER BY 1") == [("a",), ("a",), ("b",)]
    assert shop.serve() == []


def test_a_late_table_is_built_again_and_cascades(make: Any) -> None:
    scripts = {
        "models/fresh": """
            -- pipeline
            -- freshness 1h
            -- materialize ducklake://main/fresh
            SELECT count(*) AS n FROM events
            """,
        "models/reader": """
            -- pipeline
            -- on ducklake://main/fresh
            -- materialize ducklake://main/reader
            SELECT n FROM fresh
            """,
    }
    shop = make(scripts, "CREATE TABLE events (id INT)")
    begin = datetime.now(UTC)
    assert set(shop.project.lake("main").tables()) != set()
    shop.serve(begin)
    assert rows(shop.project, "SELECT n FROM reader") == [(0,)], "what never was built is late"
    assert shop.serve(begin + timedelta(hours=2)) == [], "no input has changed"
    shop.sql("INSERT INTO events VALUES (1)")
    assert shop.serve(begin + timedelta(minutes=30)) == []
    fired = shop.serve(begin + timedelta(hours=3))
    assert brief(fired) == [("fresh", ""), ("reader", "")]
    assert fired[0].kind is EventKind.FRESHNESS
    assert rows(shop.project, "SELECT n FROM reader") == [(1,)]


WAITING = {
    "models/days": """
        -- pipeline
        -- on ducklake://main/events
        -- partitioned daily
        -- materialize ducklake://main/days
        -- data_test not_null n
        SELECT n FROM events WHERE _wm_partition = '{partition}'
        """,
    "models/total": """
        -- pipeline
        -- on ducklake://main/days
        -- materialize ducklake://main/total
        SELECT sum(n) AS n FROM days
        """,
}


def test_a_reader_that_waited_runs_when_its_input_ends_with_equal_rows(make: Any) -> None:
    shop = make(WAITING)
    columns = "CREATE TABLE events (n INT, _wm_partition VARCHAR)"
    shop.by_duckdb(columns, "ALTER TABLE events SET PARTITIONED BY (_wm_partition)")
    shop.by_duckdb("INSERT INTO events VALUES (1, '2026-01-01'), (2, '2026-01-02')")
    shop.serve()
    shop.by_duckdb("INSERT INTO events VALUES (NULL, '2026-01-01'), (4, '2026-01-02')")
    (waited,) = [firing for firing in shop.serve() if firing.model == "total"]
    assert waited.reason == "days 2026-01-01 failed"
    shop.by_duckdb("DELETE FROM events WHERE n IS NULL")
    assert brief(shop.serve()) == [("days", "2026-01-01"), ("total", "")]
    assert rows(shop.project, "SELECT n FROM total") == [(7,)]
    assert shop.serve() == []
