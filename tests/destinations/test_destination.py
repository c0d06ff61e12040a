"""The contract of destinations, run on every kind: ``destinations/destination.py``,
``destinations/catalog.py`` and the values that pass, ``destinations/values.py``.

A new kind is one more parameter of the fixture. Views, statements and the change feed, which not
every kind has, are tested with the lake.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Connection, text

from penstock.destinations.destination import Destination, StagedTable
from penstock.destinations.values import At, Ranges
from penstock.errors import CommitConflict, MergeKeyError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

NAME = '"main"."t"'
FIRST = "(1, 'a'), (2, 'b')"
Values = list[tuple[Any, ...]]


@pytest.fixture
def frame(spark: Any) -> Callable[..., DataFrame]:
    """``frame("(1, 'a')")``: rows with these columns, made without a job of Spark."""

    def make(values: str, columns: str = "id, name") -> DataFrame:
        return spark.sql(f"SELECT * FROM VALUES {values} AS v({columns})")  # type: ignore[no-any-return] # the session is any

    return make


Frame = Callable[..., "DataFrame"]


def listed(df: DataFrame) -> Values:
    return sorted((tuple(row) for row in df.collect()), key=str)


def rows(destination: Destination) -> Values:
    return listed(destination.table(NAME).to_df())


def publish(destination: Destination, stage: Callable[[StagedTable], object]) -> None:
    with destination.transaction(author="penstock") as tx:
        stage(tx.table(NAME))


def test_a_table_is_made_with_its_first_rows(destination: Destination, frame: Frame) -> None:
    with destination.transaction() as tx:
        table = tx.table(NAME)
        assert (table.exists, tx.kind_of(NAME), tx.has_changes) == (False, None, False)
        staged = table.append(frame(FIRST))
        assert (staged.rows_inserted, staged.slice_rows, staged.unchanged) == (2, 2, False)
        assert (table.exists, tx.kind_of(NAME), tx.has_changes) == (True, "table", True)
        assert (listed(table.to_df()), table.schema.names) == ([(1, "a"), (2, "b")], ("id", "name"))
        assert destination.catalog.find_table("main", "t", tx.base.id) is None
    assert rows(destination) == [(1, "a"), (2, "b")]
    with destination.transaction() as tx:
        assert tx.table(NAME).made_in == tx.base.id == destination.catalog.latest().id


def test_what_is_rolled_back_never_was(destination: Destination, frame: Frame) -> None:
    publish(destination, lambda table: table.append(frame(FIRST)))
    with destination.transaction() as tx:
        table = tx.table(NAME)
        before = table.candidate
        table.replace(frame("(9, 'z')"))
        table.stage(before)
        assert listed(table.to_df()) == [(1, "a"), (2, "b")]
        with suppress(ZeroDivisionError), table.all_or_nothing():
            table.append(frame("(3, 'c')"))
            1 / 0  # noqa: B018 - raising is the test
        assert not tx.has_changes
        table.drop()
        assert tx.kind_of(NAME) is None
        tx.rollback()
    assert rows(destination) == [(1, "a"), (2, "b")]


def test_a_table_and_a_slice_are_replaced(destination: Destination, frame: Frame) -> None:
    place = ("day", "2")
    with destination.transaction() as tx:
        table = tx.table(NAME)
        for day in ("1", "2"):
            table.replace_slice(frame("(1, 'a')"), "day", day, partition_by=["day"])
        assert listed(table.to_df()) == [(1, "a", "1"), (1, "a", "2")]
    with destination.transaction() as tx:
        table = tx.table(NAME)
        assert table.replace_slice(frame("(1, 'a')"), "day", "2").unchanged
        staged = table.replace_slice(frame(FIRST), "day", "2")
        assert (staged.slice_rows, table.count_rows(place), table.count_rows()) == (2, 2, 3)
        assert [row[0] for row in listed(table.slice_df(*place))] == [1, 2]
        assert table.missing_files(place) == ()
        assert (table.drop_slice("day", "1"), table.count_rows()) == (1, 2)
    publish(destination, lambda table: table.replace(frame("(7)", "other")))
    assert rows(destination) == [(7,)]
    assert listed(destination.table(NAME).rows_at(2).df) == [(1, "a", "2"), (2, "b", "2")]


def test_rows_are_merged_by_key(destination: Destination, frame: Frame) -> None:
    publish(destination, lambda table: table.append(frame(FIRST)))
    with destination.transaction() as tx:
        table = tx.table(NAME)
        assert table.merge(frame("(2, 'b')"), ["id"]).unchanged
        staged = table.merge(frame("(2, 'B'), (3, 'c')"), ["id"])
        assert (staged.rows_updated, staged.rows_inserted, staged.slice_rows) == (1, 1, 3)
        for bad in ("(4, 'x'), (4, 'y')", "(CAST(NULL AS INT), 'x')"):
            with pytest.raises(MergeKeyError):
                table.merge(frame(bad), ["id"])
    assert rows(destination) == [(1, "a"), (2, "B"), (3, "c")]


def test_partitions_and_ranges_are_replaced(destination: Destination, frame: Frame) -> None:
    publish(destination, lambda table: table.append(frame("(1, 'a'), (2, 'b'), (3, 'b')")))
    with destination.transaction() as tx:
        table = tx.table(NAME)
        staged = table.replace_partitions(frame("(4, 'b')"), ["name"])
        assert (listed(table.to_df()), staged.slice_rows) == ([(1, "a"), (4, "b")], 2)
    within = Ranges(((2, 5), (7, 9)), "id")
    with destination.transaction() as tx:
        table = tx.table(NAME)
        assert table.replace_ranges(frame("(4, 'b')"), within).unchanged
        staged = table.replace_ranges(frame("(8, 'x')"), within)
        assert (listed(table.to_df()), staged.slice_rows) == ([(1, "a"), (8, "x")], 1)


def test_versions_are_closed_at_their_addresses(destination: Destination, frame: Frame) -> None:
    publish(destination, lambda table: table.append(frame("(1, 'a'), (2, 'b'), (3, 'c')")))
    with destination.transaction() as tx:
        table = tx.table(NAME)
        found = table.addressed_rows("id < 3")
        assert sorted(row["id"] for row in found.df.collect()) == [1, 2]
        closed = found.df.where("id = 1").selectExpr("id", "'A' AS name", *found.address)
        void = found.df.where("id = 2").select(*found.address)
        staged = table.close_versions(closed, void, frame("(4, 'd')"), found)
        counts = (staged.rows_updated, staged.rows_deleted, staged.rows_inserted)
        assert (counts, staged.slice_rows) == ((1, 1, 1), 3)
    assert rows(destination) == [(1, "A"), (3, "c"), (4, "d")]


def test_many_slices_are_written_and_some_staged(destination: Destination, frame: Frame) -> None:
    made = frame("(1, 'x'), (2, 'y'), (3, 'z')", "id, day")
    with destination.transaction() as tx:
        table = tx.table(NAME)
        written = table.write_slices(made, "day", 3)
        table.stage_slices(written, ["x", "y", "z"], replaces=True)
        each = table.stage_slices(written, ["x", "z"], replaces=True)
        assert {value: staged.slice_rows for value, staged in each.items()} == {"x": 1, "z": 1}
        assert [row["id"] for row in table.slices_df(["z"]).collect()] == [3]
    assert rows(destination) == [(1, "x"), (3, "z")]
    with destination.transaction() as tx:
        table = tx.table(NAME)
        assert table.fits_slices("day")
        again = table.stage_slices(table.write_slices(made, "day", 3), ["x", "y"], replaces=True)
        assert [again[value].unchanged for value in ("x", "y")] == [True, False]


def test_columns_and_comments_follow(destination: Destination, frame: Frame) -> None:
    publish(destination, lambda table: table.append(frame(FIRST)))
    with destination.transaction() as tx:
        table = tx.table(NAME)
        new = frame("(3, 1.5D)", "id, size")
        table.evolve(new, drop=["name"])
        table.append(new)
        table.comment("of the till")
        table.comment("in litres", "size")
    assert rows(destination) == [(1, None), (2, None), (3, 1.5)]
    with destination.transaction() as tx:
        assert tx.table(NAME).comments() == ("of the till", {"size": "in litres"})


def test_records_are_written_in_the_commit_of_the_data(
    destination: Destination, frame: Frame
) -> None:
    def make(connection: Connection, snapshot_id: int) -> None:
        connection.execute(text("CREATE TABLE IF NOT EXISTS noted (id INTEGER)"))
        connection.execute(text("INSERT INTO noted VALUES (:id)"), {"id": snapshot_id})

    def refuse(connection: Connection, snapshot_id: int) -> None:
        make(connection, snapshot_id)
        raise CommitConflict("what it requires does not hold")

    with destination.transaction() as tx:
        tx.table(NAME).append(frame(FIRST))
        tx.on_commit(make)
        made = tx.commit()
    assert made is not None
    tx = destination.transaction()
    tx.table(NAME).append(frame(FIRST))
    tx.on_commit(refuse)
    with pytest.raises(CommitConflict):
        tx.commit()
    with destination.transaction() as tx:  # nothing is staged: there is no commit
        tx.on_commit(refuse)
        assert tx.commit() is None
    assert len(rows(destination)) == 2
    with destination.catalog.reading() as connection:
        assert connection.execute(text("SELECT id FROM noted")).scalars().all() == [made.id]


def test_of_two_that_replace_the_same_rows_one_is_refused(
    destination: Destination, frame: Frame
) -> None:
    publish(destination, lambda table: table.append(frame(FIRST)))
    with destination.transaction() as added:
        added.table(NAME).append(frame("(3, 'c')"))
        publish(destination, lambda table: table.append(frame("(4, 'd')")))
    assert [id_ for id_, _ in rows(destination)] == [1, 2, 3, 4]
    late = destination.transaction()
    late.table(NAME).replace(frame("(5, 'e')"))
    publish(destination, lambda table: table.merge(frame("(1, 'A')"), ["id"]))
    with pytest.raises(CommitConflict):
        late.commit()
    assert rows(destination)[0] == (1, "A")


def test_what_others_did_is_known(destination: Destination, frame: Frame) -> None:
    catalog = destination.catalog
    publish(destination, lambda table: table.append(frame(FIRST)))
    first = catalog.latest()
    with destination.transaction(extra='{"run": 1, "step": 2}') as tx:
        tx.table(NAME).append(frame("(3, 'c')"))
    known = catalog.known_table("main", "t", first)
    assert known is not None
    assert known.schema.names == ("id", "name")
    assert catalog.snapshot(At(first.id)).id == first.id
    assert catalog.changed_since(known, first.id)
    assert not catalog.changed_since(known, catalog.latest().id)
    counts = [catalog.count_rows("main", "t", id_) for id_ in (first.id, catalog.latest().id)]
    assert counts == [2, 3]
    assert catalog.count_rows("main", "other", first.id) is None
    own = ('{"run": %"step": %',)
    with destination.transaction() as tx:
        assert tx.table(NAME).changed_by_others(first.id, own) is None
    publish(destination, lambda table: table.append(frame("(4, 'd')")))
    with destination.transaction() as tx:
        found = tx.table(NAME).changed_by_others(first.id, own)
        assert found is not None
        assert found.id == tx.base.id
