"""What differs between states of tables, as Penstock and DuckDB count it.

Tests ``engine/answers/comparing.py`` and ``cli/diff.py`` and ``cli/history.py`` as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.engine.answers.comparing import TableDiffs, added_and_dropped, key_of_model
from penstock.engine.state.store import State
from penstock.errors import ArgumentError, SnapshotNotFound
from penstock.model.values.asset import TableName
from penstock.project.project import Project
from penstock.project.table_history import snapshot_of_point
from tests import duck
from tests.engine.state.builders import publication, run_record, step_record
from tests.engine.toy import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPTS = {
    "models/orders": "-- pipeline\n-- materialize ducklake://main/orders key=id\nSELECT 1 AS id",
    "models/people": "-- pipeline\n-- materialize ducklake://main/people\nSELECT 1 AS id",
    "models/daily": "-- pipeline\n-- partitioned daily start=2026-01-01\n"
    "-- materialize ducklake://main/daily\n-- data_test unique a,b\nSELECT 1 AS a, 2 AS b",
}
# Snapshots 1 to 8.
STATEMENTS = (
    "CREATE TABLE orders (id INT, amount DECIMAL(9, 2), note STRING)",
    "INSERT INTO orders VALUES (1, 10, 'a'), (2, 20, NULL), (3, 30, 'c'), (4, 40, 'd')",
    "UPDATE orders SET amount = 21, note = 'b' WHERE id = 2",  # of run r1
    "DELETE FROM orders WHERE id = 1",
    "INSERT INTO orders VALUES (5, 50, 'e'), (1, 11, 'a')",  # of run r1
    "CREATE TABLE people (id INT, name STRING)",
    "INSERT INTO people VALUES (1, 'ada'), (2, 'bob'), (2, 'bob')",
    "ALTER TABLE orders ADD COLUMN since DATE",
)
ORDERS = TableName("main", "main", "orders")


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Tables as others wrote them, some of it in the name of run r1."""
    root = write_project(tmp_path_factory.mktemp("diff") / "shop", SCRIPTS)
    with Project.load(root, spark=spark) as project:
        lake = project.lake("main")
        for statement in STATEMENTS:
            lake.sql(statement)
        state = State(lake.catalog)
        for run in ("r1", "r2"):
            state.begin_run(run_record(run))
        for slice_, snapshot in (("x", 3), ("y", 5)):
            state.begin_step(step_record(step="orders", target="main.orders", slice=slice_))
            made = publication(step="orders", target="main.orders", slice=slice_)
            state.confirm(made, snapshot)
        state.end_run("r1", "done", 0)
        yield project


def changes(found: TableDiffs) -> tuple[int, int, int, int]:
    (diff,) = found
    each = diff.changes
    return each.inserted, each.deleted, each.updated, each.same


def test_columns_of_one_side() -> None:
    assert added_and_dropped(["a", "B", "x"], ["b", "A", "c"]) == (("c",), ("x",))


def test_a_point_is_a_snapshot_a_time_an_age_or_a_run(shop: Project) -> None:
    latest = snapshot_of_point(shop.context, None, ORDERS)
    assert (
        snapshot_of_point(shop.context, "3", ORDERS)
        == snapshot_of_point(shop.context, 3, ORDERS)
        == 3
    )
    assert snapshot_of_point(shop.context, "0s", ORDERS) == latest == 8
    assert snapshot_of_point(shop.context, datetime.now(UTC) + timedelta(days=1), ORDERS) == latest
    assert snapshot_of_point(shop.context, "r1", ORDERS) == 5
    with pytest.raises(SnapshotNotFound):
        snapshot_of_point(shop.context, "99", ORDERS)
    with pytest.raises(SnapshotNotFound):
        snapshot_of_point(shop.context, "2001-01-01", ORDERS)
    with pytest.raises(ArgumentError, match="run r2 made nothing of"):
        snapshot_of_point(shop.context, "r2", ORDERS)
    with pytest.raises(ArgumentError, match="'nosuch' is not a snapshot, time, age or run"):
        snapshot_of_point(shop.context, "nosuch", ORDERS)


def test_the_key_of_a_model_is_what_it_says_of_its_rows(shop: Project) -> None:
    assert key_of_model(shop.model("orders"), "_p") == ("id",)
    assert key_of_model(shop.model("daily"), "_p") == ("a", "b", "_p")
    assert key_of_model(shop.model("people"), "_p") == key_of_model(None, "_p") == ()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "no table to compare"),
        ({"table": "orders"}, "no point to compare with"),
        ({"table": "orders", "run": "r1", "to": 3}, "--run has no use for --to"),
        ({"table": "orders", "other": "people", "from_": 1}, "as they are now"),
        ({"table": "order", "from_": 1}, "no model or table 'order'"),
        ({"table": "orders", "from_": 3, "to": 2}, "snapshot 3 is later than 2"),
        ({"table": "people", "run": "r1"}, "run r1 changed nothing of main.people"),
    ],
)
def test_what_cannot_be_asked(shop: Project, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        shop.diff(**asked)


def test_two_snapshots_by_key_and_by_row_id(shop: Project) -> None:
    found = shop.diff("orders", from_=2, to=5)
    assert changes(found) == (1, 0, 2, 0)
    (diff,) = found
    assert (diff.key, diff.changes.columns) == (("id",), {"amount": 2, "note": 1})
    assert "main.orders, 1 inserted, 0 deleted, 2 updated" in repr(diff)
    assert "<td>main.orders</td>" in found._repr_html_()
    assert changes(shop.diff("orders", from_=2, to=5, key=["ID", "amount"])) == (3, 2, 0, 0)
    (now,) = shop.diff("main.orders", from_="2")
    assert (now.columns_added, now.columns_dropped, now.differs) == (("since",), (), True)


def test_a_run_is_what_it_alone_changed(shop: Project) -> None:
    (diff,) = shop.diff(run="r1")
    assert (diff.table, diff.run, diff.changes.inserted, diff.changes.deleted) == (
        "main.orders", "r1", 2, 0,
    )  # fmt: skip
    assert diff.changes.columns == {"amount": 1, "note": 1}
    assert shop.diff(run="r2") == ()


def test_two_tables(shop: Project) -> None:
    found = shop.diff("orders", "people")
    assert changes(found) == (1, 3, 0, 2)  # by whole rows, as people has an id twice
    assert (found[0].key, found[0].columns_added) == ((), ("name",))
    with pytest.raises(ArgumentError, match="2 rows have id = 2"):
        shop.diff("orders", "people", key="id")
    with pytest.raises(ArgumentError, match=r"there is no column 'amount' in main\.people"):
        shop.diff("orders", "people", key="id,amount")
    with pytest.raises(ArgumentError, match=r"there is no column 'name' in main\.orders"):
        shop.diff("orders", "people", key="name")


def test_duckdb_finds_the_same(shop: Project) -> None:
    root = shop.settings.root
    uri = f"ducklake:sqlite:{root / 'lake/meta.sqlite'}"
    sides = [f"SELECT * FROM lk.orders AT (VERSION => {at})" for at in (2, 5)]
    counts = "count(*) FILTER (o.id IS NULL), count(*) FILTER (n.id IS NULL), "
    counts += (
        "count(*) FILTER (o.id = n.id AND (o.amount, o.note) IS DISTINCT FROM (n.amount, n.note))"
    )
    with duck.attach(uri, f"{root}/lake/data/") as connection:
        row = connection.execute(
            f"SELECT {counts} FROM ({sides[0]}) o FULL JOIN ({sides[1]}) n ON o.id = n.id"
        ).fetchone()
    assert row == changes(shop.diff("orders", from_=2, to=5))[:3]


def test_a_row_through_time(shop: Project) -> None:
    first, second = shop.row_history("orders", "ID=2")
    assert (first.snapshot, first.change, first.run) == (2, "inserted", None)
    assert (second.snapshot, second.run, second.model) == (3, "r1", "orders")
    assert second.changed == ("amount", "note")
    came, went, back = shop.row_history("orders", {"id": 1})
    assert [each.change for each in (came, went, back)] == ["inserted", "deleted", "inserted"]
    assert shop.row_history("orders", {"id": 77}) == ()
    root = str(shop.settings.root)
    done = CliRunner().invoke(main, ["history", "orders", "--key", "id=2", "--project", root])
    assert "20.00 → 21.00" in done.stdout, done.output


def penstock(project: Project, *arguments: str) -> str:
    root = str(project.settings.root)
    done = CliRunner().invoke(main, ["diff", "--project", root, *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command_prints_counts_and_rows(shop: Project) -> None:
    text = penstock(shop, "orders", "--from", "2", "--to", "5")
    assert text.startswith("main.orders, from snapshot 2 to 5, by id\n  1 inserted, 2 updated\n")
    assert "columns updated: amount 2, note 1" in text
    assert "updated    2  20.00 → 21.00  NULL → b" in text
    assert penstock(shop, "--run", "r2") == "This run changed no table.\n"
    assert "3 deleted; 2 rows equal" in penstock(shop, "orders", "people", "--limit", "0")


def test_the_command_prints_json(shop: Project) -> None:
    (diff,) = json.loads(penstock(shop, "orders", "--from", "2", "--to", "3", "--json"))["tables"]
    assert (diff["from_snapshot"], diff["to_snapshot"], diff["key"]) == (2, 3, ["id"])
    assert diff["changes"]["samples"] == [
        {
            "change": "updated",
            "row": {"id": 2, "amount": "21.00", "note": "b"},
            "before": {"amount": "20.00", "note": None},
        }
    ]


def test_a_row_of_snapshots_that_have_expired_exists(shop: Project) -> None:
    """The last test: it leaves one snapshot."""
    lake, latest = shop.lake("main"), shop.lake("main").snapshots()[-1].id
    lake.sql("CALL ducklake_expire_snapshots('main', older_than => now())")
    (row,) = shop.row_history("orders", "id=2")
    assert (row.snapshot, row.change, row.run) == (latest, "existing", None)
