"""Who writes a table makes no difference: other engines and projects trigger its readers, too.

What changes no rows triggers nothing: compaction, maintenance, and rows that are written again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.destinations.delta.lake import DeltaLake
from penstock.engine.session import connections
from penstock.lakes.maintenance.calls import run_checkpoint
from penstock.model.values.asset import TableName
from penstock.project.project import Project
from penstock.server.table_watch import TableWatch
from tests.engine.toy import rows, write_project
from tests.server.test_served_documents import CONFIG, Shop, brief, make

__all__ = ["make"]

SUMS = """
    -- pipeline
    -- on ducklake://main/numbers
    -- materialize ducklake://main/sums
    SELECT sum(n) AS total FROM numbers
    """
NUMBERS = """
    -- pipeline
    -- materialize ducklake://main/numbers append
    -- $n (int)
    SELECT $n AS n
    """
DELTA = """
[delta.sales]
root = "delta"
"""


def total(shop: Shop) -> Any:
    return rows(shop.project, "SELECT total FROM sums")[0][0]


@pytest.mark.spark
def test_another_project_writes_the_lake(make: Any, spark: Any, tmp_path: Path) -> None:
    shop = make({"models/sums": SUMS})
    config = CONFIG.replace('"lake/', f'"{tmp_path}/p/lake/').replace(
        '"sqlite:lake/', f'"sqlite:{tmp_path}/p/lake/'
    )
    other = write_project(tmp_path / "other", {"models/numbers": NUMBERS}, config)
    with Project.load(other, spark=spark) as project:
        assert project.run(args={"n": "3"}).state == "done"
        assert brief(shop.serve()) == [("sums", "")]
        assert total(shop) == 3
        assert project.run(args={"n": "4"}).state == "done"
    assert brief(shop.serve()) == [("sums", "")]
    assert total(shop) == 7
    assert shop.serve() == []


@pytest.mark.spark
def test_compaction_and_maintenance_trigger_nothing_and_a_rollback_does(make: Any) -> None:
    shop = make({"models/sums": SUMS}, "CREATE TABLE numbers (n INT)")
    for number in range(4):
        shop.by_duckdb(f"INSERT INTO numbers VALUES ({number})")
    assert brief(shop.serve()) == [("sums", "")]
    lake = shop.project.lake("main")
    lake.set_option("expire_older_than", "0 seconds")
    before = lake.snapshots()[-1].id
    shop.by_duckdb("CALL ducklake_merge_adjacent_files('lk')")
    run_checkpoint(lake)
    assert lake.snapshots()[-1].id > before
    assert shop.serve() == []
    shop.by_duckdb("INSERT INTO numbers VALUES (100)")
    assert brief(shop.serve()) == [("sums", "")]
    assert total(shop) == 106
    shop.project.rollback("numbers", to=lake.snapshots()[-2].id - 1)
    assert brief(shop.serve()) == [("sums", "")]
    assert total(shop) == 6


@pytest.mark.spark
def test_a_view_is_a_source(make: Any) -> None:
    scripts = {
        "models/large": "MODEL (name large, kind VIEW); SELECT n FROM numbers WHERE n > 10",
        "models/sums": SUMS.replace("numbers", "large"),
    }
    shop = make(scripts, "CREATE TABLE numbers (n INT)")
    assert shop.project.run("large").state == "done"
    shop.by_duckdb("INSERT INTO numbers VALUES (5), (50)")
    assert brief(shop.serve()) == [("sums", "")]
    assert total(shop) == 50


@pytest.mark.spark
def test_a_view_of_another_writer_is_a_source(make: Any) -> None:
    shop = make({"models/sums": SUMS.replace("numbers", "large")}, "CREATE TABLE numbers (n INT)")
    shop.by_duckdb("CREATE VIEW large AS SELECT n FROM numbers WHERE n > 10")
    shop.by_duckdb("INSERT INTO numbers VALUES (5), (50)")
    assert brief(shop.serve()) == [("sums", "")]
    assert total(shop) == 50


@pytest.mark.spark
def test_delta_rs_writes_a_root(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_LOOK", -1.0)
    sums = SUMS.replace("ducklake://main/numbers", "delta://sales/main/numbers")
    scripts = {"models/sums": sums.replace("FROM numbers", "FROM sales.main.numbers")}
    shop = make(scripts, config=CONFIG + DELTA)
    place = str(tmp_path / "p/delta/main/numbers")
    Path(place).mkdir(parents=True)
    write_deltalake(place, pa.table({"n": [1]}))
    shop.serve()  # the root has a table: it begins to look from here, at the latest
    write_deltalake(place, pa.table({"n": [2]}), mode="append")
    assert brief(shop.serve()) == [("sums", "")]
    assert total(shop) == 3
    DeltaTable(place).optimize.compact()
    assert shop.serve() == []
    DeltaTable(place).restore(1)
    DeltaTable(place).delete("n = 1")
    assert brief(shop.serve()) == [("sums", "")]
    assert total(shop) == 2


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(connections, "_LOOK", -1.0)
    uri = f"ducklake:sqlite:{tmp_path / 'index'}.sqlite"
    with DeltaLake.of_root(f"{tmp_path}/root", uri, name="sales") as lake:
        yield lake


def test_versions_by_delta_rs_are_events(root: DeltaLake, tmp_path: Path) -> None:
    place = str(tmp_path / "root/main/t")
    Path(place).mkdir(parents=True)
    watch = TableWatch(root.catalog, "sales", "_wm_partition")
    tables = [TableName("sales", "main", "t")]
    assert watch.changes(tables, 0).events == ()
    assert not watch.has_moved()

    def write(ids: list[int], day: str, **options: Any) -> None:
        partitions = pa.array([day] * len(ids))
        data = pa.table({"id": pa.array(ids, pa.int64()), "_wm_partition": partitions})
        write_deltalake(place, data, partition_by=["_wm_partition"], **options)

    def look(since: int) -> list[str | None]:
        assert watch.has_moved()
        changes = watch.changes(tables, since)
        assert {event.run_id for event in changes.events} <= {None}
        positions.append(changes.snapshot_id)
        return [event.partition for event in changes.events]

    positions = [0]
    write([1, 2], "2026-01-01")
    assert look(positions[-1]) == ["2026-01-01"]
    write([3], "2026-01-02", mode="append")
    write([4], "2026-01-03", mode="append")
    assert look(positions[-1]) == ["2026-01-02", "2026-01-03"]
    DeltaTable(place).delete("id = 1")
    assert look(positions[-1]) == ["2026-01-01"]
    write([5], "2026-01-02", mode="append")
    assert look(positions[-1]) == ["2026-01-02"]
    DeltaTable(place).optimize.compact()
    assert look(positions[-1]) == []
    DeltaTable(place).vacuum(0, enforce_retention_duration=False, dry_run=False)
    assert not watch.has_moved() or look(positions[-1]) == []
    write([6], "2026-01-04", mode="overwrite")
    assert look(positions[-1]) == ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
