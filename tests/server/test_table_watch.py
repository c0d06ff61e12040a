"""What DuckDB and runs of Penstock change is seen, once each, and nothing else.

Tests ``lakes/catalog/snapshots/row_changes.py`` too.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.engine.state import store
from penstock.engine.state.store import State
from penstock.lakes.catalog.catalog import Catalog
from penstock.lakes.format.files import PartitionField
from penstock.lakes.recovery.rollback import rollback
from penstock.model.values.asset import FileName, TableName
from penstock.scheduler.values import EventKind, TriggerEvent
from penstock.server.table_watch import TableWatch
from tests.engine.state.builders import publication, run_record, step_record
from tests.lakes.catalog import staging
from tests.lakes.catalog.conftest import Place
from tests.server import foreign
from tests.server.foreign import Actor, writer

T, U, V = (TableName("main", "main", name) for name in "tuv")
Seen = list[tuple[str, int | None, str | None]]


def look(place: Place, since: int = 0, tables: Iterable[TableName] = (T, U, V)) -> Seen:
    """The tables, snapshots and partitions of the events after a snapshot."""
    with place.open(read_only=True) as catalog:
        return seen(TableWatch(catalog, "main", "_wm_partition").changes([*tables], since).events)


def seen(events: Sequence[TriggerEvent]) -> Seen:
    assert len({event.id for event in events}) == len(events)
    return [(event.source[-1], event.snapshot_id, event.partition) for event in events]


def test_an_event_says_what_happened(place: Place) -> None:
    with writer(place, *foreign.PLAIN, "INSERT INTO u VALUES (1)"):
        pass
    with place.open(read_only=True) as catalog:
        changes = TableWatch(catalog, "main", "_wm_partition").changes([U], 0)
        assert changes.snapshot_id == 2
        time = catalog.latest().time
    expected = TriggerEvent("asset:main.main.u@2", EventKind.ASSET, "main.main.u", time)
    (event,) = changes.events
    assert (event.id, event.kind, event.source) == (expected.id, expected.kind, expected.source)
    assert (event.time, event.snapshot_id, event.run_id) == (time, 2, None)


def test_has_moved_until_the_next_look(sqlite_place: Place) -> None:
    with writer(sqlite_place, *foreign.PLAIN):
        pass
    with sqlite_place.open(read_only=True) as catalog:
        watch = TableWatch(catalog, "main", "_wm_partition")
        assert watch.has_moved()
        assert watch.has_moved()
        watch.changes([U], 0)
        assert not watch.has_moved()
        with writer(sqlite_place, "INSERT INTO u VALUES (1)"):
            pass
        assert watch.has_moved()
        assert seen(watch.changes([U], 1).events) == [("u", 2, None)]
        assert not watch.has_moved()


def test_partitions_are_those_of_files_and_inlined_rows(place: Place) -> None:
    rows = "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'a/x'), (4, 'c')"
    with writer(place, *foreign.PARTITIONED, rows, "DELETE FROM t WHERE i = 2", inline=10) as duck:
        duck.execute("INSERT INTO t SELECT n, 'c' FROM range(50) AS r(n)")
        duck.execute("DELETE FROM t WHERE i = 30")
        duck.execute("INSERT INTO t VALUES (5, NULL)")
    assert look(place) == [
        *(("t", 3, each) for each in ("a", "a/x", "b", "c")),
        *(("t", 4, "b"), ("t", 5, "c"), ("t", 6, "c"), ("t", 7, None)),
    ]


def test_one_transaction_over_two_tables(place: Place) -> None:
    with writer(place, *foreign.PARTITIONED, *foreign.PLAIN, "BEGIN") as duck:
        duck.execute("INSERT INTO t VALUES (1, 'a')")
        duck.execute("INSERT INTO u VALUES (1)")
        duck.execute("COMMIT")
    assert look(place) == [("t", 4, "a"), ("u", 4, None)]
    assert look(place, tables=[U]) == [("u", 4, None)]
    assert look(place, since=4) == []


def test_what_changes_no_rows_is_no_event(place: Place) -> None:
    rows = ("INSERT INTO u VALUES (1)", "INSERT INTO u VALUES (2)", "DELETE FROM u WHERE i = 1")
    large = "INSERT INTO u SELECT n + 10 FROM range(50) AS r(n)"
    with writer(
        place, *foreign.PLAIN, large, *rows, "DELETE FROM u WHERE i = 12", inline=9
    ) as duck:
        before = foreign.newest(duck)
        for statement in (
            "CALL ducklake_flush_inlined_data('lk')",
            "CALL ducklake_merge_adjacent_files('lk')",
            "CALL ducklake_rewrite_data_files('lk', delete_threshold => 0)",
            "COMMENT ON TABLE u IS 'numbers'",
            "ALTER TABLE u ADD COLUMN n INT",
            "ALTER TABLE u RENAME COLUMN n TO m",
            "CREATE TABLE other AS SELECT 1 AS one",
            "DELETE FROM u WHERE i = 12345",
            "CREATE TABLE v (i INT)",
            "DROP TABLE v",
            "DROP TABLE u",
        ):
            duck.execute(statement)
    assert look(place, since=before) == []


def test_a_flush_that_deletes_as_well_is_an_event(sqlite_place: Place) -> None:
    large = "INSERT INTO u SELECT n FROM range(50) AS r(n)"
    with writer(sqlite_place, *foreign.PLAIN, large, "DELETE FROM u WHERE i = 1", inline=9) as duck:
        for statement in ("BEGIN", "DELETE FROM u WHERE i = 2"):
            duck.execute(statement)
        duck.execute("CALL ducklake_flush_inlined_data('lk')")
        duck.execute("COMMIT")
    assert look(sqlite_place, since=2) == [("u", 3, None), ("u", 4, None)]


def test_tables_that_get_a_name_with_rows(place: Place) -> None:
    with writer(place, "CREATE TABLE u AS SELECT 1 AS i", "CREATE TABLE v (i INT)") as duck:
        duck.execute("ALTER TABLE v RENAME TO t")
        duck.execute("ALTER TABLE u RENAME TO v")
        duck.execute("CREATE OR REPLACE TABLE v AS SELECT 1 AS i WHERE false")
        duck.execute("CREATE OR REPLACE TABLE v AS SELECT 2 AS i WHERE false")
    assert look(place) == [("u", 1, None), ("v", 4, None), ("v", 5, None)]


def test_rows_of_a_table_that_was_dropped_since(place: Place) -> None:
    with writer(place, *foreign.PLAIN, "INSERT INTO u VALUES (1)", "DROP TABLE u") as duck:
        duck.execute("CREATE TABLE u (i INT)")
        duck.execute("INSERT INTO u VALUES (1)")
    assert look(place) == [("u", 2, None), ("u", 5, None)]


def test_definitions_of_views(place: Place) -> None:
    with writer(place, "CREATE VIEW v AS SELECT 1 AS i") as duck:
        duck.execute("CREATE OR REPLACE VIEW v AS SELECT 2 AS i")
        duck.execute("COMMENT ON VIEW v IS 'two'")
        duck.execute("ALTER VIEW v RENAME TO w")
        duck.execute("CREATE VIEW v AS SELECT 1 AS i")
    assert look(place) == [("v", 1, None), ("v", 2, None), ("v", 5, None)]


def test_files_that_were_added(sqlite_place: Place) -> None:
    path = Path(sqlite_place.data_path).with_name("own.parquet")
    with writer(sqlite_place, *foreign.PLAIN) as duck:
        duck.execute(f"COPY (SELECT 1::INT AS i) TO '{path}'")
        duck.execute(f"CALL ducklake_add_data_files('lk', 'u', '{path}')")
    assert look(sqlite_place) == [("u", 2, None)]


def test_a_rollback_by_penstock(place: Place) -> None:
    rows = [f"INSERT INTO t VALUES ({n}, '{each}')" for n, each in enumerate("abc")]
    with writer(place, *foreign.PARTITIONED, *rows):
        pass
    with place.open() as catalog:
        assert rollback(catalog, "t", 4).snapshot is not None
    every = [("t", 3, "a"), ("t", 4, "b"), ("t", 5, "c"), ("t", 6, "c")]
    assert look(place) == every
    assert look(place, since=5) == [("t", 6, "c")]


def test_expired_snapshots_count_for_each_table(place: Place) -> None:
    with writer(place, *foreign.PLAIN, "INSERT INTO u VALUES (1)") as duck:
        duck.execute("CREATE TABLE t (i INT)")
        duck.execute("INSERT INTO u VALUES (2)")
        duck.execute("COMMENT ON TABLE u IS 'numbers'")
        duck.execute("CALL ducklake_expire_snapshots('lk', versions => [2, 4])")
    assert look(place, since=5) == []
    # Snapshot 3 is there: since then only `u` has other files.
    assert look(place, since=3) == [("u", 5, None)]
    assert look(place, since=1) == [("t", 3, None), ("u", 3, None), ("u", 5, None)]


def test_a_catalog_that_was_put_back(sqlite_place: Place) -> None:
    with writer(sqlite_place, *foreign.PLAIN, "INSERT INTO u VALUES (1)"):
        pass
    assert look(sqlite_place, since=900) == [("u", 2, None)]


def test_a_token_of_another_version_may_be_any_change(sqlite_place: Place) -> None:
    with writer(sqlite_place, *foreign.PLAIN, "COMMENT ON TABLE u IS 'numbers'"):
        pass
    with sqlite_place.open() as catalog, catalog.writing() as connection:
        text = "UPDATE ducklake_snapshot_changes SET changes_made = 'shuffled:1' "
        connection.exec_driver_sql(f"{text} WHERE snapshot_id = 2")
    assert look(sqlite_place, tables=[U]) == [("u", 2, None)]


def test_other_lakes_and_files_are_not_asked_for(sqlite_place: Place) -> None:
    with writer(sqlite_place, *foreign.PLAIN, "INSERT INTO u VALUES (1)"):
        pass
    others = [TableName("second", "main", "u"), FileName.of("main", "exports/u.csv")]
    assert look(sqlite_place, tables=others) == []
    assert look(sqlite_place, tables=[TableName("main", "MAIN", "U")])[0][:2] == ("U", 2)


def publish(catalog: Catalog, run_id: str, slices: Sequence[str], files: Sequence[str]) -> int:
    """Publish slices of ``main.t`` as a step does, in files of these partitions."""
    table = catalog.table("main", "t", catalog.latest().id)
    parts = {each: pa.table({"i": [1], "_wm_partition": [each]}) for each in files}
    data = [
        staging.stage(table.path, table.schema, part, partition_values=(name,))
        for name, part in parts.items()
    ]
    State(catalog).begin_run(run_record(run_id))
    State(catalog).begin_step(
        *(step_record(run_id, target="main.t", slice=each) for each in slices)
    )

    def record(connection: object, snapshot_id: int) -> None:
        for each in slices:
            made = publication(run_id, target="main.t", slice=each)
            store.publish(connection, snapshot_id, made)  # type: ignore[arg-type] # of any commit

    note = json.dumps({"run": run_id, "step": "clean/a", "slice": slices[0]})
    changes = staging.change_set("t", table_id=table.id, add=tuple(data))
    made = catalog.commit(catalog.latest(), changes, extra=note, on_commit=[record])
    return made.id


@pytest.fixture
def partitioned(lake: Catalog) -> Catalog:
    columns = staging.columns(i="int64", _wm_partition="varchar")
    new = staging.new_table(lake, "t", columns, (PartitionField("_wm_partition"),))
    lake.commit(lake.latest(), staging.change_set("t", create=new))
    return lake


def test_a_run_publishes_the_slices_that_it_records(partitioned: Catalog) -> None:
    watch = TableWatch(partitioned, "main", "_wm_partition")
    made = publish(partitioned, "r1", ["a", "b"], ["a", "b", "c"])
    events = watch.changes([T], 1).events
    assert seen(events) == [("t", made, "a"), ("t", made, "b")]
    assert {event.run_id for event in events} == {"r1"}
    for slices in ([""], ["2026-01-01T00:00:00/2026-01-02T00:00:00"]):
        made = publish(partitioned, f"run of {slices}", slices, ["a"])
        assert seen(watch.changes([T], made - 1).events) == [("t", made, None)]


def test_a_run_without_records_is_known_by_its_files(partitioned: Catalog) -> None:
    made = publish(partitioned, "r1", ["a"], ["c"])
    with partitioned.writing() as connection:
        connection.exec_driver_sql("DELETE FROM penstock_step")
    (event,) = TableWatch(partitioned, "main", "_wm_partition").changes([T], 1).events
    assert (event.snapshot_id, event.partition, event.run_id) == (made, "c", "r1")


@pytest.mark.parametrize("inline", [0, 10])
@pytest.mark.parametrize("seed", range(4))
def test_statements_by_chance(sqlite_place: Place, seed: int, inline: int) -> None:
    check_statements_by_chance(sqlite_place, seed, inline)


@pytest.mark.postgres
def test_statements_by_chance_on_postgresql(postgres_uri: str, sqlite_place: Place) -> None:
    check_statements_by_chance(Place(postgres_uri, sqlite_place.data_path), 7, 10)


def check_statements_by_chance(place: Place, seed: int, inline: int) -> None:
    """Whoever looks at any moments sees each change of rows once, as does who looks at the end."""
    chance = random.Random(seed)
    position, events = 0, list[TriggerEvent]()
    with (
        writer(place, *foreign.PARTITIONED, *foreign.PLAIN, inline=inline) as duck,
        place.open(read_only=True) as catalog,
    ):
        actor, watch = Actor(duck, chance), TableWatch(catalog, "main", "_wm_partition")
        for _ in range(30):
            actor.act()
            if chance.random() < 0.4:
                changes = watch.changes([T, U], position)
                events, position = [*events, *changes.events], changes.snapshot_id
        events += watch.changes([T, U], position).events
        at_once = watch.changes([T, U], 0).events
    made = {(n, at): parts for at, deed in actor.changes.items() for n, parts in deed.items()}
    for found in (events, at_once):
        partitions: dict[tuple[str, int], set[str | None]] = defaultdict(set)
        for name, snapshot_id, partition in seen(found):
            partitions[name, snapshot_id or 0].add(partition)
        assert set(partitions) == set(made)
        assert all(parts in ({None}, made[key]) for key, parts in partitions.items())
