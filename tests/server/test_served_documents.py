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
        before = {record.firing.id for record in server.store.recent(1000)}
        server.run()
        assert server.store.undecided(10) == []
        recent = (record.firing for record in reversed(server.store.recent(1000)))
        return [firing for firing in recent if firing.id not in before]

    def send(self, name: str, *payloads: dict[str, Any]) -> None:
        store = open_agenda(self.project.context)
        for payload in payloads:
            number = len(store.recent(1000)) + len(store.undecided(1000))
            event = TriggerEvent(
                f"message:{name}/{number}",
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
    failing = ORDERS_DAILY.replace("-- partitioned", "-- data_test not_null amount\n    -- partitioned")
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
